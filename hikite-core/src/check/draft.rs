//! Arguments during a check: the received bytes, the parsed tree, and the edits that change both alike. Parts that no
//! edit touches keep their bytes.

use serde_json::Value;

use super::CheckOutcome;
use super::edit::{ArgumentEdit, EditTree};
use super::read::read;
use crate::json::Raw;
use crate::violation::Violation;

pub(super) struct ArgumentDraft {
    pub(super) raw: Raw,
    pub(super) value: Value,
    changed: bool,
}

/// Maximum number of members that are set one by one.
const FEW: usize = 16;

impl ArgumentDraft {
    /// Parses the arguments. Absent or null arguments are an empty object.
    pub(super) fn read(arguments: Option<&Raw>) -> Result<Self, Vec<Violation>> {
        match arguments {
            None => Self::of(Raw::empty_object(), false),
            Some(raw) if raw.is_null() => Self::of(Raw::empty_object(), true),
            Some(raw) => Self::of(raw.clone(), false),
        }
    }

    pub(super) fn of(raw: Raw, changed: bool) -> Result<Self, Vec<Violation>> {
        let reading = read(raw).map_err(|why| vec![Violation::new("", why)])?;
        Ok(Self { raw: reading.raw, value: reading.value, changed: changed || reading.changed })
    }

    pub(super) fn apply(&mut self, edits: &[ArgumentEdit]) {
        let mut places = EditTree::of(edits);
        self.raw = places.rewrite(&self.raw);
        places.apply(&mut self.value);
        self.changed = true;
    }

    /// Returns the tree with the edits applied.
    pub(super) fn edited(&self, edits: &[ArgumentEdit]) -> Value {
        let mut value = self.value.clone();
        match &mut value {
            Value::Object(members) if are_few_top_level(edits) => {
                for (name, to) in edits.iter().filter_map(ArgumentEdit::top_level) {
                    members.insert(name.to_owned(), to.value());
                }
            }
            _ => EditTree::of(edits).apply(&mut value),
        }
        value
    }

    /// Applies the edits. `value` is the tree that results.
    pub(super) fn accept(&mut self, edits: &[ArgumentEdit], value: Value) {
        self.value = value;
        self.changed = true;
        if are_few_top_level(edits)
            && let Some(mut object) = self.raw.object()
        {
            for (name, to) in edits.iter().filter_map(ArgumentEdit::top_level) {
                object.set(name, to.clone());
            }
            self.raw = object.raw();
        } else {
            self.raw = EditTree::of(edits).rewrite(&self.raw);
        }
    }

    pub(super) fn finish(self) -> CheckOutcome {
        if self.changed { CheckOutcome::Changed(self.raw) } else { CheckOutcome::AsSent }
    }
}

/// Returns `true` if there are few edits and all set top-level members.
fn are_few_top_level(edits: &[ArgumentEdit]) -> bool {
    edits.len() <= FEW && edits.iter().all(|edit| edit.top_level().is_some())
}

/// Returns the unescaped steps of a JSON Pointer.
pub(super) fn steps(pointer: &str) -> Vec<String> {
    pointer.split('/').skip(1).map(|step| step.replace("~1", "/").replace("~0", "~")).collect()
}
