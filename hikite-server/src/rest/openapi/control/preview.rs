//! OpenAPI: previews, sessions, consents and logins.

use serde_json::{Value, json};

use super::super::operation::OpenApiOperation;
use super::{listed, parameter, text, whole};

pub(super) fn operations() -> Vec<OpenApiOperation> {
    preview().into_iter().chain(present()).collect()
}

fn preview() -> Vec<OpenApiOperation> {
    let query = |name: &str, description: &str| json!({ "name": name, "in": "query", "description": description, "schema": { "type": "string" } });
    vec![
        OpenApiOperation {
            path: "/v1/menu",
            id: "getMenu",
            tag: "Projects",
            summary: "Shows exactly the `tools/list` that a model is given, and what it costs; for admins.",
            parameters: vec![query("project", "In which project; by default in none."), surface()],
            answer: (200, "The menu.", Some("Menu")),
            errors: &[404],
            ..OpenApiOperation::NEW
        },
        OpenApiOperation {
            method: "post",
            path: "/v1/permissions/preview",
            id: "previewPermissions",
            tag: "Projects",
            summary: "Says which tools permissions would show, and which they would hide; for admins.",
            body: Some("PermissionsRequest"),
            answer: (200, "The keys of the tools.", Some("PermissionsAnswer")),
            ..OpenApiOperation::NEW
        },
    ]
}

fn surface() -> Value {
    let one = "(categories|direct|modules|search)";
    json!({
        "name": "surface", "in": "query",
        "description": "The surfaces that the client asks for, with commas; by default those that are set.",
        "schema": { "type": "string", "pattern": format!("^{one}(,{one})*$"), "example": "modules,search" },
    })
}

fn present() -> Vec<OpenApiOperation> {
    let list = |path, id, summary, schema| OpenApiOperation {
        path,
        id,
        tag: "Presence",
        summary,
        answer: (200, "All of them.", Some(schema)),
        errors: &[404, 503],
        ..OpenApiOperation::NEW
    };
    let end = |path, id, summary| OpenApiOperation {
        method: "delete",
        path,
        id,
        tag: "Presence",
        summary,
        parameters: vec![parameter("Id")],
        answer: (204, "It is over.", None),
        errors: &[404, 503],
        ..OpenApiOperation::NEW
    };
    vec![
        list(
            "/v1/sessions",
            "listSessions",
            "Lists the open sessions of MCP clients over HTTP, in this process.",
            "Sessions",
        ),
        end("/v1/sessions/{id}", "endSession", "Ends a session and what runs in it."),
        list("/v1/consents", "listConsents", "Lists what users let clients do.", "Consents"),
        end("/v1/consents/{id}", "endConsent", "Takes a consent back; the client's tokens for this user end with it."),
        list("/v1/logins", "listLogins", "Lists the browsers that users are logged in with.", "Logins"),
        end("/v1/logins/{id}", "endLogin", "Logs a browser out."),
    ]
}

pub(super) fn schemas() -> Vec<(&'static str, Value)> {
    vec![
        ("Menu", menu()),
        ("PermissionsRequest", permissions()),
        (
            "PermissionsAnswer",
            json!({
                "type": "object",
                "required": ["visible", "hidden"],
                "properties": { "visible": words(), "hidden": words() },
            }),
        ),
        ("Sessions", listed("sessions", "Session")),
        ("Session", session()),
        ("Consents", listed("consents", "Consent")),
        ("Consent", consent()),
        ("Logins", listed("logins", "Login")),
        ("Login", login()),
    ]
}

fn words() -> Value {
    json!({ "type": "array", "items": { "type": "string" } })
}

fn moment(description: &str) -> Value {
    json!({ "type": "string", "format": "date-time", "description": description })
}

fn menu() -> Value {
    json!({
        "type": "object",
        "required": ["surfaces", "tools", "tokens", "flatTokens", "counter"],
        "properties": {
            "project": { "type": "string" },
            "surfaces": words(),
            "tools": { "type": "array", "items": { "type": "object" }, "description": "As `tools/list` gives them." },
            "tokens": whole("What they cost a model."),
            "flatTokens": whole("What a list of every tool would cost."),
            "counter": text("The vocabulary that counted, or `estimate`."),
        },
    })
}

fn permissions() -> Value {
    let entries = json!({ "type": ["array", "null"], "items": { "type": ["string", "object"] } });
    json!({
        "type": "object",
        "required": ["permissions"],
        "additionalProperties": false,
        "properties": {
            "permissions": {
                "type": "object",
                "description": "As in a project: lists of modules, tools, patterns and risks.",
                "properties": { "allow": entries, "deny": entries },
            },
        },
        "examples": [{ "permissions": { "allow": ["files"], "deny": ["risk:destructive"] } }],
    })
}

fn session() -> Value {
    json!({
        "type": "object",
        "required": ["id", "subject", "client", "revision", "project", "since", "lastSeen", "surfaces"],
        "properties": {
            "id": text("A number for it; not what its client sends."),
            "subject": { "type": "string" },
            "client": { "type": "object", "description": "What the client calls itself." },
            "revision": text("The revision of MCP that was agreed."),
            "project": { "type": ["string", "null"] },
            "since": moment("When it began."),
            "lastSeen": moment("When something last came from it."),
            "surfaces": words(),
        },
    })
}

fn consent() -> Value {
    json!({
        "type": "object",
        "required": ["id", "subject", "user", "client", "clientName", "scopes", "project", "createdAt"],
        "properties": {
            "id": { "type": "string" },
            "subject": { "type": "string" },
            "user": { "type": ["string", "null"], "description": "The name of the user, while there is one." },
            "client": text("The id of the client."),
            "clientName": { "type": ["string", "null"] },
            "scopes": words(),
            "project": { "type": ["string", "null"], "description": "The only project that it is for." },
            "createdAt": moment("When it was first given."),
        },
    })
}

fn login() -> Value {
    json!({
        "type": "object",
        "required": ["id", "subject", "user", "createdAt", "expiresAt"],
        "properties": {
            "id": { "type": "string" },
            "subject": { "type": "string" },
            "user": { "type": ["string", "null"] },
            "createdAt": moment("When somebody logged in."),
            "expiresAt": moment("When it ends if nobody comes."),
        },
    })
}
