//! One walk over all schemas of a document before it is compiled: nothing about it may make a check run away,
//! and nothing may lead outside.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::document::Document;
use super::shape::{self, Part};

/// Regular expressions in one schema.
const PATTERNS_MAX: usize = 256;
/// Schemas that are held against one and the same value, and how far they are nested.
const WEIGHT_MAX: usize = 10_000;
pub(super) const NESTED_MAX: usize = 24;

pub(super) struct Findings {
    /// How many schemas name a default.
    pub(super) defaults: usize,
    /// Whether some stand elsewhere, too.
    pub(super) has_references: bool,
}

/// The error says what is too much, or leads outside.
pub(super) fn survey(document: &Document) -> Result<Findings, String> {
    let mut scale = Scale { document, weights: HashMap::new() };
    let (mut seen, mut waiting) = (HashSet::new(), vec![&document.root]);
    let (mut patterns, mut defaults, mut has_references) = (0, 0, false);
    while let Some(schema) = waiting.pop() {
        if !seen.insert(std::ptr::from_ref(schema)) {
            continue;
        }
        scale.weigh(schema, NESTED_MAX)?;
        defaults += usize::from(default_of(schema).is_some());
        let by_name = schema.get("patternProperties").and_then(Value::as_object);
        patterns += usize::from(schema.get("pattern").is_some()) + by_name.map_or(0, serde_json::Map::len);
        has_references |= shape::references(schema).next().is_some();
        waiting.extend(shape::references(schema).filter_map(|reference| document.target(reference)));
        shape::inner(schema, &mut |_, _, schema| waiting.push(schema));
    }
    if patterns > PATTERNS_MAX {
        return Err(format!("the schema has more than {PATTERNS_MAX} patterns"));
    }
    Ok(Findings { defaults, has_references })
}

/// A default of null says no more than that nothing stands there.
pub(super) fn default_of(schema: &Value) -> Option<&Value> {
    schema.get("default").filter(|value| !value.is_null())
}

struct Scale<'a> {
    document: &'a Document,
    /// By address: how many schemas are held against the same value, and how far they are nested.
    weights: HashMap<*const Value, (usize, usize)>,
}

impl<'a> Scale<'a> {
    fn weigh(&mut self, schema: &'a Value, left: usize) -> Result<(usize, usize), String> {
        let address = std::ptr::from_ref(schema);
        if let Some(known) = self.weights.get(&address) {
            return Ok(*known);
        }
        let left = left.checked_sub(1).ok_or_else(too_much)?;
        // A reference back to here ends: the validators notice that they have been there.
        self.weights.insert(address, (1, 1));
        let mut same = Vec::new();
        for reference in shape::references(schema) {
            same.push(self.document.target(reference).ok_or_else(|| outside(reference))?);
        }
        shape::inner(schema, &mut |part, _, schema| {
            if part == Part::Same {
                same.push(schema);
            }
        });
        let (mut weight, mut nested) = (1_usize, 0);
        for schema in same {
            let (more, deeper) = self.weigh(schema, left)?;
            weight = weight.saturating_add(more);
            nested = nested.max(deeper);
        }
        if weight > WEIGHT_MAX || nested >= NESTED_MAX {
            return Err(too_much());
        }
        self.weights.insert(address, (weight, nested + 1));
        Ok((weight, nested + 1))
    }
}

fn too_much() -> String {
    "the schema nests too many conditions for one value".into()
}

fn outside(reference: &str) -> String {
    format!("`{}` leads out of the schema", reference.chars().take(100).collect::<String>())
}
