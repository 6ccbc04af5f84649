//! Guesses the output shape from the response schema: a table for a list, a record for an object.

use serde_json::{Map, Value, json};

use super::list::{LISTS, ResponseList, ResponseSchema};
use super::name::snake;
use super::schema::{SchemaResolver, is_scalar, kind};
use super::yaml::below;

const COLUMNS: usize = 8;
const FIELDS: usize = 16;
/// Preferred columns, most important first.
const PREFERRED: [&str; 26] = [
    "id",
    "key",
    "number",
    "name",
    "full_name",
    "display_name",
    "title",
    "subject",
    "status",
    "state",
    "type",
    "url",
    "html_url",
    "web_url",
    "created",
    "created_at",
    "created_time",
    "date_created",
    "updated",
    "updated_at",
    "last_edited_time",
    "modified",
    "modified_at",
    "summary",
    "description",
    "email",
];
/// Members that are never shown.
const HIDDEN: [&str; 5] = ["node_id", "etag", "gravatar_id", "kind", "object"];
/// Members that name a nested object.
const LABELS: [&str; 6] = ["name", "display_name", "login", "title", "email", "key"];
/// Ranks after the preferred columns: nested objects, then everything else.
const NESTED_RANK: usize = 50;
const OTHER_RANK: usize = 100;

/// Returns the output shape as written in the module file, if there is anything to show.
pub(super) fn guess(answer: &ResponseSchema, entity: &str, schemas: SchemaResolver<'_>) -> Option<Value> {
    match answer {
        ResponseSchema::Open => None,
        ResponseSchema::Text => Some(json!({ "text": "." })),
        ResponseSchema::Object { list: Some(list), .. } => Some(table(list, entity, schemas)),
        ResponseSchema::Object { schema, .. } => {
            let record = columns(schema, FIELDS, schemas);
            (!record.is_empty()).then(|| json!({ "record": record }))
        }
    }
}

fn table(list: &ResponseList, entity: &str, schemas: SchemaResolver<'_>) -> Value {
    let mut columns = columns(&list.item, COLUMNS, schemas);
    if columns.is_empty() {
        let name = if is_scalar(&list.item) { "value" } else { "*" };
        columns.insert(name.into(), json!("."));
    }
    let name = list.name.as_deref().map_or_else(|| entity.to_owned(), |name| snake(name, 40));
    // The name of the entity says more than `results`.
    let name = if LISTS.contains(&name.as_str()) { entity.to_owned() } else { name };
    let path = if list.path == "." { "." } else { &list.path };
    json!({ "table": name, "rows": format!("{path}[]"), "columns": columns })
}

/// Returns the scalar members worth a column, preferred ones first.
fn columns(schema: &Map<String, Value>, most: usize, schemas: SchemaResolver<'_>) -> Map<String, Value> {
    let members = schema.get("properties").and_then(Value::as_object);
    let ranked = members.into_iter().flatten().filter_map(|(name, schema)| {
        let plain = snake(name, 40);
        let schema = schemas.merged(schema);
        let is_secret = schema.get("writeOnly") == Some(&json!(true));
        let is_link = plain.ends_with("_url") && !PREFERRED.contains(&plain.as_str());
        if HIDDEN.contains(&plain.as_str()) || is_secret || is_link {
            return None;
        }
        let place = PREFERRED.iter().position(|first| *first == plain);
        if is_scalar(&schema) || (schema.is_empty() && place.is_some()) {
            return Some((place.unwrap_or(OTHER_RANK), plain, below(".", name)));
        }
        let inside = (kind(&schema) == Some("object")).then(|| schema.get("properties")?.as_object()).flatten()?;
        let called = LABELS.iter().find_map(|called| inside.keys().find(|name| snake(name, 40) == **called))?;
        Some((place.unwrap_or(NESTED_RANK), plain, below(&below(".", name), called)))
    });
    let mut ranked: Vec<_> = ranked.collect();
    ranked.sort_by_key(|(rank, ..)| *rank);
    ranked.into_iter().take(most).map(|(_, name, path)| (name, Value::from(path))).collect()
}
