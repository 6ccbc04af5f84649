//! Access: users, their clients and consents, tokens, and open sessions.

use askama::Template;
use axum::extract::Path;
use http::Method;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::api::part;
use crate::form::Form;
use crate::number;
use crate::page::{Answer, OrTrouble, go, show as page};
use crate::seat::Seat;

/// A row of any of the lists; each uses its own members.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Row {
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

impl Row {
    fn client_text(&self) -> String {
        match &self.client {
            Value::String(name) => name.clone(),
            Value::Object(client) => {
                client.get("name").and_then(Value::as_str).unwrap_or_default().to_owned()
            }
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
struct Rows {
    #[serde(
        alias = "users",
        alias = "tokens",
        alias = "clients",
        alias = "consents",
        alias = "sessions",
        alias = "logins",
        alias = "removals"
    )]
    rows: Vec<Row>,
}

#[derive(Template)]
#[template(path = "access.html")]
struct Access<'a> {
    seat: &'a Seat,
    users: Vec<Row>,
    clients: Vec<Row>,
    consents: Vec<Row>,
    tokens: Vec<Row>,
    sessions: Vec<Row>,
    logins: Vec<Row>,
    removals: Vec<Row>,
    /// A new secret that is shown once: its name and value.
    fresh: Option<(String, String)>,
}

pub(crate) async fn list(seat: Seat) -> Answer {
    let Rows { rows: tokens } = seat.get("/v1/tokens").await.or_trouble(&seat)?;
    let access = whole(&seat, tokens, None).await;
    page(&access)
}

async fn whole(seat: &Seat, tokens: Vec<Row>, fresh: Option<(String, String)>) -> Access<'_> {
    let rows = async |path: &str| seat.get_or_default::<Rows>(path).await.rows;
    Access {
        seat,
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

pub(crate) async fn make_token(Form { seat, fields }: Form) -> Answer {
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
    let made = seat.post("/v1/tokens", &body).await.or_trouble(&seat)?;
    tell(&seat, fields.text("name"), made.get("secret")).await
}

pub(crate) async fn make_user(Form { seat, fields }: Form) -> Answer {
    let mut body = json!({ "name": fields.text("name"), "role": fields.text("role") });
    if let Some(password) = fields.some("password") {
        body["password"] = Value::from(password);
    }
    if let Some(project) = fields.some("project") {
        body["project"] = Value::from(project);
    }
    let made = seat.post("/v1/users", &body).await.or_trouble(&seat)?;
    tell(&seat, fields.text("name"), made.get("password")).await
}

/// Shows a new secret once, on the page that created it.
async fn tell(seat: &Seat, name: &str, secret: Option<&Value>) -> Answer {
    let Some(secret) = secret.and_then(Value::as_str) else { return go("/ui/access?done=saved") };
    let Rows { rows: tokens } = seat.get("/v1/tokens").await.or_trouble(seat)?;
    let access = whole(seat, tokens, Some((name.to_owned(), secret.to_owned()))).await;
    page(&access)
}

pub(crate) async fn act(
    Path((kind, id, deed)): Path<(String, String, String)>,
    Form { seat, fields }: Form,
) -> Answer {
    let known = ["users", "clients", "consents", "tokens", "sessions", "logins", "removals"];
    let Some(kind) = known.into_iter().find(|known| *known == kind) else { return go("/ui/access") };
    let path = format!("/v1/{kind}/{}", part(&id));
    let (done, outcome) = match (kind, &*deed) {
        ("clients", "approve") => {
            ("approved", seat.send(Method::POST, &format!("{path}/approve"), None).await)
        }
        ("users", "disable") => {
            ("disabled", seat.send(Method::PATCH, &path, Some(&json!({ "disabled": true }))).await)
        }
        ("users", "enable") => {
            ("enabled", seat.send(Method::PATCH, &path, Some(&json!({ "disabled": false }))).await)
        }
        ("users", "rename") => {
            ("saved", seat.send(Method::PATCH, &path, Some(&json!({ "name": fields.text("name") }))).await)
        }
        ("users", "password") => {
            let remove = fields.is_checked("remove_passkeys");
            let body = json!({ "password": fields.text("password"), "removePasskeys": remove });
            ("saved", seat.send(Method::PATCH, &path, Some(&body)).await)
        }
        ("users", "handover") => {
            let body = fields.some("password").map_or_else(|| json!({}), |now| json!({ "password": now }));
            ("saved", seat.send(Method::POST, &format!("{path}/handover"), Some(&body)).await)
        }
        ("users", "revoke") => {
            let successor = fields.some("successor").map(|name| format!("?successor={}", part(name)));
            let path = format!("{path}{}", successor.unwrap_or_default());
            ("revoked", seat.send(Method::DELETE, &path, None).await)
        }
        ("users", "bind") => {
            let project = json!({ "project": fields.some("project") });
            ("saved", seat.send(Method::PATCH, &path, Some(&project)).await)
        }
        (_, "revoke") => ("revoked", seat.send(Method::DELETE, &path, None).await),
        _ => return go("/ui/access"),
    };
    outcome.or_trouble(&seat)?;
    go(&format!("/ui/access?done={done}"))
}
