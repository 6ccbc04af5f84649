//! The HTML pages of the authorization server. They have no script but our own and are not cached. Foreign text is
//! escaped on insertion; there is no way to insert raw text.

use axum::response::{IntoResponse, Response};
use hikite_core::error::{Error, ErrorKind};
use hikite_core::html;
use hikite_core::language::Language;
use hikite_ui::{ErrorText, error_text, sentence};
use http::StatusCode;
use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, HeaderValue, LOCATION, REFERRER_POLICY,
    RETRY_AFTER, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};

use super::context::OauthContext;
use super::text::{self, PageText};
use crate::error_response::whole_seconds;

/// HTML that is safe to be part of a page.
#[derive(Clone, Debug, Default)]
pub(crate) struct Html(String);

impl Html {
    /// Wraps literal markup of the program.
    pub(crate) fn mark(marks: &'static str) -> Self {
        Self(marks.into())
    }

    /// Escapes a text.
    pub(crate) fn text(text: &str) -> Self {
        Self(html::escape(text))
    }

    pub(crate) fn hidden(name: &'static str, value: &str) -> Self {
        Self::mark("<input type=\"hidden\" name=\"")
            .and(&Self::mark(name))
            .marks("\" value=\"")
            .value(value)
            .marks("\">")
    }

    #[must_use]
    pub(crate) fn marks(self, marks: &'static str) -> Self {
        self.and(&Self::mark(marks))
    }

    #[must_use]
    pub(crate) fn value(self, text: &str) -> Self {
        self.and(&Self::text(text))
    }

    #[must_use]
    pub(crate) fn and(mut self, other: &Self) -> Self {
        self.0.push_str(&other.0);
        self
    }

    /// Appends a text within an element such as `p` or `h1`.
    #[must_use]
    pub(crate) fn element(self, open: &'static str, text: &str, close: &'static str) -> Self {
        self.marks(open).value(text).marks(close)
    }
}

/// Builds a page. The last argument is an additional `form-action` source, because browsers apply it to redirects of
/// forms too.
pub(crate) fn page(
    status: StatusCode,
    language: Language,
    title: &str,
    body: &Html,
    form_target: Option<&str>,
) -> Response {
    let whole = Html::mark("<!doctype html>\n<html lang=\"")
        .marks(language.tag())
        .marks("\">\n<head>\n<meta charset=\"utf-8\">\n")
        .marks("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n")
        .marks("<meta name=\"robots\" content=\"noindex\">\n")
        .element("<title>", title, " · hikite</title>\n")
        .marks("<link rel=\"stylesheet\" href=\"/oauth/page.css\">\n</head>\n<body>\n<main>\n")
        .element("<h1>", title, "</h1>\n")
        .and(body)
        .marks("\n</main>\n</body>\n</html>\n");
    let forms = form_target.map(|place| format!(" {place}")).unwrap_or_default();
    let policy = format!(
        "default-src 'none'; style-src 'self'; form-action 'self'{forms}; frame-ancestors 'none'; base-uri 'none'"
    );
    let mut response = (status, whole.0).into_response();
    let fixed: [(HeaderName, &'static str); 5] = [
        (CONTENT_TYPE, "text/html; charset=utf-8"),
        (CACHE_CONTROL, "no-store"),
        // With `no-referrer` a browser would send `Origin: null` with our own forms.
        (REFERRER_POLICY, "same-origin"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (X_FRAME_OPTIONS, "DENY"),
    ];
    for (name, value) in fixed {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    let policy = HeaderValue::from_str(&policy);
    let policy = policy.unwrap_or_else(|_| HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'"));
    response.headers_mut().insert(CONTENT_SECURITY_POLICY, policy);
    response
}

/// Allows our own script on a page, which may connect only to us.
pub(crate) fn with_script(mut response: Response) -> Response {
    let policy = response.headers().get(CONTENT_SECURITY_POLICY).and_then(|policy| policy.to_str().ok());
    let policy = policy.map(|policy| format!("{policy}; script-src 'self'; connect-src 'self'"));
    if let Some(policy) = policy.and_then(|policy| HeaderValue::from_str(&policy).ok()) {
        response.headers_mut().insert(CONTENT_SECURITY_POLICY, policy);
    }
    response
}

/// Builds an error page without links.
pub(crate) fn error_page(context: &OauthContext, error: &Error) -> Response {
    let status = StatusCode::from_u16(error.kind.definition().http).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    if error.kind == ErrorKind::Internal {
        tracing::error!(%error, "a login failed inside hikite");
    }
    let mut response =
        page(status, context.language, context.say(text::FAILED), &explain(context.language, error), None);
    if let Some(wait) = error.retry_after {
        response.headers_mut().insert(RETRY_AFTER, whole_seconds(wait).into());
    }
    response
}

/// Renders an error and the next step. Messages are English, so a page in another language starts with a translated
/// summary. Internal errors appear only in the log.
fn explain(language: Language, error: &Error) -> Html {
    let ErrorText { summary, next_step } = error_text(language, error.code());
    let next_step = |body: Html| body.element("<p>", next_step, "</p>");
    if error.kind == ErrorKind::Internal {
        return next_step(Html::default().element("<p>", summary, "</p>"));
    }
    let (message, hint) = (sentence(&error.message), error.hint.as_deref().map(sentence));
    match (language, hint) {
        (Language::English, Some(hint)) => {
            Html::default().element("<p>", &message, "</p>").element("<p>", &hint, "</p>")
        }
        (Language::English, None) => next_step(Html::default().element("<p>", &message, "</p>")),
        (Language::Japanese, hint) => {
            let body = Html::default().element("<p>", summary, "</p>");
            let texts = [Some(message), hint].into_iter().flatten();
            next_step(texts.fold(body, |body, text| body.element("<p class=\"faint\" lang=\"en\">", &text, "</p>")))
        }
    }
}

/// Builds a page with a single message.
pub(crate) fn notice(context: &OauthContext, status: StatusCode, title: PageText, text: PageText) -> Response {
    let body = Html::default().element("<p>", context.say(text), "</p>");
    page(status, context.language, context.say(title), &body, None)
}

/// Redirects a browser with 303.
pub(crate) fn redirect(address: &str) -> Response {
    let Ok(address) = HeaderValue::from_str(address) else {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    };
    let mut response = StatusCode::SEE_OTHER.into_response();
    response.headers_mut().insert(LOCATION, address);
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // The URL contains a code, or the request that led here.
    response.headers_mut().insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    response
}

pub(crate) async fn css() -> Response {
    let headers =
        [(CONTENT_TYPE, "text/css; charset=utf-8"), (X_CONTENT_TYPE_OPTIONS, "nosniff"), (CACHE_CONTROL, "no-cache")];
    (headers, include_str!("page.css")).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_becomes_a_mark() {
        let hostile = "<script>alert(\"x\")</script>&'\u{202e}\u{0}";
        let shown = Html::default().element("<p>", hostile, "</p>").and(&Html::hidden("next", hostile)).0;
        assert!(!shown.contains("<script") && !shown.contains('\u{202e}') && !shown.contains('\u{0}'), "{shown}");
        assert!(shown.contains("&lt;script&gt;alert(&quot;x&quot;)&lt;/script&gt;&amp;&#39;"), "{shown}");
        assert_eq!(shown.matches('<').count(), 3, "{shown}");
    }

    #[test]
    fn an_error_page_says_what_to_do_next_in_its_language() {
        let error = Error::new(ErrorKind::RateLimit, "too many attempts");
        let english = explain(Language::English, &error).0;
        assert_eq!(english, "<p>Too many attempts.</p><p>Wait a moment, then try again.</p>");
        let japanese = explain(Language::Japanese, &error.hint("wait"));
        assert_eq!(
            japanese.0,
            "<p>リクエストが多すぎます。</p><p class=\"faint\" lang=\"en\">Too many attempts.</p>\
             <p class=\"faint\" lang=\"en\">Wait.</p><p>しばらく待ってから、もう一度お試しください。</p>"
        );
        let inside = explain(Language::English, &Error::new(ErrorKind::Internal, "/srv/secret").hint("10.0.0.1"));
        assert!(!inside.0.contains("secret") && !inside.0.contains("10.0.0.1"), "{}", inside.0);
    }
}
