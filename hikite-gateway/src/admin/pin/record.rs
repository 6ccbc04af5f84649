//! Pins in the store. They are read before the first request and whenever another process changed them, and written
//! off the path of requests.

use std::collections::BTreeMap;

use hikite_core::error::Error;
use hikite_core::json::Raw;
use hikite_core::key::ToolKey;
use hikite_store::{DocumentRow, PinRow};

use super::PinAdmin;
use crate::pin::ToolPin;
use hikite_store::clock::now_ms;

/// Store kind of approved definitions; the id is a hash.
const DEFINITION: &str = "definition";

impl PinAdmin {
    /// Reads the approvals and blocks of all processes.
    pub async fn read_store(&self) -> Result<(), Error> {
        let pins = self.registry.store.pins().all(now_ms()).await?;
        let stored: BTreeMap<ToolKey, ToolPin> = pins.iter().filter_map(read).collect();
        if self.catalogs.with_pins(|pin_store| pin_store.differs_from(&stored)) {
            self.catalogs.change_pins(|pin_store| pin_store.take(stored));
        }
        Ok(())
    }

    /// Persists the pins created on first sight. If another process stored a different definition first, that one
    /// wins and is read soon. Pins that cannot be written are retried.
    pub(crate) async fn persist(&self) -> Result<(), Error> {
        let unsaved = self.catalogs.with_pins(|pin_store| pin_store.unsaved());
        if unsaved.is_empty() {
            return Ok(());
        }
        let rows: Vec<(PinRow, DocumentRow)> =
            unsaved.iter().map(|(key, pin, definition)| (row(key, pin), definition_entry(pin, definition))).collect();
        self.registry.store.pins().put_new(&rows).await?;
        self.catalogs.with_pins(|pin_store| pin_store.written(&unsaved));
        Ok(())
    }

    /// Returns the approved definition, if there is one.
    pub(super) async fn approved_definition(&self, pin: &ToolPin) -> Result<Option<Raw>, Error> {
        let entry = self.registry.store.documents().get(DEFINITION, &pin.hash, now_ms()).await?;
        Ok(entry.map(|entry| entry.document))
    }
}

/// Builds the store entry of a definition. Definitions are immutable: the id is the hash.
pub(super) fn definition_entry(pin: &ToolPin, definition: &Raw) -> DocumentRow {
    DocumentRow {
        kind: DEFINITION,
        id: pin.hash.to_string(),
        owner: String::new(),
        document: definition.clone(),
        version: 1,
        created_at: pin.at,
        expires_at: 0,
    }
}

pub(super) fn row(key: &ToolKey, pin: &ToolPin) -> PinRow {
    PinRow {
        id: key.to_string(),
        module: key.module.to_string(),
        hash: pin.hash.to_string(),
        blocked: pin.blocked,
        pinned_at: pin.at,
        version: 1,
        created_at: pin.at,
    }
}

/// Reads a stored pin. One without a hash counts as blocked, so that the tool is not pinned again on first sight.
fn read(row: &PinRow) -> Option<(ToolKey, ToolPin)> {
    let tool = row.id.strip_prefix(row.module.as_str())?.strip_prefix(':')?;
    let pin =
        ToolPin { blocked: row.blocked || row.hash.is_empty(), hash: row.hash.as_str().into(), at: row.pinned_at };
    Some((ToolKey::new(row.module.as_str(), tool), pin))
}
