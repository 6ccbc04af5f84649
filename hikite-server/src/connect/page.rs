//! The three small pages of a connection, in English and Japanese. They load nothing, and no page may frame them.

use axum::response::{IntoResponse, Response};
use hikite_core::error::Error;
use hikite_gateway::Waiting;
use http::header::{
    ACCEPT_LANGUAGE, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use http::{HeaderMap, StatusCode};

/// A form that is sent here leads to the provider, which browsers count as a target of the form.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'; \
    form-action 'self' https: http://127.0.0.1:* http://localhost:*";
const STYLE: &str = "body{font:1rem/1.6 system-ui,sans-serif;max-width:34rem;margin:12vh auto;padding:0 1rem}\
    button{font:inherit;padding:.5rem 1.2rem}@media(prefers-color-scheme:dark){body{background:#111;color:#eee}}";

/// In which language a page speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Words {
    English,
    Japanese,
}

impl Words {
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let wanted = headers.get(ACCEPT_LANGUAGE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        if wanted.trim_start().to_ascii_lowercase().starts_with("ja") {
            Self::Japanese
        } else {
            Self::English
        }
    }

    pub(super) fn question(self, waiting: &Waiting) -> Response {
        let (title, account, subject) =
            (escaped(&waiting.title), escaped(&waiting.account), escaped(&waiting.subject));
        let (text, button) = match self {
            Self::English => (
                format!(
                    "<h1>Connect {title}</h1><p>hikite will call {title} for <b>{subject}</b>, as the account \
                     <b>{account}</b>. Go on only if that is you and you asked for this.</p>"
                ),
                "Continue",
            ),
            Self::Japanese => (
                format!(
                    "<h1>{title} と接続</h1><p>hikite は <b>{subject}</b> さんのために、アカウント <b>{account}</b> として \
                     {title} を呼び出します。ご本人が求めた場合だけ進んでください。</p>"
                ),
                "続ける",
            ),
        };
        let form = format!("{text}<form method=\"post\"><button>{button}</button></form>");
        self.page(StatusCode::OK, &form)
    }

    pub(super) fn success(self, waiting: &Waiting) -> Response {
        let (title, account) = (escaped(&waiting.title), escaped(&waiting.account));
        let text = match self {
            Self::English => format!(
                "<h1>Connected</h1><p>The account <b>{account}</b> with {title} is ready. You can close this page, or go to \
                 <a href=\"/ui/accounts\">your accounts</a>.</p>"
            ),
            Self::Japanese => format!(
                "<h1>接続しました</h1><p>{title} のアカウント <b>{account}</b> が使えます。このページは閉じて構いません。\
                 <a href=\"/ui/accounts\">アカウント一覧</a></p>"
            ),
        };
        self.page(StatusCode::OK, &text)
    }

    pub(super) fn failure(self, error: &Error) -> Response {
        let status =
            StatusCode::from_u16(error.kind.face().http).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let message = match status {
            StatusCode::INTERNAL_SERVER_ERROR => String::new(),
            _ => escaped(&error.message),
        };
        let text = match self {
            Self::English => {
                format!("<h1>Not connected</h1><p>{message}</p><p>Ask for a new link and try again.</p>")
            }
            Self::Japanese => format!(
                "<h1>接続できませんでした</h1><p>{message}</p><p>新しいリンクでもう一度お試しください。</p>"
            ),
        };
        self.page(status, &text)
    }

    fn page(self, status: StatusCode, body: &str) -> Response {
        let language = if self == Self::Japanese { "ja" } else { "en" };
        let text = format!(
            "<!doctype html><html lang=\"{language}\"><meta charset=\"utf-8\"><meta name=\"viewport\" \
             content=\"width=device-width\"><title>hikite</title><style>{STYLE}</style><body>{body}</body></html>"
        );
        let headers = [
            (CONTENT_TYPE, "text/html; charset=utf-8"),
            (CONTENT_SECURITY_POLICY, POLICY),
            (X_CONTENT_TYPE_OPTIONS, "nosniff"),
            (X_FRAME_OPTIONS, "DENY"),
            // With none at all a browser would send `Origin: null` with our own form.
            (REFERRER_POLICY, "same-origin"),
            (CACHE_CONTROL, "no-store"),
        ];
        (status, headers, text).into_response()
    }
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_was_sent_becomes_markup() {
        assert_eq!(escaped("<b a='\"&"), "&lt;b a=&#39;&quot;&amp;");
    }
}
