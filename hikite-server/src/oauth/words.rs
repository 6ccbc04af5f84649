//! Texts of the pages, in English and Japanese.

use hikite_core::language::Language;
use http::HeaderMap;
use http::header::ACCEPT_LANGUAGE;

/// A text in both languages.
pub(crate) type Words = (&'static str, &'static str);

pub(crate) const LOG_IN: Words = ("Log in", "ログイン");
pub(crate) const LOGGED_IN: Words = ("You are logged in", "ログインしています");
pub(crate) const LOG_OUT: Words = ("Log out", "ログアウト");
pub(crate) const LOGGED_OUT: Words = ("You are logged out", "ログアウトしました");
pub(crate) const NAME: Words = ("Name", "ユーザー名");
pub(crate) const PASSWORD: Words = ("Password", "パスワード");
pub(crate) const WRONG: Words =
    ("The name or the password is not right.", "ユーザー名またはパスワードが違います。");
pub(crate) const REMOVED: Words = (
    "This account was removed from this hikite. An admin can let you come again.",
    "このアカウントは、この hikite から削除されています。管理者が解除すると再びログインできます。",
);
pub(crate) const TOO_OFTEN: Words = (
    "Too many tries. Wait a minute and try again.",
    "試行回数が多すぎます。1分ほど待ってからもう一度お試しください。",
);
pub(crate) const NOBODY_YET: Words = (
    "Nobody can log in yet. Open the set-up link that hikite printed when it was started.",
    "まだ誰もログインできません。hikite の起動時に表示された初期設定リンクを開いてください。",
);
pub(crate) const SET_UP: Words = ("Set up hikite", "hikite の初期設定");
pub(crate) const SET_UP_WHY: Words = (
    "Choose a name and a password. They make you the owner of this hikite.",
    "ユーザー名とパスワードを決めてください。あなたがこの hikite の所有者になります。",
);
pub(crate) const SET_UP_LONG: Words = ("10 characters or more", "10文字以上");
pub(crate) const SET_UP_GO: Words = ("Become the owner", "所有者になる");
pub(crate) const SET_UP_PASSKEY: Words = ("Use a passkey instead", "パスキーを使う");
pub(crate) const GO_ON: Words = ("Go on", "先へ進む");
pub(crate) const LINK_OVER: Words = (
    "This link is used up or too old. `hikite user setup-link` makes a new one.",
    "このリンクは使用済みか期限切れです。`hikite user setup-link` で新しいリンクを作れます。",
);
pub(crate) const CONSENT: Words = ("Let this client in?", "このクライアントを許可しますか？");
pub(crate) const WANTS: Words =
    ("wants to use this hikite as", "が次のユーザーとしてこの hikite を使おうとしています:");
pub(crate) const ANSWERED_AT: Words = ("It is answered at", "応答の送り先");
pub(crate) const ON_THIS_MACHINE: Words =
    ("That is a program on your own computer.", "これはあなたのコンピューター上のプログラムです。");
pub(crate) const IN_PROJECT: Words = ("Only in the project", "対象のプロジェクト（これ以外には使えません）:");
pub(crate) const IN_ALL_PROJECTS: Words =
    ("Wherever you may work yourself.", "あなたが利用できるすべての範囲が対象です。");
pub(crate) const MAY: Words = ("It will be able to", "許可される操作");
pub(crate) const READ: Words = ("list, search and describe tools", "ツールの一覧・検索・説明の閲覧");
pub(crate) const CALL: Words =
    ("run tools, read resources and get prompts", "ツールの実行、リソースの読み取り、プロンプトの取得");
pub(crate) const ADMIN: Words = (
    "change tools, projects, tokens and users for everybody",
    "ツール・プロジェクト・トークン・ユーザーの管理",
);
pub(crate) const ALLOW: Words = ("Allow", "許可する");
pub(crate) const DENY: Words = ("Deny", "許可しない");
pub(crate) const UNSURE: Words = (
    "Allow it only if you have just started this login yourself.",
    "ご自身で今このログインを始めた場合にだけ許可してください。",
);
pub(crate) const LOG_IN_WITH: Words = ("Log in with {}", "{} でログイン");
pub(crate) const PASSKEYS: Words = ("Passkeys", "パスキー");
pub(crate) const PASSKEY_LOG_IN: Words = ("Log in with a passkey", "パスキーでログイン");
pub(crate) const PASSKEY_WHY: Words = (
    "A passkey on your device or in your password manager logs you in without a password.",
    "端末やパスワードマネージャーのパスキーで、パスワードなしでログインできます。",
);
pub(crate) const PASSKEY_NAME: Words = ("Name of the new passkey", "新しいパスキーの名前");
pub(crate) const PASSKEY_MAKE: Words = ("Register a passkey", "パスキーを登録");
pub(crate) const PASSKEY_REMOVE: Words = ("Remove", "削除");
pub(crate) const PASSKEY_FAILED: Words = ("That did not work.", "うまくいきませんでした。");
pub(crate) const TROUBLE: Words = ("This does not work", "処理できませんでした");
pub(crate) const PENDING: Words = ("This client waits for approval", "このクライアントは承認待ちです");
pub(crate) const PENDING_WHY: Words = (
    "It leads back to a place that nobody has approved yet. Whoever runs this hikite can approve it:",
    "応答の送り先がまだ承認されていません。この hikite の管理者は次のコマンドで承認できます:",
);

/// Selects texts by language.
pub(crate) trait Speaks {
    /// Returns the preferred language of the browser.
    fn of(headers: &HeaderMap) -> Self;
    fn say(self, words: Words) -> &'static str;
}

impl Speaks for Language {
    fn of(headers: &HeaderMap) -> Self {
        let wanted = headers.get(ACCEPT_LANGUAGE).and_then(|value| value.to_str().ok());
        Self::liked(wanted.unwrap_or_default())
    }

    fn say(self, words: Words) -> &'static str {
        match self {
            Self::English => words.0,
            Self::Japanese => words.1,
        }
    }
}
