//! REST types: user.

use hikite_core::json::Raw;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::schema::{closed, never_null};

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Users {
    pub users: Vec<User>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct User {
    /// Never reused.
    #[schemars(extend("examples" = ["usr_0123456789abcdef01234567"]))]
    pub id: String,
    /// Lowercase letters, digits, `-`, `_`, `.` and `@`.
    #[schemars(length(min = 1, max = 64), extend("examples" = ["alice"]))]
    pub name: String,
    /// Key of everything that belongs to the user.
    pub subject: String,
    #[schemars(extend("enum" = ["owner", "admin", "member"]))]
    pub role: String,
    /// Visible tools of this user: `allow` and `deny`, lists of modules, tools, patterns and risks.
    #[schemars(with = "Option<Map<String, Value>>")]
    pub permissions: Option<Raw>,
    pub disabled: bool,
    /// The only project this user works in, with any token or client; null for no restriction.
    #[schemars(length(min = 1, max = 128), extend("examples" = [null]))]
    pub project: Option<String>,
    #[schemars(extend("format" = "date-time"))]
    pub created_at: String,
}

/// The members of a user that can be set.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UserSettings {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["admin", "member", null]))]
    pub role: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 10, max = 1000))]
    pub password: Option<String>,
    /// Visible tools of this user: `allow` and `deny`, lists of modules, tools, patterns and risks.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Map<String, Value>>")]
    pub permissions: Option<Raw>,
    /// Locks the user: logins, grants and tokens are rejected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disabled: Option<bool>,
    /// The only project this user works in, with any token or client; null for no restriction.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 128), extend("examples" = [null]))]
    pub project: Option<String>,
    /// Removes the passkeys.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remove_passkeys: Option<bool>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(transform = closed)]
pub struct NewUser {
    #[serde(flatten)]
    pub settings: UserSettings,
    /// Lowercase letters, digits, `-`, `_`, `.` and `@`.
    #[schemars(length(min = 1, max = 64), extend("examples" = ["alice"]))]
    pub name: String,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(transform = closed)]
pub struct UserForm {
    #[serde(flatten)]
    pub settings: UserSettings,
    /// Lowercase letters, digits, `-`, `_`, `.` and `@`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(min = 1, max = 64), extend("examples" = ["alice"]))]
    pub name: Option<String>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(transform = never_null)]
pub struct CreatedUser {
    #[serde(flatten)]
    pub user: User,
    /// Shown only once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub password: Option<String>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = never_null)]
pub struct Handover {
    /// The owner's password; not needed after a fresh login in a browser.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub password: Option<String>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(transform = never_null)]
pub struct OwnPassword {
    /// The current password; not needed after a fresh login in a browser.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current: Option<String>,
    #[schemars(length(min = 10, max = 1000))]
    pub password: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remove_passkeys: Option<bool>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Removals {
    pub removals: Vec<Removal>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Removal {
    pub id: String,
    /// The former user name.
    pub name: String,
    pub issuer: String,
    /// The subject at the issuer.
    pub subject: String,
    /// The former id of the user.
    pub user: String,
    #[schemars(extend("format" = "date-time"))]
    pub removed_at: String,
}
