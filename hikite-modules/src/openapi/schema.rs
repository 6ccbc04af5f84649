//! Schemas of a description: resolves references, merges parts and reduces them to a readable size. References to other
//! files and endless ones stay open.

use serde_json::{Map, Value, json};

use super::text::line;

/// Maximum length of a chain of references.
const HOPS: usize = 8;
/// Maximum depth of parameter schemas.
const DEPTH: usize = 3;
/// Maximum number of enum values.
const OPTIONS: usize = 50;

#[derive(Clone, Copy, Debug)]
pub(super) struct SchemaResolver<'a>(&'a Value);

impl<'a> SchemaResolver<'a> {
    pub(super) fn new(document: &'a Value) -> Self {
        Self(document)
    }

    /// Resolves a reference, or returns the value itself.
    pub(super) fn follow<'v>(self, value: &'v Value) -> &'v Value
    where
        'a: 'v,
    {
        let mut value = value;
        for _ in 0..HOPS {
            let Some(reference) = value.get("$ref").and_then(Value::as_str) else { return value };
            let found = reference.strip_prefix('#').and_then(|pointer| self.0.pointer(pointer));
            value = found.unwrap_or(&Value::Null);
        }
        &Value::Null
    }

    /// Merges a schema: joins `allOf`, and takes the first useful variant of `oneOf` and `anyOf`.
    pub(super) fn merged(self, schema: &Value) -> Map<String, Value> {
        let mut merged = Map::new();
        self.join(schema, HOPS, &mut merged);
        merged
    }

    fn join(self, schema: &Value, depth: usize, merged: &mut Map<String, Value>) {
        let Some(members) = self.follow(schema).as_object().filter(|_| depth > 0) else { return };
        for (key, value) in members {
            match (key.as_str(), merged.get_mut(key)) {
                ("properties", Some(Value::Object(known))) => {
                    for (name, property) in value.as_object().into_iter().flatten() {
                        known.entry(name.clone()).or_insert_with(|| property.clone());
                    }
                }
                ("required", Some(Value::Array(known))) => {
                    known.extend(value.as_array().cloned().unwrap_or_default());
                }
                ("allOf" | "oneOf" | "anyOf", _) | (_, Some(_)) => {}
                (_, None) => drop(merged.insert(key.clone(), value.clone())),
            }
        }
        for part in members.get("allOf").and_then(Value::as_array).into_iter().flatten() {
            self.join(part, depth - 1, merged);
        }
        if kind(merged).is_some() {
            return;
        }
        let forms = ["oneOf", "anyOf"].into_iter().filter_map(|key| members.get(key)?.as_array()).flatten();
        for form in forms {
            let mut first = Map::new();
            self.join(form, depth - 1, &mut first);
            if kind(&first).is_some_and(|kind| kind != "null") {
                first.extend(std::mem::take(merged));
                *merged = first;
                return;
            }
        }
    }

    /// Returns a reduced schema for a parameter.
    pub(super) fn reduced(self, schema: &Value) -> Value {
        self.reduce(schema, DEPTH)
    }

    fn reduce(self, schema: &Value, depth: usize) -> Value {
        let merged = self.merged(schema);
        let mut reduced = Map::new();
        if let Some(kind) = kind(&merged) {
            reduced.insert("type".into(), json!(kind));
        }
        let options: Vec<Value> = merged.get("enum").and_then(Value::as_array).into_iter().flatten().cloned().collect();
        let options: Vec<Value> = options.into_iter().filter(|option| !option.is_null()).collect();
        if (1..=OPTIONS).contains(&options.len()) {
            reduced.insert("enum".into(), Value::Array(options));
        }
        let is_plain = |value: &&Value| !matches!(value, Value::Null | Value::Array(_) | Value::Object(_));
        for key in ["minimum", "maximum", "default"] {
            reduced.extend(merged.get(key).filter(is_plain).map(|value| (key.to_owned(), value.clone())));
        }
        if let Some(items) = merged.get("items") {
            let items = if depth > 0 { self.reduce(items, depth - 1) } else { json!({}) };
            reduced.insert("items".into(), without_words(items));
        }
        let members = merged.get("properties").and_then(Value::as_object).filter(|_| depth > 1);
        let shown = members.into_iter().flatten().filter(|(_, schema)| schema["readOnly"] != true);
        let shown: Map<String, Value> =
            shown.map(|(name, schema)| (name.clone(), self.reduce(schema, depth - 1))).collect();
        if !shown.is_empty() {
            let required = merged.get("required").and_then(Value::as_array).into_iter().flatten();
            let required: Vec<Value> =
                required.filter(|name| name.as_str().is_some_and(|name| shown.contains_key(name))).cloned().collect();
            reduced.insert("properties".into(), Value::Object(shown));
            if !required.is_empty() {
                reduced.insert("required".into(), Value::Array(required));
            }
        }
        let words = line(merged.get("description").and_then(Value::as_str).unwrap_or_default());
        if !words.is_empty() {
            reduced.insert("description".into(), json!(words));
        }
        Value::Object(reduced)
    }
}

/// Returns the type: the first that is not null, or a guess from other keywords.
pub(super) fn kind(schema: &Map<String, Value>) -> Option<&str> {
    match schema.get("type") {
        Some(Value::String(kind)) => Some(kind),
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).find(|kind| *kind != "null"),
        _ if schema.contains_key("properties") => Some("object"),
        _ if schema.contains_key("items") => Some("array"),
        _ => {
            let options = schema.get("enum").and_then(Value::as_array)?;
            options.iter().all(Value::is_string).then_some("string")
        }
    }
}

pub(super) fn is_scalar(schema: &Map<String, Value>) -> bool {
    matches!(kind(schema), Some("string" | "integer" | "number" | "boolean"))
}

/// Removes the description of list items, which the list already has.
fn without_words(mut schema: Value) -> Value {
    if let Some(members) = schema.as_object_mut() {
        members.remove("description");
    }
    schema
}
