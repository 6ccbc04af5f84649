//! The master key of the vault: its location and how it is read. Keys are read at start-up, and again when a secret
//! is encrypted with an unknown key.

mod keyring;
mod program;

use std::fmt;
use std::fs;
use std::io::Write;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, anyhow, bail};
use hikite_config::{Config, KeyLocation};
use hikite_core::error::{Error, ErrorKind};
use hikite_core::secret::Secret;
use hikite_core::source::BoxFuture;
use hikite_identity::SecretStore;
use hikite_store::Store;
use hikite_vault::{KeyRing, MasterKey};

use crate::token;

/// Default file name in the data folder.
const FILE: &str = "vault.key";

/// Locations of the current and the previous master key.
#[derive(Clone, Debug)]
pub(crate) struct MasterKeyLocations {
    key: KeyLocation,
    previous: Option<KeyLocation>,
    data: PathBuf,
}

impl MasterKeyLocations {
    pub(crate) fn of(config: &Config) -> Self {
        let vault = &config.vault;
        Self { key: vault.key.clone(), previous: vault.previous.clone(), data: config.data.clone() }
    }

    /// Reads the keys for this store. Creates a key on first start, but never one that would replace a key in use.
    pub(crate) async fn open(&self, store: &Store) -> Result<KeyRing> {
        if self.is_ephemeral(store) {
            return Ok(KeyRing::new(MasterKey::random()?, Vec::new()));
        }
        // Checked again: another process creates the key file before it encrypts anything.
        if let Some(file) = self.file().filter(|file| !file.exists())
            && !store.vault().keys().await?.is_empty()
            && !file.exists()
        {
            bail!(
                "`{0}` does not exist, but the store contains secrets encrypted with it\nhint: Restore the file \
                 from your backup, or import a backup into a new store with `hikite vault import`.",
                file.display()
            );
        }
        self.ring().await
    }

    /// Opens the secret store. It reads the keys again for an unknown key id, unless the store is in memory.
    pub(crate) async fn secret_store(self, store: &Store) -> Result<SecretStore> {
        let secret_store = SecretStore::new(store.clone(), self.open(store).await?);
        Ok(if self.is_ephemeral(store) { secret_store } else { secret_store.with_keys(Arc::new(self)) })
    }

    /// Returns `true` if the store is in memory and needs no persistent key.
    fn is_ephemeral(&self, store: &Store) -> bool {
        store.url().is_memory() && matches!(self.key, KeyLocation::DefaultFile)
    }

    /// Reads all keys, the encrypting one first.
    pub(crate) async fn ring(&self) -> Result<KeyRing> {
        let ring = self.read(&self.key, true).await?;
        match &self.previous {
            Some(previous) => Ok(ring.and(self.read(previous, false).await?)),
            None => Ok(ring),
        }
    }

    /// Returns `true` if hikite can create a new key at this location, `false` if its owner must.
    pub(crate) fn can_create_key(&self) -> bool {
        self.previous.is_none()
            && matches!(self.key, KeyLocation::DefaultFile | KeyLocation::File(_) | KeyLocation::Keyring)
    }

    /// Replaces the stored keys. The old ones remain until the new ones are written.
    pub(crate) async fn replace(&self, ring: &KeyRing) -> Result<()> {
        match self.file() {
            Some(file) => replace(&file, &ring.text()),
            None => keyring::put(&self.data, &ring.text()).await,
        }
    }

    async fn read(&self, place: &KeyLocation, make: bool) -> Result<KeyRing> {
        let (text, from) = match place {
            KeyLocation::DefaultFile | KeyLocation::File(_) => {
                let file = self.file_of(place).unwrap_or_default();
                (read_file(&file, make)?, format!("`{}`", file.display()))
            }
            KeyLocation::Variable(name) => {
                let text = std::env::var(name).ok().filter(|text| !text.trim().is_empty());
                let text = text.ok_or_else(|| {
                    anyhow!(
                        "The variable `{name}` does not contain the vault key.\nhint: Set it, or choose another \
                     location: see `vault` in the config."
                    )
                })?;
                (Secret::hidden(text), format!("the variable `{name}`"))
            }
            KeyLocation::Keyring => (keyring::get(&self.data).await?, "the keyring".to_owned()),
            KeyLocation::Command(words) => {
                let text = program::output(words, None).await?;
                (text.ok_or_else(|| anyhow!("`{}` did not print a key", words[0]))?, format!("`{}`", words[0]))
            }
        };
        KeyRing::parse(text.expose()).with_context(|| format!("{from} does not contain a vault key"))
    }

    /// Returns the path of the key, if it is stored in a file.
    fn file(&self) -> Option<PathBuf> {
        self.file_of(&self.key)
    }

    fn file_of(&self, place: &KeyLocation) -> Option<PathBuf> {
        match place {
            KeyLocation::DefaultFile => Some(self.data.join(FILE)),
            KeyLocation::File(file) => Some(file.clone()),
            _ => None,
        }
    }
}

impl fmt::Display for MasterKeyLocations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.key {
            KeyLocation::Variable(name) => write!(f, "the variable {name}"),
            KeyLocation::Keyring => f.write_str("the keyring"),
            KeyLocation::Command(words) => write!(f, "the program {}", words[0]),
            place => write!(f, "{}", self.file_of(place).unwrap_or_default().display()),
        }
    }
}

impl hikite_identity::MasterKeySource for MasterKeyLocations {
    fn read(&self) -> BoxFuture<'_, Result<KeyRing, Error>> {
        Box::pin(async {
            self.ring().await.map_err(|error| {
                tracing::error!("failed to read the vault key: {error:#}");
                Error::new(ErrorKind::Internal, "The vault key cannot be read.")
                    .hint("The log of hikite has the reason.")
            })
        })
    }
}

fn read_file(file: &Path, make: bool) -> Result<Secret> {
    if !make && !file.exists() {
        bail!("`{}` does not exist.\nhint: See `vault.previous_key_file` in the config.", file.display());
    }
    if let Some(folder) = file.parent() {
        token::make_folder(folder)?;
    }
    token::private(file, || Ok(MasterKey::random()?.text()))
}

/// Writes a temporary file and renames it, so that the file is complete at any time.
fn replace(file: &Path, keys: &Secret) -> Result<()> {
    let beside = file.with_extension("new");
    let write = || -> std::io::Result<()> {
        let mut options = fs::OpenOptions::new();
        let mut new = options.write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
        new.set_permissions(fs::Permissions::from_mode(0o600))?;
        writeln!(new, "{}", keys.expose())?;
        new.sync_all()?;
        fs::rename(&beside, file)?;
        file.parent().map_or(Ok(()), |folder| fs::File::open(folder)?.sync_all())
    };
    write().with_context(|| format!("cannot write `{}`", file.display()))
}

#[cfg(test)]
mod tests;
