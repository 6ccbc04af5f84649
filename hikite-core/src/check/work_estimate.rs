//! Estimates the work of checking a value against a schema before it is done. Both come from outside: a long list
//! checked against many alternatives could occupy a core for minutes.

use std::collections::HashSet;

use serde_json::Value;

use super::document::SchemaDocument;
use super::keyword::{self, SubschemaTarget};

/// Maximum steps of one check. A bulk insert of a million values takes two to four million.
const CHECK_MAX: usize = 5_000_000;
/// Maximum steps to find all violations of one value; beyond it, only the fact that there are some is reported.
const FAULTS_MAX: usize = 20_000;
/// Bytes of a violation's pointer that cost one step.
const PLACE_BYTES: usize = 32;
/// Bytes of text matched against a pattern in one step.
const TEXT_BYTES: usize = 64;
/// Maximum steps of a pattern that needs backtracking; all others match in linear time.
pub(super) const BACKTRACKS_MAX: usize = 10_000;
pub(super) const NESTED_MAX: usize = 24;
/// Steps per byte of text for a pattern that needs backtracking: it may visit every byte `BACKTRACKS_MAX` times, each
/// at a sixteenth of a step.
pub(super) const BACKTRACK_STEPS: usize = BACKTRACKS_MAX / 16;
/// Steps per byte in the search for violations, which costs no more than the preceding check and has a far lower limit.
const BACKTRACK_STEPS_SEARCH: usize = 2;
/// Maximum number of `enum` strings that the validators compare one by one; longer lists are hashed.
const TEXTS_FEW: usize = 10;

pub(super) struct WorkEstimate<'a> {
    document: &'a SchemaDocument,
    left: usize,
    /// Visited pairs of reference target and value, for a check only. The search for violations neither stops early nor
    /// caches references, so nested alternatives can make it exponential.
    known: Option<HashSet<(*const Value, *const Value)>>,
}

/// Position of the walk.
#[derive(Clone, Copy)]
struct WorkPosition {
    /// Nesting levels left for one value; deeper nesting than the survey permits is a cycle.
    nested: usize,
    /// Bytes of the pointer to the value.
    place: usize,
}

impl<'a> WorkEstimate<'a> {
    /// Returns `true` if a check of this value is affordable. `steps` is the total of all schemas; `values` is an upper
    /// bound on the number of values.
    pub(super) fn fits_check(document: &'a SchemaDocument, steps: usize, values: usize, value: &'a Value) -> bool {
        if document.backtracking_patterns.is_empty() && steps.saturating_mul(values) <= CHECK_MAX {
            return true;
        }
        Self { document, left: CHECK_MAX, known: Some(HashSet::new()) }.fits(value)
    }

    pub(super) fn fits_search(document: &'a SchemaDocument, value: &'a Value) -> bool {
        Self { document, left: FAULTS_MAX, known: None }.fits(value)
    }

    fn fits(mut self, value: &'a Value) -> bool {
        let document = self.document;
        self.visit(&document.root, value, WorkPosition { nested: NESTED_MAX, place: 0 });
        self.left > 0
    }

    fn visit(&mut self, schema: &'a Value, value: &'a Value, at: WorkPosition) {
        let places = if self.known.is_none() { 1 + at.place / PLACE_BYTES } else { 1 };
        self.left = self.left.saturating_sub((1 + self.own_steps(schema, value)).saturating_mul(places));
        let Some(nested) = at.nested.checked_sub(1).filter(|_| self.left > 0) else { return };
        let at = WorkPosition { nested, ..at };
        let document = self.document;
        for target in keyword::references(schema).filter_map(|reference| document.target(reference)) {
            if self.is_new(target, value) {
                self.visit(target, value, at);
            }
        }
        for (keyword, held, part) in keyword::keywords(schema) {
            if self.left == 0 {
                return;
            }
            match (part, value, held) {
                (SubschemaTarget::Same, _, _) => {
                    keyword::each(keyword, held, &mut |_, schema| self.visit(schema, value, at));
                }
                (SubschemaTarget::Member, Value::Object(members), Value::Object(schemas)) => {
                    self.members(schemas, members, at.place);
                }
                (SubschemaTarget::Items, Value::Array(items), Value::Array(schemas)) => {
                    for (schema, item) in schemas.iter().zip(items) {
                        self.below(schema, item, 7, at.place);
                    }
                }
                (SubschemaTarget::Members, Value::Object(members), _) => {
                    keyword::each(keyword, held, &mut |_, schema| {
                        for (name, member) in members {
                            self.below(schema, member, name.len(), at.place);
                        }
                    });
                }
                (SubschemaTarget::Items, Value::Array(items), _) => {
                    for item in items {
                        self.below(held, item, 7, at.place);
                    }
                }
                _ => {}
            }
        }
    }

    /// Visits the members that have a schema, iterating over the shorter of the two maps.
    fn members(
        &mut self,
        schemas: &'a serde_json::Map<String, Value>,
        members: &'a serde_json::Map<String, Value>,
        place: usize,
    ) {
        if members.len() < schemas.len() {
            for (name, member) in members {
                if let Some(schema) = schemas.get(name) {
                    self.below(schema, member, name.len(), place);
                }
            }
        } else {
            for (name, schema) in schemas {
                if let Some(member) = members.get(name) {
                    self.below(schema, member, name.len(), place);
                }
            }
        }
    }

    fn below(&mut self, schema: &'a Value, value: &'a Value, name: usize, place: usize) {
        if self.left > 0 {
            self.visit(schema, value, WorkPosition { nested: NESTED_MAX, place: place + name + 1 });
        }
    }

    /// Returns the steps of the schema's own keywords for this value.
    fn own_steps(&self, schema: &Value, value: &Value) -> usize {
        let options = list(schema, "enum");
        match value {
            Value::Object(members) => list(schema, "required") + options + self.names(schema, members),
            Value::String(text) => {
                let pattern = schema.get("pattern").map_or(0, |pattern| self.text(pattern.as_str(), text.len()));
                pattern + if options > TEXTS_FEW { 1 } else { options }
            }
            _ => options,
        }
    }

    /// Returns the steps to match this many bytes of text against a pattern.
    fn text(&self, pattern: Option<&str>, bytes: usize) -> usize {
        if pattern.is_some_and(|pattern| self.document.needs_backtracking(pattern)) {
            bytes.saturating_mul(self.backtrack_steps()).saturating_add(1)
        } else {
            1 + bytes / TEXT_BYTES
        }
    }

    fn backtrack_steps(&self) -> usize {
        if self.known.is_some() { BACKTRACK_STEPS } else { BACKTRACK_STEPS_SEARCH }
    }

    /// Returns the steps to check the names of members.
    fn names(&self, schema: &Value, members: &serde_json::Map<String, Value>) -> usize {
        let by_name = schema.get("patternProperties").and_then(Value::as_object);
        let is_for_all = !self.document.backtracking_patterns.is_empty() && schema.get("propertyNames").is_some();
        if by_name.is_none() && !is_for_all {
            return 0;
        }
        let bytes = members.keys().map(String::len).sum();
        let by_name = by_name.into_iter().flatten().map(|(pattern, _)| self.text(Some(pattern), bytes));
        // `propertyNames` may use any of the backtracking patterns.
        let for_all = if is_for_all { self.document.backtracking_patterns.len() } else { 0 };
        by_name.sum::<usize>().saturating_add(for_all.saturating_mul(bytes).saturating_mul(self.backtrack_steps()))
    }

    /// Returns `true` if the reference target was not yet checked against this value. Only arrays and objects are
    /// cached.
    fn is_new(&mut self, target: &Value, value: &Value) -> bool {
        match &mut self.known {
            Some(known) if value.is_object() || value.is_array() => {
                known.insert((std::ptr::from_ref(target), std::ptr::from_ref(value)))
            }
            _ => true,
        }
    }
}

/// Returns an upper bound on the steps of the schema's own keywords for any value.
pub(super) fn own_steps_at_most(schema: &Value) -> usize {
    1 + list(schema, "required") + list(schema, "enum")
}

fn list(schema: &Value, keyword: &str) -> usize {
    schema.get(keyword).and_then(Value::as_array).map_or(0, Vec::len)
}

/// Counts the values, including nested ones.
pub(super) fn count(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(count).sum::<usize>(),
        Value::Object(members) => 1 + members.values().map(count).sum::<usize>(),
        _ => 1,
    }
}
