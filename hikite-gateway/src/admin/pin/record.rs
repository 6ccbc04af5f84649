//! Pins in the store. They are read before the first request and whenever another process changed them, and written
//! off the path of requests.

use std::collections::BTreeMap;
use std::sync::Arc;

use hikite_core::error::Error;
use hikite_core::json::{Object, Raw};
use hikite_core::key::ToolKey;
use hikite_store::DocumentRow;

use super::PinAdmin;
use crate::pin::{PIN, ToolPin};
use hikite_store::clock::now_ms;

/// Store kind of approved definitions; the id is a hash.
const DEFINITION: &str = "definition";

impl PinAdmin {
    /// Reads the approvals and blocks of all processes.
    pub async fn read_store(&self) -> Result<(), Error> {
        let entries = self.registry.store.entries(PIN, None, now_ms()).await?;
        let stored: BTreeMap<ToolKey, ToolPin> = entries.iter().filter_map(read).collect();
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
        let entries: Vec<DocumentRow> = unsaved
            .iter()
            .flat_map(|(key, pin, definition)| [definition_entry(pin, definition), entry(key, pin)])
            .collect();
        self.registry.store.put_new_documents(&entries).await?;
        self.catalogs.with_pins(|pin_store| pin_store.written(&unsaved));
        Ok(())
    }

    /// Returns the approved definition, if there is one.
    pub(super) async fn approved_definition(&self, pin: &ToolPin) -> Result<Option<Raw>, Error> {
        let entry = self.registry.store.entry(DEFINITION, &pin.hash, now_ms()).await?;
        Ok(entry.map(|entry| entry.form))
    }
}

/// Builds the store entry of a definition. Definitions are immutable: the id is the hash.
pub(super) fn definition_entry(pin: &ToolPin, definition: &Raw) -> DocumentRow {
    DocumentRow {
        kind: DEFINITION,
        id: pin.hash.to_string(),
        owner: String::new(),
        form: definition.clone(),
        version: 1,
        created_at: pin.at,
        expires_at: 0,
    }
}

pub(super) fn entry(key: &ToolKey, pin: &ToolPin) -> DocumentRow {
    DocumentRow {
        kind: PIN,
        id: key.to_string(),
        owner: key.module.to_string(),
        form: form(pin),
        version: 1,
        created_at: pin.at,
        expires_at: 0,
    }
}

pub(super) fn form(pin: &ToolPin) -> Raw {
    let form = Object::default().with("hash", &*pin.hash).with("at", Raw::of(&pin.at));
    if pin.blocked { form.with("blocked", Raw::of(&true)).raw() } else { form.raw() }
}

/// Reads a stored pin. An invalid one counts as blocked, so that the tool is not pinned again on first sight.
fn read(entry: &DocumentRow) -> Option<(ToolKey, ToolPin)> {
    let tool = entry.id.strip_prefix(entry.owner.as_str())?.strip_prefix(':')?;
    let form = entry.form.object().unwrap_or_default();
    let hash: Option<Arc<str>> = form.text("hash").map(Into::into);
    let blocked = form.get("blocked").is_some_and(|blocked| blocked.decode().unwrap_or(true));
    let pin = ToolPin {
        blocked: blocked || hash.is_none(),
        hash: hash.unwrap_or_default(),
        at: form.get("at").and_then(|at| at.decode().ok()).unwrap_or(entry.created_at),
    };
    Some((ToolKey::new(entry.owner.as_str(), tool), pin))
}
