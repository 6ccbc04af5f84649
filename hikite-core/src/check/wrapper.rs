//! Unwraps arguments that arrive as a string containing the object, or inside an object with one member named after the
//! arguments.

use super::draft::ArgumentDraft;
use super::schema::CompiledSchema;
use crate::json::Raw;
use crate::violation::Violation;

/// Names that models give to the wrapper.
const NAMES: &[&str] = &["arguments", "params", "parameters", "input", "args"];

/// Maximum number of wrappers removed.
const LAYERS: usize = 3;

/// Returns the object inside a string, or inside a string in a string.
pub(super) fn text(draft: &ArgumentDraft) -> Option<Result<ArgumentDraft, Vec<Violation>>> {
    let object = draft.value.is_string().then(|| open(&draft.raw)).flatten()?;
    Some(ArgumentDraft::of(object, true))
}

/// Returns the contents of the wrappers, outermost first. A name that the schema knows is not a wrapper.
pub(super) fn wrappers(schema: &CompiledSchema, mut raw: Raw) -> Vec<ArgumentDraft> {
    let mut found = Vec::new();
    while let Some(inner) = inside(schema, &raw).filter(|_| found.len() < LAYERS) {
        found.extend(ArgumentDraft::of(inner.clone(), true));
        raw = inner;
    }
    found
}

/// Returns `true` if a lone member with this name is a wrapper around the arguments.
pub(super) fn is_wrapper(schema: &CompiledSchema, name: &str) -> bool {
    NAMES.contains(&name) && !schema.has_property(name)
}

fn inside(schema: &CompiledSchema, raw: &Raw) -> Option<Raw> {
    let object = raw.object().filter(|object| object.len() == 1)?;
    let (_, value) = object.iter().next().filter(|(name, _)| is_wrapper(schema, name))?;
    if value.is_object() { Some(value.clone()) } else { open(value) }
}

fn open(raw: &Raw) -> Option<Raw> {
    let mut raw = raw.clone();
    for _ in 0..LAYERS {
        raw = Raw::parse(raw.text()?).ok()?;
        if raw.is_object() {
            return Some(raw);
        }
    }
    None
}
