//! Following the store: reads what this and other processes changed, and writes what was seen for the first time.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use hikite_core::error::Error;
use hikite_store::{ChangeSet, PinRow, Record, change_kind};

use super::access::AccessAdmin;
use super::pin::PinAdmin;
use super::tool::ToolAdmin;
use crate::catalogs::Catalogs;
use crate::freshness::Freshness;
use crate::overrides::TEXT;
use crate::registry::RegistryStore;
use crate::search::Search;
use hikite_identity::People;

#[derive(Debug)]
pub struct StoreSync {
    pub(crate) catalogs: Arc<Catalogs>,
    pub(crate) registry: Arc<RegistryStore>,
    pub(crate) freshness: Arc<Freshness>,
    pub(crate) people: Arc<People>,
    pub(crate) search: Arc<Search>,
    pub(crate) tools: Arc<ToolAdmin>,
    pub(crate) pins: Arc<PinAdmin>,
    pub(crate) access: Arc<AccessAdmin>,
}

impl StoreSync {
    /// Reads the store for the first time, before any request is served.
    pub async fn open(&self) -> Result<(), Error> {
        let seen = self.registry.store.tools().first_seen().await?;
        self.catalogs.with_tool_registry(|tool_registry| tool_registry.load_first_seen(seen));
        self.catch_up().await
    }

    /// Reads store changes into memory, and persists newly seen tools.
    pub async fn catch_up(&self) -> Result<(), Error> {
        // A full disk can still be read.
        let written = self.persist_first_seen().await;
        self.read_store().await?;
        written
    }

    async fn read_store(&self) -> Result<(), Error> {
        let _turn = self.registry.turn.lock().await;
        let began = self.freshness.begin_read();
        let known = self.registry.revision.load(Ordering::Relaxed);
        let changes = self.registry.store.changes().since(known).await?;
        if changes.to != known {
            self.apply_changes(&changes).await?;
            // Not before: an incomplete read is repeated. A revoked token must not stay valid.
            let _ = self.registry.revision.compare_exchange(known, changes.to, Ordering::Relaxed, Ordering::Relaxed);
        }
        self.freshness.note_read(began);
        Ok(())
    }

    /// Reads only the changed kinds.
    async fn apply_changes(&self, changes: &ChangeSet) -> Result<(), Error> {
        if changes.concern(&[PinRow::KIND]) {
            self.pins.read_store().await?;
        }
        if let Some(identity) = self.people.identity() {
            identity.follow_store(changes).await?;
        }
        self.access.apply_changes(changes).await?;
        if changes.concern(&[change_kind::MEMORY]) {
            self.search.read_usage_memory().await?;
        }
        if changes.concern(&[change_kind::TOOL, change_kind::SWITCH, TEXT]) {
            self.tools.read_store().await?;
        }
        Ok(())
    }

    /// Persists first-seen timestamps and new pins. A failed write is retried.
    pub async fn persist_first_seen(&self) -> Result<(), Error> {
        self.pins.persist().await?;
        self.tools.persist_first_seen().await
    }
}
