//! The `WWW-Authenticate` challenge of a refused request: a token is missing, or has insufficient scope. Written by the
//! guard on the way out, where the host name of the request is known.

use axum::extract::Request;
use axum::response::Response;
use hikite_core::caller::{Caller, Scopes};
use http::header::{AUTHORIZATION, HOST, HeaderValue, WWW_AUTHENTICATE};
use http::{HeaderMap, StatusCode, Uri};

use crate::app::App;
use crate::oauth::PublicUrl;

/// Response extension that marks a refusal for insufficient scope.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InsufficientScope(pub(crate) Option<Scopes>);

/// The parts of a request that the challenge needs.
#[derive(Debug)]
pub(crate) struct AuthChallenge {
    uri: Uri,
    host: Option<HeaderValue>,
    has_token: bool,
}

impl AuthChallenge {
    pub(crate) fn of(request: &Request) -> Self {
        Self {
            uri: request.uri().clone(),
            host: request.headers().get(HOST).cloned(),
            has_token: request.headers().contains_key(AUTHORIZATION),
        }
    }

    pub(crate) fn apply(self, mut response: Response, app: &App, caller: Option<&Caller>) -> Response {
        let insufficient = response.extensions_mut().remove::<InsufficientScope>();
        if response.status() == StatusCode::UNAUTHORIZED {
            let error = if self.has_token { ", error=\"invalid_token\"" } else { "" };
            let metadata = self.metadata(app).map(|url| format!(", resource_metadata=\"{url}\""));
            let text = format!("Bearer realm=\"hikite\"{error}{}", metadata.unwrap_or_default());
            return with(response, &text);
        }
        let is_refused = response.status() == StatusCode::FORBIDDEN || insufficient.is_some();
        let Some(scopes) =
            caller.filter(|_| is_refused).and_then(|caller| scopes_to_request(app, caller, insufficient))
        else {
            return response;
        };
        let Some(url) = self.metadata(app) else { return response };
        let scopes: Vec<&str> = scopes.names().collect();
        *response.status_mut() = StatusCode::FORBIDDEN;
        let scopes = scopes.join(" ");
        with(response, &format!("Bearer error=\"insufficient_scope\", scope=\"{scopes}\", resource_metadata=\"{url}\""))
    }

    /// Returns the URL of the protected resource metadata, if OAuth is enabled.
    fn metadata(&self, app: &App) -> Option<String> {
        let oauth = app.settings.load().oauth.clone()?;
        let mut headers = HeaderMap::new();
        headers.extend(self.host.clone().map(|host| (HOST, host)));
        Some(PublicUrl::of(&oauth, &headers).metadata(self.uri.path()))
    }
}

/// Returns the scopes that the client should request: those it has, plus the missing one if its user may grant it.
fn scopes_to_request(app: &App, caller: &Caller, insufficient: Option<InsufficientScope>) -> Option<Scopes> {
    let grant = caller.token.as_ref().filter(|id| id.starts_with("grt_"))?;
    let identity = app.gateway.people().identity()?;
    let user = identity.users().of_subject(&caller.subject)?;
    let named = insufficient.and_then(|insufficient| insufficient.0);
    let missing = |scope: &Scopes| !caller.scopes.contains(*scope);
    let missing_scope = named.or([Scopes::READ, Scopes::CALL].into_iter().find(missing)).filter(missing)?;
    // A token for a project has no admin scope, whatever the role of its user.
    if missing_scope.contains(Scopes::ADMIN) && caller.project.is_some() {
        return None;
    }
    tracing::debug!(grant = &**grant, "asking a client for more scopes");
    user.role.scopes().contains(missing_scope).then(|| caller.scopes.with(missing_scope))
}

fn with(mut response: Response, text: &str) -> Response {
    if let Ok(value) = HeaderValue::from_str(text) {
        response.headers_mut().insert(WWW_AUTHENTICATE, value);
    }
    response
}
