//! Texts of the pages, in English and Japanese.

use hikite_core::language::Language;
use http::HeaderMap;
use http::header::ACCEPT_LANGUAGE;

/// A text in both languages.
pub(crate) type PageText = (&'static str, &'static str);

pub(crate) const LOG_IN: PageText = ("Log in", "ログイン");
pub(crate) const LOGGED_IN: PageText = ("You are logged in", "ログインしています");
pub(crate) const LOG_OUT: PageText = ("Log out", "ログアウト");
pub(crate) const LOGGED_OUT: PageText = ("You are logged out", "ログアウトしました");
pub(crate) const NAME: PageText = ("User name", "ユーザー名");
pub(crate) const PASSWORD: PageText = ("Password", "パスワード");
pub(crate) const WRONG: PageText = (
    "The user name or password is incorrect. Check both and try again.",
    "ユーザー名またはパスワードが正しくありません。確認して、もう一度お試しください。",
);
pub(crate) const REMOVED: PageText = (
    "Your user was removed. Ask an admin to restore your access.",
    "ユーザーが削除されているため、ログインできません。管理者にアクセスの復元を依頼してください。",
);
pub(crate) const TOO_OFTEN: PageText = (
    "Too many attempts. Wait a minute, then try again.",
    "試行回数が多すぎます。1 分ほど待ってから、もう一度お試しください。",
);
pub(crate) const NOBODY_YET: PageText = (
    "There are no users yet. Open the setup link that hikite printed at startup.",
    "ユーザーがまだ登録されていません。hikite の起動時に表示された初期設定リンクを開いてください。",
);
pub(crate) const SET_UP: PageText = ("Set up hikite", "hikite の初期設定");
pub(crate) const SET_UP_WHY: PageText = (
    "Choose a user name and a password. You become the owner of this server.",
    "ユーザー名とパスワードを設定してください。あなたがこのサーバーの所有者になります。",
);
pub(crate) const SET_UP_LONG: PageText = ("At least 10 characters", "10 文字以上");
pub(crate) const SET_UP_GO: PageText = ("Create the owner", "所有者を作成");
pub(crate) const SET_UP_PASSKEY: PageText = ("Use a passkey instead", "パスキーを使用");
pub(crate) const GO_ON: PageText = ("Continue", "続ける");
pub(crate) const LINK_OVER: PageText = (
    "This setup link was already used or has expired. Run `hikite user setup-link` to create a new one.",
    "この初期設定リンクは使用済みか、有効期限が切れています。`hikite user setup-link` で新しいリンクを作成してください。",
);
pub(crate) const CONSENT: PageText = ("Allow this client?", "このクライアントを許可しますか？");
pub(crate) const WANTS: PageText =
    ("wants to access hikite as", "が次のユーザーとして hikite へのアクセスを求めています:");
pub(crate) const REDIRECTS_TO: PageText = ("Redirects to", "リダイレクト先:");
pub(crate) const ON_THIS_MACHINE: PageText =
    ("This address is a program on your own computer.", "この宛先は、お使いのコンピューター上のプログラムです。");
pub(crate) const IN_PROJECT: PageText = ("Access is limited to the project", "アクセスできるプロジェクト:");
pub(crate) const IN_ALL_PROJECTS: PageText =
    ("Access covers everything you can use yourself.", "あなたが利用できるすべての範囲にアクセスできます。");
pub(crate) const MAY: PageText = ("The client can", "許可する操作");
pub(crate) const READ: PageText = ("list, search and describe tools", "ツールの一覧、検索、詳細の表示");
pub(crate) const CALL: PageText =
    ("run tools, read resources and get prompts", "ツールの実行、リソースの読み取り、プロンプトの取得");
pub(crate) const ADMIN: PageText =
    ("manage tools, projects, tokens and users", "ツール、プロジェクト、トークン、ユーザーの管理");
pub(crate) const ALLOW: PageText = ("Allow", "許可");
pub(crate) const DENY: PageText = ("Deny", "拒否");
pub(crate) const UNSURE: PageText = (
    "Allow this only if you started this login yourself.",
    "ご自身でこのログインを開始した場合にだけ許可してください。",
);
pub(crate) const LOG_IN_WITH: PageText = ("Log in with {}", "{} でログイン");
pub(crate) const PASSKEYS: PageText = ("Passkeys", "パスキー");
pub(crate) const PASSKEY_LOG_IN: PageText = ("Log in with a passkey", "パスキーでログイン");
pub(crate) const PASSKEY_WHY: PageText = (
    "Log in without a password, using a passkey on your device or in your password manager.",
    "デバイスまたはパスワードマネージャーのパスキーを使って、パスワードなしでログインできます。",
);
pub(crate) const PASSKEY_NAME: PageText = ("Name of the new passkey", "新しいパスキーの名前");
pub(crate) const PASSKEY_MAKE: PageText = ("Register a passkey", "パスキーを登録");
pub(crate) const PASSKEY_REMOVE: PageText = ("Remove", "削除");
pub(crate) const PASSKEY_FAILED: PageText = (
    "The passkey could not be used. Reload the page and try again.",
    "パスキーを使用できませんでした。ページを再読み込みして、もう一度お試しください。",
);
pub(crate) const STALE: PageText = (
    "This form has expired or belongs to another browser. Go back, reload the page and try again.",
    "フォームの有効期限が切れたか、別のブラウザーのフォームです。前のページに戻って再読み込みし、もう一度お試しください。",
);
pub(crate) const FAILED: PageText = ("Request failed", "処理できませんでした");
pub(crate) const PENDING: PageText = ("This client is waiting for approval", "このクライアントは承認待ちです");
pub(crate) const PENDING_WHY: PageText = (
    "An admin has to approve its redirect URI first, on the page “Users and clients” or with this command:",
    "先に管理者がリダイレクト URI を承認する必要があります。「ユーザーとクライアント」ページ、または次のコマンドで承認できます:",
);

/// Selects texts by language.
pub(crate) trait PageLanguage {
    /// Returns the preferred language of the browser.
    fn of(headers: &HeaderMap) -> Self;
    fn say(self, words: PageText) -> &'static str;
}

impl PageLanguage for Language {
    fn of(headers: &HeaderMap) -> Self {
        let wanted = headers.get(ACCEPT_LANGUAGE).and_then(|value| value.to_str().ok());
        Self::preferred(wanted.unwrap_or_default())
    }

    fn say(self, words: PageText) -> &'static str {
        match self {
            Self::English => words.0,
            Self::Japanese => words.1,
        }
    }
}
