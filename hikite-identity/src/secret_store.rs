//! The secret store: encrypted secrets by account, provider and field. The data key of an account is unwrapped once
//! and cached; secrets are decrypted on each read. A version older than one already seen is rejected, which detects
//! rollbacks.

mod account;
mod backup;
mod maintenance;
mod retired_key;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use hikite_core::error::{Error, ErrorKind};
use hikite_core::secret::Secret;
use hikite_core::source::BoxFuture;
use hikite_store::{Store, VaultKeyRow, VaultSecretRow};
use hikite_vault::{DataKey, KeyRing, SealedText, SecretContext, VaultError, WrappedKey};
use parking_lot::Mutex;

pub use backup::RestoreSummary;
pub use maintenance::{RotationSummary, VaultFinding, VaultStatus};
pub use retired_key::{RETIRED_KEYS, RetiredKey};

/// Account of hikite's own secrets, such as signing keys.
pub const GATEWAY_ACCOUNT: &str = "hikite";

/// Source of the master keys. It is read again when a record uses an unknown key.
pub trait MasterKeySource: Send + Sync + std::fmt::Debug {
    fn read(&self) -> BoxFuture<'_, Result<KeyRing, Error>>;
}

pub struct SecretStore {
    store: Store,
    ring: ArcSwap<KeyRing>,
    keys: Option<Arc<dyn MasterKeySource>>,
    opened: Mutex<HashMap<String, Arc<AccountKey>>>,
}

/// The data key of an account, and the highest version seen of each secret.
#[derive(Debug)]
struct AccountKey {
    key: DataKey,
    seen: Mutex<HashMap<(String, String), u64>>,
}

/// A secret and its version.
#[derive(Clone, Debug)]
pub struct StoredSecret {
    pub secret: Secret,
    pub version: u64,
}

impl std::fmt::Debug for SecretStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SecretStore").field("key", &self.ring.load().current().id()).finish_non_exhaustive()
    }
}

impl SecretStore {
    pub fn new(store: Store, ring: KeyRing) -> Self {
        Self { store, ring: ArcSwap::from_pointee(ring), keys: None, opened: Mutex::default() }
    }

    /// Sets the source that is read again when a master key is missing.
    #[must_use]
    pub fn with_keys(self, keys: Arc<dyn MasterKeySource>) -> Self {
        Self { keys: Some(keys), ..self }
    }

    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Derives a key for another purpose; equal in all processes with the same master key.
    pub fn derive(&self, purpose: &str) -> [u8; 32] {
        self.ring.load().current().derive(purpose)
    }

    /// Returns a secret, if it exists.
    pub async fn get(&self, account: &str, provider: &str, field: &str) -> Result<Option<StoredSecret>, Error> {
        // Read the floor before the store: a version seen earlier cannot be newer than the store's answer.
        let floor = self.opened.lock().get(account).map(|opened| opened.floor(provider, field));
        let Some(row) = self.store.vault().secret(account, provider, field).await? else {
            if let Some(opened) = self.opened.lock().get(account) {
                opened.seen.lock().remove(&(provider.to_owned(), field.to_owned()));
            }
            return Ok(None);
        };
        let opened = self.key(account, false).await?.ok_or_else(|| refused(account, VaultError::Sealed))?;
        let place = SecretContext { account, provider, field, version: row.version };
        let sealed = SealedText::from_text(row.sealed);
        let secret = match opened.key.open(place, &sealed) {
            Ok(_) if floor.is_some_and(|floor| row.version < floor) => {
                return Err(refused(account, VaultError::Sealed));
            }
            Ok(secret) => secret,
            // The account may have been deleted and created again with another key.
            Err(why) => match self.reload_key(account, &opened).await? {
                Some(other) => other.key.open(place, &sealed).map_err(|why| refused(account, why))?,
                None => return Err(refused(account, why)),
            },
        };
        self.note_version((account, provider, field), row.version);
        Ok(Some(StoredSecret { secret, version: row.version }))
    }

    /// Writes the version that follows `after`, zero for the first. Returns `false` if another writer was faster.
    pub async fn put(
        &self,
        (account, provider, field): (&str, &str, &str),
        after: u64,
        secret: &Secret,
    ) -> Result<bool, Error> {
        let opened = self.key(account, true).await?.ok_or_else(|| refused(account, VaultError::Sealed))?;
        let version = after + 1;
        let place = SecretContext { account, provider, field, version };
        let sealed = opened.key.seal(place, secret).map_err(|why| refused(account, why))?;
        let row = VaultSecretRow {
            account: account.into(),
            provider: provider.into(),
            field: field.into(),
            version,
            sealed: sealed.text().into(),
        };
        let put = self.store.vault().put_secret(&row).await?;
        if put {
            self.note_version((account, provider, field), version);
        }
        Ok(put)
    }

    /// Writes a secret, whatever its current version.
    pub async fn set(&self, at: (&str, &str, &str), secret: &Secret) -> Result<(), Error> {
        loop {
            let row = self.store.vault().secret(at.0, at.1, at.2).await?;
            if self.put(at, row.map_or(0, |row| row.version), secret).await? {
                return Ok(());
            }
        }
    }

    /// Removes an account's secrets with one provider, or all of them.
    pub async fn remove(&self, account: &str, provider: Option<&str>) -> Result<bool, Error> {
        let removed = self.store.vault().remove_secrets(account, provider).await?;
        match provider {
            None => drop(self.opened.lock().remove(account)),
            Some(provider) => {
                if let Some(opened) = self.opened.lock().get(account) {
                    opened.seen.lock().retain(|(of, _), _| of != provider);
                }
            }
        }
        Ok(removed)
    }

    /// Returns the data key of an account, and creates it if `make` is set.
    async fn key(&self, account: &str, make: bool) -> Result<Option<Arc<AccountKey>>, Error> {
        if let Some(opened) = self.opened.lock().get(account) {
            return Ok(Some(Arc::clone(opened)));
        }
        let row = match self.store.vault().key(account).await? {
            Some(row) => row,
            None if make => self.make_key(account).await?,
            None => return Ok(None),
        };
        let key = self.unwrap(&row).await?;
        let opened = Arc::new(AccountKey { key, seen: Mutex::default() });
        Ok(Some(Arc::clone(self.opened.lock().entry(account.to_owned()).or_insert(opened))))
    }

    async fn make_key(&self, account: &str) -> Result<VaultKeyRow, Error> {
        let fresh = DataKey::random().map_err(|why| refused(account, why))?;
        let row = self.wrap(account, &fresh)?;
        if !self.store.vault().put_key(&row).await? {
            // Another process created one at the same moment.
            return Ok(self.store.vault().key(account).await?.unwrap_or(row));
        }
        // The master key may have changed meanwhile, after the rotation had passed this account.
        self.read_keys().await?;
        if self.ring.load().current().id() != row.key_id {
            let again = self.wrap(account, &fresh)?;
            self.store.vault().rewrap_key(&again, &row.key_id).await?;
            return Ok(again);
        }
        Ok(row)
    }

    fn wrap(&self, account: &str, key: &DataKey) -> Result<VaultKeyRow, Error> {
        let wrapped = self.ring.load().wrap(account, key);
        let WrappedKey { key_id, sealed } = wrapped.map_err(|why| refused(account, why))?;
        Ok(VaultKeyRow { account: account.into(), key_id, sealed: sealed.text().into() })
    }

    /// Unwraps an account's data key. Reads the master keys again if none matches.
    async fn unwrap(&self, row: &VaultKeyRow) -> Result<DataKey, Error> {
        let wrapped = WrappedKey { key_id: row.key_id.clone(), sealed: SealedText::from_text(row.sealed.clone()) };
        let mut outcome = self.ring.load().unwrap(&row.account, &wrapped);
        if matches!(outcome, Err(VaultError::UnknownKey)) && self.read_keys().await? {
            outcome = self.ring.load().unwrap(&row.account, &wrapped);
        }
        outcome.map_err(|why| refused(&row.account, why))
    }

    /// Reads the master keys again. Returns `true` if they changed.
    async fn read_keys(&self) -> Result<bool, Error> {
        let Some(keys) = &self.keys else { return Ok(false) };
        let ring = keys.read().await?;
        let same = ring.ids().eq(self.ring.load().ids());
        if !same {
            tracing::info!(key = ring.current().id(), "the vault uses a new master key");
            self.ring.store(Arc::new(ring));
        }
        Ok(!same)
    }

    /// Returns the account's current data key if it differs from the cached one, and caches it.
    async fn reload_key(&self, account: &str, known: &Arc<AccountKey>) -> Result<Option<Arc<AccountKey>>, Error> {
        let Some(row) = self.store.vault().key(account).await? else { return Ok(None) };
        let key = self.unwrap(&row).await?;
        if key.equals(&known.key) {
            return Ok(None);
        }
        let other = Arc::new(AccountKey { key, seen: Mutex::default() });
        self.opened.lock().insert(account.to_owned(), Arc::clone(&other));
        Ok(Some(other))
    }

    fn note_version(&self, (account, provider, field): (&str, &str, &str), version: u64) {
        if let Some(opened) = self.opened.lock().get(account) {
            let mut seen = opened.seen.lock();
            let known = seen.entry((provider.to_owned(), field.to_owned())).or_default();
            *known = version.max(*known);
        }
    }
}

impl AccountKey {
    fn floor(&self, provider: &str, field: &str) -> u64 {
        self.seen.lock().get(&(provider.to_owned(), field.to_owned())).copied().unwrap_or_default()
    }
}

fn refused(account: &str, why: VaultError) -> Error {
    let error =
        Error::new(ErrorKind::AccountRequired, format!("The secrets of `{account}` cannot be decrypted: {why}."));
    match why {
        VaultError::UnknownKey => error.hint("Give hikite its previous key: see `vault` in the config."),
        _ => error.hint("Connect the account again, or restore a backup of the store."),
    }
}
