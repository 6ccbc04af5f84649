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
        answer: (200, "The user as it is now.", Some("User")),
        errors: &[404],
        ..OpenApiOperation::NEW
    };
    let (one, user) = ("/v1/users/{name}", || vec![name("User")]);
    let successor = json!({
        "name": "successor", "in": "query", "schema": { "type": "string" },
        "description": "The user who gets accounts and memberships; without one the accounts are purged.",
    });
    vec![
        OpenApiOperation {
            answer: (200, "All users.", Some("Users")),
            errors: &[],
            ..of_users("get", "/v1/users", "listUsers", "Lists the people who can log in.")
        },
        OpenApiOperation {
            body: Some("NewUser"),
            answer: (201, "The user, with a password that was made for it.", Some("CreatedUser")),
            errors: &[409],
            ..of_users("post", "/v1/users", "createUser", "Makes a user.")
        },
        OpenApiOperation { parameters: user(), ..of_users("get", one, "getUser", "Shows one user.") },
        OpenApiOperation {
            parameters: user(),
            body: Some("UserForm"),
            errors: &[404, 409],
            ..of_users("patch", one, "changeUser", "Replaces the members that are named.")
        },
        OpenApiOperation {
            parameters: vec![name("User"), successor],
            answer: (204, "It is gone.", None),
            errors: &[404, 409],
            ..of_users("delete", one, "deleteUser", "Takes a user away, with tokens, logins, grants and accounts.")
        },
        OpenApiOperation {
            parameters: user(),
            body: Some("Handover"),
            errors: &[404, 409],
            ..of_users("post", "/v1/users/{name}/handover", "handOver", "Makes a user the owner; for the owner.")
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
            ..of_removals("get", "/v1/removals", "listRemovals", "Lists people of other issuers who were removed.")
        },
        OpenApiOperation {
            parameters: vec![name("Removal")],
            answer: (204, "They may come again.", None),
            ..of_removals("delete", "/v1/removals/{id}", "liftRemoval", "Lets somebody come again who was removed.")
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
        answer: (200, "The client as it is now.", Some("Client")),
        errors: &[404],
        ..OpenApiOperation::NEW
    };
    let (one, client) = ("/v1/clients/{id}", || vec![name("Client")]);
    vec![
        OpenApiOperation {
            answer: (200, "All clients.", Some("Clients")),
            errors: &[],
            ..of_clients("get", "/v1/clients", "listClients", "Lists the clients that log in for people.")
        },
        OpenApiOperation {
            body: Some("NewClient"),
            answer: (201, "The client, with its secret where it keeps one.", Some("CreatedClient")),
            errors: &[],
            ..of_clients("post", "/v1/clients", "createClient", "Makes a client.")
        },
        OpenApiOperation { parameters: client(), ..of_clients("get", one, "getClient", "Shows one client.") },
        OpenApiOperation {
            parameters: client(),
            answer: (204, "It is gone.", None),
            ..of_clients("delete", one, "deleteClient", "Takes a client away, with what it was allowed.")
        },
        OpenApiOperation {
            method: "post",
            path: "/v1/clients/{id}/approve",
            id: "approveClient",
            summary: "Lets a client lead back to where it says.",
            parameters: client(),
            ..of_clients("post", "", "", "")
        },
    ]
}

pub(super) fn schemas() -> Vec<(&'static str, Value)> {
    let made = |of: &str, member: &str| {
        let secret = json!({ "type": "string", "description": "Shown this once." });
        let of = json!({ "$ref": format!("#/components/schemas/{of}") });
        json!({ "allOf": [of, { "type": "object", "properties": { member: secret } }] })
    };
    let name = json!({
        "type": "string", "minLength": 1, "maxLength": 64, "examples": ["alice"],
        "description": "Small letters, digits, `-`, `_`, `.` and `@`.",
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
            "disabled": { "type": ["boolean", "null"], "description": "Locked out: logins, grants and tokens open nothing." },
            "project": bound_project(),
            "removePasskeys": { "type": ["boolean", "null"], "description": "Takes the passkeys away." },
        },
    })
}

fn handover() -> Value {
    json!({
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "password": { "type": "string", "description": "The owner's password; not needed after a fresh login at a browser." },
        },
    })
}

fn own_password() -> Value {
    json!({
        "type": "object",
        "required": ["password"],
        "additionalProperties": false,
        "properties": {
            "current": { "type": "string", "description": "The password of now; not needed after a fresh login at a browser." },
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
            "name": { "type": "string", "description": "What the user was called." },
            "issuer": { "type": "string" },
            "subject": { "type": "string", "description": "What the issuer calls them." },
            "user": { "type": "string", "description": "The id that the user had." },
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
        "description": "The only project that this user works in, whatever they come with; null binds them to none.",
    })
}

fn permissions() -> Value {
    json!({
        "type": ["object", "null"],
        "description": "Which tools there are for this user: `allow` and `deny`, lists of modules, tools, patterns and risks.",
    })
}

fn user(name: &Value) -> Value {
    json!({
        "type": "object",
        "required": ["id", "name", "subject", "role", "permissions", "disabled", "project", "createdAt"],
        "properties": {
            "id": { "type": "string", "examples": ["usr_0123456789abcdef01234567"], "description": "Never given to anybody else." },
            "name": name,
            "subject": { "type": "string", "description": "The key that what is theirs carries." },
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
    scopes["description"] = "What it may do when it comes for itself.".into();
    json!({
        "type": "object",
        "required": ["name"],
        "additionalProperties": false,
        "properties": {
            "name": { "type": "string", "minLength": 1, "maxLength": 128, "examples": ["build server"] },
            "redirectUris": { "type": ["array", "null"], "items": { "type": "string" }, "examples": [["https://app.example/callback"]] },
            "confidential": { "type": ["boolean", "null"], "description": "Whether it keeps a secret." },
            "clientCredentials": { "type": ["boolean", "null"], "description": "Whether it may come for itself." },
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
            "status": { "enum": ["active", "pending"], "description": "Pending: where it leads back to waits for an admin." },
            "createdAt": moment(),
        },
    })
}
