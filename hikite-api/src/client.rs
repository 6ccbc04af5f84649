//! REST types: client.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schema::{never_null, scopes_or_null};

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Clients {
    pub clients: Vec<Client>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Client {
    pub id: String,
    pub name: String,
    pub redirect_uris: Vec<String>,
    #[schemars(extend("enum" = ["registered", "document", "admin"]))]
    pub origin: String,
    pub confidential: bool,
    pub client_credentials: bool,
    /// Pending: its redirect addresses wait for approval by an admin.
    #[schemars(extend("enum" = ["active", "pending"]))]
    pub status: String,
    #[schemars(extend("format" = "date-time"))]
    pub created_at: String,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NewClient {
    #[schemars(length(min = 1, max = 128), extend("examples" = ["build server"]))]
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = [["https://app.example/callback"]]))]
    pub redirect_uris: Option<Vec<String>>,
    /// True for a client with a secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confidential: Option<bool>,
    /// True if it may use the client credentials grant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_credentials: Option<bool>,
    /// Scopes for the client credentials grant.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "scopes_or_null")]
    pub scopes: Option<Vec<String>>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(transform = never_null)]
pub struct CreatedClient {
    #[serde(flatten)]
    pub client: Client,
    /// Shown only once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
}
