//! The document compared with that of version 0.1.0: every difference in operations, parameters and members is listed
//! in `changes-since-0.1.0.txt`, which `HIKITE_UPDATE=1 cargo test -p hikite-api comparison` writes.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;

use serde_json::{Map, Value};

use super::document;

/// Reads a document as lines, one for each operation, parameter, response and member.
struct Outline<'a> {
    document: &'a Value,
    /// Components that are named; others are part of whoever refers to them.
    named: &'a Map<String, Value>,
    lines: BTreeSet<String>,
}

impl Outline<'_> {
    fn resolve<'a>(&'a self, value: &'a Value) -> &'a Value {
        let target = value["$ref"].as_str().and_then(|reference| self.document.pointer(&reference[1..]));
        target.unwrap_or(value)
    }

    fn read(mut self) -> BTreeSet<String> {
        let document = self.document;
        for (path, methods) in document["paths"].as_object().into_iter().flatten() {
            for (method, operation) in methods.as_object().into_iter().flatten() {
                self.operation(&format!("{} {path}", method.to_uppercase()), operation);
            }
        }
        for name in self.named.keys() {
            self.schema(name, &document["components"]["schemas"][name]);
        }
        self.lines
    }

    fn operation(&mut self, name: &str, operation: &Value) {
        for parameter in operation["parameters"].as_array().into_iter().flatten() {
            let parameter = self.resolve(parameter).clone();
            let at = format!("{name} {} {}", parameter["in"].as_str().unwrap_or_default(), parameter["name"]);
            self.schema(&at, &parameter["schema"]);
        }
        self.schema(&format!("{name} body"), &operation["requestBody"]["content"]["application/json"]["schema"]);
        let mut statuses = Vec::new();
        for (status, response) in operation["responses"].as_object().into_iter().flatten() {
            let schema = &response["content"]["application/json"]["schema"];
            let of = schema["$ref"].as_str().and_then(|reference| reference.rsplit('/').next()).unwrap_or_default();
            statuses.push(format!("{status} {of}").trim_end().to_owned());
        }
        self.lines.insert(format!("{name} answers {}", statuses.join(", ")));
    }

    fn schema(&mut self, at: &str, schema: &Value) {
        if let Some(reference) = schema["$ref"].as_str() {
            let name = reference.rsplit('/').next().unwrap_or_default();
            if self.named.contains_key(name) {
                self.lines.insert(format!("{at}: {name}"));
            } else {
                self.schema(at, &self.resolve(schema).clone());
            }
            return;
        }
        for part in schema["allOf"].as_array().into_iter().flatten() {
            self.schema(at, &self.resolve(part).clone());
        }
        let mut rules = schema.as_object().cloned().unwrap_or_default();
        for other in
            ["properties", "required", "items", "allOf", "description", "example", "examples", "default", "title"]
        {
            rules.remove(other);
        }
        if rules.get("additionalProperties").is_some_and(|more| !more.is_boolean() || more == true) {
            rules.remove("additionalProperties");
        }
        if rules.contains_key("enum") || rules.contains_key("const") {
            rules.remove("type");
        }
        // The largest number of 32 bits is the limit of every number.
        rules.retain(|_, rule| rule != &Value::from(u32::MAX));
        if rules.get("minimum").and_then(Value::as_f64) == Some(0.0) {
            rules.insert("minimum".into(), 0.into());
        }
        if rules.get("maximum").and_then(Value::as_f64) == Some(1.0) {
            rules.insert("maximum".into(), 1.into());
        }
        rules.sort_keys();
        let is_plain_object = rules.len() == 1 && schema["type"] == "object";
        if !rules.is_empty() && !is_plain_object {
            self.lines.insert(format!("{at}: {}", Value::Object(rules)));
        }
        self.members(at, schema);
    }

    fn members(&mut self, at: &str, schema: &Value) {
        let is_required =
            |name: &str| schema["required"].as_array().is_some_and(|all| all.iter().any(|one| one == name));
        for (name, member) in schema["properties"].as_object().into_iter().flatten() {
            let mark = if is_required(name) { "" } else { "?" };
            self.schema(&format!("{at}.{name}{mark}"), member);
        }
        if schema["items"].as_object().is_some_and(|items| !items.is_empty()) {
            self.schema(&format!("{at}[]"), &schema["items"]);
        }
    }
}

#[test]
fn every_difference_to_version_0_1_0_is_listed() {
    let old: Value = serde_json::from_str(include_str!("openapi-0.1.0.json")).expect("JSON");
    let new = document();
    let named = old["components"]["schemas"].as_object().expect("schemas");
    let outline = |document| Outline { document, named, lines: BTreeSet::new() }.read();
    let (old, new) = (outline(&old), outline(&new));
    let mut changes = String::new();
    for line in old.union(&new).filter(|line| !(old.contains(*line) && new.contains(*line))) {
        let _ = writeln!(changes, "{} {line}", if new.contains(line) { '+' } else { '-' });
    }
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/document/changes-since-0.1.0.txt");
    if std::env::var_os("HIKITE_UPDATE").is_some_and(|value| value == "1") {
        return std::fs::write(&file, changes).expect("written");
    }
    assert_eq!(std::fs::read_to_string(&file).unwrap_or_default(), changes, "run the test with HIKITE_UPDATE=1");
}
