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
pub(crate) const NAME: PageText = ("Name", "ユーザー名");
pub(crate) const PASSWORD: PageText = ("Password", "パスワード");
pub(crate) const WRONG: PageText = ("The name or the password is not right.", "ユーザー名またはパスワードが違います。");
pub(crate) const REMOVED: PageText = (
    "This account was removed from this hikite. An admin can let you come again.",
    "このアカウントは、この hikite から削除されています。管理者が解除すると再びログインできます。",
);
pub(crate) const TOO_OFTEN: PageText =
    ("Too many tries. Wait a minute and try again.", "試行回数が多すぎます。1分ほど待ってからもう一度お試しください。");
pub(crate) const NOBODY_YET: PageText = (
    "Nobody can log in yet. Open the set-up link that hikite printed when it was started.",
    "まだ誰もログインできません。hikite の起動時に表示された初期設定リンクを開いてください。",
);
pub(crate) const SET_UP: PageText = ("Set up hikite", "hikite の初期設定");
pub(crate) const SET_UP_WHY: PageText = (
    "Choose a name and a password. They make you the owner of this hikite.",
    "ユーザー名とパスワードを決めてください。あなたがこの hikite の所有者になります。",
);
pub(crate) const SET_UP_LONG: PageText = ("10 characters or more", "10文字以上");
pub(crate) const SET_UP_GO: PageText = ("Become the owner", "所有者になる");
pub(crate) const SET_UP_PASSKEY: PageText = ("Use a passkey instead", "パスキーを使う");
pub(crate) const GO_ON: PageText = ("Go on", "先へ進む");
pub(crate) const LINK_OVER: PageText = (
    "This link is used up or too old. `hikite user setup-link` makes a new one.",
    "このリンクは使用済みか期限切れです。`hikite user setup-link` で新しいリンクを作れます。",
);
pub(crate) const CONSENT: PageText = ("Let this client in?", "このクライアントを許可しますか？");
pub(crate) const WANTS: PageText =
    ("wants to use this hikite as", "が次のユーザーとしてこの hikite を使おうとしています:");
pub(crate) const ANSWERED_AT: PageText = ("It is answered at", "応答の送り先");
pub(crate) const ON_THIS_MACHINE: PageText =
    ("That is a program on your own computer.", "これはあなたのコンピューター上のプログラムです。");
pub(crate) const IN_PROJECT: PageText = ("Only in the project", "対象のプロジェクト（これ以外には使えません）:");
pub(crate) const IN_ALL_PROJECTS: PageText =
    ("Wherever you may work yourself.", "あなたが利用できるすべての範囲が対象です。");
pub(crate) const MAY: PageText = ("It will be able to", "許可される操作");
pub(crate) const READ: PageText = ("list, search and describe tools", "ツールの一覧・検索・説明の閲覧");
pub(crate) const CALL: PageText =
    ("run tools, read resources and get prompts", "ツールの実行、リソースの読み取り、プロンプトの取得");
pub(crate) const ADMIN: PageText =
    ("change tools, projects, tokens and users for everybody", "ツール・プロジェクト・トークン・ユーザーの管理");
pub(crate) const ALLOW: PageText = ("Allow", "許可する");
pub(crate) const DENY: PageText = ("Deny", "許可しない");
pub(crate) const UNSURE: PageText = (
    "Allow it only if you have just started this login yourself.",
    "ご自身で今このログインを始めた場合にだけ許可してください。",
);
pub(crate) const LOG_IN_WITH: PageText = ("Log in with {}", "{} でログイン");
pub(crate) const PASSKEYS: PageText = ("Passkeys", "パスキー");
pub(crate) const PASSKEY_LOG_IN: PageText = ("Log in with a passkey", "パスキーでログイン");
pub(crate) const PASSKEY_WHY: PageText = (
    "A passkey on your device or in your password manager logs you in without a password.",
    "端末やパスワードマネージャーのパスキーで、パスワードなしでログインできます。",
);
pub(crate) const PASSKEY_NAME: PageText = ("Name of the new passkey", "新しいパスキーの名前");
pub(crate) const PASSKEY_MAKE: PageText = ("Register a passkey", "パスキーを登録");
pub(crate) const PASSKEY_REMOVE: PageText = ("Remove", "削除");
pub(crate) const PASSKEY_FAILED: PageText = ("That did not work.", "うまくいきませんでした。");
pub(crate) const TROUBLE: PageText = ("This does not work", "処理できませんでした");
pub(crate) const PENDING: PageText = ("This client waits for approval", "このクライアントは承認待ちです");
pub(crate) const PENDING_WHY: PageText = (
    "It leads back to a place that nobody has approved yet. Whoever runs this hikite can approve it:",
    "応答の送り先がまだ承認されていません。この hikite の管理者は次のコマンドで承認できます:",
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
