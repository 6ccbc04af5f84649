//! The parsed schema of one revision: the definition of each method, its allowed senders, and one lazily compiled
//! validator per definition.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, LazyLock},
};

use jsonschema::Validator;
use parking_lot::Mutex;
use serde_json::{Map, Value, json};

use super::MessageSender;

const V2025_03_26: &str = include_str!("../../schema/2025-03-26.json");
const V2025_06_18: &str = include_str!("../../schema/2025-06-18.json");
const V2025_11_25: &str = include_str!("../../schema/2025-11-25.json");
const V2026_07_28: &str = include_str!("../../schema/2026-07-28.json");

/// Maximum number of violations to report.
const VIOLATIONS_MAX: usize = 4;

pub(super) struct RevisionSchema {
    revision: &'static str,
    schema: Value,
    /// Key of the definitions in the schema.
    place: &'static str,
    methods: HashMap<String, String>,
    codes: HashMap<i64, String>,
    from_client: HashSet<String>,
    from_server: HashSet<String>,
    validators: Mutex<HashMap<String, Arc<Validator>>>,
}

/// Schemas by revision, newest first; each is parsed on first use.
static SCHEMAS: [(&str, LazyLock<RevisionSchema>); 4] = [
    ("2026-07-28", LazyLock::new(|| RevisionSchema::read("2026-07-28", V2026_07_28))),
    ("2025-11-25", LazyLock::new(|| RevisionSchema::read("2025-11-25", V2025_11_25))),
    ("2025-06-18", LazyLock::new(|| RevisionSchema::read("2025-06-18", V2025_06_18))),
    ("2025-03-26", LazyLock::new(|| RevisionSchema::read("2025-03-26", V2025_03_26))),
];

/// Returns the newest schema that is not newer than the revision, or the oldest one.
pub(super) fn of_revision(revision: &str) -> &'static RevisionSchema {
    let known = SCHEMAS.iter().find(|(name, _)| *name <= revision);
    let (_, revision_schema) = known.unwrap_or(&SCHEMAS[SCHEMAS.len() - 1]);
    revision_schema
}

impl RevisionSchema {
    fn read(revision: &'static str, text: &str) -> Self {
        let mut schema: Value = serde_json::from_str(text).expect("a published schema is JSON");
        let place = if schema.get("$defs").is_some() { "$defs" } else { "definitions" };
        if let Some(number) = schema.pointer_mut(&format!("/{place}/NumberSchema/properties")) {
            allow_fractions(number);
        }
        let definitions = schema[place].as_object().cloned().unwrap_or_default();
        let mut methods = HashMap::new();
        let mut codes = HashMap::new();
        for (name, definition) in &definitions {
            let method = definition["properties"]["method"]["const"].as_str();
            if let Some(method) = method.filter(|_| !name.starts_with("Client")) {
                methods.insert(method.to_owned(), name.clone());
            }
            let parts = definition["properties"]["error"]["allOf"].as_array().into_iter().flatten();
            codes.extend(parts.filter_map(|part| Some((part["properties"]["code"]["const"].as_i64()?, name.clone()))));
        }
        let union = |names: [&str; 2]| {
            names.iter().flat_map(|name| members(&definitions, &methods, name)).collect::<HashSet<_>>()
        };
        let from_client = union(["ClientRequest", "ClientNotification"]);
        let from_server = union(["ServerRequest", "ServerNotification"]);
        Self { revision, schema, place, methods, codes, from_client, from_server, validators: Mutex::default() }
    }

    pub(super) fn is_stateless(&self) -> bool {
        self.revision >= "2026-07-28"
    }

    pub(super) fn has_batches(&self) -> bool {
        self.has("JSONRPCBatchRequest")
    }

    pub(super) fn has(&self, definition: &str) -> bool {
        self.schema[self.place].get(definition).is_some()
    }

    pub(super) fn of_method(&self, method: &str) -> Option<&str> {
        self.methods.get(method).map(String::as_str)
    }

    pub(super) fn of_code(&self, code: i64) -> Option<&str> {
        self.codes.get(&code).map(String::as_str)
    }

    pub(super) fn may_send(&self, sender: MessageSender, definition: &str) -> bool {
        match sender {
            MessageSender::Client => self.from_client.contains(definition),
            MessageSender::Server => self.from_server.contains(definition),
        }
    }

    /// Returns the result definition of a method; `None` for an extension method.
    pub(super) fn result_of(&self, method: &str) -> Option<&str> {
        let request = self.of_method(method)?.strip_suffix("Request")?;
        let named = self.schema[self.place].as_object()?.get_key_value(&format!("{request}Result"));
        Some(named.map_or("EmptyResult", |(name, _)| name.as_str()))
    }

    pub(super) fn error(&self) -> &'static str {
        if self.has("JSONRPCErrorResponse") { "JSONRPCErrorResponse" } else { "JSONRPCError" }
    }

    pub(super) fn response(&self) -> &'static str {
        if self.has("JSONRPCResultResponse") { "JSONRPCResultResponse" } else { "JSONRPCResponse" }
    }

    /// Validates a value against a definition.
    pub(super) fn validate(&self, definition: &str, value: &Value) -> Result<(), String> {
        let validator = self.validator(definition);
        if validator.is_valid(value) {
            return Ok(());
        }
        let violations: Vec<String> = validator
            .iter_errors(value)
            .take(VIOLATIONS_MAX)
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect();
        Err(format!("not a valid {definition}: {}", violations.join("; ")))
    }

    /// Returns a definition with its transitive references only, to save compile time.
    fn needed_by(&self, definition: &str) -> Map<String, Value> {
        let mut needed = Map::new();
        let mut open = vec![definition.to_owned()];
        while let Some(name) = open.pop() {
            if let Some(found) = self.schema[self.place].get(&name).filter(|_| !needed.contains_key(&name)) {
                references(found, &mut open);
                needed.insert(name, found.clone());
            }
        }
        needed
    }

    fn validator(&self, definition: &str) -> Arc<Validator> {
        let mut validators = self.validators.lock();
        if let Some(validator) = validators.get(definition) {
            return Arc::clone(validator);
        }
        let schema = json!({
            "$schema": self.schema["$schema"],
            "$ref": format!("#/{}/{definition}", self.place),
            self.place: self.needed_by(definition),
        });
        let validator = jsonschema::options()
            .should_validate_formats(true)
            .build(&schema)
            .unwrap_or_else(|error| panic!("{} {definition}: {error}", self.revision));
        let validator = Arc::new(validator);
        validators.insert(definition.to_owned(), Arc::clone(&validator));
        validator
    }
}

/// Collects the names of the definitions that a schema refers to.
fn references(part: &Value, names: &mut Vec<String>) {
    match part {
        Value::Object(fields) => {
            let name = fields.get("$ref").and_then(Value::as_str).and_then(|place| place.rsplit('/').next());
            names.extend(name.map(str::to_owned));
            fields.values().for_each(|field| references(field, names));
        }
        Value::Array(parts) => parts.iter().for_each(|part| references(part, names)),
        _ => {}
    }
}

/// Returns the definitions that a union names; a union of one is written inline.
fn members(definitions: &Map<String, Value>, methods: &HashMap<String, String>, name: &str) -> Vec<String> {
    let Some(union) = definitions.get(name) else {
        return Vec::new();
    };
    let Some(parts) = union["anyOf"].as_array() else {
        let method = union["properties"]["method"]["const"].as_str().unwrap_or_default();
        return methods.get(method).cloned().into_iter().collect();
    };
    let last = |part: &Value| part["$ref"].as_str()?.rsplit('/').next().map(str::to_owned);
    parts.iter().filter_map(last).collect()
}

/// Allows fractions: limits and default of a number were published as integers, against the prose (SEP-1034).
fn allow_fractions(number: &mut Value) {
    for field in ["minimum", "maximum", "default"] {
        if let Some(kind) = number.get_mut(field).and_then(|field| field.get_mut("type")) {
            *kind = "number".into();
        }
    }
}
