//! Which master keys the secrets of a store or of a backup need, by their ids, which tell nothing of the keys.

use std::collections::BTreeMap;

use anyhow::Result;
use hikite_core::secret::Secret;
use hikite_gateway::Safe;
use hikite_store::Store;
use hikite_vault::{Refused, Ring};

/// The ids, each with how many accounts are under it.
pub(super) type Needed = BTreeMap<String, usize>;

pub(super) async fn needed(store: &Store) -> Result<Needed> {
    let mut needed = Needed::new();
    for row in store.vault_keys().await? {
        *needed.entry(row.key_id).or_insert(0) += 1;
    }
    Ok(needed)
}

/// As a part of a sentence.
pub(super) fn told(needed: &Needed) -> String {
    let ids: Vec<&str> = needed.keys().map(String::as_str).collect();
    match ids.as_slice() {
        [] => "it holds no secrets".to_owned(),
        [one] => format!("its secrets need the master key {one}"),
        several => format!("its secrets need the master keys {}", several.join(", ")),
    }
}

/// All keys that can be had, and since when the earlier ones are kept.
#[derive(Debug)]
pub(super) struct Keys {
    pub(super) ring: Ring,
    pub(super) since: BTreeMap<String, u64>,
}

impl Keys {
    pub(super) fn new(ring: Ring) -> Self {
        Self { ring, since: BTreeMap::new() }
    }

    /// Takes these in behind its own.
    pub(super) fn add(&mut self, text: &Secret) -> Result<(), Refused> {
        self.ring = Ring::parse(&format!("{}\n{}", self.ring.text().expose(), text.expose()))?;
        Ok(())
    }

    /// Takes in the earlier keys that a store keeps, as far as ours open them.
    pub(super) async fn add_kept_by(&mut self, store: &Store) -> Result<()> {
        let safe = Safe::new(store.clone(), Ring::parse(self.ring.text().expose())?);
        for retired in safe.retired_keys().await? {
            self.add(&retired.key.text())?;
            self.since.entry(retired.key.id().to_owned()).or_insert(retired.retired_at);
        }
        Ok(())
    }

    /// Which of those that are needed cannot be had.
    pub(super) fn missing<'a>(&'a self, needed: &'a Needed) -> impl Iterator<Item = &'a str> {
        needed.keys().map(String::as_str).filter(|id| !self.ring.ids().any(|known| known == *id))
    }
}
