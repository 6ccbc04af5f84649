//! The HTML pages of connecting an account or a server, in English and Japanese. They load no resources and cannot be framed.

use axum::response::{IntoResponse, Response};
use hikite_core::error::Error;
use hikite_core::html::escape;
use hikite_core::language::Language;
use hikite_core::uri::encode;
use hikite_gateway::{AccountStatus, ConnectedAccount, PendingConnection};
use hikite_ui::sentence;
use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use http::{StatusCode, Uri};

/// Browsers apply `form-action` to redirects too, so it must admit the provider.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'; \
    form-action 'self' https: http://127.0.0.1:* http://localhost:*";
const STYLE: &str = "body{font:1rem/1.6 system-ui,sans-serif;max-width:34rem;margin:12vh auto;padding:0 1rem}\
    button{font:inherit;padding:.5rem 1.2rem}@media(prefers-color-scheme:dark){body{background:#111;color:#eee}}";

/// A page in the user's language.
#[derive(Clone, Copy, Debug)]
pub(super) struct ConnectPage(pub(super) Language);

/// The proofs of identity that a page accepts.
#[derive(Clone, Copy, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is one part of the page, there or not")]
pub(super) struct AcceptedProofs {
    pub(super) can_log_in: bool,
    /// Accepts the code that a terminal shows.
    pub(super) takes_code: bool,
    /// Accepts a token of the user, where OAuth is disabled.
    pub(super) takes_token: bool,
    /// The last attempt was wrong.
    pub(super) is_wrong: bool,
}

impl AcceptedProofs {
    pub(super) fn of(waiting: &PendingConnection) -> Self {
        Self { takes_code: waiting.has_code, ..Self::default() }
    }
}

impl ConnectPage {
    /// Asks for confirmation, and for a proof if the user is not authenticated.
    pub(super) fn question(
        self,
        waiting: &PendingConnection,
        name: &str,
        proof: Option<(AcceptedProofs, &Uri)>,
    ) -> Response {
        let is_wrong = proof.is_some_and(|(proof, _)| proof.is_wrong);
        let proof = proof.map(|(proof, uri)| self.proof(proof, uri)).unwrap_or_default();
        let (title, account, name) = (escape(&waiting.title), escape(&waiting.account), escape(name));
        let (text, button) = match self.0 {
            Language::English => (
                format!(
                    "<h1>Connect {title}</h1><p>hikite gets access to {title} for the user <b>{name}</b> and stores it \
                     as the account <b>{account}</b>. Continue only if this is you and you started it.</p>"
                ),
                "Continue",
            ),
            Language::Japanese => (
                format!(
                    "<h1>{title} に接続</h1><p>hikite がユーザー <b>{name}</b> として {title} にアクセスし、アカウント \
                     <b>{account}</b> として保存します。ご本人が開始した場合にだけ続けてください。</p>"
                ),
                "続ける",
            ),
        };
        let form = format!("{text}<form method=\"post\">{proof}<button>{button}</button></form>");
        self.page(if is_wrong { StatusCode::FORBIDDEN } else { StatusCode::OK }, &form)
    }

    /// Asks whether to log in to a server, and for a token if the user is not authenticated.
    pub(super) fn server_question(self, server: &str, proof: Option<(AcceptedProofs, &Uri)>) -> Response {
        let is_wrong = proof.is_some_and(|(proof, _)| proof.is_wrong);
        let proof = proof.map(|(proof, uri)| self.proof(proof, uri)).unwrap_or_default();
        let server = escape(server);
        let (text, button) = match self.0 {
            Language::English => (
                format!(
                    "<h1>Log in to {server}</h1><p>hikite gets access to the server <b>{server}</b>. Everybody who may \
                     call its tools calls them with this login.</p>"
                ),
                "Log in",
            ),
            Language::Japanese => (
                format!(
                    "<h1>{server} にログイン</h1><p>hikite がサーバー <b>{server}</b> にアクセスできるようになります。\
                     このサーバーのツールを呼び出せるすべての人が、このログインを使います。</p>"
                ),
                "ログイン",
            ),
        };
        let form = format!("{text}<form method=\"post\">{proof}<button>{button}</button></form>");
        self.page(if is_wrong { StatusCode::FORBIDDEN } else { StatusCode::OK }, &form)
    }

    pub(super) fn server_success(self, server: &str) -> Response {
        let (name, path) = (escape(server), encode(server));
        let text = match self.0 {
            Language::English => format!(
                "<h1>Logged in</h1><p>hikite is logged in to the server <b>{name}</b>. You can close this page or open \
                 <a href=\"/ui/modules/{path}\">the module</a>.</p>"
            ),
            Language::Japanese => format!(
                "<h1>ログインしました</h1><p>サーバー <b>{name}</b> を使えます。このページを閉じるか、\
                 <a href=\"/ui/modules/{path}\">モジュールのページ</a>を開いてください。</p>"
            ),
        };
        self.page(StatusCode::OK, &text)
    }

    /// Renders the input for a code or token, and the login link.
    fn proof(self, proof: AcceptedProofs, uri: &Uri) -> String {
        let (label, wrong, log_in) = match (self.0, proof.takes_code, proof.takes_token) {
            (Language::English, true, false) => {
                ("Code shown in the terminal", "Incorrect. Check it and try again.", "Log in instead")
            }
            (Language::English, true, true) => {
                ("Code shown in the terminal, or your token", "Incorrect. Check it and try again.", "")
            }
            (Language::English, false, _) => ("Your hikite token", "Incorrect. Check it and try again.", ""),
            (Language::Japanese, true, false) => (
                "ターミナルに表示されたコード",
                "正しくありません。確認して、もう一度お試しください。",
                "代わりにログイン",
            ),
            (Language::Japanese, true, true) => (
                "ターミナルに表示されたコード、またはトークン",
                "正しくありません。確認して、もう一度お試しください。",
                "",
            ),
            (Language::Japanese, false, _) => {
                ("hikite のトークン", "正しくありません。確認して、もう一度お試しください。", "")
            }
        };
        let wrong = if proof.is_wrong { format!("<p role=\"alert\">{wrong}</p>") } else { String::new() };
        let log_in = if proof.can_log_in {
            format!("<p><a href=\"/oauth/login?next={}\">{log_in}</a></p>", encode(&uri.to_string()))
        } else {
            String::new()
        };
        format!(
            "{wrong}<p><label>{label}<br><input name=\"proof\" type=\"password\" required autofocus maxlength=\"256\" \
             autocomplete=\"one-time-code\"></label></p>{log_in}"
        )
    }

    pub(super) fn success(self, connected: &ConnectedAccount) -> Response {
        let ConnectedAccount { waiting, account } = connected;
        if account.status != AccountStatus::Connected {
            return self.unverified(waiting, account.problem.as_deref());
        }
        let (title, account) = (escape(&waiting.title), escape(&waiting.account));
        let text = match self.0 {
            Language::English => format!(
                "<h1>Connected</h1><p>The {title} account <b>{account}</b> is ready. You can close this page or open \
                 <a href=\"/ui/accounts\">your accounts</a>.</p>"
            ),
            Language::Japanese => format!(
                "<h1>接続しました</h1><p>{title} のアカウント <b>{account}</b> を使えます。このページを閉じるか、\
                 <a href=\"/ui/accounts\">アカウント一覧</a>を開いてください。</p>"
            ),
        };
        self.page(StatusCode::OK, &text)
    }

    /// Renders the page for an account whose key the vendor has not confirmed.
    fn unverified(self, waiting: &PendingConnection, problem: Option<&str>) -> Response {
        let (title, account) = (escape(&waiting.title), escape(&waiting.account));
        let problem =
            problem.map(|words| format!("<p lang=\"en\">{}</p>", escape(&sentence(words)))).unwrap_or_default();
        let text = match self.0 {
            Language::English => format!(
                "<h1>Not verified yet</h1><p>The {title} account <b>{account}</b> is saved, but {title} has not confirmed its \
                 key.</p>{problem}<p>Check it again in <a href=\"/ui/accounts\">your accounts</a>.</p>"
            ),
            Language::Japanese => format!(
                "<h1>まだ確認できていません</h1><p>{title} のアカウント <b>{account}</b> を保存しましたが、キーが有効かどうかを \
                 まだ確認できていません。</p>{problem}<p><a href=\"/ui/accounts\">アカウント一覧</a>で再確認してください。</p>"
            ),
        };
        self.page(StatusCode::OK, &text)
    }

    pub(super) fn failure(self, error: &Error) -> Response {
        let status = StatusCode::from_u16(error.kind.definition().http).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let message = match status {
            StatusCode::INTERNAL_SERVER_ERROR => String::new(),
            _ => format!("<p lang=\"en\">{}</p>", escape(&sentence(&error.message))),
        };
        let text = match self.0 {
            Language::English => {
                format!(
                    "<h1>Not connected</h1>{message}<p>Open <a href=\"/ui/accounts\">your accounts</a> and connect again, or get a new link.</p>"
                )
            }
            Language::Japanese => {
                format!(
                    "<h1>接続できませんでした</h1>{message}<p><a href=\"/ui/accounts\">アカウント一覧</a>から接続し直すか、新しいリンクを取得してください。</p>"
                )
            }
        };
        self.page(status, &text)
    }

    fn page(self, status: StatusCode, body: &str) -> Response {
        let language = self.0.tag();
        let text = format!(
            "<!doctype html><html lang=\"{language}\"><meta charset=\"utf-8\"><meta name=\"viewport\" \
             content=\"width=device-width\"><title>hikite</title><style>{STYLE}</style><body>{body}</body></html>"
        );
        let headers = [
            (CONTENT_TYPE, "text/html; charset=utf-8"),
            (CONTENT_SECURITY_POLICY, POLICY),
            (X_CONTENT_TYPE_OPTIONS, "nosniff"),
            (X_FRAME_OPTIONS, "DENY"),
            // With `no-referrer` a browser would send `Origin: null` with our own form.
            (REFERRER_POLICY, "same-origin"),
            (CACHE_CONTROL, "no-store"),
        ];
        (status, headers, text).into_response()
    }
}
