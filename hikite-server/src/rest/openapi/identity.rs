//! OpenAPI: the caller, projects and tokens.

use hikite_gateway::Surface;
use serde_json::{Value, json};

use super::operation::OpenApiOperation;

mod people;

pub(super) fn operations() -> Vec<OpenApiOperation> {
    let me = OpenApiOperation {
        path: "/v1/me",
        id: "getMe",
        tag: "Projects",
        summary: "Shows the caller.",
        answer: (200, "The caller.", Some("Me")),
        ..OpenApiOperation::NEW
    };
    let password = OpenApiOperation {
        method: "post",
        path: "/v1/me/password",
        id: "changeOwnPassword",
        tag: "Users",
        summary: "Changes the caller's password and ends its other logins and all grants.",
        body: Some("OwnPassword"),
        answer: (204, "Changed.", None),
        errors: &[404],
        ..OpenApiOperation::NEW
    };
    [vec![me, password], of_projects(), of_tokens(), people::operations()].into_iter().flatten().collect()
}

fn of_projects() -> Vec<OpenApiOperation> {
    let project = || vec![name("Project")];
    let of_projects = |method, path, id, summary| OpenApiOperation {
        method,
        path,
        id,
        tag: "Projects",
        summary,
        answer: (200, "The changed project.", Some("Project")),
        errors: &[404],
        ..OpenApiOperation::NEW
    };
    let one = "/v1/projects/{name}";
    vec![
        OpenApiOperation {
            answer: (200, "All projects.", Some("Projects")),
            errors: &[],
            ..of_projects("get", "/v1/projects", "listProjects", "Lists the projects.")
        },
        OpenApiOperation {
            body: Some("NewProject"),
            answer: (201, "The new project.", Some("Project")),
            errors: &[409],
            ..of_projects("post", "/v1/projects", "createProject", "Creates a project.")
        },
        OpenApiOperation { parameters: project(), ..of_projects("get", one, "getProject", "Shows one project.") },
        OpenApiOperation {
            parameters: project(),
            body: Some("ProjectForm"),
            errors: &[404, 409],
            ..of_projects("patch", one, "changeProject", "Replaces the given members.")
        },
        OpenApiOperation {
            parameters: project(),
            answer: (204, "Removed.", None),
            errors: &[404, 409],
            ..of_projects("delete", one, "deleteProject", "Removes a project and its tokens.")
        },
    ]
}

fn of_tokens() -> Vec<OpenApiOperation> {
    vec![
        OpenApiOperation {
            path: "/v1/tokens",
            id: "listTokens",
            tag: "Tokens",
            summary: "Lists the tokens, without their secrets.",
            answer: (200, "All tokens.", Some("Tokens")),
            ..OpenApiOperation::NEW
        },
        OpenApiOperation {
            method: "post",
            path: "/v1/tokens",
            id: "createToken",
            tag: "Tokens",
            summary: "Creates a token.",
            body: Some("NewToken"),
            answer: (201, "The token with its secret, which is shown only once.", Some("CreatedToken")),
            ..OpenApiOperation::NEW
        },
        OpenApiOperation {
            method: "delete",
            path: "/v1/tokens/{id}",
            id: "revokeToken",
            tag: "Tokens",
            summary: "Revokes a token immediately.",
            parameters: vec![name("Token")],
            answer: (204, "Revoked.", None),
            errors: &[404],
            ..OpenApiOperation::NEW
        },
    ]
}

fn name(parameter: &str) -> Value {
    json!({ "$ref": format!("#/components/parameters/{parameter}") })
}

pub(super) fn parameters() -> [(&'static str, Value); 5] {
    let part = |name: &str, description: &str, example: &str| {
        json!({
            "name": name, "in": "path", "required": true, "description": description,
            "schema": { "type": "string", "minLength": 1 }, "example": example,
        })
    };
    [
        ("Project", part("name", "The project's name; percent-encoded.", "work")),
        ("Token", part("id", "The token's id.", "tok_abcd2345")),
        ("User", part("name", "The user's name or id; percent-encoded.", "alice")),
        (
            "Removal",
            part("id", "The id of the removal, or the name of the removed user.", "rmv_0123456789abcdef01234567"),
        ),
        ("Client", part("id", "The client's id; percent-encoded.", "hkc_0123456789abcdef01234567")),
    ]
}

pub(super) fn schemas() -> Vec<(&'static str, Value)> {
    let reference = |name: &str| json!({ "$ref": format!("#/components/schemas/{name}") });
    let listed = |member: &str, of: &str| {
        let items = json!({ "type": "array", "items": reference(of) });
        json!({ "type": "object", "required": [member], "properties": { member: items } })
    };
    let with = |of: &str, required: &[&str], properties: Value| {
        let more = json!({ "type": "object", "required": required, "properties": properties });
        json!({ "allOf": [reference(of), more] })
    };
    let name = json!({
        "type": "string", "minLength": 1, "maxLength": 128, "examples": ["work"],
        "description": "Letters, digits, `-`, `_` and `.`, but no `.` at the start.",
    });
    let secret = json!({ "type": "string", "description": "The bearer token; not shown again." });
    vec![
        ("Me", me()),
        ("ProjectForm", project(&[], &json!({}), false)),
        ("NewProject", project(&["name"], &json!({ "name": name }), false)),
        (
            "Project",
            project(
                &["name", "createdAt", "managedByFile"],
                &json!({ "name": name, "createdAt": moment(), "managedByFile": { "type": "boolean" } }),
                true,
            ),
        ),
        ("Projects", listed("projects", "Project")),
        ("NewToken", new_token()),
        ("Token", token()),
        ("CreatedToken", with("Token", &["secret"], json!({ "secret": secret }))),
        ("Tokens", listed("tokens", "Token")),
        ("Users", listed("users", "User")),
        ("Clients", listed("clients", "Client")),
        ("Removals", listed("removals", "Removal")),
    ]
    .into_iter()
    .chain(people::schemas())
    .collect()
}

fn me() -> Value {
    json!({
        "type": "object",
        "required": ["subject", "project", "scopes", "token", "expiresAt"],
        "properties": {
            "subject": { "type": "string", "examples": ["owner", "token:tok_abcd2345"] },
            "user": { "type": ["string", "null"], "description": "Name of the user it acts for." },
            "userId": { "type": ["string", "null"], "description": "Id of that user." },
            "project": { "type": ["string", "null"], "description": "The project it works in." },
            "scopes": scopes(),
            "token": { "type": ["string", "null"], "description": "Id of the token that was used." },
            "expiresAt": moment(),
        },
    })
}

/// Builds the schema of a project with additional members; `open` allows others.
fn project(required: &[&str], more: &Value, open: bool) -> Value {
    let mut properties = project_form();
    if let (Some(properties), Some(more)) = (properties.as_object_mut(), more.as_object()) {
        properties.extend(more.clone());
    }
    json!({ "type": "object", "required": required, "additionalProperties": open, "properties": properties })
}

fn project_form() -> Value {
    let surface = json!({ "enum": Surface::ALL.map(Surface::name) });
    json!({
        "description": { "type": ["string", "null"], "maxLength": 2000 },
        "members": {
            "type": ["array", "null"], "maxItems": 1000, "items": { "type": "string", "minLength": 1 },
            "description": "Members of the project: users by name or id, and other subjects. If empty, everybody with a token for \
             the project.",
        },
        "permissions": {
            "type": ["object", "null"],
            "description": "Visible tools: `allow` and `deny`, lists of modules, tools, patterns and risks.",
        },
        "surface": {
            "anyOf": [{ "type": "null" }, surface, { "type": "array", "minItems": 1, "items": surface }],
            "description": "Surfaces that its clients see.",
        },
        "optimization": {
            "enum": [null, "bm25", "hybrid", "cloud"],
            "description": "Search mode; null disables search.",
        },
        "format": {
            "enum": [null, "compact", "raw"],
            "description": "Result format of `call` and `tool_execute` if a call does not set one; if left out, results are \
             unchanged.",
        },
    })
}

fn new_token() -> Value {
    json!({
        "type": "object",
        "required": ["name"],
        "additionalProperties": false,
        "properties": {
            "name": { "type": "string", "minLength": 1, "maxLength": 128, "examples": ["laptop"] },
            "user": {
                "type": ["string", "null"], "minLength": 1, "maxLength": 128, "examples": [null],
                "description": "The user it acts for, by name or id; `owner` is the current owner. By default the token has its \
                 own identity.",
            },
            "subject": {
                "type": ["string", "null"], "minLength": 1, "maxLength": 128, "deprecated": true,
                "description": "A label as its identity, or the name of a user, which is the same as `user`.",
            },
            "project": { "type": ["string", "null"], "maxLength": 128, "description": "The only project it gives access to." },
            "scopes": { "anyOf": [{ "type": "null" }, scopes()] },
            "expiresIn": {
                "type": ["integer", "null"], "minimum": 1, "maximum": 316_224_000,
                "description": "Lifetime in seconds; by default it does not expire.",
            },
        },
    })
}

fn token() -> Value {
    json!({
        "type": "object",
        "required": ["id", "name", "subject", "project", "scopes", "createdAt", "expiresAt", "active"],
        "properties": {
            "id": { "type": "string", "examples": ["tok_abcd2345"] },
            "name": { "type": "string" },
            "subject": { "type": "string" },
            "user": { "type": ["string", "null"], "description": "Name of the user it acts for." },
            "userId": { "type": ["string", "null"], "description": "Id of that user." },
            "project": { "type": ["string", "null"] },
            "scopes": scopes(),
            "createdAt": moment(),
            "expiresAt": moment(),
            "active": { "type": "boolean", "description": "True if the token is accepted." },
        },
    })
}

fn scopes() -> Value {
    json!({ "type": "array", "minItems": 1, "items": { "enum": ["read", "call", "admin"] } })
}

fn moment() -> Value {
    json!({ "type": ["string", "null"], "format": "date-time" })
}
