//! Accounts with services: connected in the browser or by key, several per service, with permissions.

use askama::Template;
use axum::extract::Path;
use hikite_api::{
    Account, AccountChanges, Accounts, ConnectionLink, NewAccount, NewConnection, PermissionsAnswer, ProviderApp,
    ProviderObject, Providers,
};
use hikite_core::json::Raw;
use http::{Method, StatusCode};
use serde_json::json;

use super::permissions::{PermissionLines, preview};
use crate::api::{ApiError, part, read};
use crate::context::PageContext;
use crate::form::SubmittedForm;
use crate::number;
use crate::page::{OrErrorPage, PageResult, redirect, show as page, with_status};

#[derive(Template)]
#[template(path = "accounts.html")]
struct AccountsPage<'a> {
    context: &'a PageContext,
    accounts: Vec<Account>,
    providers: Vec<ProviderObject>,
    refused: Option<ApiError>,
}

fn last_refresh(account: &Account) -> Option<&str> {
    account.stored.as_ref()?.last_refresh.as_deref()
}

fn expires_at(account: &Account) -> Option<&str> {
    account.stored.as_ref()?.expires_at.as_deref()
}

pub(crate) async fn list(context: PageContext) -> PageResult {
    let all = if context.visitor.is_admin { "/v1/accounts?all=true" } else { "/v1/accounts" };
    let Accounts { accounts } = context.get(all).await.or_error_page(&context)?;
    let Providers { providers } = context.get("/v1/providers").await.or_error_page(&context)?;
    page(&AccountsPage { context: &context, accounts, providers, refused: None })
}

/// Adds an account with a key or token.
pub(crate) async fn add(SubmittedForm { context, fields }: SubmittedForm) -> PageResult {
    let text = |name| fields.some(name).map(str::to_owned);
    let account = NewAccount {
        provider: text("provider").unwrap_or_default(),
        name: text("name"),
        token: text("token").unwrap_or_default(),
        email: text("email"),
        site: text("site"),
        api: text("api"),
    };
    match context.post("/v1/accounts", &account).await.and_then(read::<Account>) {
        Ok(account) if account.state == "connected" => redirect("/ui/accounts?done=connected"),
        Ok(_) => redirect("/ui/accounts?done=unverified"),
        Err(refused) => {
            let Accounts { accounts } = context.get_or_default("/v1/accounts").await;
            let Providers { providers } = context.get_or_default("/v1/providers").await;
            let status = refused.status;
            Ok(with_status(status, &AccountsPage { context: &context, accounts, providers, refused: Some(refused) }))
        }
    }
}

/// Starts connecting an account through the provider's pages.
pub(crate) async fn connect(SubmittedForm { context, fields }: SubmittedForm) -> PageResult {
    let (provider, name) = (fields.text("provider").to_owned(), fields.some("name").map(str::to_owned));
    let connection = NewConnection { provider, name, terminal: None };
    let link = context.post("/v1/accounts/connect", &connection).await.and_then(read::<ConnectionLink>);
    let ConnectionLink { url, .. } = link.or_error_page(&context)?;
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
    account: Account,
    lines: PermissionLines,
    seen: Option<PermissionsAnswer>,
    refused: Option<ApiError>,
}

pub(crate) async fn show(context: PageContext, Path(id): Path<String>) -> PageResult {
    let account: Account = context.get(&format!("/v1/accounts/{}", part(&id))).await.or_error_page(&context)?;
    let lines = PermissionLines::of(Some(&account.permissions.value()));
    let seen = seen(&context, &lines).await;
    page(&AccountPage { context: &context, account, lines, seen, refused: None })
}

pub(crate) async fn save(Path(id): Path<String>, SubmittedForm { context, fields }: SubmittedForm) -> PageResult {
    let (path, lines) = (format!("/v1/accounts/{}", part(&id)), PermissionLines::read(&fields));
    let outcome = match lines.value() {
        Ok(permissions) => {
            let changes = AccountChanges {
                name: fields.some("name").map(str::to_owned),
                is_default: fields.is_checked("default").then_some(true),
                shared: context.visitor.is_admin.then(|| fields.is_checked("shared")),
                permissions: Some(Raw::of(&permissions)),
            };
            context.send(Method::PATCH, &path, Some(&json!(changes))).await
        }
        Err(why) => Err(ApiError::new(
            StatusCode::BAD_REQUEST,
            context.tn("The JSON is not valid. Correct it and save again: {}", why),
        )),
    };
    match outcome {
        Ok(_) => redirect(&format!("/ui/accounts/{}?done=saved", part(&id))),
        Err(refused) => {
            let account: Account = context.get(&path).await.or_error_page(&context)?;
            let (status, seen) = (refused.status, seen(&context, &lines).await);
            Ok(with_status(status, &AccountPage { context: &context, account, lines, seen, refused: Some(refused) }))
        }
    }
}

/// Verifies the key of an account with its service.
pub(crate) async fn verify(Path(id): Path<String>, SubmittedForm { context, .. }: SubmittedForm) -> PageResult {
    let path = format!("/v1/accounts/{}/verify", part(&id));
    let account = context.post(&path, &json!({})).await.and_then(read::<Account>).or_error_page(&context)?;
    let is_proven = account.problem.is_none() && account.state == "connected";
    redirect(if is_proven { "/ui/accounts?done=verified" } else { "/ui/accounts" })
}

pub(crate) async fn remove(Path(id): Path<String>, SubmittedForm { context, .. }: SubmittedForm) -> PageResult {
    context.send(Method::DELETE, &format!("/v1/accounts/{}", part(&id)), None).await.or_error_page(&context)?;
    redirect("/ui/accounts?done=removed")
}

async fn seen(context: &PageContext, lines: &PermissionLines) -> Option<PermissionsAnswer> {
    preview(context, &lines.value().ok()?).await
}

#[derive(Template)]
#[template(path = "provider.html")]
struct ProviderPage<'a> {
    context: &'a PageContext,
    provider: ProviderObject,
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
    let client_secret = fields.some("client_secret").map(str::to_owned);
    let app = ProviderApp { client_id: fields.text("client_id").to_owned(), client_secret };
    match context.send(Method::PUT, &format!("/v1/providers/{}", part(&name)), Some(&json!(app))).await {
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

async fn find(context: &PageContext, name: &str) -> Result<ProviderObject, ApiError> {
    let Providers { providers } = context.get("/v1/providers").await?;
    let found = providers.into_iter().find(|provider| provider.name == name);
    found.ok_or_else(|| {
        ApiError::new(
            StatusCode::NOT_FOUND,
            context.t("There is no service with this name. Choose one on the Accounts page."),
        )
    })
}
