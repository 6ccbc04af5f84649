//! Coerces values of the wrong type that have one possible meaning: a number in a string, a string from a number, an
//! object written as a string, a null for an absent value. Touches only values that the schema rejects, converts only
//! to a type that the schema accepts, and never loses information.
//!
//! It is ours because validators such as `jsonschema` report violations and repair none.

use jsonschema::error::{TypeKind, ValidationError, ValidationErrorKind};
use jsonschema::{JsonType, JsonTypeSet};
use serde_json::Value;

use super::draft::{ArgumentDraft, steps};
use super::edit::ArgumentEdit;
use super::read::read_at;
use super::schema::CompiledSchema;
use crate::json::Raw;
use crate::violation::step;

/// Maximum number of values coerced at once; beyond it nothing is coerced and the error says so.
const EDITS_MAX: usize = 256;

/// Returns the edits that may make the arguments valid; `None` if there are too many.
pub(super) fn edits(schema: &CompiledSchema, draft: &ArgumentDraft) -> Option<Vec<ArgumentEdit>> {
    let Some(errors) = schema.errors(&draft.value) else { return Some(Vec::new()) };
    let edits: Vec<ArgumentEdit> = errors.filter_map(|error| edit(&error, &draft.value)).take(EDITS_MAX + 1).collect();
    (edits.len() <= EDITS_MAX).then_some(edits)
}

/// Returns the message that explains why nothing was coerced, after `told` reported violations.
pub(super) fn too_many(told: usize) -> String {
    format!(
        "more than {EDITS_MAX} values have the wrong type, so none was converted; send all of them as the schema \
         requires (the first {told} are listed)"
    )
}

fn edit(error: &ValidationError<'_>, whole: &Value) -> Option<ArgumentEdit> {
    let wanted = wanted(error)?;
    let path = steps(error.instance_path().as_str());
    let value = path.iter().try_fold(whole, |at, step| match at {
        Value::Object(members) => members.get(step),
        Value::Array(items) => items.get(step.parse::<usize>().ok()?),
        _ => None,
    })?;
    if value.is_null() {
        return is_property(error, path.last()?).then(|| ArgumentEdit::remove(path));
    }
    if matches!(value, Value::Number(_) | Value::Bool(_)) {
        return wanted.contains(JsonType::String).then(|| ArgumentEdit::quote(path));
    }
    let text = value.as_str()?;
    let mut meanings: Vec<Raw> = wanted.iter().filter_map(|wanted| convert(text, wanted, path.len())).collect();
    meanings.dedup();
    // An ambiguous string is left for the caller to resolve.
    let only = meanings.pop().filter(|_| meanings.is_empty())?;
    Some(ArgumentEdit::set(path, only))
}

/// Returns the types that the schema accepts here; `None` if the violation does not concern types.
fn wanted(error: &ValidationError<'_>) -> Option<JsonTypeSet> {
    match error.kind() {
        ValidationErrorKind::Type { kind: TypeKind::Single(wanted) } => Some((*wanted).into()),
        ValidationErrorKind::Type { kind: TypeKind::Multiple(wanted) } => Some(*wanted),
        ValidationErrorKind::Enum { .. } | ValidationErrorKind::Constant { .. } => Some(JsonTypeSet::empty()),
        ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context } => {
            let here = |inner: &&ValidationError<'_>| inner.instance_path() == error.instance_path();
            let types = context.iter().flatten().filter(here).filter_map(wanted);
            Some(types.flatten().fold(JsonTypeSet::empty(), JsonTypeSet::insert))
        }
        _ => None,
    }
}

/// Returns `true` if the schema names the value as a property. In a free-form map a null may be intended.
fn is_property(error: &ValidationError<'_>, name: &str) -> bool {
    error.evaluation_path().as_str().contains(&format!("/properties{}/", step(name)))
}

/// Converts a string to the wanted type. `depth` is the string's depth in the arguments.
fn convert(text: &str, wanted: JsonType, depth: usize) -> Option<Raw> {
    let parse = || parse(text, depth);
    match wanted {
        JsonType::Integer => number(text).filter(|number| !number.is_f64()).and_then(|_| parse()),
        JsonType::Number => number(text).and_then(|_| parse()),
        JsonType::Boolean if matches!(text, "true" | "false") => parse(),
        JsonType::Object => parse().filter(Raw::is_object),
        JsonType::Array => parse().filter(|raw| raw.bytes().starts_with(b"[")),
        _ => None,
    }
}

/// Longest number that we write.
const DIGITS_MAX: usize = 32;

/// Parses a number in its canonical spelling only, so that the conversion loses nothing.
fn number(text: &str) -> Option<serde_json::Number> {
    if text.len() > DIGITS_MAX {
        return None;
    }
    let number: serde_json::Number = text.parse().ok()?;
    (number.to_string() == text).then_some(number)
}

/// Parses JSON in a string; `None` if it exceeds the limits for arguments.
fn parse(text: &str, depth: usize) -> Option<Raw> {
    Some(read_at(Raw::parse(text.to_owned()).ok()?, depth).ok()?.raw)
}
