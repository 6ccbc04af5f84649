//! Which master keys the secrets of a store or of a backup need, by their ids, which tell nothing of the keys.

use std::collections::BTreeMap;

use anyhow::Result;
use hikite_gateway::Safe;
use hikite_store::Store;
use hikite_vault::{MasterKey, Ring};

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

/// The ring, and behind it the earlier keys that a store keeps, as far as the ring opens them.
pub(super) async fn with_retired(ring: Ring, store: &Store) -> Result<Ring> {
    let safe = Safe::new(store.clone(), Ring::parse(ring.text().expose())?);
    let older: Vec<MasterKey> =
        safe.retired_keys().await?.into_iter().map(|retired| retired.key).collect();
    Ok(older.into_iter().fold(ring, |ring, key| ring.and(Ring::new(key, Vec::new()))))
}
