//! Fills in the schema's defaults wherever the enclosing object exists. A default that would make valid arguments
//! invalid is left out.

use serde_json::Value;

use super::document::SchemaDocument;
use super::draft::ArgumentDraft;
use super::edit::ArgumentEdit;
use super::schema::CompiledSchema;
use super::survey::{SchemaFindings, default_of};
use crate::json::Raw;

/// Maximum nesting of objects searched for defaults.
const DEPTH_MAX: usize = 16;
const VISITS_MAX: usize = 10_000;
const EDITS_MAX: usize = 64;
/// Maximum total bytes rechecked to find the defaults that keep the arguments valid.
const SINGLY_BYTES_MAX: usize = 1 << 20;

/// Location of a schema's defaults.
pub(super) enum SchemaDefaults {
    /// Defaults of top-level members only, as in most tools; no need to search the schema again.
    TopLevel(Vec<(String, Raw)>),
    Anywhere,
}

impl SchemaDefaults {
    pub(super) fn of(document: &SchemaDocument, findings: &SchemaFindings) -> Self {
        let properties = document.root.get("properties").and_then(Value::as_object);
        let named = |(name, property): (&String, _)| Some((name.clone(), Raw::of(default_of(property)?)));
        let top_level: Vec<_> = properties.into_iter().flatten().filter_map(named).take(EDITS_MAX).collect();
        let are_all = top_level.len() == findings.defaults && !findings.has_references;
        if are_all { Self::TopLevel(top_level) } else { Self::Anywhere }
    }
}

pub(super) fn defaults(schema: &CompiledSchema, draft: &mut ArgumentDraft) {
    let edits = match &schema.defaults {
        SchemaDefaults::TopLevel(all) => {
            let is_missing = |(name, _): &&(String, Raw)| draft.value.get(name).is_none();
            let set = |(name, to): &(String, Raw)| ArgumentEdit::set(vec![name.clone()], to.clone());
            all.iter().filter(is_missing).map(set).collect()
        }
        SchemaDefaults::Anywhere => MissingDefaults::of(&schema.document, &draft.value),
    };
    if edits.is_empty() {
        return;
    }
    if !fill(schema, draft, &edits) && edits.len() * draft.raw.bytes().len() <= SINGLY_BYTES_MAX {
        for edit in edits {
            fill(schema, draft, &[edit]);
        }
    }
}

/// Applies the edits if the arguments stay valid. Returns `true` if it did.
fn fill(schema: &CompiledSchema, draft: &mut ArgumentDraft, edits: &[ArgumentEdit]) -> bool {
    let filled = draft.edited(edits);
    let is_valid = schema.is_valid(&filled);
    if is_valid {
        draft.accept(edits, filled);
    }
    is_valid
}

struct MissingDefaults<'a> {
    document: &'a SchemaDocument,
    path: Vec<String>,
    edits: Vec<ArgumentEdit>,
    left: usize,
}

impl<'a> MissingDefaults<'a> {
    fn of(document: &'a SchemaDocument, value: &Value) -> Vec<ArgumentEdit> {
        let mut missing = Self { document, path: Vec::new(), edits: Vec::new(), left: VISITS_MAX };
        missing.collect_missing(&document.root, value, DEPTH_MAX);
        missing.edits
    }

    /// Collects missing defaults. Does not follow alternatives: which one applies depends on the defaults.
    fn collect_missing(&mut self, schema: &'a Value, value: &Value, depth: usize) {
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
                            None => self.add_default(name, property),
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
        self.collect_missing(schema, value, depth);
        self.path.pop();
    }

    fn add_default(&mut self, name: &str, property: &'a Value) {
        let applied = self.document.applied(property);
        self.left = self.left.saturating_sub(applied.len());
        let named = applied.into_iter().find_map(default_of);
        let Some(default) = named.filter(|_| self.edits.len() < EDITS_MAX) else { return };
        let mut path = self.path.clone();
        path.push(name.to_owned());
        self.edits.push(ArgumentEdit::set(path, Raw::of(default)));
    }
}
