//! The vault over the store: secrets by whose and what for. Each account's key is opened once and kept in memory; the
//! secrets themselves are opened when they are wanted.

use std::collections::HashMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use hikite_core::error::{Error, Kind};
use hikite_core::secret::Secret;
use hikite_store::{Store, VaultKeyRow, VaultSecretRow};
use hikite_vault::{DataKey, Place, Refused, Ring, Sealed, Wrapped};
use parking_lot::Mutex;

/// The account of what is hikite's own: the keys it signs with.
pub const HOUSE: &str = "hikite";

pub struct Safe {
    store: Store,
    ring: ArcSwap<Ring>,
    opened: Mutex<HashMap<String, Arc<DataKey>>>,
}

/// A secret and the how many-th of its kind it is.
#[derive(Clone, Debug)]
pub struct Kept {
    pub secret: Secret,
    pub version: u64,
}

impl std::fmt::Debug for Safe {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Safe").field("key", &self.ring.load().current().id()).finish_non_exhaustive()
    }
}

impl Safe {
    pub fn new(store: Store, ring: Ring) -> Self {
        Self { store, ring: ArcSwap::from_pointee(ring), opened: Mutex::default() }
    }

    pub fn store(&self) -> &Store {
        &self.store
    }

    /// A key for another purpose, the same in every process that has the same master key.
    pub fn derive(&self, purpose: &str) -> [u8; 32] {
        self.ring.load().current().derive(purpose)
    }

    /// Nothing if there is none.
    pub async fn get(&self, account: &str, provider: &str, field: &str) -> Result<Option<Kept>, Error> {
        let Some(row) = self.store.vault_secret(account, provider, field).await? else { return Ok(None) };
        let key = self.key(account, false).await?.ok_or_else(|| refused(account, Refused::Sealed))?;
        let place = Place { account, provider, field, version: row.version };
        let secret = key.open(place, &Sealed::from_text(row.sealed)).map_err(|why| refused(account, why))?;
        Ok(Some(Kept { secret, version: row.version }))
    }

    /// Puts in the successor of version `after`; zero for the first. `false` if another was faster.
    pub async fn put(
        &self,
        (account, provider, field): (&str, &str, &str),
        after: u64,
        secret: &Secret,
    ) -> Result<bool, Error> {
        let key = self.key(account, true).await?.ok_or_else(|| refused(account, Refused::Sealed))?;
        let version = after + 1;
        let place = Place { account, provider, field, version };
        let sealed = key.seal(place, secret).map_err(|why| refused(account, why))?;
        let row = VaultSecretRow {
            account: account.into(),
            provider: provider.into(),
            field: field.into(),
            version,
            sealed: sealed.text().into(),
        };
        Ok(self.store.put_vault_secret(&row).await?)
    }

    /// Puts it in whatever was there before.
    pub async fn set(&self, at: (&str, &str, &str), secret: &Secret) -> Result<(), Error> {
        loop {
            let row = self.store.vault_secret(at.0, at.1, at.2).await?;
            if self.put(at, row.map_or(0, |row| row.version), secret).await? {
                return Ok(());
            }
        }
    }

    /// Takes away what an account has with a provider; with no provider all of it.
    pub async fn remove(&self, account: &str, provider: Option<&str>) -> Result<bool, Error> {
        let removed = self.store.remove_vault_secrets(account, provider).await?;
        if provider.is_none() {
            self.opened.lock().remove(account);
        }
        Ok(removed)
    }

    /// The key of an account, made if it has none and is to have one.
    async fn key(&self, account: &str, make: bool) -> Result<Option<Arc<DataKey>>, Error> {
        if let Some(key) = self.opened.lock().get(account) {
            return Ok(Some(Arc::clone(key)));
        }
        let ring = self.ring.load_full();
        let row = match self.store.vault_key(account).await? {
            Some(row) => row,
            None if make => {
                let fresh = DataKey::random().map_err(|why| refused(account, why))?;
                let Wrapped { key_id, sealed } =
                    ring.wrap(account, &fresh).map_err(|why| refused(account, why))?;
                let row = VaultKeyRow { account: account.into(), key_id, sealed: sealed.text().into() };
                if self.store.put_vault_key(&row).await? {
                    row
                } else {
                    // Another process made one just now.
                    self.store.vault_key(account).await?.unwrap_or(row)
                }
            }
            None => return Ok(None),
        };
        let wrapped = Wrapped { key_id: row.key_id, sealed: Sealed::from_text(row.sealed) };
        let key = Arc::new(ring.unwrap(account, &wrapped).map_err(|why| refused(account, why))?);
        self.opened.lock().insert(account.to_owned(), Arc::clone(&key));
        Ok(Some(key))
    }
}

fn refused(account: &str, why: Refused) -> Error {
    let error =
        Error::new(Kind::AccountRequired, format!("the secrets of `{account}` cannot be used: {why}"));
    match why {
        Refused::UnknownKey => {
            error.hint("give hikite the key that it had before: see `vault` in the config")
        }
        _ => error.hint("connect the account again, or restore a backup of the store"),
    }
}
