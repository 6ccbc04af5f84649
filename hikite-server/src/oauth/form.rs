//! CSRF protection of forms: each carries a token bound to the cookie of its browser and must have our own origin.
//! Either one alone is refused.

use axum::body::Body;
use axum::response::Response;
use hikite_core::error::{Error, Kind};
use hikite_gateway::identity::secret;
use http::header::{HOST, ORIGIN};

use super::cookie;
use super::desk::Desk;
use super::fields::Fields;
use super::page::{self, Html};

/// Form field of the token.
const TOKEN: &str = "token";

/// The cookie that a form is bound to.
pub(crate) struct Binding {
    name: &'static str,
    value: String,
    is_new: bool,
    token: String,
}

impl Binding {
    /// Binds to the login if there is one, else to the visit, which is created if necessary.
    pub(crate) async fn of(desk: &Desk) -> Result<Self, Error> {
        let https = desk.place.is_https();
        let login = desk.login().await?.map(|login| login.secret.expose().to_owned());
        let visit = || cookie::read(&desk.headers, cookie::VISIT, https);
        let (name, value, is_new) = match (login, visit()) {
            (Some(login), _) => (cookie::LOGIN, login, false),
            (None, Some(visit)) => (cookie::VISIT, visit, false),
            (None, None) => (cookie::VISIT, secret("")?.expose().to_owned(), true),
        };
        let token = desk.identity.form_token(&value).await?;
        Ok(Self { name, value, is_new, token })
    }

    /// Returns the cookie value, which only the browser knows.
    pub(crate) fn value(&self) -> &str {
        &self.value
    }

    /// Returns the token for forms.
    pub(crate) fn token(&self) -> &str {
        &self.token
    }

    /// Returns `true` if the browser has no cookie yet, and so cannot have a valid form.
    pub(crate) fn is_new(&self) -> bool {
        self.is_new
    }

    /// Renders the hidden field.
    pub(crate) fn field(&self) -> Html {
        Html::hidden(TOKEN, &self.token)
    }

    pub(crate) fn put_on(&self, mut response: Response, desk: &Desk) -> Response {
        if self.is_new {
            cookie::set(response.headers_mut(), self.name, &self.value, desk.place.is_https());
        }
        response
    }
}

/// Reads the fields of a form that one of our own pages sent; else returns an error page.
pub(crate) async fn read(desk: &Desk, body: Body) -> Result<Fields, Response> {
    let fields = Fields::of(&desk.app, &desk.headers, body).await;
    let fields = fields.map_err(|bad| page::trouble(desk, &Error::new(Kind::Validation, bad.0)))?;
    if !is_from_us(desk) {
        return Err(page::trouble(desk, &stale()));
    }
    let binding = Binding::of(desk).await.map_err(|error| page::trouble(desk, &error))?;
    let token = fields.get(TOKEN).unwrap_or_default();
    let bound = desk.identity.is_form_token(&binding.value, token).await;
    let is_bound = bound.map_err(|error| page::trouble(desk, &error))? && !binding.is_new;
    if is_bound { Ok(fields) } else { Err(page::trouble(desk, &stale())) }
}

/// Returns `true` unless the Origin header names another site. A request without one still needs the token.
pub(crate) fn is_from_us(desk: &Desk) -> bool {
    let text = |name| desk.headers.get(name).and_then(|value: &http::HeaderValue| value.to_str().ok());
    match (text(ORIGIN), text(HOST)) {
        (None, _) => true,
        (Some(origin), Some(host)) => {
            let page = origin.split_once("://").map(|(_, page)| page);
            page.is_some_and(|page| page.eq_ignore_ascii_case(host)) || origin == desk.place.base
        }
        _ => false,
    }
}

fn stale() -> Error {
    Error::new(Kind::Authorization, "this form is too old, or was made for another browser")
        .hint("go back and try again")
}
