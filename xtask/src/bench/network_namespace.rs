//! A network namespace with loopback only, so that no measured program reaches anything else.

use std::process::{Command, Stdio};

use anyhow::{Result, bail};

/// Environment variable set for the program inside.
const INSIDE: &str = "HIKITE_BENCH_ALONE";
const ENTER: &str = "ip link set lo up && exec \"$0\" \"$@\"";
/// `unshare` flags, for privileged and unprivileged users.
const UNSHARE_FLAGS: &[&[&str]] = &[&["--net"], &["--user", "--map-root-user", "--net"]];

pub(super) enum NetworkNamespace {
    /// This program already runs inside.
    Yes,
    /// A copy ran inside and did everything.
    Done,
    /// This machine does not support network namespaces.
    No,
}

/// Reruns the command inside a network namespace, if the machine supports them.
pub(super) fn enter(words: &[&str]) -> Result<NetworkNamespace> {
    if std::env::var_os(INSIDE).is_some() {
        return Ok(NetworkNamespace::Yes);
    }
    for way in UNSHARE_FLAGS {
        let test =
            Command::new("unshare").args(*way).args(["sh", "-c", "ip link set lo up"]).stderr(Stdio::null()).status();
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
        return Ok(NetworkNamespace::Done);
    }
    Ok(NetworkNamespace::No)
}
