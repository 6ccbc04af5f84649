//! REST types: pin.

use hikite_core::json::Raw;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::schema::never_null;

/// Hexadecimal digits of a SHA-256 hash.
pub const HASH_CHARS: usize = 64;

pub(crate) const STATES: [&str; 4] = ["ok", "changed", "new", "blocked"];
pub(crate) const STATES_DESCRIPTION: &str =
    "`changed` and `new` wait for approval, `blocked` was blocked by an admin; none of these can be called.";

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Pins {
    pub pins: Vec<Pin>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = never_null)]
pub struct Pin {
    /// `module:tool`.
    pub key: String,
    pub module: String,
    /// Name on its server.
    pub name: String,
    /// `changed` and `new` wait for approval, `blocked` was blocked by an admin; none of these can be called.
    #[schemars(extend("enum" = STATES))]
    pub state: String,
    /// Pin policy of its module; `off` if the module does not exist.
    #[schemars(extend("enum" = ["off", "tofu", "strict"]))]
    pub policy: String,
    /// True if its server currently offers it.
    pub offered: bool,
    /// Hash of the current definition.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("pattern" = r"^[0-9a-f]{64}$"))]
    pub hash: Option<String>,
    /// Hash of the last approved definition.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("pattern" = r"^[0-9a-f]{64}$"))]
    pub approved_hash: Option<String>,
    /// Time when it was approved, blocked or first seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    pub decided_at: Option<String>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct PinDetail {
    #[serde(flatten)]
    pub pin: Pin,
    /// The approved definition.
    #[schemars(with = "Option<Map<String, Value>>")]
    pub before: Option<Raw>,
    /// The current definition.
    #[schemars(with = "Option<Map<String, Value>>")]
    pub after: Option<Raw>,
    pub diff: Vec<PinChange>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(transform = never_null)]
pub struct PinChange {
    /// A JSON Pointer (RFC 6901).
    pub path: String,
    /// Left out if it did not exist before.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Value>")]
    pub before: Option<Raw>,
    /// Left out if it no longer exists.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Value>")]
    pub after: Option<Raw>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PinApproval {
    /// Hash of the reviewed definition; 409 if the definition has changed since.
    #[schemars(extend("pattern" = r"^[0-9a-f]{64}$"))]
    pub hash: String,
}
