//! Accounts with services: connected in the browser or by key, several per service, with permissions.

use askama::Template;
use axum::extract::Path;
use http::{Method, StatusCode};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::permissions::{PermissionLines, PermissionPreview, preview};
use crate::api::{ApiError, part};
use crate::context::PageContext;
use crate::form::SubmittedForm;
use crate::number;
use crate::page::{OrErrorPage, PageResult, redirect, show as page, with_status};

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct AccountList {
    pub(crate) accounts: Vec<AccountInfo>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct AccountInfo {
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

impl AccountInfo {
    fn facts(&self) -> Vec<(String, String)> {
        let told = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        self.details.iter().map(|(name, value)| (name.clone(), told(value))).collect()
    }
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ProviderInfo {
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
struct ProviderList {
    providers: Vec<ProviderInfo>,
}

#[derive(Template)]
#[template(path = "accounts.html")]
struct AccountsPage<'a> {
    context: &'a PageContext,
    accounts: Vec<AccountInfo>,
    providers: Vec<ProviderInfo>,
    refused: Option<ApiError>,
}

pub(crate) async fn list(context: PageContext) -> PageResult {
    let all = if context.visitor.is_admin { "/v1/accounts?all=true" } else { "/v1/accounts" };
    let AccountList { accounts } = context.get(all).await.or_error_page(&context)?;
    let ProviderList { providers } = context.get("/v1/providers").await.or_error_page(&context)?;
    page(&AccountsPage { context: &context, accounts, providers, refused: None })
}

/// Adds an account with a key or token.
pub(crate) async fn add(SubmittedForm { context, fields }: SubmittedForm) -> PageResult {
    let mut body = Map::new();
    for name in ["provider", "name", "token", "email", "site", "api"] {
        if let Some(text) = fields.some(name) {
            body.insert(name.into(), text.into());
        }
    }
    match context.post("/v1/accounts", &Value::Object(body)).await {
        Ok(account) => redirect(match account.get("state").and_then(Value::as_str) {
            Some("connected") => "/ui/accounts?done=connected",
            _ => "/ui/accounts?done=unverified",
        }),
        Err(refused) => {
            let AccountList { accounts } = context.get_or_default("/v1/accounts").await;
            let ProviderList { providers } = context.get_or_default("/v1/providers").await;
            let status = refused.status;
            Ok(with_status(status, &AccountsPage { context: &context, accounts, providers, refused: Some(refused) }))
        }
    }
}

/// Starts connecting an account through the provider's pages.
pub(crate) async fn connect(SubmittedForm { context, fields }: SubmittedForm) -> PageResult {
    let mut body = json!({ "provider": fields.text("provider") });
    if let Some(name) = fields.some("name") {
        body["name"] = Value::from(name);
    }
    let link = context.post("/v1/accounts/connect", &body).await.or_error_page(&context)?;
    let url = link.get("url").and_then(Value::as_str).unwrap_or_default();
    // The link leads to our own page, which asks for confirmation and redirects.
    match url.strip_prefix(&*context.visitor.base).or_else(|| url.find("/connect/").map(|at| &url[at..])) {
        Some(place) => redirect(place),
        None => {
            let unknown = ApiError::new(
                StatusCode::BAD_GATEWAY,
                context.t("The link does not lead to this server. Check server.public_url in the config file."),
            );
            Err(crate::page::error_page(&context, &unknown).into())
        }
    }
}

#[derive(Template)]
#[template(path = "account.html")]
struct AccountPage<'a> {
    context: &'a PageContext,
    account: AccountInfo,
    lines: PermissionLines,
    seen: Option<PermissionPreview>,
    refused: Option<ApiError>,
}

pub(crate) async fn show(context: PageContext, Path(id): Path<String>) -> PageResult {
    let account: AccountInfo = context.get(&format!("/v1/accounts/{}", part(&id))).await.or_error_page(&context)?;
    let lines = PermissionLines::of(account.permissions.as_ref());
    let seen = seen(&context, &lines).await;
    page(&AccountPage { context: &context, account, lines, seen, refused: None })
}

pub(crate) async fn save(Path(id): Path<String>, SubmittedForm { context, fields }: SubmittedForm) -> PageResult {
    let (path, lines) = (format!("/v1/accounts/{}", part(&id)), PermissionLines::read(&fields));
    let outcome = match lines.value() {
        Ok(permissions) => {
            let mut changes = json!({ "permissions": permissions, "shared": fields.is_checked("shared") });
            if let Some(name) = fields.some("name") {
                changes["name"] = Value::from(name);
            }
            if fields.is_checked("default") {
                changes["default"] = Value::from(true);
            }
            if !context.visitor.is_admin {
                changes.as_object_mut().map(|changes| changes.remove("shared"));
            }
            context.send(Method::PATCH, &path, Some(&changes)).await
        }
        Err(why) => Err(ApiError::new(
            StatusCode::BAD_REQUEST,
            context.tn("The JSON is not valid. Correct it and save again: {}", why),
        )),
    };
    match outcome {
        Ok(_) => redirect(&format!("/ui/accounts/{}?done=saved", part(&id))),
        Err(refused) => {
            let account: AccountInfo = context.get(&path).await.or_error_page(&context)?;
            let (status, seen) = (refused.status, seen(&context, &lines).await);
            Ok(with_status(status, &AccountPage { context: &context, account, lines, seen, refused: Some(refused) }))
        }
    }
}

/// Verifies the key of an account with its service.
pub(crate) async fn verify(Path(id): Path<String>, SubmittedForm { context, .. }: SubmittedForm) -> PageResult {
    let path = format!("/v1/accounts/{}/verify", part(&id));
    let account = context.post(&path, &json!({})).await.or_error_page(&context)?;
    let is_proven = account.get("problem").is_none_or(Value::is_null)
        && account.get("state").and_then(Value::as_str) == Some("connected");
    redirect(if is_proven { "/ui/accounts?done=verified" } else { "/ui/accounts" })
}

pub(crate) async fn remove(Path(id): Path<String>, SubmittedForm { context, .. }: SubmittedForm) -> PageResult {
    context.send(Method::DELETE, &format!("/v1/accounts/{}", part(&id)), None).await.or_error_page(&context)?;
    redirect("/ui/accounts?done=removed")
}

async fn seen(context: &PageContext, lines: &PermissionLines) -> Option<PermissionPreview> {
    preview(context, &lines.value().ok()?).await
}

#[derive(Template)]
#[template(path = "provider.html")]
struct ProviderPage<'a> {
    context: &'a PageContext,
    provider: ProviderInfo,
    client_id: String,
    refused: Option<ApiError>,
}

/// Shows our OAuth app at a provider.
pub(crate) async fn app(context: PageContext, Path(name): Path<String>) -> PageResult {
    let provider = find(&context, &name).await.or_error_page(&context)?;
    let client_id = provider.client_id.clone().unwrap_or_default();
    page(&ProviderPage { context: &context, provider, client_id, refused: None })
}

pub(crate) async fn save_app(Path(name): Path<String>, SubmittedForm { context, fields }: SubmittedForm) -> PageResult {
    let mut body = json!({ "client_id": fields.text("client_id") });
    if let Some(secret) = fields.some("client_secret") {
        body["client_secret"] = Value::from(secret);
    }
    match context.send(Method::PUT, &format!("/v1/providers/{}", part(&name)), Some(&body)).await {
        Ok(_) => redirect("/ui/accounts?done=saved"),
        Err(refused) => {
            let provider = find(&context, &name).await.or_error_page(&context)?;
            let (status, client_id) = (refused.status, fields.text("client_id").to_owned());
            Ok(with_status(status, &ProviderPage { context: &context, provider, client_id, refused: Some(refused) }))
        }
    }
}

pub(crate) async fn remove_app(Path(name): Path<String>, SubmittedForm { context, .. }: SubmittedForm) -> PageResult {
    context.send(Method::DELETE, &format!("/v1/providers/{}", part(&name)), None).await.or_error_page(&context)?;
    redirect("/ui/accounts?done=removed")
}

async fn find(context: &PageContext, name: &str) -> Result<ProviderInfo, ApiError> {
    let ProviderList { providers } = context.get("/v1/providers").await?;
    let found = providers.into_iter().find(|provider| provider.name == name);
    found.ok_or_else(|| {
        ApiError::new(
            StatusCode::NOT_FOUND,
            context.t("There is no service with this name. Choose one on the Accounts page."),
        )
    })
}
