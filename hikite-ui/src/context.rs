//! The context of a page request: visitor, language, theme, and the API with the visitor's rights.

mod frame;

use axum::extract::FromRequestParts;
use axum::response::Response;
use hikite_core::language::Language;
use http::header::{ACCEPT_LANGUAGE, COOKIE, REFERER};
use http::request::Parts;
use http::{HeaderMap, Method, StatusCode};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::api::{ApiClient, ApiError, ApiRequest};
use crate::page;
use crate::visitor::Visitor;
use crate::words::say;

pub(crate) const LANGUAGE_COOKIE: &str = "hikite-language";
pub(crate) const THEME_COOKIE: &str = "hikite-theme";
/// Earlier name of the theme cookie; read for one more version.
const OLD_THEME_COOKIE: &str = "hikite-light";

#[derive(Clone, Debug)]
pub(crate) struct PageContext {
    pub(crate) api: ApiClient,
    pub(crate) visitor: Visitor,
    pub(crate) language: Language,
    pub(crate) theme: Theme,
    /// The current path, to return to.
    pub(crate) path: String,
    pub(crate) query: Vec<(String, String)>,
    /// The referring page of the UI, or the home page.
    pub(crate) back: String,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Theme {
    /// Follows the operating system.
    #[default]
    System,
    Light,
    Dark,
}

impl Theme {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::System => "auto",
            Self::Light => "light",
            Self::Dark => "dark",
        }
    }

    pub(crate) fn named(name: &str) -> Self {
        match name {
            "light" => Self::Light,
            "dark" => Self::Dark,
            _ => Self::System,
        }
    }
}

impl PageContext {
    /// Translates a text; the English text is its key.
    pub(crate) fn t(&self, english: &'static str) -> &'static str {
        say(self.language, english)
    }

    /// Translates a text and replaces `{}`.
    pub(crate) fn tn(&self, english: &'static str, value: impl std::fmt::Display) -> String {
        self.t(english).replacen("{}", &value.to_string(), 1)
    }

    pub(crate) async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, ApiError> {
        self.api.get(&self.visitor, path).await
    }

    /// Returns the API response, or the default on any error.
    pub(crate) async fn get_or_default<T: DeserializeOwned + Default>(&self, path: &str) -> T {
        self.get(path).await.unwrap_or_default()
    }

    pub(crate) async fn send(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Value, ApiError> {
        self.api.value(&self.visitor, ApiRequest::send(method, path, body)).await
    }

    pub(crate) async fn post(&self, path: &str, body: &impl Serialize) -> Result<Value, ApiError> {
        self.send(Method::POST, path, Some(&json!(body))).await
    }

    /// Returns a query parameter, if not empty.
    pub(crate) fn parameter(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(known, value)| known == name && !value.is_empty()).map(|(_, value)| &**value)
    }

    /// Returns a query parameter, or an empty string.
    pub(crate) fn parameter_or_empty(&self, name: &str) -> &str {
        self.parameter(name).unwrap_or_default()
    }

    /// Returns the absolute URL of a path.
    pub(crate) fn place(&self, path: &str) -> String {
        format!("{}{path}", self.visitor.base)
    }

    /// Returns `true` if a link leads to the current section.
    pub(crate) fn is_at(&self, link: &str) -> bool {
        let below = |rest: &str| rest.is_empty() || rest.starts_with('/');
        if link == "/ui" { self.path == "/ui" } else { self.path.strip_prefix(link).is_some_and(below) }
    }
}

#[cfg(test)]
impl PageContext {
    /// Builds a context without an API.
    pub(crate) fn for_test(language: Language) -> Self {
        Self {
            api: ApiClient::new(axum::Router::new()),
            visitor: Visitor::default(),
            language,
            theme: Theme::default(),
            path: "/ui".into(),
            query: Vec::new(),
            back: "/ui".into(),
        }
    }
}

impl FromRequestParts<ApiClient> for PageContext {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, api: &ApiClient) -> Result<Self, Response> {
        let Some(visitor) = parts.extensions.get::<Visitor>().cloned() else {
            return Err(page::bare(StatusCode::INTERNAL_SERVER_ERROR));
        };
        let query = parts.uri.query().unwrap_or_default();
        Ok(Self {
            api: api.clone(),
            back: back(&parts.headers, &visitor.base),
            visitor,
            language: language(&parts.headers),
            theme: theme(&parts.headers),
            path: parts.uri.path().to_owned(),
            query: form_urlencoded::parse(query.as_bytes()).into_owned().collect(),
        })
    }
}

/// Returns the chosen language, else the browser's preferred one.
fn language(headers: &HeaderMap) -> Language {
    let chosen = cookie(headers, LANGUAGE_COOKIE).and_then(Language::named);
    let preferred = || headers.get(ACCEPT_LANGUAGE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    chosen.unwrap_or_else(|| Language::preferred(preferred()))
}

/// Returns the chosen theme.
fn theme(headers: &HeaderMap) -> Theme {
    let chosen = cookie(headers, THEME_COOKIE).or_else(|| cookie(headers, OLD_THEME_COOKIE));
    chosen.map(Theme::named).unwrap_or_default()
}

fn back(headers: &HeaderMap, base: &str) -> String {
    let from = headers.get(REFERER).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let path = from.strip_prefix(base).filter(|path| path.starts_with("/ui"));
    path.unwrap_or("/ui").to_owned()
}

fn cookie<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let sent = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = sent.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(known, _)| *known == name).map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(all: &[(http::HeaderName, &str)]) -> HeaderMap {
        all.iter().map(|(name, value)| (name.clone(), value.parse().expect("a value"))).collect()
    }

    #[test]
    fn what_was_chosen_goes_before_what_the_browser_likes() {
        let preferred = (ACCEPT_LANGUAGE, "en");
        assert_eq!(language(&headers(std::slice::from_ref(&preferred))), Language::English);
        let chosen = (COOKIE, "a=b; hikite-language=ja");
        assert_eq!(language(&headers(&[preferred.clone(), chosen])), Language::Japanese);
        assert_eq!(language(&headers(&[preferred, (COOKIE, "hikite-language=xx")])), Language::English);
    }

    #[test]
    fn the_theme_cookie_of_the_last_version_is_read_unless_there_is_a_new_one() {
        assert_eq!(theme(&headers(&[(COOKIE, "hikite-light=dark")])), Theme::Dark);
        assert_eq!(theme(&headers(&[(COOKIE, "hikite-light=dark; hikite-theme=light")])), Theme::Light);
        assert_eq!(theme(&headers(&[])), Theme::System);
    }
}
