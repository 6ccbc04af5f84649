//! Access to the operating system's keyring through `secret-tool` or, on macOS, `security`. The key is never passed
//! as a command-line argument, where other users could read it.

use std::path::Path;

use anyhow::{Context, Result, anyhow};
use hikite_core::secret::Secret;
use hikite_vault::MasterKey;

use super::program::output;

const MISSING: &str =
    "hint: Install it (`libsecret-tools` on Debian), or store the key elsewhere: see `vault` in the config.";

/// Returns the key of this data folder, and creates one if there is none.
pub(super) async fn get(data: &Path) -> Result<Secret> {
    if let Some(key) = look_up(data).await? {
        return Ok(key);
    }
    put(data, &MasterKey::random()?.text()).await?;
    look_up(data).await?.ok_or_else(|| anyhow!("The keyring does not contain the vault key."))
}

pub(super) async fn put(data: &Path, keys: &Secret) -> Result<()> {
    // The programs read a single line.
    let keys = keys.expose().split_whitespace().collect::<Vec<_>>().join(" ");
    let (words, input) = if cfg!(target_os = "macos") {
        let line = format!("add-generic-password -U -s hikite -a \"{}\" -w \"{keys}\"\n", name(data));
        (vec!["security".to_owned(), "-i".to_owned()], line)
    } else {
        let words = ["secret-tool", "store", "--label=hikite", "application", "hikite", "vault"];
        (words.map(str::to_owned).into_iter().chain([name(data)]).collect(), keys)
    };
    output(&words, Some(&Secret::hidden(input))).await.context(MISSING)?;
    Ok(())
}

async fn look_up(data: &Path) -> Result<Option<Secret>> {
    let words: Vec<String> = if cfg!(target_os = "macos") {
        let words = ["security", "find-generic-password", "-s", "hikite", "-w", "-a"];
        words.map(str::to_owned).into_iter().chain([name(data)]).collect()
    } else {
        let words = ["secret-tool", "lookup", "application", "hikite", "vault"];
        words.map(str::to_owned).into_iter().chain([name(data)]).collect()
    };
    match output(&words, None).await {
        // `security` reports an error if it finds nothing.
        Err(error) if error.to_string().contains("could not be found") => Ok(None),
        outcome => outcome.context(MISSING),
    }
}

/// Returns the account name that tells several instances on one machine apart.
fn name(data: &Path) -> String {
    data.display().to_string().replace(['"', '\\', '\n'], "_")
}
