//! REST types: session.

use hikite_core::json::Raw;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Sessions {
    pub sessions: Vec<Session>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Session {
    /// A number for the session; not the session id of the client.
    pub id: String,
    pub subject: String,
    /// Name of the user, if it belongs to one.
    pub user: Option<String>,
    /// Name and version that the client sent.
    #[schemars(with = "Map<String, Value>")]
    pub client: Raw,
    /// Negotiated MCP revision.
    pub revision: String,
    pub project: Option<String>,
    /// Start of the session.
    #[schemars(extend("format" = "date-time"))]
    pub since: String,
    /// Time of the last message from the client.
    #[schemars(extend("format" = "date-time"))]
    pub last_seen: String,
    pub surfaces: Vec<String>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Consents {
    pub consents: Vec<Consent>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Consent {
    pub id: String,
    pub subject: String,
    /// Name of the user, if the user still exists.
    pub user: Option<String>,
    /// The id of the client.
    pub client: String,
    pub client_name: Option<String>,
    pub scopes: Vec<String>,
    /// The only project it is valid for.
    pub project: Option<String>,
    /// Time of the first consent.
    #[schemars(extend("format" = "date-time"))]
    pub created_at: String,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Logins {
    pub logins: Vec<Login>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Login {
    pub id: String,
    pub subject: String,
    pub user: Option<String>,
    /// Time of the login.
    #[schemars(extend("format" = "date-time"))]
    pub created_at: String,
    /// Time when it expires if it is not used.
    #[schemars(extend("format" = "date-time"))]
    pub expires_at: String,
}
