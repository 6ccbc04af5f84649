//! OpenAPI: administration of modules and their state.

mod module;
mod preview;
mod status;
mod upstream;

use serde_json::{Value, json};

use super::operation::OpenApiOperation;

pub(super) fn operations() -> Vec<OpenApiOperation> {
    [module::operations(), status::operations(), upstream::operations(), preview::operations()]
        .into_iter()
        .flatten()
        .collect()
}

pub(super) fn schemas() -> Vec<(&'static str, Value)> {
    [module::schemas(), status::schemas(), upstream::schemas(), preview::schemas()].into_iter().flatten().collect()
}

pub(super) fn parameters() -> Vec<(&'static str, Value)> {
    vec![
        ("Module", part("name", "The module's name; percent-encoded.", "files")),
        ("Upstream", named("The name of an upstream server.", "docs")),
        ("Id", part("id", "The id from the list.", "1")),
        ("Seq", part("seq", "Number of a record.", "1")),
        ("Category", named("The name of a category.", "reading")),
    ]
}

/// Builds a path parameter for a name with restricted characters.
fn named(description: &str, example: &str) -> Value {
    let mut part = part("name", description, example);
    part["schema"]["pattern"] = "^[A-Za-z0-9_-]{1,64}$".into();
    part
}

/// Builds a path parameter.
fn part(name: &str, description: &str, example: &str) -> Value {
    json!({
        "name": name, "in": "path", "required": true, "description": description,
        "schema": { "type": "string", "minLength": 1 }, "example": example,
    })
}

fn parameter(name: &str) -> Value {
    json!({ "$ref": format!("#/components/parameters/{name}") })
}

fn reference(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

fn whole(description: &str) -> Value {
    json!({ "type": "integer", "minimum": 0, "description": description })
}

fn text(description: &str) -> Value {
    json!({ "type": "string", "description": description })
}

/// Builds the schema of an object with one list.
fn listed(member: &str, of: &str) -> Value {
    let items = json!({ "type": "array", "items": reference(of) });
    json!({ "type": "object", "required": [member], "properties": { member: items } })
}
