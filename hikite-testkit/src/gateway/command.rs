//! The programs under test, and commands that run to their end.

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use super::{LIMIT, mark};

/// Where the programs are. Cargo tells only a package's own tests where its programs are, so they are given.
#[derive(Debug, Clone)]
pub struct Programs {
    hikite: PathBuf,
    fixture: PathBuf,
    writer: PathBuf,
}

/// A command that has ended.
#[derive(Debug)]
pub struct Run {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Programs {
    /// `hikite` is the built program; the others are built beside it.
    pub fn beside(hikite: impl Into<PathBuf>) -> Self {
        let hikite = hikite.into();
        let fixture =
            std::env::var_os("FIXTURE_UPSTREAM").map_or_else(|| build_others(&hikite), PathBuf::from);
        let writer = fixture.with_file_name("store-writer");
        Self { hikite, fixture, writer }
    }

    /// The program that writes to a store until it is killed.
    pub fn writer(&self) -> Command {
        Command::new(&self.writer)
    }

    /// The program that renews a token until it is killed.
    pub fn refresher(&self) -> Command {
        Command::new(self.writer.with_file_name("token-refresher"))
    }

    pub fn fixture(&self) -> &str {
        self.fixture.to_str().expect("UTF-8")
    }

    /// The program with nothing of the test's own settings, on the config and data of the folder.
    pub fn hikite(&self, folder: &Path) -> Command {
        let mut command = self.hikite_by_file(folder);
        command.arg("--data").arg(folder.join("data"));
        command
    }

    /// The same, with only the config told.
    pub(crate) fn hikite_by_file(&self, folder: &Path) -> Command {
        let mut command = Command::new(&self.hikite);
        command.env_clear().current_dir(folder).env("PATH", std::env::var_os("PATH").unwrap_or_default());
        // Tests look for leftover processes in `/proc`, where nobody but root sees a process that leaves no core dump.
        command.env("HOME", folder).env("TMPDIR", folder).env("HIKITE_DUMPABLE", "1");
        debug_assert!(mark(folder).starts_with("TMPDIR="), "the mark is the variable set here");
        command.arg("--config").arg(folder.join("hikite.json"));
        command
    }

    /// Runs `hikite` with the arguments and waits for its end.
    pub async fn run(&self, folder: &Path, arguments: &[&str]) -> Run {
        let mut command = tokio::process::Command::from(self.hikite(folder));
        command
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        let output =
            tokio::time::timeout(LIMIT * 2, command.output()).await.expect("it ends").expect("it starts");
        Run {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).expect("UTF-8"),
            stderr: String::from_utf8(output.stderr).expect("UTF-8"),
        }
    }
}

/// Cargo does nothing where the program is fresh.
fn build_others(hikite: &Path) -> PathBuf {
    let folder = hikite.parent().expect("a folder");
    let profile = match folder.file_name().and_then(|name| name.to_str()) {
        Some("debug") | None => "dev",
        Some(other) => other,
    };
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    let mut command = Command::new(cargo);
    command.args([
        "build",
        "--quiet",
        "--profile",
        profile,
        "--bin",
        "fixture-upstream",
        "--bin",
        "store-writer",
        "--bin",
        "token-refresher",
        "--manifest-path",
        manifest,
    ]);
    command.arg("--target-dir").arg(folder.parent().expect("a folder"));
    assert!(command.status().expect("cargo").success(), "the testkit does not build");
    folder.join("fixture-upstream")
}
