//! Submitted forms. Each must carry the CSRF token of its browser and come from our own pages.

use axum::body::Body;
use axum::extract::{FromRequest, Request};
use axum::response::Response;
use http::StatusCode;
use http::header::{CONTENT_TYPE, HeaderValue};
use http_body_util::{BodyExt, Limited};
use subtle::ConstantTimeEq;

use crate::api::{ApiClient, ApiError};
use crate::context::PageContext;
use crate::page;

/// Maximum length of a form: a batch, or a pasted client config.
const FORM_BYTES: usize = 2 << 20;
/// Form field of the CSRF token.
const TOKEN: &str = "form_token";

#[derive(Clone, Debug, Default)]
pub(crate) struct SubmittedFields(Vec<(String, String)>);

impl SubmittedFields {
    /// Returns the trimmed value of a field.
    pub(crate) fn text(&self, name: &str) -> &str {
        self.find(name).unwrap_or_default().trim()
    }

    /// Returns the trimmed value of a field, if not empty.
    pub(crate) fn some(&self, name: &str) -> Option<&str> {
        Some(self.text(name)).filter(|text| !text.is_empty())
    }

    /// Returns the value of a field unchanged.
    pub(crate) fn find(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| &**value)
    }

    pub(crate) fn is_checked(&self, name: &str) -> bool {
        self.find(name).is_some()
    }

    /// Returns all values of a repeated field.
    pub(crate) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(known, value)| known == name && !value.is_empty()).map(|(_, value)| &**value)
    }

    /// Splits a field into lines or comma-separated parts.
    pub(crate) fn list(&self, name: &str) -> Vec<String> {
        let parts = self.text(name).split(['\n', ',']).map(str::trim);
        parts.filter(|part| !part.is_empty()).map(str::to_owned).collect()
    }
}

/// A form from one of our own pages, with the context of its sender.
#[derive(Debug)]
pub(crate) struct SubmittedForm {
    pub(crate) context: PageContext,
    pub(crate) fields: SubmittedFields,
}

impl FromRequest<ApiClient> for SubmittedForm {
    type Rejection = Response;

    async fn from_request(request: Request, api: &ApiClient) -> Result<Self, Response> {
        let (mut parts, body) = request.into_parts();
        let context =
            <PageContext as axum::extract::FromRequestParts<ApiClient>>::from_request_parts(&mut parts, api).await?;
        // Browsers set this header on all forms from other sites.
        let from = parts.headers.get("sec-fetch-site").map(HeaderValue::as_bytes);
        let is_form = parts
            .headers
            .get(CONTENT_TYPE)
            .is_some_and(|kind| kind.as_bytes().starts_with(b"application/x-www-form-urlencoded"));
        if !is_form || from.is_some_and(|from| from != b"same-origin") {
            return Err(stale(&context));
        }
        let Some(fields) = read(body).await else {
            return Err(page::error_page(
                &context,
                &ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, context.t("The form is too large. The limit is 2 MiB.")),
            ));
        };
        let shown = fields.find(TOKEN).unwrap_or_default().as_bytes();
        let given = context.visitor.form_token.as_bytes();
        if given.is_empty() || !bool::from(shown.ct_eq(given)) {
            return Err(stale(&context));
        }
        Ok(Self { context, fields })
    }
}

async fn read(body: Body) -> Option<SubmittedFields> {
    let bytes = Limited::new(body, FORM_BYTES).collect().await.ok()?.to_bytes();
    Some(SubmittedFields(form_urlencoded::parse(&bytes).into_owned().collect()))
}

fn stale(context: &PageContext) -> Response {
    let why = context.t("This form has expired or belongs to another browser. Go back, reload the page and try again.");
    page::error_page(context, &ApiError::new(StatusCode::FORBIDDEN, why))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Builds submitted fields.
    pub(crate) fn filled(all: &[(&str, &str)]) -> SubmittedFields {
        SubmittedFields(all.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
    }

    #[test]
    fn lists_are_lines_or_what_stands_between_commas() {
        let fields = filled(&[("names", " a, b\nc\n\n"), ("one", "x")]);
        assert_eq!(fields.list("names"), ["a", "b", "c"]);
        assert_eq!((fields.text("one"), fields.some("two")), ("x", None));
    }
}
