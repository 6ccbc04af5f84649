//! What a refused request is told to bring: a token, or one that allows more. Written where the request leaves, which is
//! where it is known under which of our names it came.

use axum::extract::Request;
use axum::response::Response;
use hikite_core::caller::{Caller, Scopes};
use http::header::{AUTHORIZATION, HOST, HeaderValue, WWW_AUTHENTICATE};
use http::{HeaderMap, StatusCode, Uri};

use crate::app::App;
use crate::oauth::Place;

/// The marker of an answer that a token with more scopes would change, in the extensions of the answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lacks(pub(crate) Option<Scopes>);

/// What must be remembered of a request for it.
#[derive(Debug)]
pub(crate) struct Challenge {
    uri: Uri,
    host: Option<HeaderValue>,
    brought_token: bool,
}

impl Challenge {
    pub(crate) fn of(request: &Request) -> Self {
        Self {
            uri: request.uri().clone(),
            host: request.headers().get(HOST).cloned(),
            brought_token: request.headers().contains_key(AUTHORIZATION),
        }
    }

    pub(crate) fn put_on(self, mut response: Response, app: &App, caller: Option<&Caller>) -> Response {
        let lacks = response.extensions_mut().remove::<Lacks>();
        if response.status() == StatusCode::UNAUTHORIZED {
            let error = if self.brought_token { ", error=\"invalid_token\"" } else { "" };
            let metadata = self.metadata(app).map(|url| format!(", resource_metadata=\"{url}\""));
            let text = format!("Bearer realm=\"hikite\"{error}{}", metadata.unwrap_or_default());
            return with(response, &text);
        }
        let is_refused = response.status() == StatusCode::FORBIDDEN || lacks.is_some();
        let Some(scopes) = caller.filter(|_| is_refused).and_then(|caller| wanted(app, caller, lacks)) else {
            return response;
        };
        let Some(url) = self.metadata(app) else { return response };
        let scopes: Vec<&str> = scopes.names().collect();
        *response.status_mut() = StatusCode::FORBIDDEN;
        let scopes = scopes.join(" ");
        with(
            response,
            &format!("Bearer error=\"insufficient_scope\", scope=\"{scopes}\", resource_metadata=\"{url}\""),
        )
    }

    /// Where it is described how a token is got, if one can be.
    fn metadata(&self, app: &App) -> Option<String> {
        let oauth = app.settings.load().oauth.clone()?;
        let mut headers = HeaderMap::new();
        headers.extend(self.host.clone().map(|host| (HOST, host)));
        Some(Place::of(&oauth, &headers).metadata(self.uri.path()))
    }
}

/// What the client should ask its user for: what it has, and what it lacks and its user may allow.
fn wanted(app: &App, caller: &Caller, lacks: Option<Lacks>) -> Option<Scopes> {
    let grant = caller.token.as_ref().filter(|id| id.starts_with("grt_"))?;
    let identity = app.gateway.people().identity()?;
    let user = identity.user_of(&caller.subject)?;
    let named = lacks.and_then(|lacks| lacks.0);
    let missing = |scope: &Scopes| !caller.scopes.contains(*scope);
    let lacking = named.or([Scopes::READ, Scopes::CALL].into_iter().find(missing)).filter(missing)?;
    // No token for a project administers, whatever its user allows.
    if lacking.contains(Scopes::ADMIN) && caller.project.is_some() {
        return None;
    }
    tracing::debug!(grant = &**grant, "a client is asked for more scopes");
    user.role.scopes().contains(lacking).then(|| caller.scopes.with(lacking))
}

fn with(mut response: Response, text: &str) -> Response {
    if let Ok(value) = HeaderValue::from_str(text) {
        response.headers_mut().insert(WWW_AUTHENTICATE, value);
    }
    response
}
