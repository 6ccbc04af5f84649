//! Parameters of an operation: path, query, required headers and body members.

use serde_json::{Map, Value, json};

use super::ApiOperation;
use super::name::{TOOL_CHARS, UniqueNames, snake};
use super::schema::{SchemaResolver, kind};
use super::text::{line, single};

/// Names reserved for expressions and pagination.
const RESERVED_NAMES: [&str; 8] = ["each", "item", "last", "call_id", "page_size", "fetch_all", "max_items", "cursor"];
/// Headers that a module may not set.
const RESERVED_HEADERS: [&str; 6] = ["authorization", "host", "content-length", "content-type", "accept", "user-agent"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ParameterLocation {
    Path,
    Query,
    Header,
    Body,
}

#[derive(Debug)]
pub(super) struct OperationParameter {
    /// Name in the API.
    pub(super) wire: String,
    pub(super) name: String,
    pub(super) location: ParameterLocation,
    pub(super) required: bool,
    pub(super) schema: Map<String, Value>,
    words: String,
    /// Set for a list sent as comma-separated text.
    joined: bool,
}

#[derive(Debug, Default)]
pub(super) struct OperationParameters {
    pub(super) all: Vec<OperationParameter>,
    /// Name of the parameter that is the whole body.
    pub(super) whole_body: Option<String>,
    /// Headers with a constant value.
    pub(super) fixed: Map<String, Value>,
    /// Parameters that a module cannot send.
    pub(super) unsupported: Vec<String>,
}

pub(super) fn of(operation: &ApiOperation<'_>, schemas: SchemaResolver<'_>) -> OperationParameters {
    let mut found = OperationParameters::default();
    let mut names = UniqueNames::without(&RESERVED_NAMES);
    let own = operation.value["parameters"].as_array().into_iter().flatten();
    let mut seen: Vec<(String, String)> = Vec::new();
    // Parameters of the operation override those of its path.
    for written in own.chain(operation.shared["parameters"].as_array().into_iter().flatten()) {
        let written = schemas.follow(written);
        let (Some(wire), Some(location)) = (written["name"].as_str(), written["in"].as_str()) else {
            continue;
        };
        let key = (wire.to_owned(), location.to_owned());
        if !seen.contains(&key) {
            seen.push(key);
            found.add(wire, location, written, schemas, &mut names);
        }
    }
    for inside in operation.path.split('{').skip(1).filter_map(|rest| rest.split('}').next()) {
        if !found.all.iter().any(|parameter| parameter.location == ParameterLocation::Path && parameter.wire == inside)
        {
            found.add(inside, "path", &json!({ "schema": { "type": "string" } }), schemas, &mut names);
        }
    }
    found.all.sort_by_key(|parameter| parameter.location != ParameterLocation::Path);
    found.body(schemas.follow(&operation.value["requestBody"]), schemas, &mut names);
    found
}

impl OperationParameters {
    fn add(
        &mut self,
        wire: &str,
        location: &str,
        written: &Value,
        schemas: SchemaResolver<'_>,
        names: &mut UniqueNames,
    ) {
        let schema = schemas.reduced(&written["schema"]);
        let schema = schema.as_object().cloned().unwrap_or_default();
        let required = written["required"] == true;
        let location = match location {
            "path" => ParameterLocation::Path,
            "query" if kind(&schema) == Some("object") || written.get("schema").is_none() => {
                return self.unsupported.push(format!("{wire} (an object in the query)"));
            }
            "query" => ParameterLocation::Query,
            "header" if RESERVED_HEADERS.contains(&wire.to_lowercase().as_str()) => return,
            "header" => {
                if let Some(value) = only_value(written, schemas) {
                    self.fixed.insert(wire.to_owned(), Value::from(value));
                    return;
                }
                if !required {
                    return self.unsupported.push(format!("{wire} (a header)"));
                }
                ParameterLocation::Header
            }
            _ => return self.unsupported.push(format!("{wire} (a cookie)")),
        };
        let words = line(written["description"].as_str().unwrap_or_default());
        let joined = kind(&schema) == Some("array") && written["explode"] == false;
        let required = required || location == ParameterLocation::Path;
        self.push((wire, location), required, schema, (words, joined), names);
    }

    fn push(
        &mut self,
        (wire, location): (&str, ParameterLocation),
        required: bool,
        mut schema: Map<String, Value>,
        (words, joined): (String, bool),
        names: &mut UniqueNames,
    ) {
        let name = names.make_unique(snake(wire, TOOL_CHARS), TOOL_CHARS);
        let own = schema.remove("description").and_then(|words| Some(words.as_str()?.to_owned()));
        let mut words = if words.is_empty() { own.unwrap_or_default() } else { words };
        // The service applies its own default; a default in the schema would be sent.
        if let Some(default) = schema.remove("default") {
            let shown = default.as_str().map_or_else(|| default.to_string(), str::to_owned);
            let space = if words.is_empty() { "" } else { " " };
            words = format!("{words}{space}(default: {})", single(&shown));
        }
        self.all.push(OperationParameter { wire: wire.to_owned(), name, location, required, schema, words, joined });
    }

    fn body(&mut self, body: &Value, schemas: SchemaResolver<'_>, names: &mut UniqueNames) {
        let Some(content) = body.get("content").and_then(Value::as_object) else { return };
        let Some(media) = json_of(content) else {
            let kinds = content.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
            return self.unsupported.push(format!("the body ({kinds})"));
        };
        let schema = schemas.merged(&media["schema"]);
        let members = schema.get("properties").and_then(Value::as_object).filter(|members| !members.is_empty());
        let Some(members) = members else {
            let mut reduced = schemas.reduced(&media["schema"]).as_object().cloned().unwrap_or_default();
            reduced.entry("type").or_insert_with(|| json!("object"));
            let words = line(body["description"].as_str().unwrap_or_default());
            self.push(("body", ParameterLocation::Body), body["required"] == true, reduced, (words, false), names);
            self.whole_body = self.all.last().map(|parameter| parameter.name.clone());
            return;
        };
        let needed = schema.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
        for (wire, member) in members {
            if schemas.follow(member)["readOnly"] == true {
                continue;
            }
            let reduced = schemas.reduced(member);
            let required = needed.iter().any(|name| name == wire);
            let reduced = reduced.as_object().cloned().unwrap_or_default();
            self.push((wire, ParameterLocation::Body), required, reduced, (String::new(), false), names);
        }
    }
}

impl OperationParameter {
    /// Returns the parameter as written in a module file.
    pub(super) fn written(&self) -> Value {
        let mark = if self.required { "!" } else { "" };
        let words = if self.words.is_empty() { String::new() } else { format!(" | {}", self.words) };
        let simple = |schema: &Map<String, Value>| {
            let kind = kind(schema).filter(|kind| *kind != "array")?.to_owned();
            (schema.keys().all(|key| key == "type")).then_some(kind)
        };
        if let Some(kind) = simple(&self.schema) {
            return Value::from(format!("{kind}{mark}{words}"));
        }
        let items = self.schema.get("items").and_then(Value::as_object).and_then(simple);
        if let Some(kind) = items.filter(|kind| kind != "null" && self.schema.len() == 2) {
            return Value::from(format!("{kind}[]{mark}{words}"));
        }
        let mut schema = self.schema.clone();
        if !self.words.is_empty() {
            schema.insert("description".into(), json!(self.words));
        }
        if self.required {
            // `required` is ambiguous here; the parameter's own takes precedence.
            schema.insert("required".into(), json!(true));
        }
        Value::Object(schema)
    }

    /// Returns its value template for the request.
    pub(super) fn slot(&self) -> Value {
        let name = &self.name;
        if self.joined {
            return Value::from(format!("=if ${name} then ${name} | map(tostring) | join(\",\") else null end"));
        }
        Value::from(format!("${name}"))
    }
}

/// Returns the only possible value of a header.
fn only_value(written: &Value, schemas: SchemaResolver<'_>) -> Option<String> {
    let schema = schemas.follow(&written["schema"]);
    let options = schema["enum"].as_array().filter(|options| options.len() == 1);
    let value = options.map(|options| &options[0]).or_else(|| schema.get("const")).or_else(|| schema.get("default"));
    let text = value?.as_str()?;
    text.bytes().all(|byte| byte.is_ascii_graphic() && !b"{}".contains(&byte)).then(|| text.to_owned())
}

/// Returns the JSON media type of a body or response.
pub(super) fn json_of(content: &Map<String, Value>) -> Option<&Value> {
    let is_json = |kind: &str| {
        let kind = kind.split(';').next().unwrap_or_default().trim();
        kind == "application/json" || kind.ends_with("+json") || kind == "*/*"
    };
    content.iter().find(|(kind, _)| is_json(kind)).map(|(_, media)| media)
}
