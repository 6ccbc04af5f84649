//! Accounts with services: connected in the browser or by key, several per service, with permissions.

use askama::Template;
use axum::extract::Path;
use http::{Method, StatusCode};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::permissions::{Lines, Preview, preview};
use crate::api::{Refused, part};
use crate::form::Form;
use crate::number;
use crate::page::{Answer, OrTrouble, go, show as page, with_status};
use crate::seat::Seat;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Accounts {
    pub(crate) accounts: Vec<Account>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Account {
    id: String,
    pub(crate) name: String,
    provider: String,
    subject: String,
    user: Option<String>,
    state: String,
    problem: Option<String>,
    verified_at: Option<String>,
    #[serde(rename = "default")]
    is_default: bool,
    shared: bool,
    scopes: Vec<String>,
    details: Map<String, Value>,
    permissions: Option<Value>,
    expires_at: Option<String>,
    last_refresh: Option<String>,
    created_at: Option<String>,
    managed_by_file: bool,
}

impl Account {
    fn facts(&self) -> Vec<(String, String)> {
        let told = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        self.details.iter().map(|(name, value)| (name.clone(), told(value))).collect()
    }
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Provider {
    name: String,
    title: String,
    scopes: Vec<String>,
    client_id: Option<String>,
    connectable: bool,
    managed_by_file: bool,
    account_of_the_file: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Providers {
    providers: Vec<Provider>,
}

#[derive(Template)]
#[template(path = "accounts.html")]
struct List<'a> {
    seat: &'a Seat,
    accounts: Vec<Account>,
    providers: Vec<Provider>,
    refused: Option<Refused>,
}

pub(crate) async fn list(seat: Seat) -> Answer {
    let all = if seat.visitor.is_admin { "/v1/accounts?all=true" } else { "/v1/accounts" };
    let Accounts { accounts } = seat.get(all).await.or_trouble(&seat)?;
    let Providers { providers } = seat.get("/v1/providers").await.or_trouble(&seat)?;
    page(&List { seat: &seat, accounts, providers, refused: None })
}

/// Adds an account with a key or token.
pub(crate) async fn add(Form { seat, fields }: Form) -> Answer {
    let mut body = Map::new();
    for name in ["provider", "name", "token", "email", "site", "api"] {
        if let Some(text) = fields.some(name) {
            body.insert(name.into(), text.into());
        }
    }
    match seat.post("/v1/accounts", &Value::Object(body)).await {
        Ok(account) => go(match account.get("state").and_then(Value::as_str) {
            Some("connected") => "/ui/accounts?done=connected",
            _ => "/ui/accounts?done=unverified",
        }),
        Err(refused) => {
            let Accounts { accounts } = seat.get_or_default("/v1/accounts").await;
            let Providers { providers } = seat.get_or_default("/v1/providers").await;
            let status = refused.status;
            Ok(with_status(status, &List { seat: &seat, accounts, providers, refused: Some(refused) }))
        }
    }
}

/// Starts connecting an account through the provider's pages.
pub(crate) async fn connect(Form { seat, fields }: Form) -> Answer {
    let mut body = json!({ "provider": fields.text("provider") });
    if let Some(name) = fields.some("name") {
        body["name"] = Value::from(name);
    }
    let link = seat.post("/v1/accounts/connect", &body).await.or_trouble(&seat)?;
    let url = link.get("url").and_then(Value::as_str).unwrap_or_default();
    // The link leads to our own page, which asks for confirmation and redirects.
    match url.strip_prefix(&*seat.visitor.base).or_else(|| url.find("/connect/").map(|at| &url[at..])) {
        Some(place) => go(place),
        None => {
            let unknown = Refused::new(StatusCode::BAD_GATEWAY, seat.t("The link leads elsewhere."));
            Err(crate::page::trouble(&seat, &unknown).into())
        }
    }
}

#[derive(Template)]
#[template(path = "account.html")]
struct One<'a> {
    seat: &'a Seat,
    account: Account,
    lines: Lines,
    seen: Option<Preview>,
    refused: Option<Refused>,
}

pub(crate) async fn show(seat: Seat, Path(id): Path<String>) -> Answer {
    let account: Account = seat.get(&format!("/v1/accounts/{}", part(&id))).await.or_trouble(&seat)?;
    let lines = Lines::of(account.permissions.as_ref());
    let seen = seen(&seat, &lines).await;
    page(&One { seat: &seat, account, lines, seen, refused: None })
}

pub(crate) async fn save(Path(id): Path<String>, Form { seat, fields }: Form) -> Answer {
    let (path, lines) = (format!("/v1/accounts/{}", part(&id)), Lines::read(&fields));
    let outcome = match lines.value() {
        Ok(permissions) => {
            let mut changes = json!({ "permissions": permissions, "shared": fields.is_checked("shared") });
            if let Some(name) = fields.some("name") {
                changes["name"] = Value::from(name);
            }
            if fields.is_checked("default") {
                changes["default"] = Value::from(true);
            }
            if !seat.visitor.is_admin {
                changes.as_object_mut().map(|changes| changes.remove("shared"));
            }
            seat.send(Method::PATCH, &path, Some(&changes)).await
        }
        Err(why) => Err(Refused::new(StatusCode::BAD_REQUEST, why)),
    };
    match outcome {
        Ok(_) => go(&format!("/ui/accounts/{}?done=saved", part(&id))),
        Err(refused) => {
            let account: Account = seat.get(&path).await.or_trouble(&seat)?;
            let (status, seen) = (refused.status, seen(&seat, &lines).await);
            Ok(with_status(status, &One { seat: &seat, account, lines, seen, refused: Some(refused) }))
        }
    }
}

/// Verifies the key of an account with its service.
pub(crate) async fn verify(Path(id): Path<String>, Form { seat, .. }: Form) -> Answer {
    let path = format!("/v1/accounts/{}/verify", part(&id));
    let account = seat.post(&path, &json!({})).await.or_trouble(&seat)?;
    let is_proven = account.get("problem").is_none_or(Value::is_null)
        && account.get("state").and_then(Value::as_str) == Some("connected");
    go(if is_proven { "/ui/accounts?done=verified" } else { "/ui/accounts" })
}

pub(crate) async fn remove(Path(id): Path<String>, Form { seat, .. }: Form) -> Answer {
    seat.send(Method::DELETE, &format!("/v1/accounts/{}", part(&id)), None).await.or_trouble(&seat)?;
    go("/ui/accounts?done=removed")
}

async fn seen(seat: &Seat, lines: &Lines) -> Option<Preview> {
    preview(seat, &lines.value().ok()?).await
}

#[derive(Template)]
#[template(path = "provider.html")]
struct AppPage<'a> {
    seat: &'a Seat,
    provider: Provider,
    client_id: String,
    refused: Option<Refused>,
}

/// Shows our OAuth app at a provider.
pub(crate) async fn app(seat: Seat, Path(name): Path<String>) -> Answer {
    let provider = find(&seat, &name).await.or_trouble(&seat)?;
    let client_id = provider.client_id.clone().unwrap_or_default();
    page(&AppPage { seat: &seat, provider, client_id, refused: None })
}

pub(crate) async fn save_app(Path(name): Path<String>, Form { seat, fields }: Form) -> Answer {
    let mut body = json!({ "client_id": fields.text("client_id") });
    if let Some(secret) = fields.some("client_secret") {
        body["client_secret"] = Value::from(secret);
    }
    match seat.send(Method::PUT, &format!("/v1/providers/{}", part(&name)), Some(&body)).await {
        Ok(_) => go("/ui/accounts?done=saved"),
        Err(refused) => {
            let provider = find(&seat, &name).await.or_trouble(&seat)?;
            let (status, client_id) = (refused.status, fields.text("client_id").to_owned());
            Ok(with_status(status, &AppPage { seat: &seat, provider, client_id, refused: Some(refused) }))
        }
    }
}

pub(crate) async fn remove_app(Path(name): Path<String>, Form { seat, .. }: Form) -> Answer {
    seat.send(Method::DELETE, &format!("/v1/providers/{}", part(&name)), None).await.or_trouble(&seat)?;
    go("/ui/accounts?done=removed")
}

async fn find(seat: &Seat, name: &str) -> Result<Provider, Refused> {
    let Providers { providers } = seat.get("/v1/providers").await?;
    let found = providers.into_iter().find(|provider| provider.name == name);
    found.ok_or_else(|| Refused::new(StatusCode::NOT_FOUND, seat.t("There is no such provider.")))
}
