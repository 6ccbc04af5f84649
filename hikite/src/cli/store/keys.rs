//! Master keys that a store or backup needs, by key id. An id reveals nothing of its key.

use std::collections::BTreeMap;

use anyhow::Result;
use hikite_core::secret::Secret;
use hikite_identity::SecretStore;
use hikite_store::Store;
use hikite_vault::{KeyRing, VaultError};

/// Key ids, each with the number of accounts encrypted under it.
pub(super) type NeededKeys = BTreeMap<String, usize>;

pub(super) async fn needed(store: &Store) -> Result<NeededKeys> {
    let mut needed = NeededKeys::new();
    for row in store.vault().keys().await? {
        *needed.entry(row.key_id).or_insert(0) += 1;
    }
    Ok(needed)
}

/// Formats the needed keys as a clause.
pub(super) fn describe(needed: &NeededKeys) -> String {
    let ids: Vec<&str> = needed.keys().map(String::as_str).collect();
    match ids.as_slice() {
        [] => "it contains no secrets".to_owned(),
        [one] => format!("its secrets need the master key {one}"),
        several => format!("its secrets need the master keys {}", several.join(", ")),
    }
}

/// All available keys, and the retirement times of earlier ones.
#[derive(Debug)]
pub(super) struct AvailableKeys {
    pub(super) ring: KeyRing,
    pub(super) since: BTreeMap<String, u64>,
}

impl AvailableKeys {
    pub(super) fn new(ring: KeyRing) -> Self {
        Self { ring, since: BTreeMap::new() }
    }

    /// Adds keys behind the present ones.
    pub(super) fn add(&mut self, text: &Secret) -> Result<(), VaultError> {
        self.ring = KeyRing::parse(&format!("{}\n{}", self.ring.text().expose(), text.expose()))?;
        Ok(())
    }

    /// Adds the retired keys of a store, as far as the present keys decrypt them.
    pub(super) async fn add_retired_from(&mut self, store: &Store) -> Result<()> {
        let secret_store = SecretStore::new(store.clone(), KeyRing::parse(self.ring.text().expose())?);
        for retired in secret_store.retired_keys().await? {
            self.add(&retired.key.text())?;
            self.since.entry(retired.key.id().to_owned()).or_insert(retired.retired_at);
        }
        Ok(())
    }

    /// Returns the needed keys that are not available.
    pub(super) fn missing<'a>(&'a self, needed: &'a NeededKeys) -> impl Iterator<Item = &'a str> {
        needed.keys().map(String::as_str).filter(|id| !self.ring.ids().any(|known| known == *id))
    }
}
