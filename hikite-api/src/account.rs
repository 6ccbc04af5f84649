//! REST types: account.

use std::collections::BTreeMap;

use hikite_core::json::Raw;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::schema::never_null;

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Accounts {
    pub accounts: Vec<Account>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Account {
    /// Its id.
    pub id: String,
    /// Name used in calls: letters, digits, `-_.@+`.
    #[schemars(length(min = 1, max = 64))]
    pub name: String,
    /// The provider.
    pub provider: String,
    /// Name of the user it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub user: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub user_id: Option<String>,
    /// `connected`: the vendor accepted the credential. `unverified`: not checked yet. `reconnect`: the vendor
    /// rejects it.
    #[schemars(extend("enum" = ["connected", "unverified", "reconnect"]))]
    pub state: String,
    /// Reason why it is not verified or was rejected, in the vendor's words.
    pub problem: Option<String>,
    #[schemars(extend("format" = "date-time"))]
    pub verified_at: Option<String>,
    /// All users may use it.
    pub shared: bool,
    /// Tools that may be called with it: `allow`, `deny`.
    #[schemars(with = "Map<String, Value>")]
    pub permissions: Raw,
    /// It is defined in the config file and available to all users.
    pub managed_by_file: bool,
    /// Absent for an account of the config file.
    #[serde(flatten)]
    pub stored: Option<StoredAccount>,
}

impl Account {
    /// Adds the id and the name of its user, which `find` returns for a subject.
    #[must_use]
    pub fn with_user<T: ToString>(self, find: impl FnOnce(&str) -> Option<(T, T)>) -> Self {
        let found = self.stored.as_ref().and_then(|stored| find(&stored.subject));
        let (user_id, user) = found.map(|(id, name)| (id.to_string(), name.to_string())).unzip();
        Self { user, user_id, ..self }
    }
}

/// The members that only accounts in the store have.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StoredAccount {
    /// The subject it belongs to.
    pub subject: String,
    /// Used by default if there are several.
    #[serde(rename = "default")]
    pub is_default: bool,
    pub scopes: Vec<String>,
    pub details: BTreeMap<String, String>,
    #[schemars(extend("format" = "date-time"))]
    pub expires_at: Option<String>,
    #[schemars(extend("format" = "date-time"))]
    pub last_refresh: Option<String>,
    #[schemars(extend("format" = "date-time"))]
    pub created_at: Option<String>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = never_null)]
pub struct NewAccount {
    /// The provider.
    #[schemars(length(min = 1))]
    pub provider: String,
    /// Name used in calls: letters, digits, `-_.@+`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64))]
    pub name: Option<String>,
    /// The token; it is not shown again.
    #[schemars(length(min = 1))]
    pub token: String,
    /// E-mail address of the token's owner, if the service needs both.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub email: Option<String>,
    /// Host of the account's site.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub site: Option<String>,
    /// Another address for the service; for admins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api: Option<String>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AccountChanges {
    /// Name used in calls: letters, digits, `-_.@+`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(min = 1, max = 64))]
    pub name: Option<String>,
    /// Used by default if there are several.
    #[serde(rename = "default", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "bool")]
    pub is_default: Option<bool>,
    /// All users may use it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "bool")]
    pub shared: Option<bool>,
    /// Tools that may be called with it: `allow`, `deny`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Map<String, Value>>")]
    pub permissions: Option<Raw>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = never_null)]
pub struct NewConnection {
    /// The provider.
    #[schemars(length(min = 1))]
    pub provider: String,
    /// Name used in calls: letters, digits, `-_.@+`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64))]
    pub name: Option<String>,
    /// Requests a one-time code that identifies the user on the page; only for the holder of the local token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub terminal: Option<bool>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = never_null)]
pub struct ConnectionLink {
    /// Its id.
    pub id: String,
    /// Address to open in the browser, valid once.
    pub url: String,
    #[schemars(extend("format" = "date-time"))]
    pub expires_at: String,
    /// Code to enter on the page if no user is logged in; only with `terminal`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Connection {
    /// Its id.
    pub id: String,
    /// The provider.
    pub provider: String,
    /// Name used in calls: letters, digits, `-_.@+`.
    #[schemars(length(min = 1, max = 64))]
    pub name: String,
    #[schemars(extend("enum" = ["waiting", "opened", "exchanging", "connected", "failed"]))]
    pub state: String,
    pub account: Option<String>,
    pub error: Option<String>,
    #[schemars(extend("enum" = ["connected", "unverified", null]))]
    pub account_state: Option<String>,
    pub problem: Option<String>,
    #[schemars(extend("format" = "date-time"))]
    pub expires_at: String,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Providers {
    pub providers: Vec<ProviderObject>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProviderObject {
    /// Its name.
    pub name: String,
    /// Display name.
    pub title: String,
    pub scopes: Vec<String>,
    pub client_id: Option<String>,
    /// Accounts can be connected in a browser.
    pub connectable: bool,
    /// The app is defined in the config file.
    pub managed_by_file: bool,
    /// The config file has an account for all users.
    pub account_of_the_file: bool,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = never_null)]
pub struct ProviderApp {
    /// Client id of the app.
    #[schemars(length(min = 1))]
    pub client_id: String,
    /// Client secret; not shown again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_secret: Option<String>,
}
