//! Accounts with services: a caller's own, and everybody's for admins. Secrets are write-only.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::response::IntoResponse;
use hikite_api::{Accounts, ConnectionLink, Providers};
use hikite_core::caller::{Caller, Scopes};
use hikite_core::error::{Error, ErrorKind};
use hikite_core::source::CallOrigin;
use hikite_core::time::rfc3339;
use hikite_gateway::{Account, AccountStore};
use http::{HeaderMap, StatusCode, Uri};

use super::form::RequestForm;
use super::query::QueryParams;
use super::{NamePath, RestResult, body, created, key, location, ok, query};
use crate::app::App;
use crate::request_context::{CallerProof, RequestContext};

const NAME_CHARS: usize = 128;

fn accounts(app: &App) -> Result<&Arc<AccountStore>, Error> {
    app.gateway.accounts().ok_or_else(|| Error::new(ErrorKind::NotFound, "Accounts are not available here."))
}

/// Checks that only the owner changes the owner's accounts.
fn check_owner(app: &App, (caller, proof): (&Caller, CallerProof), account: &Account) -> Result<(), Error> {
    if account.subject == caller.subject {
        return Ok(());
    }
    let people = app.gateway.people();
    people.check_right(&account.subject, people.right_of(caller, proof.is_person()))
}

/// Adds the name of its user to an account.
fn with_user_name(app: &App, account: hikite_api::Account) -> hikite_api::Account {
    account.with_user(|subject| app.gateway.people().name_of(subject))
}

/// Runs and audits the work, then publishes the changed accounts.
async fn audited<T>(
    app: &App,
    who: (&Caller, &CallOrigin),
    (action, what): (&'static str, &str),
    work: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    let outcome = app.gateway.auditor().record_admin(who, action, what, work).await;
    app.gateway.catalogs().show_accounts();
    outcome
}

pub(crate) async fn list(
    State(app): State<Arc<App>>,
    RequestContext { caller, .. }: RequestContext,
    uri: Uri,
) -> RestResult {
    let mut query = QueryParams::read(&uri, &["all"]);
    let all = query.flag("all").unwrap_or_default();
    query.finish()?;
    caller.require(Scopes::READ)?;
    if all && !caller.is_admin() {
        return Err(Error::new(ErrorKind::Authorization, "Only an admin may see the accounts of others.").into());
    }
    let objects = accounts(&app)?.objects(&caller, all);
    Ok(ok(&Accounts { accounts: objects.into_iter().map(|account| with_user_name(&app, account)).collect() }))
}

pub(crate) async fn get(
    State(app): State<Arc<App>>,
    RequestContext { caller, .. }: RequestContext,
    path: NamePath,
    uri: Uri,
) -> RestResult {
    query::none(&uri)?;
    caller.require(Scopes::READ)?;
    Ok(ok(&with_user_name(&app, accounts(&app)?.account(&caller, &key(path)?)?.object())))
}

/// Adds an account with a manually created token.
pub(crate) async fn add(
    State(app): State<Arc<App>>,
    RequestContext { caller, origin, .. }: RequestContext,
    uri: Uri,
    headers: HeaderMap,
    body: Body,
) -> RestResult {
    query::none(&uri)?;
    let form = body::read(&app, &headers, body).await?;
    caller.require(Scopes::CALL)?;
    let accounts = accounts(&app)?;
    let what = form.text("provider").unwrap_or_default();
    let work = accounts.add(&caller, &form);
    let account = audited(&app, (&caller, &origin), ("account.add", &what), work).await?;
    Ok(created(&with_user_name(&app, account.object()), location("/v1/accounts/", &account.id)))
}

pub(crate) async fn change(
    State(app): State<Arc<App>>,
    RequestContext { caller, origin, proof, .. }: RequestContext,
    path: NamePath,
    uri: Uri,
    headers: HeaderMap,
    body: Body,
) -> RestResult {
    query::none(&uri)?;
    let (id, form) = (key(path)?, body::read(&app, &headers, body).await?);
    AccountStore::check_may_change(&caller)?;
    let accounts = accounts(&app)?;
    let account = accounts.account(&caller, &id)?;
    check_owner(&app, (&caller, proof), &account)?;
    let work = accounts.change(&account, &form);
    let account = audited(&app, (&caller, &origin), ("account.change", &id), work).await?;
    Ok(ok(&with_user_name(&app, account.object())))
}

pub(crate) async fn remove(
    State(app): State<Arc<App>>,
    RequestContext { caller, origin, proof, .. }: RequestContext,
    path: NamePath,
    uri: Uri,
) -> RestResult {
    query::none(&uri)?;
    let id = key(path)?;
    AccountStore::check_may_change(&caller)?;
    let accounts = accounts(&app)?;
    let account = accounts.account(&caller, &id)?;
    check_owner(&app, (&caller, proof), &account)?;
    audited(&app, (&caller, &origin), ("account.remove", &id), accounts.remove(&account)).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Verifies the credential of an account with its vendor.
pub(crate) async fn verify(
    State(app): State<Arc<App>>,
    RequestContext { caller, origin, .. }: RequestContext,
    path: NamePath,
    uri: Uri,
) -> RestResult {
    query::none(&uri)?;
    let id = key(path)?;
    caller.require(Scopes::CALL)?;
    let accounts = accounts(&app)?;
    let work = async {
        if id.starts_with("file:") {
            return accounts.credentials().verify_configured(&id).await;
        }
        let account = accounts.account(&caller, &id)?;
        Ok(accounts.credentials().verify(&account).await?.object())
    };
    Ok(ok(&audited(&app, (&caller, &origin), ("account.verify", &id), work).await?))
}

/// Creates a link to connect an account in a browser.
pub(crate) async fn connect(
    State(app): State<Arc<App>>,
    RequestContext { caller, origin, proof, .. }: RequestContext,
    uri: Uri,
    headers: HeaderMap,
    body: Body,
) -> RestResult {
    query::none(&uri)?;
    let known = ["provider", "name", "terminal"];
    let mut form = RequestForm::new(body::read(&app, &headers, body).await?, &known);
    let at_terminal = form.flag("terminal").unwrap_or(false);
    let (provider, name) = (form.text("provider", NAME_CHARS), form.text("name", NAME_CHARS));
    if provider.is_none() && form.raw("provider").is_none() {
        form.fault("provider", "`provider` must be the name of a provider.");
    }
    form.finish()?;
    caller.require(Scopes::CALL)?;
    let (accounts, provider) = (accounts(&app)?, provider.unwrap_or_default());
    if at_terminal && !matches!(proof, CallerProof::Local | CallerProof::Unauthenticated) {
        let error = Error::new(ErrorKind::Authorization, "Only the holder of the local token gets a code.");
        return Err(error.hint("Leave out `terminal`: the link works after a login.").into());
    }
    let (subject, name) = (&*caller.subject, name.as_deref());
    let work = async {
        if at_terminal {
            accounts.connections().begin_in_terminal(subject, &provider, name).await
        } else {
            accounts.connections().begin(subject, &provider, name).await
        }
    };
    let link = app.gateway.auditor().record_admin((&caller, &origin), "account.connect", &provider, work).await?;
    let shown = ConnectionLink {
        id: link.id.clone(),
        url: link.url.expose().to_owned(),
        expires_at: rfc3339(link.expires_at),
        code: link.code.as_ref().map(|code| code.expose().to_owned()),
    };
    Ok(created(&shown, location("/v1/accounts/connect/", &link.id)))
}

/// Returns the progress of connecting an account.
pub(crate) async fn connection(
    State(app): State<Arc<App>>,
    RequestContext { caller, .. }: RequestContext,
    path: NamePath,
    uri: Uri,
) -> RestResult {
    query::none(&uri)?;
    caller.require(Scopes::CALL)?;
    Ok(ok(&accounts(&app)?.connections().progress(&caller.subject, &key(path)?).await?))
}

pub(crate) async fn providers(
    State(app): State<Arc<App>>,
    RequestContext { caller, .. }: RequestContext,
    uri: Uri,
) -> RestResult {
    query::none(&uri)?;
    caller.require(Scopes::READ)?;
    Ok(ok(&Providers { providers: accounts(&app)?.providers().objects() }))
}

/// Sets the OAuth app of hikite at a provider; admins only, enforced by the router.
pub(crate) async fn set_app(
    State(app): State<Arc<App>>,
    RequestContext { caller, origin, .. }: RequestContext,
    path: NamePath,
    uri: Uri,
    headers: HeaderMap,
    body: Body,
) -> RestResult {
    query::none(&uri)?;
    let (name, form) = (key(path)?, body::read(&app, &headers, body).await?);
    let work = accounts(&app)?.providers().set_app(&name, &form);
    audited(&app, (&caller, &origin), ("provider.set", &name), work).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

pub(crate) async fn remove_app(
    State(app): State<Arc<App>>,
    RequestContext { caller, origin, .. }: RequestContext,
    path: NamePath,
    uri: Uri,
) -> RestResult {
    query::none(&uri)?;
    let name = key(path)?;
    let work = accounts(&app)?.providers().remove_app(&name);
    audited(&app, (&caller, &origin), ("provider.remove", &name), work).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}
