//! The keyring of the operating system, through its own program: `secret-tool` or, on macOS, `security`. The key never
//! stands among the arguments of a program, where others could read it.

use std::path::Path;

use anyhow::{Context, Result, anyhow};
use hikite_core::secret::Secret;
use hikite_vault::MasterKey;

use super::program::output;

const MISSING: &str =
    "hint: install it (`libsecret-tools` on Debian), or keep the key elsewhere: see `vault` in the config";

/// The key of this data folder; made if there is none.
pub(super) async fn get(data: &Path) -> Result<Secret> {
    if let Some(key) = look_up(data).await? {
        return Ok(key);
    }
    put(data, &MasterKey::random()?.text()).await?;
    look_up(data).await?.ok_or_else(|| anyhow!("the keyring does not keep the key of the vault"))
}

pub(super) async fn put(data: &Path, keys: &Secret) -> Result<()> {
    // One line, because the programs take one.
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
        // This one complains where it finds nothing.
        Err(error) if error.to_string().contains("could not be found") => Ok(None),
        outcome => outcome.context(MISSING),
    }
}

/// Which of several on one machine.
fn name(data: &Path) -> String {
    data.display().to_string().replace(['"', '\\', '\n'], "_")
}
