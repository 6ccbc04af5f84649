//! Arguments during a check: the received bytes, the parsed tree, and the edits that change both alike. Parts that no
//! edit touches keep their bytes.

use serde_json::Value;

use super::Checked;
use super::edit::{Edit, Places};
use super::read::read;
use crate::fault::Fault;
use crate::json::Raw;

pub(super) struct Draft {
    pub(super) raw: Raw,
    pub(super) value: Value,
    changed: bool,
}

/// Maximum number of members that are set one by one.
const FEW: usize = 16;

impl Draft {
    /// Parses the arguments. Absent or null arguments are an empty object.
    pub(super) fn read(arguments: Option<&Raw>) -> Result<Self, Vec<Fault>> {
        match arguments {
            None => Self::of(Raw::empty_object(), false),
            Some(raw) if raw.is_null() => Self::of(Raw::empty_object(), true),
            Some(raw) => Self::of(raw.clone(), false),
        }
    }

    pub(super) fn of(raw: Raw, changed: bool) -> Result<Self, Vec<Fault>> {
        let reading = read(raw).map_err(|why| vec![Fault::new("", why)])?;
        Ok(Self { raw: reading.raw, value: reading.value, changed: changed || reading.changed })
    }

    pub(super) fn apply(&mut self, edits: &[Edit]) {
        let mut places = Places::of(edits);
        self.raw = places.rewrite(&self.raw);
        places.apply(&mut self.value);
        self.changed = true;
    }

    /// Returns the tree with the edits applied.
    pub(super) fn edited(&self, edits: &[Edit]) -> Value {
        let mut value = self.value.clone();
        match &mut value {
            Value::Object(members) if are_few_outermost(edits) => {
                for (name, to) in edits.iter().filter_map(Edit::outermost) {
                    members.insert(name.to_owned(), to.value());
                }
            }
            _ => Places::of(edits).apply(&mut value),
        }
        value
    }

    /// Applies the edits. `value` is the tree that results.
    pub(super) fn accept(&mut self, edits: &[Edit], value: Value) {
        self.value = value;
        self.changed = true;
        if are_few_outermost(edits)
            && let Some(mut object) = self.raw.object()
        {
            for (name, to) in edits.iter().filter_map(Edit::outermost) {
                object.set(name, to.clone());
            }
            self.raw = object.raw();
        } else {
            self.raw = Places::of(edits).rewrite(&self.raw);
        }
    }

    pub(super) fn finish(self) -> Checked {
        if self.changed { Checked::Changed(self.raw) } else { Checked::AsSent }
    }
}

/// Returns `true` if there are few edits and all set top-level members.
fn are_few_outermost(edits: &[Edit]) -> bool {
    edits.len() <= FEW && edits.iter().all(|edit| edit.outermost().is_some())
}

/// Returns the unescaped steps of a JSON Pointer.
pub(super) fn steps(pointer: &str) -> Vec<String> {
    pointer.split('/').skip(1).map(|step| step.replace("~1", "/").replace("~0", "~")).collect()
}
