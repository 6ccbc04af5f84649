//! Fills in the defaults that a schema names, wherever the object they belong to exists. They are a help: one
//! that would make valid arguments invalid is left out.

use serde_json::Value;

use super::document::Document;
use super::draft::{Draft, Edit};
use super::schema::Schema;
use crate::json::Raw;

/// Objects that are looked into; no tool nests defaults deeper.
const DEPTH_MAX: usize = 16;
const VISITS_MAX: usize = 10_000;
const EDITS_MAX: usize = 64;

pub(super) fn defaults(schema: &Schema, draft: &mut Draft) {
    if !schema.findings.has_defaults {
        return;
    }
    let document = &schema.document;
    let mut missing = Missing { document, path: Vec::new(), edits: Vec::new(), left: VISITS_MAX };
    missing.look(&document.root, &draft.value, DEPTH_MAX);
    let edits = missing.edits;
    if edits.is_empty() {
        return;
    }
    if !fill(schema, draft, &edits) {
        for edit in edits {
            fill(schema, draft, &[edit]);
        }
    }
}

/// Fills them in if that leaves the whole valid; whether it did.
fn fill(schema: &Schema, draft: &mut Draft, edits: &[Edit]) -> bool {
    let filled = draft.edited(edits);
    let is_valid = schema.is_valid(&filled);
    if is_valid {
        draft.accept(edits, filled);
    }
    is_valid
}

struct Missing<'a> {
    document: &'a Document,
    path: Vec<String>,
    edits: Vec<Edit>,
    left: usize,
}

impl<'a> Missing<'a> {
    /// Alternatives are not followed: which one holds is not known before the default is.
    fn look(&mut self, schema: &'a Value, value: &Value, depth: usize) {
        let Some(depth) = depth.checked_sub(1) else { return };
        if !matches!(value, Value::Object(_) | Value::Array(_)) || self.left == 0 {
            return;
        }
        let applied = self.document.applied(schema);
        self.left = self.left.saturating_sub(applied.len());
        for schema in applied {
            match value {
                Value::Object(members) => {
                    let properties = schema.get("properties").and_then(Value::as_object);
                    for (name, property) in properties.into_iter().flatten() {
                        match members.get(name) {
                            Some(member) => self.below(name.clone(), property, member, depth),
                            None => self.note(name, property),
                        }
                    }
                }
                Value::Array(items) => {
                    let Some(each) = schema.get("items").filter(|items| items.is_object()) else { continue };
                    for (index, item) in items.iter().enumerate() {
                        self.below(index.to_string(), each, item, depth);
                    }
                }
                _ => {}
            }
        }
    }

    fn below(&mut self, step: String, schema: &'a Value, value: &Value, depth: usize) {
        self.path.push(step);
        self.look(schema, value, depth);
        self.path.pop();
    }

    /// A default of null says no more than that nothing stands there.
    fn note(&mut self, name: &str, property: &'a Value) {
        let applied = self.document.applied(property);
        self.left = self.left.saturating_sub(applied.len());
        let named =
            applied.into_iter().find_map(|schema| schema.get("default").filter(|value| !value.is_null()));
        let Some(default) = named.filter(|_| self.edits.len() < EDITS_MAX) else { return };
        let mut path = self.path.clone();
        path.push(name.to_owned());
        self.edits.push(Edit::set(path, Raw::of(default)));
    }
}
