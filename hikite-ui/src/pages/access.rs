//! Access: users, their clients and consents, tokens, and open sessions.

use askama::Template;
use axum::extract::Path;
use http::Method;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::api::part;
use crate::context::PageContext;
use crate::form::SubmittedForm;
use crate::number;
use crate::page::{OrErrorPage, PageResult, redirect, show as page};

/// A row of any of the lists; each uses its own members.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct AccessRow {
    id: String,
    name: String,
    subject: String,
    user: Option<String>,
    issuer: String,
    removed_at: Option<String>,
    role: String,
    client: Value,
    redirect_uris: Vec<String>,
    host: String,
    status: String,
    scopes: Vec<String>,
    project: Option<String>,
    revision: Option<String>,
    disabled: bool,
    active: bool,
    created_at: Option<String>,
    since: Option<String>,
    last_seen: Option<String>,
    expires_at: Option<String>,
}

impl AccessRow {
    fn client_text(&self) -> String {
        match &self.client {
            Value::String(name) => name.clone(),
            Value::Object(client) => client.get("name").and_then(Value::as_str).unwrap_or_default().to_owned(),
            _ => String::new(),
        }
    }

    /// Returns the name of its user.
    fn who(&self) -> &str {
        self.user.as_deref().unwrap_or(&self.subject)
    }

    fn left(&self) -> String {
        self.removed_at.as_deref().map(number::time).unwrap_or_default()
    }

    fn began(&self) -> String {
        self.since.as_deref().or(self.created_at.as_deref()).map(number::time).unwrap_or_default()
    }

    fn seen(&self) -> String {
        self.last_seen.as_deref().map(number::time).unwrap_or_default()
    }

    fn ends(&self) -> String {
        self.expires_at.as_deref().map(number::time).unwrap_or_default()
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct AccessRows {
    #[serde(
        alias = "users",
        alias = "tokens",
        alias = "clients",
        alias = "consents",
        alias = "sessions",
        alias = "logins",
        alias = "removals"
    )]
    rows: Vec<AccessRow>,
}

#[derive(Template)]
#[template(path = "access.html")]
struct AccessPage<'a> {
    context: &'a PageContext,
    users: Vec<AccessRow>,
    clients: Vec<AccessRow>,
    consents: Vec<AccessRow>,
    tokens: Vec<AccessRow>,
    sessions: Vec<AccessRow>,
    logins: Vec<AccessRow>,
    removals: Vec<AccessRow>,
    /// A new secret that is shown once: its name and value.
    fresh: Option<(String, String)>,
}

pub(crate) async fn list(context: PageContext) -> PageResult {
    let AccessRows { rows: tokens } = context.get("/v1/tokens").await.or_error_page(&context)?;
    let access = access_page(&context, tokens, None).await;
    page(&access)
}

async fn access_page(context: &PageContext, tokens: Vec<AccessRow>, fresh: Option<(String, String)>) -> AccessPage<'_> {
    let rows = async |path: &str| context.get_or_default::<AccessRows>(path).await.rows;
    AccessPage {
        context,
        users: rows("/v1/users").await,
        clients: rows("/v1/clients").await,
        consents: rows("/v1/consents").await,
        tokens,
        sessions: rows("/v1/sessions").await,
        logins: rows("/v1/logins").await,
        removals: rows("/v1/removals").await,
        fresh,
    }
}

pub(crate) async fn make_token(SubmittedForm { context, fields }: SubmittedForm) -> PageResult {
    let scopes: Vec<&str> = fields.all("scope").collect();
    let mut body = json!({ "name": fields.text("name"), "scopes": scopes });
    for name in ["user", "project"] {
        if let Some(text) = fields.some(name) {
            body[name] = Value::from(text);
        }
    }
    if let Ok(days) = fields.text("days").parse::<u32>() {
        body["expiresIn"] = Value::from(days * 86_400);
    }
    let made = context.post("/v1/tokens", &body).await.or_error_page(&context)?;
    show_secret(&context, fields.text("name"), made.get("secret")).await
}

pub(crate) async fn make_user(SubmittedForm { context, fields }: SubmittedForm) -> PageResult {
    let mut body = json!({ "name": fields.text("name"), "role": fields.text("role") });
    if let Some(password) = fields.some("password") {
        body["password"] = Value::from(password);
    }
    if let Some(project) = fields.some("project") {
        body["project"] = Value::from(project);
    }
    let made = context.post("/v1/users", &body).await.or_error_page(&context)?;
    show_secret(&context, fields.text("name"), made.get("password")).await
}

/// Shows a new secret once, on the page that created it.
async fn show_secret(context: &PageContext, name: &str, secret: Option<&Value>) -> PageResult {
    let Some(secret) = secret.and_then(Value::as_str) else { return redirect("/ui/access?done=saved") };
    let AccessRows { rows: tokens } = context.get("/v1/tokens").await.or_error_page(context)?;
    let access = access_page(context, tokens, Some((name.to_owned(), secret.to_owned()))).await;
    page(&access)
}

pub(crate) async fn act(
    Path((kind, id, action)): Path<(String, String, String)>,
    SubmittedForm { context, fields }: SubmittedForm,
) -> PageResult {
    let known = ["users", "clients", "consents", "tokens", "sessions", "logins", "removals"];
    let Some(kind) = known.into_iter().find(|known| *known == kind) else { return redirect("/ui/access") };
    let path = format!("/v1/{kind}/{}", part(&id));
    let (done, outcome) = match (kind, &*action) {
        ("clients", "approve") => ("approved", context.send(Method::POST, &format!("{path}/approve"), None).await),
        ("users", "disable") => {
            ("disabled", context.send(Method::PATCH, &path, Some(&json!({ "disabled": true }))).await)
        }
        ("users", "enable") => {
            ("enabled", context.send(Method::PATCH, &path, Some(&json!({ "disabled": false }))).await)
        }
        ("users", "rename") => {
            ("saved", context.send(Method::PATCH, &path, Some(&json!({ "name": fields.text("name") }))).await)
        }
        ("users", "password") => {
            let remove = fields.is_checked("remove_passkeys");
            let body = json!({ "password": fields.text("password"), "removePasskeys": remove });
            ("saved", context.send(Method::PATCH, &path, Some(&body)).await)
        }
        ("users", "handover") => {
            let body = fields.some("password").map_or_else(|| json!({}), |now| json!({ "password": now }));
            ("saved", context.send(Method::POST, &format!("{path}/handover"), Some(&body)).await)
        }
        ("users", "revoke") => {
            let successor = fields.some("successor").map(|name| format!("?successor={}", part(name)));
            let path = format!("{path}{}", successor.unwrap_or_default());
            ("removed", context.send(Method::DELETE, &path, None).await)
        }
        ("users", "bind") => {
            let project = json!({ "project": fields.some("project") });
            ("saved", context.send(Method::PATCH, &path, Some(&project)).await)
        }
        ("removals", "revoke") => ("restored", context.send(Method::DELETE, &path, None).await),
        (_, "revoke") => ("revoked", context.send(Method::DELETE, &path, None).await),
        _ => return redirect("/ui/access"),
    };
    outcome.or_error_page(&context)?;
    redirect(&format!("/ui/access?done={done}"))
}
