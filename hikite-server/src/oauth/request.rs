//! Parses an authorization request. Errors of client and redirect URI are shown on our own page; all others are
//! returned to the client.

use axum::response::Response;
use hikite_core::caller::Scopes;
use hikite_core::error::{Error, Kind};
use hikite_gateway::identity::{Client, Redirect, Standing};
use http::StatusCode;

use super::desk::Desk;
use super::fields::{Fields, encode};
use super::page::{self, Html};
use super::place::Resource;
use super::{client, words};

/// Length of a SHA-256 hash in base64url.
const CHALLENGE_CHARS: usize = 43;
const STATE_CHARS: usize = 4096;

pub(crate) struct Asked {
    pub(crate) client: Client,
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
    pub(crate) is_asked_every_time: bool,
    /// The resource that the token is for.
    pub(crate) resource: Resource,
    pub(crate) scopes: Scopes,
    pub(crate) challenge: String,
    pub(crate) prompt: Option<String>,
    state: Option<String>,
}

/// Parses a request, or returns the response to an invalid one.
pub(crate) async fn read(desk: &Desk, query: &str) -> Result<Asked, Response> {
    let fields =
        Fields::read(query).map_err(|bad| page::trouble(desk, &Error::new(Kind::Validation, bad.0)))?;
    let asked = place(desk, &fields).await?;
    match fault(desk, &fields) {
        Some((word, why)) => Err(asked.refused(desk, word, why)),
        None => Ok(asked),
    }
}

/// Resolves client and redirect URI. On an error the browser is not redirected.
async fn place(desk: &Desk, fields: &Fields) -> Result<Asked, Response> {
    let trouble = |error: Error| page::trouble(desk, &error);
    let wrong = |why: &str| trouble(Error::new(Kind::Validation, why));
    let id = fields.get("client_id").ok_or_else(|| wrong("the request names no client_id"))?;
    let client = client::find(desk, id).await.map_err(trouble)?;
    let uri = fields.get("redirect_uri").ok_or_else(|| wrong("the request names no redirect_uri"))?;
    let redirect =
        Redirect::read(uri).map_err(|why| wrong(&format!("the redirect_uri cannot be used: {why}")))?;
    if !client.leads_to(&redirect) {
        return Err(wrong("the redirect_uri is none that this client has registered"));
    }
    if client.standing(&redirect, uri) == Standing::Pending {
        return Err(pending(desk, &client, &redirect.recipient()));
    }
    let text = |name: &str| fields.get(name).map(str::to_owned);
    Ok(Asked {
        place: redirect.place(),
        recipient: redirect.recipient(),
        is_asked_every_time: redirect.is_native() && !client.is_confidential(),
        // An invalid resource is reported to the client together with the other parameters.
        resource: desk.place.target(fields.resources()).unwrap_or_default(),
        source: redirect.source(),
        is_loopback: redirect.is_loopback(),
        redirect: uri.to_owned(),
        scopes: scopes(fields.get("scope")).unwrap_or(Scopes::USUAL),
        challenge: text("code_challenge").unwrap_or_default(),
        prompt: text("prompt"),
        state: text("state").filter(|state| state.len() <= STATE_CHARS),
        client,
    })
}

/// Returns the OAuth error code and description of the first invalid parameter.
fn fault(desk: &Desk, fields: &Fields) -> Option<(&'static str, &'static str)> {
    let is_hash = |text: &str| {
        text.len() == CHALLENGE_CHARS
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
    };
    match fields.get("response_type") {
        Some("code") => {}
        None => return Some(("invalid_request", "response_type is missing")),
        Some(_) => return Some(("unsupported_response_type", "response_type must be code")),
    }
    if fields.get("request").or(fields.get("request_uri")).is_some() {
        return Some(("request_not_supported", "write the request into the query itself"));
    }
    if fields.get("response_mode").is_some_and(|mode| mode != "query") {
        return Some(("invalid_request", "response_mode must be query"));
    }
    if fields.get("code_challenge_method") != Some("S256") {
        return Some(("invalid_request", "code_challenge_method must be S256"));
    }
    if !fields.get("code_challenge").is_some_and(is_hash) {
        return Some(("invalid_request", "code_challenge is missing or no SHA-256 in base64url"));
    }
    if fields.get("state").is_some_and(|state| state.len() > STATE_CHARS) {
        return Some(("invalid_request", "state is too long"));
    }
    desk.place.target(fields.resources()).err().map(|why| ("invalid_target", why))
}

/// Parses scopes; unknown ones are ignored. Returns `None` if none is known.
pub(crate) fn scopes(text: Option<&str>) -> Option<Scopes> {
    let words = text?.split(' ').filter_map(Scopes::parse);
    Some(words.fold(Scopes::NONE, Scopes::with)).filter(|scopes| *scopes != Scopes::NONE)
}

impl Asked {
    /// Redirects the browser to the client, with our issuer (RFC 9207).
    pub(crate) fn back(&self, desk: &Desk, answer: &[(&str, &str)]) -> Response {
        let mut address = self.redirect.clone();
        let state = self.state.as_deref().map(|state| ("state", state));
        let all = answer.iter().copied().chain(state).chain([("iss", desk.place.base.as_str())]);
        for (name, value) in all {
            address.push(if address.contains('?') { '&' } else { '?' });
            address.push_str(name);
            address.push('=');
            address.push_str(&encode(value));
        }
        page::go(&address)
    }

    pub(crate) fn refused(&self, desk: &Desk, word: &str, why: &str) -> Response {
        self.back(desk, &[("error", word), ("error_description", why)])
    }
}

fn pending(desk: &Desk, client: &Client, place: &str) -> Response {
    let say = |words| desk.say(words);
    let body = Html::default()
        .element("<p>", &client.name, "</p>")
        .element("<p>", say(words::ANSWERED_AT), "")
        .element(" <span class=\"place\">", place, "</span></p>")
        .element("<p>", say(words::PENDING_WHY), "</p>")
        .element("<p><code>hikite client approve ", &client.id, "</code></p>");
    page::page(StatusCode::FORBIDDEN, desk.language, say(words::PENDING), &body, None)
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
