//! The HTTP request of a tool as written. Variables are expanded, and their values are literal text, not templates.

use hikite_modules::NamedMap;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::checker::ConfigChecker;
use super::expand::literal;
use super::position::ConfigPath;
use super::secret;
use super::transport::ValueOrFile;
use hikite_core::secret::MASK;

/// An HTTP request with references to the tool's arguments.
#[derive(Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ToolRequest")]
pub(crate) struct ToolRequestFile {
    /// `GET`, `HEAD`, `POST`, `PUT`, `PATCH` or `DELETE`.
    #[schemars(extend("default" = "GET"))]
    method: Option<String>,
    /// The address. References stand in its path and in the values of its query.
    url: String,
    /// Headers; references stand in their values.
    headers: Option<NamedMap<ValueOrFile>>,
    /// More of the query: strings with references, numbers, booleans, or lists of them.
    query: Option<Map<String, Value>>,
    /// The body as JSON, with references in its strings. Without one, arguments that nothing else mentions.
    body: Option<Value>,
    /// Where in a JSON answer the result is: `data.items[0]` or `/data/items/0`. Without it, the whole answer.
    result: Option<String>,
}

/// Returns the `http` member of a tool; `None` if a variable is invalid, which was reported.
pub(crate) fn expand(check: &mut ConfigChecker<'_, '_>, path: &ConfigPath<'_>, raw: &ToolRequestFile) -> Option<Value> {
    let mut http = Map::new();
    http.extend(raw.method.as_deref().map(|method| ("method".to_owned(), method.into())));
    let url = check.expand_literally(&path.key("url"), &raw.url);
    let headers = raw.headers.as_ref().map(|headers| expand_headers(check, &path.key("headers"), headers));
    let query = raw.query.clone().map(|query| expand_value(check, &path.key("query"), query.into()));
    let body = raw.body.clone().map(|body| expand_value(check, &path.key("body"), body));
    http.insert("url".to_owned(), url?.into());
    for (key, value) in [("headers", headers), ("query", query), ("body", body)] {
        if let Some(value) = value {
            http.insert(key.to_owned(), value?);
        }
    }
    http.extend(raw.result.as_deref().map(|result| ("result".to_owned(), result.into())));
    Some(http.into())
}

fn expand_headers(
    check: &mut ConfigChecker<'_, '_>,
    path: &ConfigPath<'_>,
    raw: &NamedMap<ValueOrFile>,
) -> Option<Value> {
    let mut headers = Some(Map::new());
    for (name, setting) in raw.iter() {
        let path = path.key(name);
        let text = match setting {
            ValueOrFile::Text(text) => check.expand_literally(&path, text),
            ValueOrFile::Number(number) => Some(number.to_string()),
            ValueOrFile::Bool(value) => Some(value.to_string()),
            ValueOrFile::File(setting) => {
                check.secret_file(&path.key("file"), &setting.file).map(|text| literal(&text))
            }
        };
        headers = headers.zip(text).map(|(mut headers, text)| {
            headers.insert(name.to_owned(), text.into());
            headers
        });
    }
    headers.map(Value::Object)
}

fn expand_value(check: &mut ConfigChecker<'_, '_>, path: &ConfigPath<'_>, value: Value) -> Option<Value> {
    match value {
        Value::String(text) => check.expand_literally(path, &text).map(Value::String),
        Value::Array(items) => {
            let items = items.into_iter().enumerate();
            let items = items.map(|(index, item)| expand_value(check, &path.index(index), item));
            items.collect::<Vec<_>>().into_iter().collect::<Option<Vec<_>>>().map(Value::Array)
        }
        Value::Object(members) => {
            let members = members.into_iter().map(|(name, value)| {
                let value = expand_value(check, &path.key(&name), value)?;
                Some((name, value))
            });
            members.collect::<Vec<_>>().into_iter().collect::<Option<Map<_, _>>>().map(Value::Object)
        }
        other => Some(other),
    }
}

/// Returns the request as written, with headers, query values and credentials masked.
pub(crate) fn shown(raw: &ToolRequestFile) -> Value {
    let mut http = Map::new();
    http.extend(raw.method.as_deref().map(|method| ("method".to_owned(), method.into())));
    http.insert("url".to_owned(), secret::url(&raw.url, String::new()).to_string().into());
    if let Some(headers) = &raw.headers {
        let headers = headers.iter().map(|(name, _)| (name.to_owned(), MASK.into()));
        http.insert("headers".to_owned(), headers.collect::<Map<_, _>>().into());
    }
    if let Some(query) = &raw.query {
        let query = query.iter().map(|(name, value)| (name.clone(), mask_unless_reference(value)));
        http.insert("query".to_owned(), query.collect::<Map<_, _>>().into());
    }
    http.extend(raw.body.as_ref().map(|body| ("body".to_owned(), mask_credentials(body))));
    http.extend(raw.result.as_deref().map(|result| ("result".to_owned(), result.into())));
    http.into()
}

fn mask_unless_reference(value: &Value) -> Value {
    let reference = value.as_str().and_then(|text| text.strip_prefix('{')?.strip_suffix('}'));
    match reference {
        Some(name) if !name.contains(['{', '}']) => value.clone(),
        _ => MASK.into(),
    }
}

fn mask_credentials(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let members = members.iter().map(|(name, value)| {
                let hide = secret::is_credential(name) && !value.is_object() && !value.is_array();
                (name.clone(), if hide { mask_unless_reference(value) } else { mask_credentials(value) })
            });
            members.collect::<Map<_, _>>().into()
        }
        Value::Array(items) => items.iter().map(mask_credentials).collect(),
        other => other.clone(),
    }
}
