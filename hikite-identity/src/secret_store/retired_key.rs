//! Retired master keys. Older backups can only be decrypted with them, so they are stored, encrypted under the
//! current master key, until an administrator removes them.

use std::collections::BTreeMap;

use hikite_core::error::{Error, ErrorKind};
use hikite_core::json::{Object, Raw};
use hikite_core::secret::Secret;
use hikite_store::clock::now_ms;
use hikite_vault::MasterKey;

use super::SecretStore;

/// Account that holds retired keys; each key is a provider of it, so that keys can be removed one by one.
pub const RETIRED_KEYS: &str = "hikite:master-keys";
const FIELD: &str = "key";

/// A master key that no longer encrypts.
#[derive(Debug)]
pub struct RetiredKey {
    pub key: MasterKey,
    /// Milliseconds since 1970. Backups made earlier may need the key.
    pub retired_at: u64,
}

impl SecretStore {
    /// Stores all but the current key of the ring, encrypted under the current one. Returns how many were new.
    pub async fn retire_older_keys(&self) -> Result<usize, Error> {
        self.retire_older_keys_at(&BTreeMap::new()).await
    }

    /// Stores the older keys with the given retirement times by key id; the default is now.
    pub async fn retire_older_keys_at(&self, since: &BTreeMap<String, u64>) -> Result<usize, Error> {
        let ring = self.ring.load_full();
        let mut kept = 0;
        for key in ring.older() {
            if self.get(RETIRED_KEYS, key.id(), FIELD).await?.is_some() {
                continue;
            }
            let retired_at = since.get(key.id()).copied().unwrap_or_else(now_ms);
            let form = Object::default().with("key", key.text().expose()).with("retired_at", Raw::of(&retired_at));
            self.set((RETIRED_KEYS, key.id(), FIELD), &Secret::hidden(form.raw().as_str())).await?;
            kept += 1;
        }
        Ok(kept)
    }

    /// Returns all retired keys, oldest first.
    pub async fn retired_keys(&self) -> Result<Vec<RetiredKey>, Error> {
        let mut keys = Vec::new();
        for row in self.store.vault().secrets().await?.into_iter().filter(|row| row.account == RETIRED_KEYS) {
            let Some(kept) = self.get(RETIRED_KEYS, &row.provider, FIELD).await? else { continue };
            let form = Raw::parse(kept.secret.expose().to_owned()).ok().and_then(|raw| raw.object());
            let form = form.unwrap_or_default();
            let retired_at = form.get("retired_at").and_then(|at| at.decode().ok()).unwrap_or_default();
            let key = MasterKey::parse(&form.text("key").unwrap_or_default());
            keys.extend(key.ok().map(|key| RetiredKey { key, retired_at }));
        }
        keys.sort_by(|one, other| (one.retired_at, one.key.id()).cmp(&(other.retired_at, other.key.id())));
        Ok(keys)
    }

    /// Deletes a retired key; backups that need it are lost.
    pub async fn delete_retired_key(&self, id: &str) -> Result<(), Error> {
        if self.remove(RETIRED_KEYS, Some(id)).await? {
            return Ok(());
        }
        Err(Error::new(ErrorKind::NotFound, format!("There is no retired key `{id}`."))
            .hint("Run `hikite vault status` to see the retired keys."))
    }
}
