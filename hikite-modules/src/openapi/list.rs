//! Response schema of an operation, and the list in it.

use serde_json::{Map, Value};

use super::Operation;
use super::parameter::json_of;
use super::schema::{Schemas, kind};
use super::yaml::below;

/// Common names of list members.
pub(super) const LISTS: [&str; 9] =
    ["items", "data", "results", "values", "value", "entries", "records", "list", "rows"];
/// Common names of wrapper members.
const WRAPS: [&str; 4] = ["data", "result", "response", "payload"];

#[derive(Debug)]
pub(super) enum Answer {
    /// Empty or unknown.
    Open,
    Text,
    Object {
        schema: Map<String, Value>,
        list: Option<List>,
        leads_on: bool,
    },
}

#[derive(Debug)]
pub(super) struct List {
    /// jq path of the list.
    pub(super) path: String,
    /// Member name; `None` if the response itself is a list.
    pub(super) name: Option<String>,
    pub(super) item: Map<String, Value>,
}

pub(super) fn of(operation: &Operation<'_>, schemas: Schemas<'_>) -> Answer {
    let responses = &operation.value["responses"];
    let found = ["200", "201", "202", "203", "206", "2XX", "default"]
        .into_iter()
        .find_map(|code| responses.get(code));
    let Some(response) = found.map(|response| schemas.follow(response)) else { return Answer::Open };
    let Some(content) = response["content"].as_object().filter(|content| !content.is_empty()) else {
        return Answer::Open;
    };
    let Some(media) = json_of(content) else { return Answer::Text };
    let schema = schemas.whole(&media["schema"]);
    let headers = response["headers"].as_object().into_iter().flatten();
    let leads_on = headers.into_iter().any(|(name, _)| name.eq_ignore_ascii_case("link"));
    if schema.is_empty() {
        return Answer::Open;
    }
    let list = list(&schema, operation, schemas);
    Answer::Object { schema, list, leads_on }
}

fn list(schema: &Map<String, Value>, operation: &Operation<'_>, schemas: Schemas<'_>) -> Option<List> {
    if kind(schema) == Some("array") {
        let item = schema.get("items").map(|items| schemas.whole(items)).unwrap_or_default();
        return Some(List { path: ".".into(), name: None, item });
    }
    let members = schema.get("properties")?.as_object()?;
    if let Some(found) = among(members, ".", operation, schemas) {
        return Some(found);
    }
    WRAPS.iter().find_map(|wrap| {
        let inside = schemas.whole(members.get(*wrap)?);
        among(inside.get("properties")?.as_object()?, &below(".", wrap), operation, schemas)
    })
}

/// Returns the only list among the members, if they look like the envelope of a list rather than an entity.
fn among(
    members: &Map<String, Value>,
    path: &str,
    operation: &Operation<'_>,
    schemas: Schemas<'_>,
) -> Option<List> {
    let lists: Vec<(&String, Map<String, Value>)> = members
        .iter()
        .map(|(name, schema)| (name, schemas.whole(schema)))
        .filter(|(_, schema)| kind(schema) == Some("array"))
        .collect();
    let thing = operation.thing();
    let is_known = |name: &str| LISTS.contains(&name) || super::name::snake(name, 40) == thing;
    let known = lists.iter().find(|(name, _)| is_known(name));
    let only = lists.first().filter(|_| lists.len() == 1 && !members.contains_key("id"));
    let (name, schema) = known.or(only)?;
    let item = schema.get("items").map(|items| schemas.whole(items)).unwrap_or_default();
    Some(List { path: below(path, name), name: Some((*name).clone()), item })
}
