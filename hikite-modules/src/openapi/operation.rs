//! Operations of an OpenAPI description.

use serde_json::Value;

use crate::escape;

use super::name::{TOOL_CHARS, UniqueNames, snake};
use super::text::{line, single};

/// HTTP methods that a module supports.
const METHODS: [(&str, &str); 5] =
    [("get", "GET"), ("post", "POST"), ("put", "PUT"), ("patch", "PATCH"), ("delete", "DELETE")];
/// Words in the name of a POST operation that only reads.
const READING_WORDS: [&str; 5] = ["search", "query", "list", "find", "lookup"];

#[derive(Clone, Debug)]
pub struct ApiOperation<'a> {
    /// Name of the tool.
    pub name: String,
    /// The `operationId`, if there is one.
    pub id: Option<&'a str>,
    pub method: &'static str,
    pub path: &'a str,
    pub tags: Vec<&'a str>,
    pub summary: String,
    /// Path item with shared parameters.
    pub(super) shared: &'a Value,
    pub(super) value: &'a Value,
}

pub(super) fn all(document: &Value) -> Vec<ApiOperation<'_>> {
    let mut names = UniqueNames::default();
    let mut operations = Vec::new();
    let paths = document["paths"].as_object().into_iter().flatten().filter(|(path, _)| is_sendable(path));
    for (path, shared) in paths {
        for (key, method) in METHODS {
            let Some(value) = shared.get(key).filter(|value| value.is_object()) else { continue };
            let id = value["operationId"].as_str();
            let wanted = id.map_or_else(|| format!("{key} {}", path.replace(['{', '}'], " ")), str::to_owned);
            let tags = value["tags"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
            operations.push(ApiOperation {
                name: names.make_unique(snake(&wanted, TOOL_CHARS), TOOL_CHARS),
                id,
                method,
                path,
                tags,
                summary: summary(value, method, path),
                shared,
                value,
            });
        }
    }
    operations
}

impl ApiOperation<'_> {
    /// Returns the guessed risk and the reason.
    pub(super) fn risk(&self) -> (&'static str, String) {
        let reads_only = self.name.split('_').any(|word| READING_WORDS.contains(&word));
        match self.method {
            "GET" => ("read", "GET".to_owned()),
            "DELETE" => ("destructive", "DELETE".to_owned()),
            "POST" if reads_only => ("read", "a POST whose name suggests a search".to_owned()),
            method => ("write", method.to_owned()),
        }
    }

    /// Returns the last fixed segment of the path.
    pub(super) fn entity(&self) -> String {
        let part = self.path.rsplit('/').find(|part| !part.is_empty() && !part.contains('{'));
        snake(part.unwrap_or("items"), TOOL_CHARS)
    }
}

/// Returns `true` if a module supports this path.
fn is_sendable(path: &str) -> bool {
    let closed = path.split('{').skip(1).all(|rest| rest.contains('}'));
    closed && path.starts_with('/') && !path.contains(['?', '#', '\\']) && !escape::has_dot_segment(path)
}

fn summary(value: &Value, method: &str, path: &str) -> String {
    let texts = ["summary", "description"].map(|key| line(value[key].as_str().unwrap_or_default()));
    let text = texts.into_iter().find(|text| !text.is_empty());
    text.unwrap_or_else(|| single(&format!("{method} {path}")))
}
