//! `hikite __guard`: what stands between hikite and a stdio server. Not for people.

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct Guard {
    /// The process id of the hikite that started it
    parent: u32,
    command: OsString,
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    args: Vec<OsString>,
}

impl Guard {
    pub(crate) fn run(self) -> Result<ExitCode> {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().context("no runtime")?;
        let code = runtime.block_on(hikite_upstream::guard(self.parent, self.command, self.args));
        Ok(ExitCode::from(code))
    }
}
