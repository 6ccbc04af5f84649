//! JSON Schema keywords that contain subschemas, and the part of a value that each applies to.

use serde_json::Value;

/// The part of a value that a subschema applies to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SubschemaTarget {
    /// The value itself.
    Same,
    /// The member with the subschema's name.
    Member,
    /// Any member, or any member's name.
    Members,
    /// Any item.
    Items,
    /// Nothing: the subschema is only a target of references.
    Nothing,
}

/// Returns the target of a keyword that contains one subschema, a list, or named subschemas; else `None`.
fn part(keyword: &str) -> Option<SubschemaTarget> {
    match keyword {
        "allOf" | "anyOf" | "oneOf" | "not" | "if" | "then" | "else" | "dependentSchemas" | "dependencies" => {
            Some(SubschemaTarget::Same)
        }
        "properties" => Some(SubschemaTarget::Member),
        "patternProperties" | "additionalProperties" | "unevaluatedProperties" | "propertyNames" => {
            Some(SubschemaTarget::Members)
        }
        "items" | "prefixItems" | "additionalItems" | "unevaluatedItems" | "contains" => Some(SubschemaTarget::Items),
        "contentSchema" | "$defs" | "definitions" => Some(SubschemaTarget::Nothing),
        _ => None,
    }
}

/// Keywords whose members are names, not keywords.
const BY_NAME: &[&str] =
    &["dependentSchemas", "dependencies", "properties", "patternProperties", "$defs", "definitions"];

/// Returns the keywords of a schema that contain subschemas, with their values and targets.
pub(super) fn keywords(schema: &Value) -> impl Iterator<Item = (&str, &Value, SubschemaTarget)> {
    let members = schema.as_object().into_iter().flatten();
    members.filter_map(|(keyword, value)| Some((keyword.as_str(), value, part(keyword)?)))
}

/// Visits the subschemas of a keyword with their names.
pub(super) fn each<'a>(keyword: &str, held: &'a Value, found: &mut impl FnMut(&'a str, &'a Value)) {
    match held {
        Value::Object(named) if BY_NAME.contains(&keyword) => {
            named.iter().for_each(|(name, schema)| found(name, schema));
        }
        Value::Array(list) => list.iter().for_each(|schema| found("", schema)),
        one => found("", one),
    }
}

/// Visits the direct subschemas of `schema` with their targets.
pub(super) fn inner<'a>(schema: &'a Value, found: &mut impl FnMut(SubschemaTarget, &'a Value)) {
    for (keyword, held, part) in keywords(schema) {
        each(keyword, held, &mut |_, schema| found(part, schema));
    }
}

/// Returns the references of a schema.
pub(super) fn references(schema: &Value) -> impl Iterator<Item = &str> {
    ["$ref", "$dynamicRef", "$recursiveRef"].into_iter().filter_map(|keyword| schema.get(keyword)?.as_str())
}
