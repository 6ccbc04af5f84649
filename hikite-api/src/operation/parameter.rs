//! Parameters of paths and queries.

use serde_json::{Map, Value, json};

use crate::{audit, pin, tool};

/// A parameter of paths.
struct PathParameter {
    /// Beginnings of the paths that have it.
    paths: &'static [&'static str],
    component: &'static str,
    description: &'static str,
    example: &'static str,
}

const fn of(
    paths: &'static [&'static str],
    component: &'static str,
    description: &'static str,
    example: &'static str,
) -> PathParameter {
    PathParameter { paths, component, description, example }
}

const OF_PATHS: [PathParameter; 15] = [
    of(&["/v1/projects/{name}"], "Project", "The project's name; percent-encoded.", "work"),
    of(&["/v1/tokens/{id}"], "Token", "The token's id.", "tok_abcd2345"),
    of(&["/v1/users/{name}"], "User", "The user's name or id; percent-encoded.", "alice"),
    of(
        &["/v1/removals/{id}"],
        "Removal",
        "The id of the removal, or the name of the removed user.",
        "rmv_0123456789abcdef01234567",
    ),
    of(&["/v1/clients/{id}"], "Client", "The client's id; percent-encoded.", "hkc_0123456789abcdef01234567"),
    of(&["/v1/accounts/{id}"], "Account", "The account's id.", "0123456789abcdef0123456789abcdef"),
    of(&["/v1/accounts/connect/{id}"], "Connection", "The connection's id.", "0123456789abcdef0123456789abcdef"),
    of(&["/v1/providers/{name}"], "Provider", "The provider's name.", "notion"),
    of(&["/v1/modules/{name}"], "Module", "The module's name; percent-encoded.", "files"),
    of(&["/v1/upstreams/{name}"], "Upstream", "The name of an upstream server.", "docs"),
    of(&["/v1/sessions/{id}", "/v1/consents/{id}", "/v1/logins/{id}"], "Id", "The id from the list.", "1"),
    of(&["/v1/audit/{seq}"], "Seq", "Number of a record.", "1"),
    of(&["/v1/categories/{name}"], "Category", "The name of a category.", "reading"),
    of(
        &["/v1/tools/{key}"],
        "Key",
        "`module:tool`, or the bare name if only one tool has it; percent-encoded.",
        "files:read_file",
    ),
    of(
        &["/v1/pins/{key}"],
        "Pin",
        "`module:tool`, or the tool's own name if only one tool has it; percent-encoded.",
        "files:write_file",
    ),
];

impl PathParameter {
    fn render(&self) -> Value {
        let name = self.paths[0].rsplit('{').next().unwrap_or_default().trim_end_matches('}');
        let mut schema = json!({ "type": "string", "minLength": 1 });
        if matches!(self.component, "Upstream" | "Category") {
            schema["pattern"] = "^[A-Za-z0-9_-]{1,64}$".into();
        }
        json!({
            "name": name, "in": "path", "required": true, "description": self.description,
            "schema": schema, "example": self.example,
        })
    }
}

pub(crate) fn components() -> Map<String, Value> {
    OF_PATHS.iter().map(|parameter| (parameter.component.to_owned(), parameter.render())).collect()
}

/// Returns the reference to the parameter of a path.
pub(super) fn of_path(path: &str) -> Option<Value> {
    let has = |parameter: &&PathParameter| parameter.paths.iter().any(|start| path.starts_with(start));
    let parameter = OF_PATHS.iter().find(has)?;
    Some(json!({ "$ref": format!("#/components/parameters/{}", parameter.component) }))
}

pub(super) fn query(name: &str, description: &str, schema: &Value) -> Value {
    json!({ "name": name, "in": "query", "description": description, "schema": schema })
}

pub(super) fn text(name: &str, description: &str) -> Value {
    query(name, description, &json!({ "type": "string" }))
}

pub(super) fn of_tools() -> Vec<Value> {
    let whole =
        |maximum: u32, default: u32| json!({ "type": "integer", "minimum": 1, "maximum": maximum, "default": default });
    vec![
        text("category", "Only tools of this category."),
        query(
            "tag",
            "Only tools with this tag; if repeated, with all of them.",
            &json!({ "type": "array", "items": { "type": "string" } }),
        ),
        text("module", "Only tools of this module."),
        query("enabled", "Only enabled or disabled tools.", &json!({ "type": "boolean" })),
        query("page", "Page number, from 1.", &whole(tool::PAGE_MAX, 1)),
        query("limit", "Tools per page.", &whole(tool::LIMIT_MAX, tool::LIMIT)),
    ]
}

pub(super) fn of_pins() -> Vec<Value> {
    let state = json!({ "enum": pin::STATES, "description": pin::STATES_DESCRIPTION });
    vec![query("state", "Only pins in this state.", &state), text("module", "Only pins of this module.")]
}

/// Builds the filter parameters of audit records, and adds `more`.
fn of_records(more: impl IntoIterator<Item = Value>) -> Vec<Value> {
    let filter = |name: &str| match name {
        "actor" => text(name, "Only records of this user, by name, id or subject."),
        "text" => {
            let schema = json!({ "type": "string", "maxLength": audit::TEXT_CHARS });
            query(name, "Only records that contain this text, ignoring case.", &schema)
        }
        _ => text(name, &format!("Only records with this `{name}`.")),
    };
    let moment = |name: &str, description: &str| {
        let forms = json!([{ "type": "string", "format": "date-time" }, { "type": "integer", "minimum": 0 }]);
        let description = format!("{description}: RFC 3339, or milliseconds since 1970.");
        query(name, &description, &json!({ "anyOf": forms }))
    };
    let times = [
        moment("since", "Only records that start at this time or later"),
        moment("until", "Only records that start before this time"),
    ];
    audit::FILTERS.into_iter().map(filter).chain(times).chain(more).collect()
}

pub(super) fn of_audit() -> Vec<Value> {
    let number = json!({ "type": "integer", "minimum": 0, "maximum": u64::MAX });
    let limit = json!({ "type": "integer", "minimum": 1, "maximum": audit::LIMIT_MAX, "default": audit::LIMIT });
    of_records([
        query("before", "Only records with a smaller number: `next` of the previous page.", &number),
        query("after", "Only records with a larger number, oldest first; not with `before`.", &number),
        query("limit", "Records per page.", &limit),
    ])
}

pub(super) fn of_export() -> Vec<Value> {
    of_records([query("format", "JSON Lines or CSV.", &json!({ "enum": ["jsonl", "csv"], "default": "jsonl" }))])
}
