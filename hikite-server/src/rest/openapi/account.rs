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
        answer: (200, "The changed account.", Some("Account")),
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
        "name": "all", "in": "query", "description": "Accounts of all users; for admins.",
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
            ..of("post", "/v1/accounts", "addAccount", "Adds an account with an existing token.")
        },
        OpenApiOperation { parameters: reference("Account"), ..of("get", one, "getAccount", "Shows one account.") },
        OpenApiOperation {
            parameters: reference("Account"),
            body: Some("AccountChanges"),
            ..of("patch", one, "changeAccount", "Changes the given members; for admins.")
        },
        OpenApiOperation {
            parameters: reference("Account"),
            answer: (204, "Removed.", None),
            ..of("delete", one, "removeAccount", "Removes an account and its secrets; for admins.")
        },
        OpenApiOperation {
            parameters: reference("Account"),
            ..of(
                "post",
                "/v1/accounts/{id}/verify",
                "verifyAccount",
                "Checks with the vendor that the credential is valid.",
            )
        },
    ]
}

fn of_connections() -> Vec<OpenApiOperation> {
    let begin = "Starts connecting an account in a browser.";
    let look = "Returns the progress of a connection.";
    vec![
        OpenApiOperation {
            body: Some("NewConnection"),
            answer: (201, "A link for the caller's browser.", Some("ConnectionLink")),
            ..of("post", "/v1/accounts/connect", "connectAccount", begin)
        },
        OpenApiOperation {
            parameters: reference("Connection"),
            answer: (200, "The progress.", Some("Connection")),
            ..of("get", "/v1/accounts/connect/{id}", "getConnection", look)
        },
    ]
}

fn of_providers() -> Vec<OpenApiOperation> {
    let one = "/v1/providers/{name}";
    vec![
        OpenApiOperation {
            answer: (200, "The known providers.", Some("Providers")),
            ..of("get", "/v1/providers", "listProviders", "Lists the providers of accounts.")
        },
        OpenApiOperation {
            parameters: reference("Provider"),
            body: Some("ProviderApp"),
            answer: (204, "Saved.", None),
            errors: &[404, 409],
            ..of("put", one, "setProviderApp", "Sets the OAuth app of hikite; for admins.")
        },
        OpenApiOperation {
            parameters: reference("Provider"),
            answer: (204, "Removed.", None),
            ..of("delete", one, "removeProviderApp", "Removes the OAuth app; for admins.")
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
                &json!({ "name": name(), "default": flag("Used by default if there are several."),
                    "shared": flag("All users may use it."), "permissions": permissions() }),
            ),
        ),
        (
            "NewConnection",
            closed(
                &["provider"],
                &json!({ "provider": word("The provider."), "name": name(),
                    "terminal": flag("Requests a one-time code that identifies the user on the page; only for the holder of the \
                     local token.") }),
            ),
        ),
        (
            "ConnectionLink",
            json!({
                "type": "object", "required": ["id", "url", "expiresAt"],
                "properties": {
                    "id": text("Its id."), "url": text("Address to open in the browser, valid once."), "expiresAt": time(),
                    "code": text("Code to enter on the page if no user is logged in; only with `terminal`."),
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
                &json!({ "client_id": word("Client id of the app."),
                    "client_secret": text("Client secret; not shown again.") }),
            ),
        ),
    ]
}

fn account() -> Value {
    json!({
        "type": "object",
        "required": ["id", "name", "provider", "state", "shared", "managedByFile"],
        "properties": {
            "id": text("Its id."), "name": name(), "provider": text("The provider."),
            "user": { "type": "string", "description": "Name of the user it belongs to." },
            "userId": { "type": "string" },
            "subject": text("The subject it belongs to."),
            "state": {
                "enum": ["connected", "unverified", "reconnect"],
                "description": "`connected`: the vendor accepted the credential. `unverified`: not checked yet. `reconnect`: the \
                 vendor rejects it.",
            },
            "problem": {
                "type": ["string", "null"],
                "description": "Reason why it is not verified or was rejected, in the vendor's words.",
            },
            "verifiedAt": time(),
            "default": flag("Used by default if there are several."),
            "shared": flag("All users may use it."),
            "scopes": { "type": "array", "items": { "type": "string" } },
            "details": { "type": "object", "additionalProperties": { "type": "string" } },
            "permissions": permissions(), "expiresAt": time(), "lastRefresh": time(), "createdAt": time(),
            "managedByFile": flag("It is defined in the config file and available to all users."),
        },
    })
}

fn new_account() -> Value {
    closed(
        &["provider", "token"],
        &json!({
            "provider": word("The provider."), "name": name(), "token": word("The token; it is not shown again."),
            "email": text("E-mail address of the token's owner, if the service needs both."),
            "site": text("Host of the account's site."),
            "api": text("Another address for the service; for admins."),
        }),
    )
}

fn connection() -> Value {
    json!({
        "type": "object", "required": ["id", "state"],
        "properties": {
            "id": text("Its id."), "provider": text("The provider."), "name": name(),
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
            "name": text("Its name."), "title": text("Display name."),
            "scopes": { "type": "array", "items": { "type": "string" } },
            "clientId": { "type": ["string", "null"] },
            "connectable": flag("Accounts can be connected in a browser."),
            "managedByFile": flag("The app is defined in the config file."),
            "accountOfTheFile": flag("The config file has an account for all users."),
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
    let description = "Name used in calls: letters, digits, `-_.@+`.";
    json!({ "type": "string", "minLength": 1, "maxLength": 64, "description": description })
}

/// Builds the schema of a non-empty string.
fn word(description: &str) -> Value {
    json!({ "type": "string", "minLength": 1, "description": description })
}

fn permissions() -> Value {
    json!({ "type": ["object", "null"], "description": "Tools that may be called with it: `allow`, `deny`." })
}

fn listed(member: &str, of: &str) -> Value {
    let items = json!({ "type": "array", "items": { "$ref": format!("#/components/schemas/{of}") } });
    json!({ "type": "object", "required": [member], "properties": { member: items } })
}

fn closed(required: &[&str], properties: &Value) -> Value {
    json!({ "type": "object", "required": required, "additionalProperties": false, "properties": properties })
}
