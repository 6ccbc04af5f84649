//! REST objects of pins. Callers have checked that the user is the owner or an administrator.

use std::sync::Arc;

use hikite_core::error::{Error, ErrorKind};
use hikite_core::json::{Object, Raw};
use hikite_core::key::ToolKey;
use hikite_core::pin::{self, Pinning};
use hikite_core::suggestion;
use hikite_core::time::rfc3339;

use super::PinStore;
use crate::gateway::Gateway;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PinState {
    /// The definition is the approved one, or the tool is not offered at present.
    Ok,
    /// The definition is not the approved one; the tool is held back.
    Changed,
    /// The tool was never approved and is held back.
    New,
    /// An administrator blocked the tool.
    Blocked,
}

impl PinState {
    pub const ALL: [Self; 4] = [Self::Ok, Self::Changed, Self::New, Self::Blocked];

    pub fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Changed => "changed",
            Self::New => "new",
            Self::Blocked => "blocked",
        }
    }

    pub fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.word() == word)
    }

    /// Returns `true` if the tool awaits review.
    pub fn needs_review(self) -> bool {
        matches!(self, Self::Changed | Self::New)
    }
}

/// Filter for listing pins.
#[derive(Clone, Debug, Default)]
pub struct PinFilter {
    pub state: Option<PinState>,
    pub module: Option<String>,
}

/// A tool with its pin state and the hash of its current definition.
#[derive(Clone, Debug)]
pub struct PinnedTool {
    pub key: ToolKey,
    pub state: PinState,
    /// Hash of the offered definition; `None` if the tool is not offered at present.
    pub hash: Option<Arc<str>>,
}

impl Gateway {
    pub fn pins(&self, filter: &PinFilter) -> Vec<Raw> {
        self.with_pins(|pin_store| {
            let filtered = filtered(pin_store, filter);
            filtered.iter().map(|pinned_tool| summary(pin_store, pinned_tool).raw()).collect()
        })
    }

    pub fn pinned_tools(&self, filter: &PinFilter) -> Vec<PinnedTool> {
        self.with_pins(|pin_store| filtered(pin_store, filter))
    }

    /// Resolves `module:tool`, or a tool name that is unique.
    pub fn pin_key(&self, name: &str) -> Result<ToolKey, Error> {
        self.with_pins(|pin_store| resolve(pin_store, name))
    }

    /// Returns a pin with the approved definition, the offered definition and their diff.
    pub async fn pin(&self, name: &str) -> Result<Raw, Error> {
        self.persist_pins().await?;
        let (mut object, pin, after) = self.with_pins(|pin_store| {
            let key = resolve(pin_store, name)?;
            let after = pin_store.seen(&key).map(|seen| pin::pinned(&seen.definition));
            Ok::<_, Error>((
                summary(pin_store, &pinned_tool(pin_store, key.clone())),
                pin_store.pin(&key).cloned(),
                after,
            ))
        })?;
        let before = match pin {
            Some(pin) => self.approved_definition(&pin).await?,
            None => None,
        };
        let changes = match (&before, &after) {
            (Some(before), Some(after)) => pin::diff(before, after),
            (None, Some(after)) => pin::diff(&Raw::empty_object(), after),
            (_, None) => Vec::new(),
        };
        object.set("diff", Raw::of(&changes));
        for (name, definition) in [("before", before), ("after", after)] {
            object.set(name, definition.unwrap_or_else(Raw::null));
        }
        Ok(object.raw())
    }
}

/// Resolves `module:tool`, or a tool name that is unique.
pub(super) fn resolve(pin_store: &PinStore, name: &str) -> Result<ToolKey, Error> {
    let keys = pin_store.keys();
    if let Some(key) = keys.iter().find(|key| key.to_string() == name) {
        return Ok(key.clone());
    }
    let mut namesakes = keys.iter().filter(|key| *key.tool == *name);
    if let (Some(only), None) = (namesakes.next(), namesakes.next()) {
        return Ok(only.clone());
    }
    let names: Vec<String> = keys.iter().map(ToString::to_string).collect();
    let error = Error::new(ErrorKind::NotFound, format!("There is no pin for `{name}`."));
    let hint = suggestion::did_you_mean(name, names.iter().map(String::as_str));
    Err(error.hint(hint.unwrap_or_else(|| "Run `hikite pin list` to see the pinned tools.".into())))
}

pub(super) fn pinned_tool(pin_store: &PinStore, key: ToolKey) -> PinnedTool {
    let (pin, seen) = (pin_store.pin(&key), pin_store.seen(&key));
    let state = match (pin, seen) {
        (Some(pin), _) if pin.blocked => PinState::Blocked,
        (Some(pin), Some(seen)) if pin.hash != seen.hash => PinState::Changed,
        (Some(_), _) => PinState::Ok,
        (None, _) => PinState::New,
    };
    PinnedTool { state, hash: seen.map(|seen| Arc::clone(&seen.hash)), key }
}

fn filtered(pin_store: &PinStore, filter: &PinFilter) -> Vec<PinnedTool> {
    let of_module = |key: &ToolKey| filter.module.as_deref().is_none_or(|module| *key.module == *module);
    let keys = pin_store.keys().into_iter().filter(of_module);
    let of_state = |pinned_tool: &PinnedTool| filter.state.is_none_or(|state| pinned_tool.state == state);
    keys.map(|key| pinned_tool(pin_store, key)).filter(of_state).collect()
}

fn summary(pin_store: &PinStore, pinned_tool: &PinnedTool) -> Object {
    let PinnedTool { key, state, hash } = pinned_tool;
    let rule: Pinning = pin_store.rule(&key.module);
    let mut object = Object::default()
        .with("key", key.to_string())
        .with("module", &*key.module)
        .with("name", &*key.tool)
        .with("state", state.word())
        .with("policy", rule.word())
        .with("offered", Raw::of(&hash.is_some()));
    if let Some(hash) = hash {
        object.set("hash", &**hash);
    }
    if let Some(pin) = pin_store.pin(key) {
        if !pin.hash.is_empty() {
            object.set("approvedHash", &*pin.hash);
        }
        object.set("decidedAt", rfc3339(pin.at));
    }
    object
}
