//! Parses an authorization request. Errors of client and redirect URI are shown on our own page; all others are
//! returned to the client.

use axum::response::Response;
use hikite_core::caller::Scopes;
use hikite_core::error::{Error, ErrorKind};
use hikite_identity::{ClientRecord, ClientStatus, RedirectUri};
use http::StatusCode;

use super::context::OauthContext;
use super::fields::{FormFields, encode};
use super::page::{self, Html};
use super::public_url::ResourceIndicator;
use super::{client, text};

/// Length of a SHA-256 hash in base64url.
const CHALLENGE_CHARS: usize = 43;
const STATE_CHARS: usize = 4096;

pub(crate) struct AuthorizationRequest {
    pub(crate) client: ClientRecord,
    pub(crate) redirect: String,
    /// The recipient of the code, as stored with a consent.
    pub(crate) place: String,
    /// The recipient of the code, exact and with port, for display.
    pub(crate) recipient: String,
    /// The recipient as a CSP source.
    pub(crate) source: String,
    pub(crate) is_loopback: bool,
    /// Set if the user must be asked even after an earlier consent: any program on the user's machine can impersonate a
    /// public native client (RFC 8252, 8.6).
    pub(crate) is_consent_always_required: bool,
    /// The resource that the token is for.
    pub(crate) resource: ResourceIndicator,
    pub(crate) scopes: Scopes,
    pub(crate) challenge: String,
    pub(crate) prompt: Option<String>,
    state: Option<String>,
}

/// Parses a request, or returns the response to an invalid one.
pub(crate) async fn read(context: &OauthContext, query: &str) -> Result<AuthorizationRequest, Response> {
    let fields =
        FormFields::read(query).map_err(|bad| page::error_page(context, &Error::new(ErrorKind::Validation, bad.0)))?;
    let request = place(context, &fields).await?;
    match parameter_error(context, &fields) {
        Some((word, why)) => Err(request.refused(context, word, why)),
        None => Ok(request),
    }
}

/// Resolves client and redirect URI. On an error the browser is not redirected.
async fn place(context: &OauthContext, fields: &FormFields) -> Result<AuthorizationRequest, Response> {
    let error_page = |error: Error| page::error_page(context, &error);
    let wrong = |why: &str| error_page(Error::new(ErrorKind::Validation, why));
    let id = fields.get("client_id").ok_or_else(|| wrong("The client_id is missing."))?;
    let client = client::find(context, id).await.map_err(error_page)?;
    let uri = fields.get("redirect_uri").ok_or_else(|| wrong("The redirect_uri is missing."))?;
    let redirect = RedirectUri::read(uri).map_err(|why| wrong(&format!("The redirect_uri is not valid: {why}.")))?;
    if !client.has_redirect_uri(&redirect) {
        return Err(wrong("The redirect_uri is not registered for this client."));
    }
    if client.status(&redirect, uri) == ClientStatus::Pending {
        return Err(pending(context, &client, &redirect.recipient()));
    }
    let text = |name: &str| fields.get(name).map(str::to_owned);
    Ok(AuthorizationRequest {
        place: redirect.place(),
        recipient: redirect.recipient(),
        is_consent_always_required: redirect.is_native() && !client.is_confidential(),
        // An invalid resource is reported to the client together with the other parameters.
        resource: context.place.target(fields.resources()).unwrap_or_default(),
        source: redirect.source(),
        is_loopback: redirect.is_loopback(),
        redirect: uri.to_owned(),
        scopes: scopes(fields.get("scope")).unwrap_or(Scopes::DEFAULT),
        challenge: text("code_challenge").unwrap_or_default(),
        prompt: text("prompt"),
        state: text("state").filter(|state| state.len() <= STATE_CHARS),
        client,
    })
}

/// Returns the OAuth error code and description of the first invalid parameter.
fn parameter_error(context: &OauthContext, fields: &FormFields) -> Option<(&'static str, &'static str)> {
    let is_hash = |text: &str| {
        text.len() == CHALLENGE_CHARS && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
    };
    match fields.get("response_type") {
        Some("code") => {}
        None => return Some(("invalid_request", "response_type is missing.")),
        Some(_) => return Some(("unsupported_response_type", "response_type must be code.")),
    }
    if fields.get("request").or(fields.get("request_uri")).is_some() {
        return Some(("request_not_supported", "Request objects are not supported; put the parameters in the query."));
    }
    if fields.get("response_mode").is_some_and(|mode| mode != "query") {
        return Some(("invalid_request", "response_mode must be query."));
    }
    if fields.get("code_challenge_method") != Some("S256") {
        return Some(("invalid_request", "code_challenge_method must be S256."));
    }
    if !fields.get("code_challenge").is_some_and(is_hash) {
        return Some(("invalid_request", "code_challenge is missing or not a SHA-256 hash in base64url."));
    }
    if fields.get("state").is_some_and(|state| state.len() > STATE_CHARS) {
        return Some(("invalid_request", "state is too long."));
    }
    context.place.target(fields.resources()).err().map(|why| ("invalid_target", why))
}

/// Parses scopes; unknown ones are ignored. Returns `None` if none is known.
pub(crate) fn scopes(text: Option<&str>) -> Option<Scopes> {
    let words = text?.split(' ').filter_map(Scopes::parse);
    Some(words.fold(Scopes::NONE, Scopes::with)).filter(|scopes| *scopes != Scopes::NONE)
}

impl AuthorizationRequest {
    /// Redirects the browser to the client, with our issuer (RFC 9207).
    pub(crate) fn back(&self, context: &OauthContext, answer: &[(&str, &str)]) -> Response {
        let mut address = self.redirect.clone();
        let state = self.state.as_deref().map(|state| ("state", state));
        let all = answer.iter().copied().chain(state).chain([("iss", context.place.base.as_str())]);
        for (name, value) in all {
            address.push(if address.contains('?') { '&' } else { '?' });
            address.push_str(name);
            address.push('=');
            address.push_str(&encode(value));
        }
        page::redirect(&address)
    }

    pub(crate) fn refused(&self, context: &OauthContext, word: &str, why: &str) -> Response {
        self.back(context, &[("error", word), ("error_description", why)])
    }
}

fn pending(context: &OauthContext, client: &ClientRecord, place: &str) -> Response {
    let say = |words| context.say(words);
    let body = Html::default()
        .element("<p>", &client.name, "</p>")
        .element("<p>", say(text::REDIRECTS_TO), "")
        .element(" <span class=\"place\">", place, "</span></p>")
        .element("<p>", say(text::PENDING_WHY), "</p>")
        .element("<p><code>hikite client approve ", &client.id, "</code></p>");
    page::page(StatusCode::FORBIDDEN, context.language, say(text::PENDING), &body, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_are_no_scopes_of_ours_are_let_be() {
        assert_eq!(scopes(Some("openid read offline_access")), Some(Scopes::READ));
        assert_eq!(scopes(Some("read call admin")), Some(Scopes::ALL));
        for none in [None, Some(""), Some("openid profile"), Some("READ")] {
            assert_eq!(scopes(none), None, "{none:?}");
        }
    }
}
