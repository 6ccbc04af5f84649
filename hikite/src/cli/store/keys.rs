//! Master keys that a store or backup needs, by key id. An id reveals nothing of its key.

use std::collections::BTreeMap;

use anyhow::Result;
use hikite_core::secret::Secret;
use hikite_gateway::Safe;
use hikite_store::Store;
use hikite_vault::{Refused, Ring};

/// Key ids, each with the number of accounts encrypted under it.
pub(super) type Needed = BTreeMap<String, usize>;

pub(super) async fn needed(store: &Store) -> Result<Needed> {
    let mut needed = Needed::new();
    for row in store.vault_keys().await? {
        *needed.entry(row.key_id).or_insert(0) += 1;
    }
    Ok(needed)
}

/// Formats the needed keys as a clause.
pub(super) fn told(needed: &Needed) -> String {
    let ids: Vec<&str> = needed.keys().map(String::as_str).collect();
    match ids.as_slice() {
        [] => "it holds no secrets".to_owned(),
        [one] => format!("its secrets need the master key {one}"),
        several => format!("its secrets need the master keys {}", several.join(", ")),
    }
}

/// All available keys, and the retirement times of earlier ones.
#[derive(Debug)]
pub(super) struct Keys {
    pub(super) ring: Ring,
    pub(super) since: BTreeMap<String, u64>,
}

impl Keys {
    pub(super) fn new(ring: Ring) -> Self {
        Self { ring, since: BTreeMap::new() }
    }

    /// Adds keys behind the present ones.
    pub(super) fn add(&mut self, text: &Secret) -> Result<(), Refused> {
        self.ring = Ring::parse(&format!("{}\n{}", self.ring.text().expose(), text.expose()))?;
        Ok(())
    }

    /// Adds the retired keys of a store, as far as the present keys decrypt them.
    pub(super) async fn add_kept_by(&mut self, store: &Store) -> Result<()> {
        let safe = Safe::new(store.clone(), Ring::parse(self.ring.text().expose())?);
        for retired in safe.retired_keys().await? {
            self.add(&retired.key.text())?;
            self.since.entry(retired.key.id().to_owned()).or_insert(retired.retired_at);
        }
        Ok(())
    }

    /// Returns the needed keys that are not available.
    pub(super) fn missing<'a>(&'a self, needed: &'a Needed) -> impl Iterator<Item = &'a str> {
        needed.keys().map(String::as_str).filter(|id| !self.ring.ids().any(|known| known == *id))
    }
}
