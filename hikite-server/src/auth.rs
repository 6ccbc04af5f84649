//! Authentication: turns a bearer token, or the token in `_meta` of an MCP message, into a `Caller`. Accepts the local
//! token, personal tokens, our own access tokens and those of configured issuers; never a token in a URL. Failed
//! attempts are counted per address.

use std::net::IpAddr;

use axum::extract::Request;
use axum::middleware::Next;
use axum::response::Response;
use hikite_core::caller::{Caller, Scopes};
use hikite_core::error::{Error, ErrorKind};
use hikite_core::secret::Secret;
use hikite_identity::{BearerLookup, People};
use http::header::AUTHORIZATION;
use http::{HeaderMap, Method};
use subtle::ConstantTimeEq;

use crate::app::App;
use crate::challenge::InsufficientScope;
use crate::connection::ClientAddress;
use crate::error_response::error_response;
use crate::mcp::sender;
use crate::request_context::{CallerProof, RequestContext};
use crate::settings::Auth;

/// Prefix of the tokens that hikite issues: 256 random bits, so they cannot be guessed.
const TOKEN_PREFIX: &str = "hk_";
/// Prefix of a signed token (JWT).
const JWT_PREFIX: &str = "ey";
/// Prefix of the local token, whose holder is the owner.
const LOCAL_TOKEN_PREFIX: &str = "hk_local_";

/// Authenticates a request. The body of a POST to `/mcp` without a bearer token is read for a token in `_meta`.
pub(crate) async fn caller(app: &App, request: &mut Request, is_mcp: bool) -> Result<(Caller, CallerProof), Response> {
    let is_open = matches!(app.settings.load().auth, Auth::None);
    let bearer = bearer(request.headers());
    match bearer {
        // A leftover token of another server does no harm in auth mode `none`.
        BearerHeader::Token(token) if !is_open || is_personal(token) => {
            reload_grant(app, token).await;
            Ok((authenticate(app, token, peer(request))?, proof_of(app, token)))
        }
        _ if is_open => Ok((app.gateway.people().owner(), CallerProof::Unauthenticated)),
        BearerHeader::None if is_mcp && request.method() == Method::POST => {
            let token = Box::pin(sender::token_in_body(app, request)).await.ok_or_else(unauthorised)?;
            reload_grant(app, token.expose()).await;
            Ok((authenticate(app, token.expose(), peer(request))?, proof_of(app, token.expose())))
        }
        BearerHeader::None => Err(unauthorised()),
        BearerHeader::Wrong | BearerHeader::Token(_) => Err(authentication_failed(app, peer(request))),
    }
}

/// Returns the kind of proof that an accepted token is.
fn proof_of(app: &App, token: &str) -> CallerProof {
    match &app.settings.load().auth {
        Auth::Token(own) if is_same(token, own) => CallerProof::Local,
        _ => CallerProof::Token,
    }
}

/// Checks access to the metrics: for admins and holders of the metrics token.
pub(crate) fn reader(app: &App, request: &Request) -> Result<(), Response> {
    let settings = app.settings.load();
    let BearerHeader::Token(token) = bearer(request.headers()) else {
        let is_open = matches!(settings.auth, Auth::None);
        return if is_open { Ok(()) } else { Err(unauthorised()) };
    };
    if settings.metrics_token.as_ref().is_some_and(|own| is_same(token, own)) {
        return Ok(());
    }
    if matches!(settings.auth, Auth::None) && !is_personal(token) {
        return Ok(());
    }
    require_admin(&authenticate(app, token, peer(request))?).map_err(error_response)
}

/// Returns the caller of a token, in the project that the token or its user is bound to. Fails if the store has been
/// unreachable for too long to rule out a revocation; the local token needs no store.
pub(crate) fn known(app: &App, token: &str) -> Result<Option<Caller>, Error> {
    match &app.settings.load().auth {
        Auth::Token(own) if is_same(token, own) => Ok(Some(app.gateway.people().owner())),
        _ => {
            app.gateway.freshness().check()?;
            let people = app.gateway.people();
            let known = people.bearer(token).or_else(|| access_token_caller(app, token));
            let known = known.or_else(|| issuer_caller(people, token));
            Ok(known.and_then(|caller| people.confine(caller)))
        }
    }
}

/// Returns the caller of another issuer's token, in the project of that issuer's users.
fn issuer_caller(people: &People, token: &str) -> Option<Caller> {
    let caller = people.identity_providers()?.issuers.bearer(token)?;
    // The issuer may not know that the user was locked out or removed here.
    let caller = Some(caller).filter(|caller| people.is_admitted(&caller.subject))?;
    // The issuer may grant more than the role of the user allows here.
    let user = people.identity().and_then(|identity| identity.users().of_subject(&caller.subject));
    let caller = match user {
        Some(user) => user.role.cap(caller),
        None => caller,
    };
    match caller.project.clone() {
        Some(project) => people.enter(&caller, &project),
        None => Some(caller),
    }
}

/// Returns the caller of our own access token. A token for a project is valid while its user may enter that project.
fn access_token_caller(app: &App, token: &str) -> Option<Caller> {
    match access(app, token) {
        BearerLookup::Known(caller) => app.gateway.people().enter_bound_project(caller),
        BearerLookup::UnknownGrant(_) | BearerLookup::UnknownKey | BearerLookup::Nobody => None,
    }
}

fn access(app: &App, token: &str) -> BearerLookup {
    let settings = app.settings.load();
    let identity = app.gateway.people().identity();
    match settings.oauth.as_ref().zip(identity) {
        Some((oauth, identity)) => identity.tokens().bearer(&oauth.terms, token),
        None => BearerLookup::Nobody,
    }
}

/// Loads the grant of an access token that another process has just issued, or the keys of another issuer, so that a
/// fresh token is not refused.
async fn reload_grant(app: &App, token: &str) {
    // A stale store authenticates nobody, so the lookup would only add a delay.
    if token.starts_with(JWT_PREFIX) && !app.gateway.freshness().is_stale() {
        // Boxed to keep the future of other calls small.
        Box::pin(look_up_jwt(app, token)).await;
    }
}

async fn look_up_jwt(app: &App, token: &str) {
    if let Some(identity) = app.gateway.people().identity() {
        let access = || access(app, token);
        if access() == BearerLookup::UnknownKey
            && let Err(error) = identity.keys().reload().await
        {
            tracing::warn!(%error, "failed to look up a token");
        }
        if let BearerLookup::UnknownGrant(grant) = access() {
            // The user of the grant may be new here as well: their permissions must be loaded before their first
            // request.
            let looked = match identity.tokens().reload_grant(&grant).await {
                Ok(true) => app.gateway.admin().access.refresh_users().await,
                other => other.map(drop),
            };
            if let Err(error) = looked {
                tracing::warn!(%error, "failed to look up a grant");
            }
        }
    }
    if let Some(identity_providers) = app.gateway.people().identity_providers() {
        identity_providers.issuers.look(token).await;
    }
}

/// Authenticates a token and counts failures. While the login throttle is active, only tokens that cannot be guessed
/// are accepted.
fn authenticate(app: &App, token: &str, peer: Option<IpAddr>) -> Result<Caller, Response> {
    match known(app, token).map_err(error_response)? {
        Some(caller) if token.starts_with(TOKEN_PREFIX) || token.starts_with(JWT_PREFIX) => Ok(caller),
        Some(caller) => app.login_throttle.look(peer).map(|()| caller).map_err(error_response),
        None => Err(authentication_failed(app, peer)),
    }
}

fn authentication_failed(app: &App, peer: Option<IpAddr>) -> Response {
    match app.login_throttle.note(peer) {
        Ok(()) => unauthorised(),
        Err(too_many) => error_response(too_many),
    }
}

fn peer(request: &Request) -> Option<IpAddr> {
    request.extensions().get::<ClientAddress>().map(|peer| peer.address)
}

fn is_personal(token: &str) -> bool {
    token.starts_with(TOKEN_PREFIX) && !token.starts_with(LOCAL_TOKEN_PREFIX)
}

fn is_same(token: &str, own: &Secret) -> bool {
    token.as_bytes().ct_eq(own.expose().as_bytes()).into()
}

enum BearerHeader<'a> {
    None,
    Token(&'a str),
    /// Several `Authorization` headers, or another scheme than `BearerLookup`.
    Wrong,
}

fn bearer(headers: &HeaderMap) -> BearerHeader<'_> {
    let mut sent = headers.get_all(AUTHORIZATION).iter();
    let value = match (sent.next(), sent.next()) {
        (None, _) => return BearerHeader::None,
        (Some(value), None) => value.to_str().ok(),
        (Some(_), Some(_)) => None,
    };
    match value.and_then(|value| value.split_once(' ')) {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") => BearerHeader::Token(token.trim()),
        _ => BearerHeader::Wrong,
    }
}

/// Middleware that requires an admin.
pub(crate) async fn admin_only(request: Request, next: Next) -> Response {
    let request_context = request.extensions().get::<RequestContext>();
    match request_context.map(|request_context| require_admin(&request_context.caller)) {
        Some(Ok(())) => next.run(request).await,
        Some(Err(error)) => {
            let mut response = error_response(error);
            response.extensions_mut().insert(InsufficientScope(Some(Scopes::ADMIN)));
            response
        }
        None => unauthorised(),
    }
}

fn require_admin(caller: &Caller) -> Result<(), Error> {
    if caller.is_admin() {
        return Ok(());
    }
    Err(Error::new(ErrorKind::Authorization, "Only an admin may do this.")
        .hint("Ask the administrator of this server."))
}

pub(crate) fn unauthorised() -> Response {
    error_response(
        Error::new(ErrorKind::Authentication, "A valid bearer token is required.")
            .hint("Send `Authorization: Bearer <token>`. The local token is in the file `token` of the data folder."),
    )
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;
    use crate::test_app::app_with;

    fn request(headers: &[&'static str]) -> Request {
        let mut request = Request::default();
        for value in headers {
            request.headers_mut().append(AUTHORIZATION, HeaderValue::from_static(value));
        }
        request
    }

    #[track_caller]
    fn check(app: &App, headers: &[&'static str], allowed: bool) {
        let mut request = request(headers);
        let found = caller(app, &mut request, false);
        let found = futures_util::FutureExt::now_or_never(found).expect("nothing to wait for");
        assert_eq!(found.is_ok(), allowed, "{headers:?}");
    }

    #[tokio::test]
    async fn only_the_one_right_token_is_let_in() {
        let app = app_with(Auth::Token(Secret::hidden("s3cret")));
        check(&app, &["Bearer s3cret"], true);
        check(&app, &["bearer s3cret"], true);
        for authentication_failed in [&[][..], &["Bearer s3cre"], &["Bearer "], &["Basic s3cret"], &["s3cret"]] {
            check(&app, authentication_failed, false);
        }
        check(&app, &["Bearer s3cret", "Bearer other"], false);
    }

    #[tokio::test]
    async fn where_nobody_asks_only_a_token_of_ours_is_judged() {
        let app = app_with(Auth::None);
        for fine in [&[][..], &["Bearer left-over"], &["Basic x"], &["Bearer hk_local_0000"]] {
            check(&app, fine, true);
        }
        check(&app, &["Bearer hk_unknown"], false);
    }

    #[tokio::test]
    async fn a_token_that_could_be_guessed_waits_with_the_wrong_ones() {
        let from = |token: &'static str| {
            let mut request = request(&[token]);
            request.extensions_mut().insert(ClientAddress { address: IpAddr::from([192, 0, 2, 7]), is_secure: false });
            request
        };
        let app = app_with(Auth::Token(Secret::hidden("s3cret")));
        let status = async |token| match caller(&app, &mut from(token), false).await {
            Ok(_) => 200,
            Err(refused) => refused.status().as_u16(),
        };
        assert_eq!(status("Bearer s3cret").await, 200);
        for _ in 0..app.limits.failed_logins {
            assert_eq!(status("Bearer wrong").await, 401);
        }
        for token in ["Bearer wrong", "Bearer s3cret", "Basic x"] {
            assert_eq!(status(token).await, 429, "{token}");
        }
        check(&app, &["Bearer s3cret"], true);
    }
}
