//! Response schema of an operation, and the list in it.

use serde_json::{Map, Value};

use super::ApiOperation;
use super::parameter::json_of;
use super::schema::{SchemaResolver, kind};
use super::yaml::below;

/// Common names of list members.
pub(super) const LISTS: [&str; 9] =
    ["items", "data", "results", "values", "value", "entries", "records", "list", "rows"];
/// Common names of wrapper members.
const WRAPPERS: [&str; 4] = ["data", "result", "response", "payload"];

#[derive(Debug)]
pub(super) enum ResponseSchema {
    /// Empty or unknown.
    Open,
    Text,
    Object {
        schema: Map<String, Value>,
        list: Option<ResponseList>,
        has_next_link: bool,
    },
}

#[derive(Debug)]
pub(super) struct ResponseList {
    /// jq path of the list.
    pub(super) path: String,
    /// Member name; `None` if the response itself is a list.
    pub(super) name: Option<String>,
    pub(super) item: Map<String, Value>,
}

pub(super) fn of(operation: &ApiOperation<'_>, schemas: SchemaResolver<'_>) -> ResponseSchema {
    let responses = &operation.value["responses"];
    let found = ["200", "201", "202", "203", "206", "2XX", "default"].into_iter().find_map(|code| responses.get(code));
    let Some(response) = found.map(|response| schemas.follow(response)) else { return ResponseSchema::Open };
    let Some(content) = response["content"].as_object().filter(|content| !content.is_empty()) else {
        return ResponseSchema::Open;
    };
    let Some(media) = json_of(content) else { return ResponseSchema::Text };
    let schema = schemas.merged(&media["schema"]);
    let headers = response["headers"].as_object().into_iter().flatten();
    let has_next_link = headers.into_iter().any(|(name, _)| name.eq_ignore_ascii_case("link"));
    if schema.is_empty() {
        return ResponseSchema::Open;
    }
    let list = list(&schema, operation, schemas);
    ResponseSchema::Object { schema, list, has_next_link }
}

fn list(
    schema: &Map<String, Value>,
    operation: &ApiOperation<'_>,
    schemas: SchemaResolver<'_>,
) -> Option<ResponseList> {
    if kind(schema) == Some("array") {
        let item = schema.get("items").map(|items| schemas.merged(items)).unwrap_or_default();
        return Some(ResponseList { path: ".".into(), name: None, item });
    }
    let members = schema.get("properties")?.as_object()?;
    if let Some(found) = find_list(members, ".", operation, schemas) {
        return Some(found);
    }
    WRAPPERS.iter().find_map(|wrap| {
        let inside = schemas.merged(members.get(*wrap)?);
        find_list(inside.get("properties")?.as_object()?, &below(".", wrap), operation, schemas)
    })
}

/// Returns the only list among the members, if they look like the envelope of a list rather than an entity.
fn find_list(
    members: &Map<String, Value>,
    path: &str,
    operation: &ApiOperation<'_>,
    schemas: SchemaResolver<'_>,
) -> Option<ResponseList> {
    let lists: Vec<(&String, Map<String, Value>)> = members
        .iter()
        .map(|(name, schema)| (name, schemas.merged(schema)))
        .filter(|(_, schema)| kind(schema) == Some("array"))
        .collect();
    let entity = operation.entity();
    let is_known = |name: &str| LISTS.contains(&name) || super::name::snake(name, 40) == entity;
    let known = lists.iter().find(|(name, _)| is_known(name));
    let only = lists.first().filter(|_| lists.len() == 1 && !members.contains_key("id"));
    let (name, schema) = known.or(only)?;
    let item = schema.get("items").map(|items| schemas.merged(items)).unwrap_or_default();
    Some(ResponseList { path: below(path, name), name: Some((*name).clone()), item })
}
