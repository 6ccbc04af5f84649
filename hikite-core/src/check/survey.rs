//! Surveys all schemas of a document before it is compiled. Rejects documents that could make a check run away or that
//! refer outside.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::document::SchemaDocument;
use super::keyword::{self, SubschemaTarget};
use super::pattern::needs_backtracking;
use super::work_estimate::{BACKTRACK_STEPS, NESTED_MAX, own_steps_at_most};

/// Maximum number of patterns in one schema.
const PATTERNS_MAX: usize = 256;
/// Maximum number of schemas that apply to one value, and their maximum nesting.
const WEIGHT_MAX: usize = 10_000;
/// Maximum bytes of one reference.
const REFERENCE_MAX: usize = 1000;

pub(super) struct SchemaFindings {
    /// Number of schemas with a default.
    pub(super) defaults: usize,
    /// `true` if any schema contains a reference.
    pub(super) has_references: bool,
    /// Steps to check one value against every schema in the document.
    pub(super) steps: usize,
    /// Addresses of the patterns that need backtracking.
    pub(super) backtracking_patterns: HashSet<usize>,
}

/// Surveys the document. The error names the exceeded limit or the external reference.
pub(super) fn survey(document: &SchemaDocument) -> Result<SchemaFindings, String> {
    let mut scale = SchemaWeigher { document, weights: HashMap::new() };
    let (mut seen, mut waiting) = (HashSet::new(), vec![&document.root]);
    let mut backtracking_patterns = HashSet::new();
    let (mut patterns, mut defaults, mut has_references, mut steps) = (0, 0, false, 0_usize);
    while let Some(schema) = waiting.pop() {
        if !seen.insert(std::ptr::from_ref(schema)) {
            continue;
        }
        steps = steps.saturating_add(scale.weigh(schema, NESTED_MAX)?.steps);
        defaults += usize::from(default_of(schema).is_some());
        let by_name = schema.get("patternProperties").and_then(Value::as_object);
        let by_name = by_name.into_iter().flatten().map(|(pattern, _)| pattern.as_str());
        for pattern in by_name.chain(schema.get("pattern").and_then(Value::as_str)) {
            patterns += 1;
            if needs_backtracking(pattern) {
                backtracking_patterns.insert(pattern.as_ptr().addr());
            }
        }
        has_references |= keyword::references(schema).next().is_some();
        waiting.extend(keyword::references(schema).filter_map(|reference| document.target(reference)));
        keyword::inner(schema, &mut |_, schema| waiting.push(schema));
    }
    if patterns > PATTERNS_MAX {
        return Err(format!("the schema has more than {PATTERNS_MAX} patterns"));
    }
    steps = steps.saturating_add(backtracking_patterns.len() * BACKTRACK_STEPS);
    Ok(SchemaFindings { defaults, has_references, steps, backtracking_patterns })
}

/// Returns the default of a schema. A null default is ignored.
pub(super) fn default_of(schema: &Value) -> Option<&Value> {
    schema.get("default").filter(|value| !value.is_null())
}

struct SchemaWeigher<'a> {
    document: &'a SchemaDocument,
    /// Computed weights by schema address.
    weights: HashMap<*const Value, SchemaWeight>,
}

/// Weight of all schemas that apply to one value.
#[derive(Clone, Copy)]
struct SchemaWeight {
    schemas: usize,
    /// Maximum nesting.
    nested: usize,
    steps: usize,
}

impl<'a> SchemaWeigher<'a> {
    fn weigh(&mut self, schema: &'a Value, left: usize) -> Result<SchemaWeight, String> {
        let address = std::ptr::from_ref(schema);
        if let Some(known) = self.weights.get(&address) {
            return Ok(*known);
        }
        let left = left.checked_sub(1).ok_or_else(too_complex)?;
        let own = own_steps_at_most(schema);
        // A cyclic reference ends here: the validators detect cycles.
        self.weights.insert(address, SchemaWeight { schemas: 1, nested: 1, steps: own });
        let mut same = Vec::new();
        for reference in keyword::references(schema) {
            if reference.len() > REFERENCE_MAX {
                return Err(format!("the schema has a reference of more than {REFERENCE_MAX} bytes"));
            }
            same.push(self.document.target(reference).ok_or_else(|| outside(reference))?);
        }
        keyword::inner(schema, &mut |part, schema| {
            if part == SubschemaTarget::Same {
                same.push(schema);
            }
        });
        let mut weight = SchemaWeight { schemas: 1, nested: 0, steps: own };
        for schema in same {
            let more = self.weigh(schema, left)?;
            weight.schemas = weight.schemas.saturating_add(more.schemas);
            weight.steps = weight.steps.saturating_add(more.steps);
            weight.nested = weight.nested.max(more.nested);
        }
        if weight.schemas > WEIGHT_MAX || weight.nested >= NESTED_MAX {
            return Err(too_complex());
        }
        weight.nested += 1;
        self.weights.insert(address, weight);
        Ok(weight)
    }
}

fn too_complex() -> String {
    "the schema nests too many conditions for one value".into()
}

fn outside(reference: &str) -> String {
    format!("`{}` points outside the schema", reference.chars().take(100).collect::<String>())
}
