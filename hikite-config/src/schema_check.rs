//! Validates the tree against the JSON Schema of the raw types: unknown keys, wrong types, unknown words, duplicate
//! names. Invalid parts are reported and removed, so that the rest can still be checked.

use std::collections::HashMap;

use hikite_core::suggestion;
use serde_json::{Map, Value as Json};

use super::jsonc::{JsoncNode, JsoncObject, JsoncValue};
use super::position::ConfigPath;
use super::problem::ProblemCollector;

/// Returns the file's value without its invalid parts; `None` if nothing is left.
pub(crate) fn check(report: &mut ProblemCollector<'_>, schema: &Json) -> Option<Json> {
    let tree = report.tree();
    ConfigSchemaChecker { report, root: schema }.node(&ConfigPath::ROOT, tree, schema)
}

struct ConfigSchemaChecker<'r, 'a> {
    report: &'r mut ProblemCollector<'a>,
    root: &'r Json,
}

impl<'r> ConfigSchemaChecker<'r, '_> {
    fn node(&mut self, path: &ConfigPath<'_>, node: &JsoncNode, schema: &'r Json) -> Option<Json> {
        if *schema == Json::Bool(true) {
            return Some(node.json());
        }
        let leaves = self.leaves(schema);
        let Some(leaf) = leaves.iter().find(|leaf| fits(node, leaf)) else {
            self.misfit(path, node, &leaves);
            return None;
        };
        match &node.value {
            JsoncValue::Object(object) => self.object(path, object, leaf),
            JsoncValue::List(items) => {
                let Some(schema) = leaf.get("items") else { return Some(node.json()) };
                // A list with an invalid item is removed whole, because indexes must match the file.
                let parts = items.iter().enumerate().map(|(at, item)| self.node(&path.index(at), item, schema));
                let parts: Vec<Option<Json>> = parts.collect();
                parts.into_iter().collect::<Option<Vec<Json>>>().map(Json::Array)
            }
            _ => Some(node.json()),
        }
    }

    fn object(&mut self, path: &ConfigPath<'_>, object: &JsoncObject, schema: &'r Map<String, Json>) -> Option<Json> {
        let known = schema.get("properties").and_then(Json::as_object);
        let others = schema.get("additionalProperties");
        let mut value = Map::new();
        let mut places = HashMap::with_capacity(object.members.len());
        for member in &object.members {
            let path = path.key(&member.name);
            let name = member.name.as_str();
            let first = *places.entry(name).or_insert(member.name_at);
            if first != member.name_at {
                let hint = format!("It is also on line {}; keep one.", self.report.line(first));
                self.report.error_in_name(&path, "defined twice", Some(hint));
                continue;
            }
            let part = match known.and_then(|known| known.get(name)).or(others) {
                Some(Json::Bool(false)) => {
                    self.unknown_key(&path, name, known.into_iter().flat_map(Map::keys));
                    None
                }
                Some(schema) => self.node(&path, &member.node, schema),
                None => Some(member.node.json()),
            };
            value.extend(part.map(|part| (member.name.clone(), part)));
        }
        let required = schema.get("required").and_then(Json::as_array).into_iter().flatten();
        if let Some(absent) = required.filter_map(Json::as_str).find(|key| !value.contains_key(*key)) {
            // An invalid value has been reported already.
            if object.get(absent).is_none() {
                self.report.missing(path, format!("`{absent}` is missing"), None);
            }
            return None;
        }
        Some(Json::Object(value))
    }

    fn unknown_key<'k>(&mut self, path: &ConfigPath<'_>, name: &str, known: impl Iterator<Item = &'k String>) {
        if self.report.is_full() {
            return self.report.error_in_name(path, "unknown key", None);
        }
        let hint = match suggestion::nearest(name, known.map(String::as_str)).first() {
            Some(near) => format!("Did you mean `{near}`?"),
            None => "`hikite config schema` describes every key.".into(),
        };
        self.report.error_in_name(path, "unknown key", Some(hint));
    }

    fn misfit(&mut self, path: &ConfigPath<'_>, node: &JsoncNode, leaves: &[&Map<String, Json>]) {
        let words: Vec<&str> = leaves.iter().flat_map(|leaf| words(leaf)).collect();
        let word = match &node.value {
            JsoncValue::Text(word) if !words.is_empty() => word,
            _ => return self.wrong_type(path, node, leaves),
        };
        let near = suggestion::did_you_mean(word, words.iter().copied());
        self.report.error(path, format!("`{word}` is not a known value"), Some(near.unwrap_or_else(|| one_of(&words))));
    }

    fn wrong_type(&mut self, path: &ConfigPath<'_>, node: &JsoncNode, leaves: &[&Map<String, Json>]) {
        let mut wanted: Vec<&str> = Vec::new();
        for name in leaves.iter().flat_map(|leaf| types(leaf)).filter(|name| *name != "null").map(described) {
            if !wanted.contains(&name) {
                wanted.push(name);
            }
        }
        let found = match type_of(node) {
            "integer" => "a number",
            other => described(other),
        };
        let words: Vec<&str> = leaves.iter().flat_map(|leaf| words(leaf)).collect();
        let hint = (!words.is_empty()).then(|| one_of(&words));
        self.report.error(path, format!("expected {}, found {found}", wanted.join(" or ")), hint);
    }

    /// Returns the alternatives of a schema, with references resolved.
    fn leaves(&self, schema: &'r Json) -> Vec<&'r Map<String, Json>> {
        let Some(object) = schema.as_object() else { return Vec::new() };
        let reference = object.get("$ref").and_then(Json::as_str).and_then(|at| at.strip_prefix('#'));
        if let Some(target) = reference.and_then(|at| self.root.pointer(at)) {
            return self.leaves(target);
        }
        match object.get("anyOf").or_else(|| object.get("oneOf")).and_then(Json::as_array) {
            Some(alternatives) => alternatives.iter().flat_map(|schema| self.leaves(schema)).collect(),
            None => vec![object],
        }
    }
}

fn fits(node: &JsoncNode, leaf: &Map<String, Json>) -> bool {
    let mut words = words(leaf).peekable();
    if words.peek().is_some() {
        return matches!(&node.value, JsoncValue::Text(text) if words.any(|word| word == text));
    }
    let found = type_of(node);
    let mut types = types(leaf).peekable();
    types.peek().is_none() || types.any(|name| name == found || (name == "number" && found == "integer"))
}

/// Returns the words a schema allows, if it allows only words.
fn words(leaf: &Map<String, Json>) -> impl Iterator<Item = &str> {
    let list = leaf.get("enum").and_then(Json::as_array).into_iter().flatten();
    list.chain(leaf.get("const")).filter_map(Json::as_str)
}

fn types(leaf: &Map<String, Json>) -> impl Iterator<Item = &str> {
    let list = leaf.get("type").and_then(Json::as_array).into_iter().flatten();
    list.chain(leaf.get("type")).filter_map(Json::as_str)
}

/// Returns the JSON type. Only non-negative integers count as `integer`, because counts cannot hold others.
fn type_of(node: &JsoncNode) -> &'static str {
    match &node.value {
        JsoncValue::Null => "null",
        JsoncValue::Bool(_) => "boolean",
        JsoncValue::Number(number) if number.is_u64() => "integer",
        JsoncValue::Number(_) => "number",
        JsoncValue::Text(_) => "string",
        JsoncValue::List(_) => "array",
        JsoncValue::Object(_) => "object",
    }
}

fn described(type_name: &str) -> &str {
    match type_name {
        "boolean" => "a boolean",
        "integer" => "an integer",
        "number" => "a number",
        "string" => "a string",
        "array" => "an array",
        "object" => "an object",
        other => other,
    }
}

fn one_of(words: &[&str]) -> String {
    let words: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
    format!("Use one of {}.", words.join(", "))
}
