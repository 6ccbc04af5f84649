//! REST types: token.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schema::{scopes, scopes_or_null};

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Tokens {
    pub tokens: Vec<Token>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Token {
    #[schemars(extend("examples" = ["tok_abcd2345"]))]
    pub id: String,
    pub name: String,
    pub subject: String,
    /// Name of the user it acts for.
    pub user: Option<String>,
    /// Id of that user.
    pub user_id: Option<String>,
    pub project: Option<String>,
    #[schemars(schema_with = "scopes")]
    pub scopes: Vec<String>,
    #[schemars(extend("format" = "date-time"))]
    pub created_at: String,
    #[schemars(extend("format" = "date-time"))]
    pub expires_at: Option<String>,
    /// True if the token is accepted.
    pub active: bool,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NewToken {
    #[schemars(length(min = 1, max = 128), extend("examples" = ["laptop"]))]
    pub name: String,
    /// The user it acts for, by name or id; `owner` is the current owner. By default the token has its own identity.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 128), extend("examples" = [null]))]
    pub user: Option<String>,
    /// A label as its identity, or the name of a user, which is the same as `user`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 128), extend("deprecated" = true))]
    pub subject: Option<String>,
    /// The only project it gives access to.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 128))]
    pub project: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "scopes_or_null")]
    pub scopes: Option<Vec<String>>,
    /// Lifetime in seconds; by default it does not expire.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 316_224_000))]
    pub expires_in: Option<u64>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct CreatedToken {
    #[serde(flatten)]
    pub token: Token,
    /// The bearer token; not shown again.
    pub secret: String,
}
