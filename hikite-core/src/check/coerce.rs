//! Values of the wrong type that can only mean one thing: the number in a text, the text of a number, an object
//! written as text, a null where nothing was meant. Only what the schema refuses is touched, only towards a type
//! it asks for, and never with a loss.

use jsonschema::error::{TypeKind, ValidationError, ValidationErrorKind};
use jsonschema::{JsonType, JsonTypeSet};
use serde_json::Value;

use super::draft::{Draft, Edit, find, steps};
use super::read::read;
use super::schema::Schema;
use crate::fault::step;
use crate::json::Raw;

pub(super) fn edits(schema: &Schema, draft: &Draft) -> Vec<Edit> {
    let Some(errors) = schema.errors(&draft.value) else { return Vec::new() };
    errors.filter_map(|error| edit(&error, draft)).collect()
}

fn edit(error: &ValidationError<'_>, draft: &Draft) -> Option<Edit> {
    let wanted = wanted(error)?;
    let path = steps(error.instance_path().as_str());
    let value = path.iter().try_fold(&draft.value, |at, step| match at {
        Value::Object(members) => members.get(step),
        Value::Array(items) => items.get(step.parse::<usize>().ok()?),
        _ => None,
    })?;
    if value.is_null() {
        return is_property(error, path.last()?).then(|| Edit::remove(path));
    }
    let raw = find(&draft.raw, &path)?;
    let mut meanings: Vec<Raw> = wanted.iter().filter_map(|wanted| convert(value, &raw, wanted)).collect();
    meanings.dedup();
    // What could be read in two ways is for the caller to say.
    let only = meanings.pop().filter(|_| meanings.is_empty())?;
    Some(Edit::set(path, only))
}

/// The types that would have been right here; `None` for a fault that has nothing to do with types.
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

/// Whether the value stands where the schema names a property: in a free map a null may be meant.
fn is_property(error: &ValidationError<'_>, name: &str) -> bool {
    error.evaluation_path().as_str().contains(&format!("/properties{}/", step(name)))
}

fn convert(value: &Value, raw: &Raw, wanted: JsonType) -> Option<Raw> {
    match (value, wanted) {
        (Value::String(text), JsonType::Integer) => {
            number(text).filter(|number| !number.is_f64()).and_then(|_| parse(text))
        }
        (Value::String(text), JsonType::Number) => number(text).and_then(|_| parse(text)),
        (Value::String(text), JsonType::Boolean) if matches!(text.as_str(), "true" | "false") => parse(text),
        (Value::String(text), JsonType::Object) => parse(text).filter(Raw::is_object),
        (Value::String(text), JsonType::Array) => parse(text).filter(|raw| raw.bytes().starts_with(b"[")),
        // As it was written: a long number keeps all its digits.
        (Value::Number(_) | Value::Bool(_), JsonType::String) => Some(Raw::from(&*raw.as_str())),
        _ => None,
    }
}

/// A number written the one way that we would write it, so that nothing about the text is lost.
fn number(text: &str) -> Option<serde_json::Number> {
    let number: serde_json::Number = text.parse().ok()?;
    (number.to_string() == text).then_some(number)
}

/// Text that holds more than the reader of arguments would follow is left as it is.
fn parse(text: &str) -> Option<Raw> {
    Some(read(Raw::parse(text.to_owned()).ok()?).ok()?.raw)
}
