//! `hikite disconnect`: removes hikite's entry from the config file of a client, and revokes its token.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use hikite_config::McpClient;

use super::connect::{connectable, revoke_token_of};
use super::connect_file::{ClientFile, Confirmation};
use super::{GlobalArgs, note};

#[derive(Debug, Args)]
pub(crate) struct DisconnectArgs {
    /// The client: claude-code, claude-desktop, cursor, vscode, codex, windsurf, zed or gemini-cli
    #[arg(value_parser = connectable)]
    client: &'static McpClient,
    #[command(flatten)]
    confirmation: Confirmation,
}

impl DisconnectArgs {
    pub(crate) async fn run(self, common: &GlobalArgs) -> Result<ExitCode> {
        let file = ClientFile::open(self.client)?;
        let Some(entry) = file.entry()? else {
            note(&format!("{} is not connected: `{}` has no entry `hikite`.", self.client.title, file.shown()));
            return Ok(ExitCode::SUCCESS);
        };
        let text = file.without()?;
        if self.confirmation.given(&[file.diff(&text)])? {
            file.write_without(&text)?;
            note(&format!("{} is disconnected: wrote `{}`.", self.client.title, file.shown()));
            revoke_token_of(self.client, Some(&entry), common).await?;
        }
        Ok(ExitCode::SUCCESS)
    }
}
