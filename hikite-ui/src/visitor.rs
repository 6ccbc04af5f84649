//! Who sits at the browser, as the door of the house has found out.

use http::Extensions;

#[derive(Clone, Debug, Default)]
pub struct Visitor {
    /// What the person is called.
    pub name: String,
    /// Whether it may see and change what is everybody's. The API decides; this only spares links that lead nowhere.
    pub is_admin: bool,
    /// Whether there is a login that can be ended.
    pub can_log_out: bool,
    /// What forms made for this browser carry.
    pub form_token: String,
    /// The address under which the browser reaches the house, without a slash at its end.
    pub base: String,
    /// What requests to the API carry, so that they are this person's.
    pub pass: Extensions,
}
