//! `hikite store`: checks, backs up, restores and migrates the store.

mod keys;
mod restore;
mod working_copy;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, Subcommand};
use hikite_store::{NEWEST, Store, StoreUrl};
use serde_json::json;

use super::{GlobalArgs, InvalidSetup, print};
use crate::progress;

#[derive(Debug, Subcommand)]
pub(crate) enum StoreCommand {
    /// Check the store for problems
    Check(StoreCheckArgs),
    /// Back up the store to one SQLite file, also while hikite runs
    Backup(StoreBackupArgs),
    /// Restore the store from a backup; the current store is kept next to it
    Restore(restore::StoreRestoreArgs),
    /// Migrate the store to the newest version, or copy it to another store
    Migrate(StoreMigrateArgs),
}

#[derive(Debug, Args)]
pub(crate) struct StoreCheckArgs {
    /// Check this backup instead of the store, and that its secrets can be decrypted
    file: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct StoreBackupArgs {
    /// The file to create; it must not exist yet
    file: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct StoreMigrateArgs {
    /// Copy everything to this empty store: `sqlite:PATH` or `postgres://…`
    #[arg(long, value_name = "URL", env = "HIKITE_STORE_TO", hide_env_values = true)]
    to: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl StoreCommand {
    pub(crate) async fn run(self, common: &GlobalArgs) -> Result<ExitCode> {
        let config = common.load()?;
        let command = match self {
            Self::Restore(restore) => return restore.run(&config).await,
            Self::Check(StoreCheckArgs { file: Some(file), json }) => {
                return restore::check_backup(&config, &file, json).await;
            }
            command => command,
        };
        if let Self::Migrate(StoreMigrateArgs { to: Some(_), .. }) = &command {
            // Changes that a running hikite makes during the copy would be lost.
            hikite_store::check_unused(&config.store_url()).await?;
        }
        let store = Store::open_with_backup(&config.store_url(), &config.data).await?;
        let outcome = match command {
            Self::Check(check) => check.run(&store).await,
            Self::Backup(backup) => backup.run(&store).await,
            Self::Migrate(migrate) => migrate.run(&store).await,
            Self::Restore(_) => Ok(ExitCode::SUCCESS),
        };
        store.close().await;
        outcome
    }
}

impl StoreCheckArgs {
    async fn run(self, store: &Store) -> Result<ExitCode> {
        let findings = progress::with_spinner("checking the store", store.check()).await?;
        let is_well = findings.is_empty();
        let keys = keys::needed(store).await?;
        if self.json {
            let report = json!({
                "store": store.url().to_string(), "version": NEWEST, "findings": findings, "keys": keys,
            });
            print(&report.to_string());
        } else if is_well {
            print(&format!("{} is fine (version {NEWEST}); {}", store.url(), keys::describe(&keys)));
        } else {
            print(&findings.join("\n"));
        }
        Ok(ExitCode::from(u8::from(!is_well)))
    }
}

impl StoreBackupArgs {
    async fn run(self, store: &Store) -> Result<ExitCode> {
        let mut keys = keys::needed(store).await?;
        let bytes = progress::with_spinner("copying the store", store.backup(&self.file)).await?;
        // The key may have been rotated meanwhile; then either may be needed.
        keys.extend(keys::needed(store).await?);
        if self.json {
            print(&json!({ "file": self.file, "bytes": bytes, "keys": keys }).to_string());
        } else {
            print(&format!("{}: {bytes} bytes; {}", self.file.display(), keys::describe(&keys)));
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl StoreMigrateArgs {
    async fn run(self, store: &Store) -> Result<ExitCode> {
        let (from, to) = (store.found_version(), NEWEST);
        let copied = match &self.to {
            Some(url) => Some(copy(store, url).await?),
            None => None,
        };
        if self.json {
            let copied = copied.map(|(url, rows)| json!({ "to": url.to_string(), "rows": rows }));
            let report = json!({ "store": store.url().to_string(), "from": from, "version": to, "copied": copied });
            print(&report.to_string());
            return Ok(ExitCode::SUCCESS);
        }
        print(&match from {
            _ if from == to => format!("{}: version {to}, nothing to do", store.url()),
            0 => format!("{}: created, version {to}", store.url()),
            _ => format!("{}: from version {from} to {to}", store.url()),
        });
        if let Some((url, rows)) = copied {
            print(&format!("{url}: {rows} rows copied; set it as `store.url` to use it"));
        }
        Ok(ExitCode::SUCCESS)
    }
}

async fn copy(store: &Store, url: &str) -> Result<(StoreUrl, u64)> {
    let url = StoreUrl::parse(url).map_err(|bad| InvalidSetup(format!("`--to`: {bad}")))?;
    hikite_store::check_unused(&url).await?;
    let other = Store::open(&url).await?;
    let outcome = progress::with_spinner("copying the store", store.copy_to(&other)).await;
    other.close().await;
    Ok((url, outcome?))
}
