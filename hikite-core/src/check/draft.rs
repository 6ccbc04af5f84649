//! Arguments while they are checked: the bytes they came in, the tree the validator reads, and the edits that
//! change both alike. What no edit touches keeps its bytes.

use serde_json::Value;

use super::Checked;
use super::read::read;
use crate::fault::Fault;
use crate::json::{Object, Raw};

pub(super) struct Draft {
    pub(super) raw: Raw,
    pub(super) value: Value,
    changed: bool,
}

/// One place, and what is to stand there: nothing where `to` is `None`.
#[derive(Debug)]
pub(super) struct Edit {
    path: Vec<String>,
    to: Option<Raw>,
}

impl Draft {
    /// Without arguments there are none to be wrong: an empty object.
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
        let value = self.edited(edits);
        self.accept(edits, value);
    }

    /// What these would make of the tree.
    pub(super) fn edited(&self, edits: &[Edit]) -> Value {
        let mut value = self.value.clone();
        for edit in edits {
            edit.apply_to_tree(&mut value);
        }
        value
    }

    /// Applies them; `value` is what becomes of the tree.
    pub(super) fn accept(&mut self, edits: &[Edit], value: Value) {
        self.value = value;
        self.raw = with_all(&self.raw, edits);
        self.changed = true;
    }

    pub(super) fn finish(self) -> Checked {
        if self.changed { Checked::Changed(self.raw) } else { Checked::AsSent }
    }
}

impl Edit {
    pub(super) fn set(path: Vec<String>, to: Raw) -> Self {
        Self { path, to: Some(to) }
    }

    pub(super) fn remove(path: Vec<String>) -> Self {
        Self { path, to: None }
    }

    fn apply_to_tree(&self, tree: &mut Value) {
        let Some((last, parents)) = self.path.split_last() else { return };
        let parent = parents.iter().try_fold(tree, |at, step| match at {
            Value::Object(members) => members.get_mut(step),
            Value::Array(items) => items.get_mut(step.parse::<usize>().ok()?),
            _ => None,
        });
        match (parent, self.to.as_ref()) {
            (Some(Value::Object(members)), Some(to)) => {
                members.insert(last.clone(), to.value());
            }
            (Some(Value::Object(members)), None) => {
                members.shift_remove(last);
            }
            (Some(Value::Array(items)), Some(to)) => {
                if let Some(item) = last.parse::<usize>().ok().and_then(|index| items.get_mut(index)) {
                    *item = to.value();
                }
            }
            _ => {}
        }
    }

    fn apply(&self, raw: &Raw, path: &[String]) -> Raw {
        let Some((step, rest)) = path.split_first() else { return raw.clone() };
        if let Some(mut object) = raw.object() {
            if rest.is_empty() {
                self.put(&mut object, step);
            } else if let Some(member) = object.get(step) {
                let member = self.apply(member, rest);
                object.set(step, member);
            }
            return object.raw();
        }
        let Some(mut items) = raw.items() else { return raw.clone() };
        if let Some(item) = step.parse::<usize>().ok().and_then(|index| items.get_mut(index)) {
            *item = match (rest.is_empty(), &self.to) {
                (true, Some(to)) => to.clone(),
                _ => self.apply(item, rest),
            };
        }
        Raw::array(&items)
    }

    fn put(&self, object: &mut Object, name: &str) {
        match &self.to {
            Some(to) => object.set(name, to.clone()),
            None => drop(object.remove(name)),
        }
    }
}

/// The bytes with all of them; an object that all of them are for is taken apart once.
fn with_all(raw: &Raw, edits: &[Edit]) -> Raw {
    if edits.iter().all(|edit| edit.path.len() == 1)
        && let Some(mut object) = raw.object()
    {
        for edit in edits {
            edit.put(&mut object, &edit.path[0]);
        }
        return object.raw();
    }
    edits.iter().fold(raw.clone(), |raw, edit| edit.apply(&raw, &edit.path))
}

/// The steps of a JSON Pointer.
pub(super) fn steps(pointer: &str) -> Vec<String> {
    pointer.split('/').skip(1).map(|step| step.replace("~1", "/").replace("~0", "~")).collect()
}

/// The bytes at a place.
pub(super) fn find(raw: &Raw, path: &[String]) -> Option<Raw> {
    path.iter().try_fold(raw.clone(), |at, step| match at.object() {
        Some(object) => object.get(step).cloned(),
        None => at.items()?.get(step.parse::<usize>().ok()?).cloned(),
    })
}
