//! `hikite account`: whose keys are used, from a terminal.

use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::{Args, Subcommand};

use super::{Common, server_login};

#[derive(Debug, Subcommand)]
pub(crate) enum AccountCommand {
    /// Log in to an upstream server with a browser, and wait until that is done
    Connect(Connect),
}

#[derive(Debug, Args)]
pub(crate) struct Connect {
    /// A server of `mcpServers`
    name: String,
}

impl AccountCommand {
    pub(crate) async fn run(self, common: &Common) -> Result<ExitCode> {
        let Self::Connect(Connect { name }) = self;
        if !server_login::is_server(&common.load()?, &name) {
            bail!("there is nothing to log in to: `{name}`");
        }
        server_login::connect(common, &name).await
    }
}
