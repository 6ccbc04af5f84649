//! Page responses: no foreign content, no scripts but our own, no framing.

use askama::Template;
use axum::body::Body;
use axum::response::Response;
use http::StatusCode;
use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, HeaderValue, LOCATION, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};

use crate::api::ApiError;
use crate::context::PageContext;

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
    form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// The result of a handler: a page, or an error page.
pub(crate) type PageResult = Result<Response, ErrorPage>;

/// An error page as response.
#[derive(Debug)]
pub(crate) struct ErrorPage(Box<Response>);

impl From<Response> for ErrorPage {
    fn from(response: Response) -> Self {
        Self(Box::new(response))
    }
}

impl axum::response::IntoResponse for ErrorPage {
    fn into_response(self) -> Response {
        *self.0
    }
}

/// Converts API errors into error pages.
pub(crate) trait OrErrorPage<T> {
    fn or_error_page(self, context: &PageContext) -> Result<T, ErrorPage>;
}

impl<T> OrErrorPage<T> for Result<T, ApiError> {
    fn or_error_page(self, context: &PageContext) -> Result<T, ErrorPage> {
        self.map_err(|refused| error_page(context, &refused).into())
    }
}

pub(crate) fn show(page: &impl Template) -> PageResult {
    let text = page.render().map_err(|_| bare(StatusCode::INTERNAL_SERVER_ERROR))?;
    Ok(html(StatusCode::OK, text))
}

pub(crate) fn with_status(status: StatusCode, page: &impl Template) -> Response {
    match page.render() {
        Ok(text) => html(status, text),
        Err(_) => bare(StatusCode::INTERNAL_SERVER_ERROR),
    }
}

/// Redirects the browser after a form submission, to a page that can be reloaded.
pub(crate) fn redirect(place: &str) -> PageResult {
    let place = HeaderValue::from_str(place).map_err(|_| bare(StatusCode::BAD_REQUEST))?;
    let mut response = bare(StatusCode::SEE_OTHER);
    response.headers_mut().insert(LOCATION, place);
    Ok(response)
}

#[derive(Template)]
#[template(path = "error.html")]
struct ErrorTemplate<'a> {
    context: &'a PageContext,
    refused: &'a ApiError,
}

pub(crate) fn error_page(context: &PageContext, refused: &ApiError) -> Response {
    let status = if refused.status.is_success() { StatusCode::INTERNAL_SERVER_ERROR } else { refused.status };
    with_status(status, &ErrorTemplate { context, refused })
}

/// Builds a response without a page.
pub(crate) fn bare(status: StatusCode) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

fn html(status: StatusCode, text: String) -> Response {
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = status;
    let fixed: [(HeaderName, &'static str); 6] = [
        (CONTENT_TYPE, "text/html; charset=utf-8"),
        (CACHE_CONTROL, "no-store"),
        (CONTENT_SECURITY_POLICY, POLICY),
        // With `no-referrer` a browser would send `Origin: null` with our own forms.
        (REFERRER_POLICY, "same-origin"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (X_FRAME_OPTIONS, "DENY"),
    ];
    for (name, value) in fixed {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}
