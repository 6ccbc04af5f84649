//! `hikite store`: look after what is kept between runs.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, Subcommand};
use hikite_store::{NEWEST, Store, StoreUrl};
use serde_json::json;

use super::{Common, WrongSetup, print};
use crate::progress;

#[derive(Debug, Subcommand)]
pub(crate) enum StoreCommand {
    /// Look through the store for what is wrong
    Check(Check),
    /// Write everything into one SQLite file, also while hikite runs
    Backup(Backup),
    /// Bring the store to the newest version, or copy it into another
    Migrate(Migrate),
}

#[derive(Debug, Args)]
pub(crate) struct Check {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Backup {
    /// The file to make; it must not exist yet
    file: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct Migrate {
    /// Copy everything into this empty store: `sqlite:PATH` or `postgres://…`
    #[arg(long, value_name = "URL", env = "HIKITE_STORE_TO", hide_env_values = true)]
    to: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl StoreCommand {
    pub(crate) async fn run(self, common: &Common) -> Result<ExitCode> {
        let config = common.load()?;
        let store = Store::open_keeping(&config.store_url(), &config.data).await?;
        let outcome = match self {
            Self::Check(check) => check.run(&store).await,
            Self::Backup(backup) => backup.run(&store).await,
            Self::Migrate(migrate) => migrate.run(&store).await,
        };
        store.close().await;
        outcome
    }
}

impl Check {
    async fn run(self, store: &Store) -> Result<ExitCode> {
        let findings = progress::tell_if_long("looking through the store", store.check()).await?;
        let is_well = findings.is_empty();
        if self.json {
            let report = json!({ "store": store.url().to_string(), "version": NEWEST, "findings": findings });
            print(&report.to_string());
        } else if is_well {
            print(&format!("{} is well (version {NEWEST})", store.url()));
        } else {
            print(&findings.join("\n"));
        }
        Ok(ExitCode::from(u8::from(!is_well)))
    }
}

impl Backup {
    async fn run(self, store: &Store) -> Result<ExitCode> {
        let bytes = progress::tell_if_long("copying the store", store.backup(&self.file)).await?;
        print(&format!("{}: {bytes} bytes", self.file.display()));
        Ok(ExitCode::SUCCESS)
    }
}

impl Migrate {
    async fn run(self, store: &Store) -> Result<ExitCode> {
        let (from, to) = (store.found_version(), NEWEST);
        let copied = match &self.to {
            Some(url) => Some(copy(store, url).await?),
            None => None,
        };
        if self.json {
            let copied = copied.map(|(url, rows)| json!({ "to": url.to_string(), "rows": rows }));
            let report =
                json!({ "store": store.url().to_string(), "from": from, "version": to, "copied": copied });
            print(&report.to_string());
            return Ok(ExitCode::SUCCESS);
        }
        print(&match from {
            _ if from == to => format!("{}: version {to}, nothing to do", store.url()),
            0 => format!("{}: made, version {to}", store.url()),
            _ => format!("{}: from version {from} to {to}", store.url()),
        });
        if let Some((url, rows)) = copied {
            print(&format!("{url}: {rows} rows copied; name it in `store.url` to use it"));
        }
        Ok(ExitCode::SUCCESS)
    }
}

async fn copy(store: &Store, url: &str) -> Result<(StoreUrl, u64)> {
    let url = StoreUrl::parse(url).map_err(|bad| WrongSetup(format!("`--to`: {bad}")))?;
    let other = Store::open(&url).await?;
    let outcome = progress::tell_if_long("copying the store", store.copy_to(&other)).await;
    other.close().await;
    Ok((url, outcome?))
}
