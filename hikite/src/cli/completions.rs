//! `hikite completions SHELL`: prints a shell completion script.

use std::process::ExitCode;

use clap::{Args, Command};
use clap_complete::Shell;

#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// The shell to complete for
    shell: Shell,
}

impl Completions {
    pub(crate) fn run(self, command: &mut Command) -> ExitCode {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, command, "hikite", &mut script);
        super::print(String::from_utf8_lossy(&script).trim_end());
        ExitCode::SUCCESS
    }
}
