//! CSRF protection of forms: each carries a token bound to the cookie of its browser and must have our own origin.
//! Either one alone is refused.

use axum::body::Body;
use axum::response::Response;
use hikite_core::error::{Error, ErrorKind};
use hikite_identity::secret;
use http::StatusCode;
use http::header::{HOST, ORIGIN};

use super::context::OauthContext;
use super::fields::FormFields;
use super::page::{self, Html};
use super::{cookie, text};

/// Form field of the token.
const TOKEN: &str = "token";

/// The cookie that a form is bound to.
pub(crate) struct FormBinding {
    name: &'static str,
    value: String,
    is_new: bool,
    token: String,
}

impl FormBinding {
    /// Binds to the login if there is one, else to the visit, which is created if necessary.
    pub(crate) async fn of(context: &OauthContext) -> Result<Self, Error> {
        let https = context.place.is_https();
        let login = context.login().await?.map(|login| login.secret.expose().to_owned());
        let visit = || cookie::read(&context.headers, cookie::VISIT, https);
        let (name, value, is_new) = match (login, visit()) {
            (Some(login), _) => (cookie::LOGIN, login, false),
            (None, Some(visit)) => (cookie::VISIT, visit, false),
            (None, None) => (cookie::VISIT, secret("")?.expose().to_owned(), true),
        };
        let token = context.identity.logins().form_token(&value).await?;
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

    pub(crate) fn set_cookie(&self, mut response: Response, context: &OauthContext) -> Response {
        if self.is_new {
            cookie::set(response.headers_mut(), self.name, &self.value, context.place.is_https());
        }
        response
    }
}

/// Reads the fields of a form that one of our own pages sent; else returns an error page.
pub(crate) async fn read(context: &OauthContext, body: Body) -> Result<FormFields, Response> {
    let fields = FormFields::of(&context.app, &context.headers, body).await;
    let fields = fields.map_err(|bad| page::error_page(context, &Error::new(ErrorKind::Validation, bad.0)))?;
    if !is_same_origin(context) {
        return Err(stale(context));
    }
    let binding = FormBinding::of(context).await.map_err(|error| page::error_page(context, &error))?;
    let token = fields.get(TOKEN).unwrap_or_default();
    let bound = context.identity.logins().is_form_token(&binding.value, token).await;
    let is_bound = bound.map_err(|error| page::error_page(context, &error))? && !binding.is_new;
    if is_bound { Ok(fields) } else { Err(stale(context)) }
}

/// Returns `true` unless the Origin header names another site. A request without one still needs the token.
pub(crate) fn is_same_origin(context: &OauthContext) -> bool {
    let text = |name| context.headers.get(name).and_then(|value: &http::HeaderValue| value.to_str().ok());
    match (text(ORIGIN), text(HOST)) {
        (None, _) => true,
        (Some(origin), Some(host)) => {
            let page = origin.split_once("://").map(|(_, page)| page);
            page.is_some_and(|page| page.eq_ignore_ascii_case(host)) || origin == context.place.base
        }
        _ => false,
    }
}

fn stale(context: &OauthContext) -> Response {
    page::notice(context, StatusCode::FORBIDDEN, text::FAILED, text::STALE)
}
