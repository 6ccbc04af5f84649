//! Arguments that arrive in a wrapper: as text that holds the object, or inside an object of one member that
//! repeats what the arguments are called.

use super::draft::Draft;
use super::schema::Schema;
use crate::fault::Fault;
use crate::json::Raw;

/// What models call the wrapper.
const NAMES: &[&str] = &["arguments", "params", "parameters", "input", "args"];

/// Nobody wraps deeper by mistake.
const LAYERS: usize = 3;

/// The object that a text holds, or a text in a text.
pub(super) fn text(draft: &Draft) -> Option<Result<Draft, Vec<Fault>>> {
    let object = draft.value.is_string().then(|| open(&draft.raw)).flatten()?;
    Some(Draft::of(object, true))
}

/// What the wrappers hold, the outer first. A name that the schema knows is no wrapper.
pub(super) fn wrappers(schema: &Schema, mut raw: Raw) -> Vec<Draft> {
    let mut found = Vec::new();
    while let Some(inner) = inside(schema, &raw).filter(|_| found.len() < LAYERS) {
        found.extend(Draft::of(inner.clone(), true));
        raw = inner;
    }
    found
}

/// Whether a member of this name, alone in its object, holds what was meant.
pub(super) fn is_wrapper(schema: &Schema, name: &str) -> bool {
    NAMES.contains(&name) && !schema.has_property(name)
}

fn inside(schema: &Schema, raw: &Raw) -> Option<Raw> {
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
