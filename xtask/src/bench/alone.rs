//! A network of its own with nothing but loopback in it, so that no program that is measured reaches anything else.

use std::process::{Command, Stdio};

use anyhow::{Result, bail};

/// Set for the program inside.
const INSIDE: &str = "HIKITE_BENCH_ALONE";
const ENTER: &str = "ip link set lo up && exec \"$0\" \"$@\"";
/// With the rights to make such a network, and without.
const WAYS: &[&[&str]] = &[&["--net"], &["--user", "--map-root-user", "--net"]];

pub(super) enum Alone {
    /// This program is inside already.
    Yes,
    /// One was started inside and did everything.
    Done,
    /// This machine has no such networks.
    No,
}

/// Does the same command inside such a network, if the machine has them.
pub(super) fn enter(words: &[&str]) -> Result<Alone> {
    if std::env::var_os(INSIDE).is_some() {
        return Ok(Alone::Yes);
    }
    for way in WAYS {
        let test = Command::new("unshare")
            .args(*way)
            .args(["sh", "-c", "ip link set lo up"])
            .stderr(Stdio::null())
            .status();
        if !test.is_ok_and(|status| status.success()) {
            continue;
        }
        let status = Command::new("unshare")
            .args(*way)
            .args(["sh", "-c", ENTER])
            .arg(std::env::current_exe()?)
            .arg("bench")
            .args(words)
            .env(INSIDE, "1")
            .status()?;
        if !status.success() {
            bail!("`bench` failed");
        }
        return Ok(Alone::Done);
    }
    Ok(Alone::No)
}
