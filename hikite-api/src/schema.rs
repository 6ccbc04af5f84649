//! Parts of schemas that a type cannot express.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

/// A type of the API, which knows its schema.
pub(crate) type SchemaOf = fn(&mut SchemaGenerator) -> Schema;

pub(crate) fn of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

/// Members that may be left out are never `null`.
pub(crate) fn never_null(schema: &mut Schema) {
    let required = schema.get("required").cloned().unwrap_or_default();
    let is_required = |name: &str| required.as_array().is_some_and(|names| names.iter().any(|known| known == name));
    let Some(Value::Object(members)) = schema.get_mut("properties") else { return };
    for (_, member) in members.iter_mut().filter(|(name, _)| !is_required(name)) {
        remove_null(member);
    }
}

fn remove_null(schema: &mut Value) {
    if let Some(Value::Array(types)) = schema.get_mut("type") {
        types.retain(|known| known != "null");
        if let [one] = &types[..] {
            schema["type"] = one.clone();
        }
    }
    let Some(Value::Array(cases)) = schema.get_mut("anyOf") else { return };
    cases.retain(|case| case["type"] != "null");
    if let [Value::Object(one)] = &mut cases[..] {
        let mut merged = std::mem::take(one);
        let described = schema.as_object().into_iter().flatten().filter(|(name, _)| *name != "anyOf");
        merged.extend(described.map(|(name, value)| (name.clone(), value.clone())));
        *schema = merged.into();
    }
}

/// Unknown members are refused. For types with flattened members, which serde cannot close.
pub(crate) fn closed(schema: &mut Schema) {
    schema.insert("additionalProperties".into(), false.into());
}

/// Removes formats of numbers, which are those of Rust. The largest value of a 32-bit number is said instead.
pub(crate) fn without_number_formats(schema: &mut Schema) {
    if schema.get("format").is_some_and(|format| format == "uint32") && schema.get("maximum").is_none() {
        schema.insert("maximum".into(), u32::MAX.into());
    }
    let is_of_number = |format: &str| format.starts_with("uint") || matches!(format, "double" | "int64");
    if schema.get("format").and_then(Value::as_str).is_some_and(is_of_number) {
        schema.remove("format");
    }
}

pub(crate) fn object_or_string(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": ["object", "string"] })
}

pub(crate) fn scopes(_: &mut SchemaGenerator) -> Schema {
    let names = json!({ "enum": ["read", "call", "admin"] });
    json_schema!({ "type": "array", "minItems": 1, "items": names })
}

pub(crate) fn scopes_or_null(generator: &mut SchemaGenerator) -> Schema {
    let mut schema = scopes(generator);
    schema.insert("type".into(), json!(["array", "null"]));
    schema
}
