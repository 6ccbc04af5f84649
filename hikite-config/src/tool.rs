//! The `tools` section: HTTP tools in the format of registered tools. Template faults are found here, with their
//! line.

use std::fmt;

use hikite_core::error::Error;
use hikite_core::json::{Object, Raw};
use hikite_core::registration::{self, ToolRegistration};
use hikite_core::violation::Violation;
use hikite_modules::NamedMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::checker::ConfigChecker;
use super::position::ConfigPath;
use super::tool_request::{self, ToolRequestFile};

/// A tool that is one HTTP request.
#[derive(Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schemars(rename = "Tool")]
pub(crate) struct HttpToolFile {
    /// Description of the tool; all that the model reads before it uses the tool.
    description: String,
    /// A name for people.
    title: Option<String>,
    /// The module it belongs to.
    #[schemars(extend("default" = "registered"))]
    module: Option<String>,
    /// Its parameters, as a list of `{name, type, description, required, default, enum, pattern, minimum, maximum}`.
    parameters: Option<Vec<Value>>,
    /// Its parameters as a JSON Schema, instead of `parameters`.
    input_schema: Option<Map<String, Value>>,
    /// The JSON Schema of its result.
    output_schema: Option<Map<String, Value>>,
    /// Annotations of the tool, like `{ "readOnlyHint": true }`, where its method does not imply them.
    annotations: Option<Map<String, Value>>,
    #[schemars(extend("default" = "1.0.0"))]
    version: Option<String>,
    tags: Option<Vec<String>>,
    category: Option<String>,
    author: Option<String>,
    /// `{description, parameters, expectedResult?}` each.
    examples: Option<Vec<Value>>,
    /// Names or keys of the tools it needs.
    dependencies: Option<Vec<String>>,
    /// Milliseconds for one call. Default: `limits.call_timeout`.
    timeout: Option<u64>,
    /// Further attempts after a failure that allows them.
    #[schemars(extend("default" = 0))]
    retry: Option<u64>,
    /// Milliseconds of the first pause between attempts.
    #[schemars(extend("default" = 1000))]
    retry_delay: Option<u64>,
    /// Milliseconds for which a result may be given again, where the tool is read-only.
    cache_ttl: Option<u64>,
    /// `false` switches it off.
    #[schemars(extend("default" = true))]
    enabled: Option<bool>,
    /// The request. `{name}` stands for an argument; a literal brace is written twice.
    #[serde(skip_serializing)]
    http: ToolRequestFile,
}

/// A tool of the file, in the format of a registered tool.
#[derive(Clone, PartialEq, Eq)]
pub struct ToolConfig {
    /// Tool description with variables expanded; it may contain secrets.
    pub form: Object,
    /// Tool description with secrets masked.
    pub(crate) shown: Value,
}

impl fmt::Debug for ToolConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.shown)
    }
}

impl ToolConfig {
    pub fn name(&self) -> String {
        self.form.text("name").unwrap_or_default()
    }
}

pub(crate) fn check(
    check: &mut ConfigChecker<'_, '_>,
    path: &ConfigPath<'_>,
    raw: &NamedMap<HttpToolFile>,
) -> Vec<ToolConfig> {
    raw.iter().filter_map(|(name, raw)| tool(check, &path.key(name), name, raw)).collect()
}

fn tool(
    check: &mut ConfigChecker<'_, '_>,
    path: &ConfigPath<'_>,
    name: &str,
    raw: &HttpToolFile,
) -> Option<ToolConfig> {
    if !registration::is_name(name) {
        let message = "A tool name starts with a lowercase letter and has only lowercase letters, numbers and hyphens.";
        check.report.error_in_name(path, message, None);
    }
    let http_path = path.key("http");
    let http = tool_request::expand(check, &http_path, &raw.http)?;
    for fault in hikite_modules::faults(&Raw::from(http.clone()), &schema(raw)) {
        report_fault(check, path, &fault);
    }
    let mut members = Map::from_iter([("name".to_owned(), name.into())]);
    if let Ok(Value::Object(written)) = serde_json::to_value(raw) {
        members.extend(written.into_iter().filter(|(_, value)| !value.is_null()));
    }
    let form = members.iter().fold(Object::default(), |form, (key, value)| form.with(key, Raw::of(value)));
    let form = form.with("http", Raw::from(http));
    for fault in faults(&form) {
        report_fault(check, path, &fault);
    }
    members.remove("name");
    members.insert("http".to_owned(), tool_request::shown(&raw.http));
    Some(ToolConfig { form, shown: members.into() })
}

/// Returns the faults of the description, except those of its name, which is the key and already checked.
fn faults(form: &Object) -> Vec<Violation> {
    let faults = ToolRegistration::read(form).err().map(|error| faults_of(&error)).unwrap_or_default();
    faults.into_iter().filter(|fault| fault.pointer != "/name").collect()
}

/// Returns the individual faults of an error.
pub(crate) fn faults_of(error: &Error) -> Vec<Violation> {
    let details = error.details.as_ref().and_then(Raw::items).unwrap_or_default();
    let faults = details.iter().filter_map(Raw::object).map(|fault| {
        Violation::new(fault.text("pointer").unwrap_or_default(), fault.text("message").unwrap_or_default())
    });
    faults.collect()
}

/// Returns a schema with the names of the parameters only.
fn schema(raw: &HttpToolFile) -> Raw {
    if let Some(schema) = &raw.input_schema {
        return Raw::of(schema);
    }
    let listed = raw.parameters.iter().flatten().filter_map(|parameter| parameter["name"].as_str());
    let properties: Map<String, Value> = listed.map(|name| (name.to_owned(), json!({}))).collect();
    Raw::from(json!({ "properties": properties }))
}

/// Reports a fault at the position its pointer names.
pub(crate) fn report_fault(check: &mut ConfigChecker<'_, '_>, path: &ConfigPath<'_>, fault: &Violation) {
    fn walk(check: &mut ConfigChecker<'_, '_>, path: &ConfigPath<'_>, pointer: &str, message: &str) {
        let Some(rest) = pointer.strip_prefix('/') else {
            return check.report.error(path, message, None);
        };
        let end = rest.find('/').unwrap_or(rest.len());
        let (step, rest) = rest.split_at(end);
        match step.parse() {
            Ok(index) => walk(check, &path.index(index), rest, message),
            Err(_) => walk(check, &path.key(&step.replace("~1", "/").replace("~0", "~")), rest, message),
        }
    }
    walk(check, path, &fault.pointer, &fault.message);
}
