//! Language and theme, stored in cookies.

use hikite_core::language::Language;
use http::header::{HeaderValue, SET_COOKIE};

use crate::context::{LANGUAGE_COOKIE, THEME_COOKIE, Theme};
use crate::form::SubmittedForm;
use crate::page::{PageResult, redirect};

pub(crate) async fn change(SubmittedForm { context, fields }: SubmittedForm) -> PageResult {
    // Redirects only to our own pages.
    let back = fields.some("back").filter(|back| back.starts_with("/ui") && !back.contains(['\\', '\n', '\r']));
    let mut response = redirect(back.unwrap_or("/ui"))?;
    let language = fields.some("language").and_then(Language::named).map(|language| (LANGUAGE_COOKIE, language.tag()));
    let theme = fields.some("theme").map(|theme| (THEME_COOKIE, Theme::named(theme).name()));
    let secure = if context.visitor.base.starts_with("https:") { "; Secure" } else { "" };
    for (name, value) in language.into_iter().chain(theme) {
        let cookie = format!("{name}={value}; Path=/ui; Max-Age=31536000; SameSite=Lax; HttpOnly{secure}");
        if let Ok(cookie) = HeaderValue::from_str(&cookie) {
            response.headers_mut().append(SET_COOKIE, cookie);
        }
    }
    Ok(response)
}
