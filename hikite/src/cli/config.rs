//! `hikite config`: the subcommands check, show, schema and import.

use std::process::ExitCode;

use anyhow::Result;
use clap::Subcommand;
use hikite_config as config;

use super::import::ImportArgs;
use super::{GlobalArgs, note, print};
use crate::exposure;

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Check the config file and report problems
    Check,
    /// Print the effective config with secrets hidden
    Show,
    /// Print the JSON Schema of the config file
    Schema,
    /// Import the servers from another client's config, as `hikite import` does
    Import(ImportArgs),
}

impl ConfigCommand {
    pub(crate) async fn run(self, common: &GlobalArgs) -> Result<ExitCode> {
        match self {
            Self::Check => check(common)?,
            Self::Show => print(&format!("{:#}", config::show(&common.load()?))),
            Self::Schema => print(&format!("{:#}", config::schema())),
            Self::Import(import) => return Box::pin(import.run(common)).await,
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn check(common: &GlobalArgs) -> Result<()> {
    let config = config::Config::load(common.config.as_deref(), &|name| std::env::var(name).ok())?;
    let file = config.file.as_deref().map_or_else(|| "no file, defaults".into(), |file| file.display().to_string());
    for warning in &config.warnings {
        note(&format!("warning: {warning}"));
    }
    if let Some(advice) = config.advice() {
        note(&format!("note: {advice}"));
    }
    config.check_entries()?;
    exposure::check(&config)?;
    print(&format!("ok: {file}: {} servers, {} categories", config.servers.len(), config.categories.len()));
    Ok(())
}
