//! `hikite store restore`: restores the store from a backup. A copy of the backup is checked and re-encrypted under
//! the current master key before the store is touched. The previous store is kept beside it.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::Args;
use hikite_config::Config;
use hikite_core::caller::Caller;
use hikite_core::error::Error;
use hikite_core::secret::Secret;
use hikite_core::time::rfc3339;
use hikite_gateway::{now_ms, record_admin};
use hikite_identity::SecretStore;
use hikite_store::{NEWEST, Store, StoreUrl};
use serde_json::json;

use super::keys::{self, AvailableKeys, NeededKeys};
use super::working_copy::WorkingCopy;
use crate::cli::store_session::at_terminal;
use crate::cli::{InvalidSetup, note, print};
use crate::master_key::MasterKeyLocations;
use crate::progress;

#[derive(Debug, Args)]
pub(crate) struct StoreRestoreArgs {
    /// A file made with `hikite store backup`
    file: PathBuf,
    /// A file with an earlier master key, if the key for the backup is not available elsewhere
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
    /// A newer backup that contains the earlier keys, if the store itself is lost
    #[arg(long, value_name = "FILE")]
    keys_from: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl StoreRestoreArgs {
    pub(crate) async fn run(self, config: &Config) -> Result<ExitCode> {
        let url = config.store_url();
        if url.is_memory() {
            return Err(
                InvalidSetup("A store in memory cannot be restored because it ends with its process.".into()).into()
            );
        }
        if config.store.is_none() {
            crate::token::make_folder(&config.data)?;
        }
        let place = url.path().map_or_else(|| config.data.join("hikite.db"), Path::to_owned);
        let copy = WorkingCopy::beside(&self.file, &place)?;
        check_unused(&url).await?;
        let keys = self.keys(config, &url, &place).await?;
        let key = keys.ring.current().id().to_owned();
        let needed = progress::with_spinner("checking the backup", self.prepare(&copy, keys)).await?;
        // Checked again: a hikite may have been started meanwhile.
        check_unused(&url).await?;
        let previous = previous_path(&place);
        let install = hikite_store::install(copy.path(), &url, &previous);
        let had = progress::with_spinner("restoring the backup", install).await?;
        self.record(config, &url).await?;
        self.tell(&url, (&needed, &key), had.then_some(previous.as_path()));
        Ok(ExitCode::SUCCESS)
    }

    /// Collects all available keys: the current one, the retired ones in the store, and those from flags.
    async fn keys(&self, config: &Config, url: &StoreUrl, place: &Path) -> Result<AvailableKeys> {
        let mut keys = AvailableKeys::new(MasterKeyLocations::of(config).ring().await?);
        if url.path().is_none_or(Path::exists) {
            match Store::open(url).await {
                Ok(store) => {
                    let added = keys.add_retired_from(&store).await;
                    store.close().await;
                    if let Err(error) = added {
                        note(&format!("The keys in the current store cannot be decrypted: {error:#}"));
                    }
                }
                Err(error) if url.path().is_some() => {
                    note(&format!("The current store cannot be read and is moved away unchanged: {error}"));
                }
                Err(error) => return Err(error.into()),
            }
        }
        if let Some(file) = &self.key_file {
            let text = std::fs::read_to_string(file).with_context(|| format!("cannot read `{}`", file.display()))?;
            let named_key = Secret::hidden(text);
            keys.add(&named_key).with_context(|| format!("`{}` contains no key", file.display()))?;
        }
        if let Some(file) = &self.keys_from {
            let newer = WorkingCopy::beside(file, &with_suffix(place, ".keys"))?;
            let store = newer.open().await?;
            let added = keys.add_retired_from(&store).await;
            store.close().await;
            added?;
        }
        Ok(keys)
    }

    /// Checks the copy and re-encrypts its secrets under the current key. Returns the keys it needed.
    async fn prepare(&self, copy: &WorkingCopy, keys: AvailableKeys) -> Result<NeededKeys> {
        let store = copy.open().await?;
        let outcome = prepare(&store, keys, &self.file).await;
        let settled = store.settle().await;
        let needed = outcome?;
        settled?;
        Ok(needed)
    }

    async fn record(&self, config: &Config, url: &StoreUrl) -> Result<()> {
        if !config.audit.enabled {
            return Ok(());
        }
        let store = Store::open(url).await?;
        let what = self.file.file_name().unwrap_or_default().to_string_lossy();
        let origin = at_terminal("hikite store");
        let done = async { Ok::<_, Error>(()) };
        let recorded = record_admin(&store, (&Caller::owner(), &origin), "store.restore", &what, done).await;
        store.close().await;
        Ok(recorded?)
    }

    fn tell(&self, url: &StoreUrl, (needed, key): (&NeededKeys, &str), previous: Option<&Path>) {
        if self.json {
            let report = json!({
                "store": url.to_string(), "file": self.file, "version": NEWEST,
                "neededKeys": needed, "key": key, "before": previous,
            });
            print(&report.to_string());
        } else {
            print(&format!("{url}: restored from {}", self.file.display()));
            if !needed.is_empty() {
                print(&format!("{}; they are now encrypted with {key}", keys::describe(needed)));
            }
            if let Some(previous) = previous {
                print(&format!("The previous store is in {}.", previous.display()));
            }
        }
        note(
            "Users, tokens and permissions are as they were when the backup was made. Revoke again everything that \
             was revoked since then.",
        );
    }
}

/// Checks a backup for `hikite store check FILE`, and reports the keys it needs and whether they are available.
pub(super) async fn check_backup(config: &Config, file: &Path, is_json: bool) -> Result<ExitCode> {
    let url = config.store_url();
    let restore = StoreRestoreArgs { file: file.to_owned(), key_file: None, keys_from: None, json: is_json };
    let copy = WorkingCopy::beside(file, file)?;
    let here = restore.keys(config, &url, file).await?;
    let store = copy.open().await?;
    let work = async {
        let findings = store.check().await?;
        Ok::<_, anyhow::Error>((findings, keys::needed(&store).await?))
    };
    let outcome = progress::with_spinner("checking the backup", work).await;
    store.close().await;
    let (mut findings, needed) = outcome?;
    findings.extend(here.missing(&needed).map(|id| format!("the master key {id} that it needs is not available")));
    let is_well = findings.is_empty();
    if is_json {
        let report = json!({ "file": file, "version": NEWEST, "findings": findings, "keys": needed });
        print(&report.to_string());
    } else if is_well {
        print(&format!("{} is fine; {}, which is available", file.display(), keys::describe(&needed)));
    } else {
        print(&format!("{}\n{}", findings.join("\n"), keys::describe(&needed)));
    }
    Ok(ExitCode::from(u8::from(!is_well)))
}

async fn check_unused(url: &StoreUrl) -> Result<()> {
    match hikite_store::check_unused(url).await {
        // A damaged store is not in use, and is set aside unchanged.
        Err(error) if url.path().is_some() && error.fault == hikite_store::StoreFault::Damaged => Ok(()),
        outcome => Ok(outcome?),
    }
}

async fn prepare(store: &Store, keys: AvailableKeys, file: &Path) -> Result<NeededKeys> {
    let shown = file.display();
    if store.found_version() == 0 {
        bail!("`{shown}` is not a backup of a store.\nhint: Give a file made with `hikite store backup`.");
    }
    let findings = store.check().await?;
    if !findings.is_empty() {
        bail!("`{shown}` is damaged: {}\nhint: Use another backup.", findings.join("; "));
    }
    let needed = keys::needed(store).await?;
    let missing: Vec<&str> = keys.missing(&needed).collect();
    if !missing.is_empty() {
        bail!(
            "The secrets of `{shown}` need the master key {}, which is not available.\nhint: Give that key with \
             `--key-file`, or a newer backup that contains it with `--keys-from`.",
            missing.join(", ")
        );
    }
    let secret_store = SecretStore::new(store.clone(), keys.ring);
    let rotated = secret_store.rotate().await?;
    secret_store.retire_older_keys_at(&keys.since).await?;
    let wrong = [rotated.left, secret_store.check().await?].concat();
    if let Some(first) = wrong.first() {
        bail!(
            "{} secrets of `{shown}` cannot be decrypted, the first is {}: {}",
            wrong.len(),
            first.record,
            first.reason
        );
    }
    Ok(needed)
}

/// Returns the path for the previous store: `hikite.db.before-restore-2026-11-17T09-30-00Z`.
fn previous_path(place: &Path) -> PathBuf {
    let now = rfc3339(now_ms()).replace(':', "-");
    with_suffix(place, &format!(".before-restore-{now}"))
}

fn with_suffix(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    name.into()
}
