//! Authentication of the UI: turns the login cookie of a browser into a caller and a `Visitor` for the pages. In auth
//! mode `none` it is the owner.

use std::sync::Arc;

use axum::extract::Request;
use axum::response::Response;
use hikite_core::caller::Caller;
use hikite_core::error::{Error, ErrorKind};
use hikite_core::source::CallOrigin;
use hikite_ui::Visitor;
use http::header::HOST;
use http::{Extensions, HeaderMap, Method, Uri};

use crate::app::App;
use crate::connection::ClientAddress;
use crate::error_response::error_response;
use crate::oauth::LoggedInUser;
use crate::request_context::{BrowserLogin, CallerProof, RequestContext};
use crate::settings::Auth;
use crate::{health, oauth, rate};

/// Adds the visitor to the request, or returns a redirect to the login or a 404.
pub(crate) async fn admit(app: &App, request: &mut Request, origin: &CallOrigin) -> Result<(), Response> {
    let (headers, next) = (request.headers().clone(), next(request));
    let (caller, mut visitor, login) = find(app, &headers, &next).await?;
    rate::take(app, &caller)?;
    visitor.is_admin = caller.is_admin();
    let proof = if login.is_some() { CallerProof::Login } else { CallerProof::Unauthenticated };
    let request_context = RequestContext { login, ..RequestContext::over_http(caller, proof, origin.clone()) };
    visitor.extensions = extensions(request, request_context);
    request.extensions_mut().insert(visitor);
    Ok(())
}

type BrowserIdentity = (Caller, Visitor, Option<BrowserLogin>);

async fn find(app: &App, headers: &HeaderMap, next: &Uri) -> Result<BrowserIdentity, Response> {
    if matches!(app.settings.load().auth, Auth::None) {
        return Ok((app.gateway.people().owner(), owner_visitor(app, headers), None));
    }
    if app.settings.load().oauth.is_none() {
        return Err(health::not_found().await);
    }
    match oauth::logged_in_user(app, headers).await {
        Ok(Some(LoggedInUser { user, form_token, base, login })) => {
            let caller = Caller { scopes: user.role.scopes(), ..Caller::named(Arc::clone(&user.subject)) };
            let caller = app.gateway.people().confine(caller).ok_or_else(|| error_response(no_project()))?;
            let name = user.name.to_string();
            let visitor = Visitor { name, form_token, base, can_log_out: true, ..Visitor::default() };
            Ok((caller, visitor, Some(login)))
        }
        Ok(None) => Err(oauth::redirect_to_login(next)),
        Err(error) => Err(error_response(error)),
    }
}

/// Builds the error for a user whose project no longer exists.
fn no_project() -> Error {
    Error::new(ErrorKind::Authorization, "The project that you work in no longer exists.")
        .hint("Ask the administrator of this server.")
}

/// Returns where to go after the login; a form submission cannot be repeated.
fn next(request: &Request) -> Uri {
    let is_safe = matches!(*request.method(), Method::GET | Method::HEAD);
    if is_safe { request.uri().clone() } else { Uri::from_static("/ui") }
}

/// Returns the owner as visitor, in auth mode `none`; form tokens are bound to this process.
fn owner_visitor(app: &App, headers: &HeaderMap) -> Visitor {
    let host = headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let scheme = if app.settings.load().tls.is_some() { "https" } else { "http" };
    Visitor {
        name: hikite_core::caller::OWNER.into(),
        form_token: app.gateway.seal().put(b"form", &[b"of a page"]),
        base: format!("{scheme}://{host}"),
        ..Visitor::default()
    }
}

/// Returns the extensions for API requests of the pages: context and client address.
fn extensions(request: &Request, request_context: RequestContext) -> Extensions {
    let mut extensions = Extensions::new();
    extensions.insert(request_context);
    if let Some(peer) = request.extensions().get::<ClientAddress>() {
        extensions.insert(*peer);
    }
    extensions
}
