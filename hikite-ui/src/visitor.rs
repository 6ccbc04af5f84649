//! The user at the browser, as authenticated by the guard.

use http::Extensions;

#[derive(Clone, Debug, Default)]
pub struct Visitor {
    /// Display name.
    pub name: String,
    /// `true` if the user is an admin. The API decides; this only hides links that would fail.
    pub is_admin: bool,
    /// `true` if there is a login to end.
    pub can_log_out: bool,
    /// The CSRF token of this browser.
    pub form_token: String,
    /// Base URL as used by the browser, without a trailing slash.
    pub base: String,
    /// Extensions of API requests, which identify the user.
    pub extensions: Extensions,
}
