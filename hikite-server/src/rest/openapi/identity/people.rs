//! OpenAPI: users and OAuth clients.

use serde_json::{Value, json};

use super::{OpenApiOperation, moment, name, scopes};

pub(super) fn operations() -> Vec<OpenApiOperation> {
    [of_users(), of_removals(), of_clients()].into_iter().flatten().collect()
}

fn of_users() -> Vec<OpenApiOperation> {
    let of_users = |method, path, id, summary| OpenApiOperation {
        method,
        path,
        id,
        tag: "Users",
        summary,
        answer: (200, "The changed user.", Some("User")),
        errors: &[404],
        ..OpenApiOperation::NEW
    };
    let (one, user) = ("/v1/users/{name}", || vec![name("User")]);
    let successor = json!({
        "name": "successor", "in": "query", "schema": { "type": "string" },
        "description": "The user who gets accounts and memberships; if left out, the accounts are deleted.",
    });
    vec![
        OpenApiOperation {
            answer: (200, "All users.", Some("Users")),
            errors: &[],
            ..of_users("get", "/v1/users", "listUsers", "Lists the users who can log in.")
        },
        OpenApiOperation {
            body: Some("NewUser"),
            answer: (201, "The user, with the generated password.", Some("CreatedUser")),
            errors: &[409],
            ..of_users("post", "/v1/users", "createUser", "Creates a user.")
        },
        OpenApiOperation { parameters: user(), ..of_users("get", one, "getUser", "Shows one user.") },
        OpenApiOperation {
            parameters: user(),
            body: Some("UserForm"),
            errors: &[404, 409],
            ..of_users("patch", one, "changeUser", "Replaces the given members.")
        },
        OpenApiOperation {
            parameters: vec![name("User"), successor],
            answer: (204, "Removed.", None),
            errors: &[404, 409],
            ..of_users("delete", one, "deleteUser", "Removes a user with tokens, logins, grants and accounts.")
        },
        OpenApiOperation {
            parameters: user(),
            body: Some("Handover"),
            errors: &[404, 409],
            ..of_users("post", "/v1/users/{name}/handover", "handOver", "Makes another user the owner; for the owner.")
        },
    ]
}

fn of_removals() -> Vec<OpenApiOperation> {
    let of_removals = |method, path, id, summary| OpenApiOperation {
        method,
        path,
        id,
        tag: "Users",
        summary,
        errors: &[404],
        ..OpenApiOperation::NEW
    };
    vec![
        OpenApiOperation {
            answer: (200, "All removals.", Some("Removals")),
            errors: &[],
            ..of_removals("get", "/v1/removals", "listRemovals", "Lists removed users of other issuers.")
        },
        OpenApiOperation {
            parameters: vec![name("Removal")],
            answer: (204, "Lifted.", None),
            ..of_removals(
                "delete",
                "/v1/removals/{id}",
                "liftRemoval",
                "Lifts a removal, so that the user can log in again.",
            )
        },
    ]
}

fn of_clients() -> Vec<OpenApiOperation> {
    let of_clients = |method, path, id, summary| OpenApiOperation {
        method,
        path,
        id,
        tag: "Clients",
        summary,
        answer: (200, "The changed client.", Some("Client")),
        errors: &[404],
        ..OpenApiOperation::NEW
    };
    let (one, client) = ("/v1/clients/{id}", || vec![name("Client")]);
    vec![
        OpenApiOperation {
            answer: (200, "All clients.", Some("Clients")),
            errors: &[],
            ..of_clients("get", "/v1/clients", "listClients", "Lists the OAuth clients.")
        },
        OpenApiOperation {
            body: Some("NewClient"),
            answer: (201, "The client, with its secret if it has one.", Some("CreatedClient")),
            errors: &[],
            ..of_clients("post", "/v1/clients", "createClient", "Creates a client.")
        },
        OpenApiOperation { parameters: client(), ..of_clients("get", one, "getClient", "Shows one client.") },
        OpenApiOperation {
            parameters: client(),
            answer: (204, "Removed.", None),
            ..of_clients("delete", one, "deleteClient", "Removes a client with its consents and grants.")
        },
        OpenApiOperation {
            method: "post",
            path: "/v1/clients/{id}/approve",
            id: "approveClient",
            summary: "Approves the redirect addresses of a client.",
            parameters: client(),
            ..of_clients("post", "", "", "")
        },
    ]
}

pub(super) fn schemas() -> Vec<(&'static str, Value)> {
    let made = |of: &str, member: &str| {
        let secret = json!({ "type": "string", "description": "Shown only once." });
        let of = json!({ "$ref": format!("#/components/schemas/{of}") });
        json!({ "allOf": [of, { "type": "object", "properties": { member: secret } }] })
    };
    let name = json!({
        "type": "string", "minLength": 1, "maxLength": 64, "examples": ["alice"],
        "description": "Lowercase letters, digits, `-`, `_`, `.` and `@`.",
    });
    let mut form = user_form();
    form["properties"]["name"] = name.clone();
    let mut new_user = form.clone();
    new_user["required"] = json!(["name"]);
    vec![
        ("UserForm", form),
        ("Handover", handover()),
        ("OwnPassword", own_password()),
        ("Removal", removal()),
        ("NewUser", new_user),
        ("User", user(&name)),
        ("CreatedUser", made("User", "password")),
        ("NewClient", new_client()),
        ("Client", client()),
        ("CreatedClient", made("Client", "secret")),
    ]
}

fn user_form() -> Value {
    json!({
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "role": { "enum": ["admin", "member", null] },
            "password": { "type": ["string", "null"], "minLength": 10, "maxLength": 1000 },
            "permissions": permissions(),
            "disabled": { "type": ["boolean", "null"], "description": "Locks the user: logins, grants and tokens are rejected." },
            "project": bound_project(),
            "removePasskeys": { "type": ["boolean", "null"], "description": "Removes the passkeys." },
        },
    })
}

fn handover() -> Value {
    json!({
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "password": { "type": "string", "description": "The owner's password; not needed after a fresh login in a browser." },
        },
    })
}

fn own_password() -> Value {
    json!({
        "type": "object",
        "required": ["password"],
        "additionalProperties": false,
        "properties": {
            "current": { "type": "string", "description": "The current password; not needed after a fresh login in a browser." },
            "password": { "type": "string", "minLength": 10, "maxLength": 1000 },
            "removePasskeys": { "type": "boolean" },
        },
    })
}

fn removal() -> Value {
    json!({
        "type": "object",
        "required": ["id", "name", "issuer", "subject", "user", "removedAt"],
        "properties": {
            "id": { "type": "string" },
            "name": { "type": "string", "description": "The former user name." },
            "issuer": { "type": "string" },
            "subject": { "type": "string", "description": "The subject at the issuer." },
            "user": { "type": "string", "description": "The former id of the user." },
            "removedAt": moment(),
        },
    })
}

fn bound_project() -> Value {
    json!({
        "type": ["string", "null"],
        "minLength": 1,
        "maxLength": 128,
        "examples": [null],
        "description": "The only project this user works in, with any token or client; null for no restriction.",
    })
}

fn permissions() -> Value {
    json!({
        "type": ["object", "null"],
        "description": "Visible tools of this user: `allow` and `deny`, lists of modules, tools, patterns and risks.",
    })
}

fn user(name: &Value) -> Value {
    json!({
        "type": "object",
        "required": ["id", "name", "subject", "role", "permissions", "disabled", "project", "createdAt"],
        "properties": {
            "id": { "type": "string", "examples": ["usr_0123456789abcdef01234567"], "description": "Never reused." },
            "name": name,
            "subject": { "type": "string", "description": "Key of everything that belongs to the user." },
            "role": { "enum": ["owner", "admin", "member"] },
            "permissions": permissions(),
            "disabled": { "type": "boolean" },
            "project": bound_project(),
            "createdAt": moment(),
        },
    })
}

fn new_client() -> Value {
    let mut scopes = scopes();
    scopes["type"] = json!(["array", "null"]);
    scopes["description"] = "Scopes for the client credentials grant.".into();
    json!({
        "type": "object",
        "required": ["name"],
        "additionalProperties": false,
        "properties": {
            "name": { "type": "string", "minLength": 1, "maxLength": 128, "examples": ["build server"] },
            "redirectUris": { "type": ["array", "null"], "items": { "type": "string" }, "examples": [["https://app.example/callback"]] },
            "confidential": { "type": ["boolean", "null"], "description": "True for a client with a secret." },
            "clientCredentials": { "type": ["boolean", "null"], "description": "True if it may use the client credentials grant." },
            "scopes": scopes,
        },
    })
}

fn client() -> Value {
    json!({
        "type": "object",
        "required": ["id", "name", "redirectUris", "origin", "confidential", "clientCredentials", "status", "createdAt"],
        "properties": {
            "id": { "type": "string" },
            "name": { "type": "string" },
            "redirectUris": { "type": "array", "items": { "type": "string" } },
            "origin": { "enum": ["registered", "document", "admin"] },
            "confidential": { "type": "boolean" },
            "clientCredentials": { "type": "boolean" },
            "status": { "enum": ["active", "pending"], "description": "Pending: its redirect addresses wait for approval by an admin." },
            "createdAt": moment(),
        },
    })
}
