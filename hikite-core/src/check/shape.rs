//! Where schemas stand inside a schema: the keywords that hold further ones, and which part of a value those
//! are for.

use serde_json::Value;

/// The part of a value that an inner schema is held against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// The value itself.
    Same,
    /// The member of the name that the schema stands under.
    Member,
    /// Any member, or any member's name.
    Members,
    /// Any item.
    Items,
    /// None: it only stands there to be referred to.
    Nothing,
}

/// Every keyword that holds one schema, a list of schemas, or schemas by name.
fn part(keyword: &str) -> Option<Part> {
    match keyword {
        "allOf" | "anyOf" | "oneOf" | "not" | "if" | "then" | "else" | "dependentSchemas"
        | "dependencies" => Some(Part::Same),
        "properties" => Some(Part::Member),
        "patternProperties" | "additionalProperties" | "unevaluatedProperties" | "propertyNames" => {
            Some(Part::Members)
        }
        "items" | "prefixItems" | "additionalItems" | "unevaluatedItems" | "contains" => Some(Part::Items),
        "contentSchema" | "$defs" | "definitions" => Some(Part::Nothing),
        _ => None,
    }
}

/// Keywords whose member names are names and not keywords.
const BY_NAME: &[&str] =
    &["dependentSchemas", "dependencies", "properties", "patternProperties", "$defs", "definitions"];

/// The keywords of a schema that hold further ones, with what they hold and the part that is for.
pub(super) fn keywords(schema: &Value) -> impl Iterator<Item = (&str, &Value, Part)> {
    let members = schema.as_object().into_iter().flatten();
    members.filter_map(|(keyword, value)| Some((keyword.as_str(), value, part(keyword)?)))
}

/// The schemas that a keyword holds, with the name they stand under.
pub(super) fn each<'a>(keyword: &str, held: &'a Value, found: &mut impl FnMut(&'a str, &'a Value)) {
    match held {
        Value::Object(named) if BY_NAME.contains(&keyword) => {
            named.iter().for_each(|(name, schema)| found(name, schema));
        }
        Value::Array(list) => list.iter().for_each(|schema| found("", schema)),
        one => found("", one),
    }
}

/// The schemas directly inside `schema`, with the part they are for.
pub(super) fn inner<'a>(schema: &'a Value, found: &mut impl FnMut(Part, &'a Value)) {
    for (keyword, held, part) in keywords(schema) {
        each(keyword, held, &mut |_, schema| found(part, schema));
    }
}

/// What a schema says it refers to.
pub(super) fn references(schema: &Value) -> impl Iterator<Item = &str> {
    ["$ref", "$dynamicRef", "$recursiveRef"].into_iter().filter_map(|keyword| schema.get(keyword)?.as_str())
}
