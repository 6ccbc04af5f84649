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
            summary: "Shows the exact `tools/list` that a model gets, and its token cost; for admins.",
            parameters: vec![query("project", "The project; none by default."), surface()],
            answer: (200, "The tool list.", Some("Menu")),
            errors: &[404],
            ..OpenApiOperation::NEW
        },
        OpenApiOperation {
            method: "post",
            path: "/v1/permissions/preview",
            id: "previewPermissions",
            tag: "Projects",
            summary: "Shows which tools given permissions would show and hide; for admins.",
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
        "description": "The surfaces the client asks for, separated by commas; by default the configured ones.",
        "schema": { "type": "string", "pattern": format!("^{one}(,{one})*$"), "example": "modules,search" },
    })
}

fn present() -> Vec<OpenApiOperation> {
    let list = |path, id, summary, schema| OpenApiOperation {
        path,
        id,
        tag: "Presence",
        summary,
        answer: (200, "The list.", Some(schema)),
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
        answer: (204, "Ended.", None),
        errors: &[404, 503],
        ..OpenApiOperation::NEW
    };
    vec![
        list(
            "/v1/sessions",
            "listSessions",
            "Lists the open HTTP sessions of MCP clients in this process.",
            "Sessions",
        ),
        end("/v1/sessions/{id}", "endSession", "Ends a session and its running calls."),
        list("/v1/consents", "listConsents", "Lists the consents that users gave to clients.", "Consents"),
        end("/v1/consents/{id}", "endConsent", "Revokes a consent and the client's tokens for this user."),
        list("/v1/logins", "listLogins", "Lists the browsers in which users are logged in.", "Logins"),
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
            "tools": { "type": "array", "items": { "type": "object" }, "description": "As in `tools/list`." },
            "tokens": whole("Token cost for a model."),
            "flatTokens": whole("Token cost of a list of all tools."),
            "counter": text("The tokenizer that was used, or `estimate`."),
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
            "id": text("A number for the session; not the session id of the client."),
            "subject": { "type": "string" },
            "client": { "type": "object", "description": "Name and version that the client sent." },
            "revision": text("Negotiated MCP revision."),
            "project": { "type": ["string", "null"] },
            "since": moment("Start of the session."),
            "lastSeen": moment("Time of the last message from the client."),
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
            "user": { "type": ["string", "null"], "description": "Name of the user, if the user still exists." },
            "client": text("The id of the client."),
            "clientName": { "type": ["string", "null"] },
            "scopes": words(),
            "project": { "type": ["string", "null"], "description": "The only project it is valid for." },
            "createdAt": moment("Time of the first consent."),
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
            "createdAt": moment("Time of the login."),
            "expiresAt": moment("Time when it expires if it is not used."),
        },
    })
}
