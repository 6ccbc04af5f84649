//! The programs under test, and commands that run to completion.

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use super::{LIMIT, mark};

/// Paths of the programs. Cargo reveals only a package's own programs to its tests, so the paths are passed in.
#[derive(Debug, Clone)]
pub struct TestPrograms {
    hikite: PathBuf,
    fixture: PathBuf,
    writer: PathBuf,
}

/// Output of a finished command.
#[derive(Debug)]
pub struct CommandOutput {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl TestPrograms {
    /// Creates it from the path of the built `hikite`; the others are built beside it. `HIKITE_UNDER_TEST` names
    /// another `hikite`, such as an older version, to test instead.
    pub fn beside(hikite: impl Into<PathBuf>) -> Self {
        let built = hikite.into();
        let fixture = std::env::var_os("FIXTURE_UPSTREAM").map_or_else(|| build_others(&built), PathBuf::from);
        let writer = fixture.with_file_name("store-writer");
        let hikite = std::env::var_os("HIKITE_UNDER_TEST").map_or(built, PathBuf::from);
        Self { hikite, fixture, writer }
    }

    /// Returns the program that writes to a store until killed.
    pub fn writer(&self) -> Command {
        Command::new(&self.writer)
    }

    /// Returns the program that refreshes a token until killed.
    pub fn refresher(&self) -> Command {
        Command::new(self.writer.with_file_name("token-refresher"))
    }

    pub fn fixture(&self) -> &str {
        self.fixture.to_str().expect("UTF-8")
    }

    /// Returns a command with a clean environment, on the config and data of the folder.
    pub fn hikite(&self, folder: &Path) -> Command {
        let mut command = self.hikite_by_file(folder);
        command.arg("--data").arg(folder.join("data"));
        command
    }

    /// Returns a command with a clean environment and only the config as an argument.
    pub(crate) fn hikite_by_file(&self, folder: &Path) -> Command {
        let mut command = Command::new(&self.hikite);
        command.env_clear().current_dir(folder).env("PATH", std::env::var_os("PATH").unwrap_or_default());
        // Tests look for leftover processes in `/proc`, where only root sees a process that is not dumpable.
        command.env("HOME", folder).env("TMPDIR", folder).env("HIKITE_DUMPABLE", "1");
        debug_assert!(mark(folder).starts_with("TMPDIR="), "the mark is the variable set here");
        command.arg("--config").arg(folder.join("hikite.json"));
        command
    }

    /// Runs `hikite` with the arguments and waits for its exit.
    pub async fn run(&self, folder: &Path, arguments: &[&str]) -> CommandOutput {
        let mut command = tokio::process::Command::from(self.hikite(folder));
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        let output = tokio::time::timeout(LIMIT * 2, command.output()).await.expect("it ends").expect("it starts");
        CommandOutput {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).expect("UTF-8"),
            stderr: String::from_utf8(output.stderr).expect("UTF-8"),
        }
    }
}

/// Builds the other programs; Cargo does nothing if they are fresh.
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
