//! OpenAPI: accounts with services.

use serde_json::{Value, json};

use super::operation::OpenApiOperation;

pub(super) fn operations() -> Vec<OpenApiOperation> {
    [of_accounts(), of_connections(), of_providers()].into_iter().flatten().collect()
}

fn of(method: &'static str, path: &'static str, id: &'static str, summary: &'static str) -> OpenApiOperation {
    OpenApiOperation {
        method,
        path,
        id,
        tag: "Accounts",
        summary,
        answer: (200, "The account as it is now.", Some("Account")),
        errors: &[404],
        ..OpenApiOperation::NEW
    }
}

fn reference(parameter: &str) -> Vec<Value> {
    vec![json!({ "$ref": format!("#/components/parameters/{parameter}") })]
}

fn of_accounts() -> Vec<OpenApiOperation> {
    let one = "/v1/accounts/{id}";
    let all = json!({
        "name": "all", "in": "query", "description": "Those of everybody; for admins.",
        "schema": { "type": "boolean", "default": false },
    });
    vec![
        OpenApiOperation {
            parameters: vec![all],
            answer: (200, "The accounts that the caller may use.", Some("Accounts")),
            ..of("get", "/v1/accounts", "listAccounts", "Lists accounts, without their secrets.")
        },
        OpenApiOperation {
            body: Some("NewAccount"),
            answer: (201, "The account.", Some("Account")),
            errors: &[404, 409],
            ..of("post", "/v1/accounts", "addAccount", "Adds an account with a token made by hand.")
        },
        OpenApiOperation { parameters: reference("Account"), ..of("get", one, "getAccount", "Shows one account.") },
        OpenApiOperation {
            parameters: reference("Account"),
            body: Some("AccountChanges"),
            ..of("patch", one, "changeAccount", "Changes what is named; for admins.")
        },
        OpenApiOperation {
            parameters: reference("Account"),
            answer: (204, "It is gone.", None),
            ..of("delete", one, "removeAccount", "Takes an account and its secrets away; for admins.")
        },
        OpenApiOperation {
            parameters: reference("Account"),
            ..of(
                "post",
                "/v1/accounts/{id}/verify",
                "verifyAccount",
                "Asks the vendor whether it takes the credential.",
            )
        },
    ]
}

fn of_connections() -> Vec<OpenApiOperation> {
    let begin = "Begins to connect an account in a browser.";
    let look = "Says how far a connection has come.";
    vec![
        OpenApiOperation {
            body: Some("NewConnection"),
            answer: (201, "A link for the caller's browser.", Some("ConnectionLink")),
            ..of("post", "/v1/accounts/connect", "connectAccount", begin)
        },
        OpenApiOperation {
            parameters: reference("Connection"),
            answer: (200, "How far it has come.", Some("Connection")),
            ..of("get", "/v1/accounts/connect/{id}", "getConnection", look)
        },
    ]
}

fn of_providers() -> Vec<OpenApiOperation> {
    let one = "/v1/providers/{name}";
    vec![
        OpenApiOperation {
            answer: (200, "The providers that are known.", Some("Providers")),
            ..of("get", "/v1/providers", "listProviders", "Lists the providers of accounts.")
        },
        OpenApiOperation {
            parameters: reference("Provider"),
            body: Some("ProviderApp"),
            answer: (204, "It is kept.", None),
            errors: &[404, 409],
            ..of("put", one, "setProviderApp", "Says which app hikite is; for admins.")
        },
        OpenApiOperation {
            parameters: reference("Provider"),
            answer: (204, "It is gone.", None),
            ..of("delete", one, "removeProviderApp", "Forgets the app; for admins.")
        },
    ]
}

pub(super) fn parameters() -> [(&'static str, Value); 3] {
    let part = |name: &str, description: &str, example: &str| {
        json!({
            "name": name, "in": "path", "required": true, "description": description,
            "schema": { "type": "string", "minLength": 1 }, "example": example,
        })
    };
    [
        ("Account", part("id", "The account's id.", "0123456789abcdef0123456789abcdef")),
        ("Connection", part("id", "The connection's id.", "0123456789abcdef0123456789abcdef")),
        ("Provider", part("name", "The provider's name.", "notion")),
    ]
}

pub(super) fn schemas() -> Vec<(&'static str, Value)> {
    vec![
        ("Account", account()),
        ("Accounts", listed("accounts", "Account")),
        ("NewAccount", new_account()),
        (
            "AccountChanges",
            closed(
                &[],
                &json!({ "name": name(), "default": flag("Meant where several could be."),
                    "shared": flag("Everybody may use it."), "permissions": permissions() }),
            ),
        ),
        (
            "NewConnection",
            closed(
                &["provider"],
                &json!({ "provider": word("With whom."), "name": name(),
                    "terminal": flag("Whether a one-time code is wanted that proves to the page who opens it; for the \
                        holder of the local token alone.") }),
            ),
        ),
        (
            "ConnectionLink",
            json!({
                "type": "object", "required": ["id", "url", "expiresAt"],
                "properties": {
                    "id": text("Its id."), "url": text("What the browser opens, once."), "expiresAt": time(),
                    "code": text("What the page asks for where nobody is logged in; only with `terminal`."),
                },
            }),
        ),
        ("Connection", connection()),
        ("ProviderObject", provider()),
        ("Providers", listed("providers", "ProviderObject")),
        (
            "ProviderApp",
            closed(
                &["client_id"],
                &json!({ "client_id": word("The app's id."),
                    "client_secret": text("Its secret; it is not shown again.") }),
            ),
        ),
    ]
}

fn account() -> Value {
    json!({
        "type": "object",
        "required": ["id", "name", "provider", "state", "shared", "managedByFile"],
        "properties": {
            "id": text("Its id."), "name": name(), "provider": text("With whom."),
            "user": { "type": "string", "description": "The name of the user it belongs to." },
            "userId": { "type": "string" },
            "subject": text("Whose it is."),
            "state": {
                "enum": ["connected", "unverified", "reconnect"],
                "description": "`connected`: the vendor took the credential. `unverified`: nobody knows yet. \
                    `reconnect`: the vendor refuses it.",
            },
            "problem": {
                "type": ["string", "null"],
                "description": "Why it is not proven, or was refused, in the vendor's words.",
            },
            "verifiedAt": time(),
            "default": flag("The one that is meant where several could be."),
            "shared": flag("Everybody may use it."),
            "scopes": { "type": "array", "items": { "type": "string" } },
            "details": { "type": "object", "additionalProperties": { "type": "string" } },
            "permissions": permissions(), "expiresAt": time(), "lastRefresh": time(), "createdAt": time(),
            "managedByFile": flag("The config file names it, and everybody has it."),
        },
    })
}

fn new_account() -> Value {
    closed(
        &["provider", "token"],
        &json!({
            "provider": word("With whom."), "name": name(), "token": word("The token; it is not shown again."),
            "email": text("Whose token it is, where the service wants both."),
            "site": text("The host of the account's site."),
            "api": text("An address in place of the service's own; for admins."),
        }),
    )
}

fn connection() -> Value {
    json!({
        "type": "object", "required": ["id", "state"],
        "properties": {
            "id": text("Its id."), "provider": text("With whom."), "name": name(),
            "state": { "enum": ["waiting", "opened", "exchanging", "connected", "failed"] },
            "account": { "type": ["string", "null"] }, "error": { "type": ["string", "null"] },
            "accountState": { "enum": ["connected", "unverified", null] }, "problem": { "type": ["string", "null"] },
            "expiresAt": time(),
        },
    })
}

fn provider() -> Value {
    json!({
        "type": "object", "required": ["name", "title", "connectable"],
        "properties": {
            "name": text("Its name."), "title": text("As people know it."),
            "scopes": { "type": "array", "items": { "type": "string" } },
            "clientId": { "type": ["string", "null"] },
            "connectable": flag("Accounts can be connected in a browser."),
            "managedByFile": flag("The config file names the app."),
            "accountOfTheFile": flag("The config file has an account for everybody."),
        },
    })
}

fn text(description: &str) -> Value {
    json!({ "type": "string", "description": description })
}

fn flag(description: &str) -> Value {
    json!({ "type": "boolean", "description": description })
}

fn time() -> Value {
    json!({ "type": ["string", "null"], "format": "date-time" })
}

fn name() -> Value {
    let description = "What it is called in calls: letters, digits, `-_.@+`.";
    json!({ "type": "string", "minLength": 1, "maxLength": 64, "description": description })
}

/// Builds the schema of a non-empty string.
fn word(description: &str) -> Value {
    json!({ "type": "string", "minLength": 1, "description": description })
}

fn permissions() -> Value {
    json!({ "type": ["object", "null"], "description": "Which tools may be called with it: `allow`, `deny`." })
}

fn listed(member: &str, of: &str) -> Value {
    let items = json!({ "type": "array", "items": { "$ref": format!("#/components/schemas/{of}") } });
    json!({ "type": "object", "required": [member], "properties": { member: items } })
}

fn closed(required: &[&str], properties: &Value) -> Value {
    json!({ "type": "object", "required": required, "additionalProperties": false, "properties": properties })
}
