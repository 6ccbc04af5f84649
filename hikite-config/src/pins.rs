//! The `pins` setting: handling of unapproved tool definitions, at the root and per server.

use hikite_core::pin::Pinning;
use schemars::JsonSchema;
use serde::Deserialize;

/// Handling of a server's tools whose definition nobody approved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "Pins")]
pub(crate) enum PinsWord {
    /// Whatever a server says of its tools is taken.
    Off,
    /// The first definition is accepted; a tool that changes later is held back until it is approved.
    #[default]
    Tofu,
    /// New tools are held back, too.
    Strict,
}

impl From<PinsWord> for Pinning {
    fn from(word: PinsWord) -> Self {
        match word {
            PinsWord::Off => Self::Off,
            PinsWord::Tofu => Self::Tofu,
            PinsWord::Strict => Self::Strict,
        }
    }
}
