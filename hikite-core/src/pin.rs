//! Pins: the approved definition of an upstream tool, as a hash. A pin covers everything that a model sees; icons and
//! `_meta` are excluded. Pure: approvals are stored elsewhere.

mod diff;
mod passage;

use sha2::{Digest, Sha256};

use crate::hex::hex;
use crate::json::{Object, Raw, canonical};

pub use diff::{DefinitionChange, diff};
pub use passage::{Passage, passages};

/// Policy for definitions that nobody approved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Pinning {
    /// All definitions are accepted.
    #[default]
    Off,
    /// Trust on first use: the first definition is accepted, later changes wait for approval.
    Tofu,
    /// New definitions also wait for approval.
    Strict,
}

impl Pinning {
    pub fn word(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Tofu => "tofu",
            Self::Strict => "strict",
        }
    }
}

/// Reason why a tool is held back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HoldReason {
    /// The definition differs from the approved one.
    Changed,
    /// The tool has not been approved yet.
    New,
    /// An administrator blocked the tool.
    Blocked,
}

impl HoldReason {
    pub fn word(self) -> &'static str {
        match self {
            Self::Changed => "changed",
            Self::New => "new",
            Self::Blocked => "blocked",
        }
    }

    /// Returns a short explanation for people.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Changed => "changed since it was approved",
            Self::New => "is new and not approved yet",
            Self::Blocked => "was blocked",
        }
    }
}

/// Pinned members of a definition, in display order.
const MEMBERS: [&str; 6] = ["name", "title", "description", "annotations", "inputSchema", "outputSchema"];

/// Returns the pinned members of a definition.
pub fn pinned(definition: &Raw) -> Raw {
    let members = definition.object().unwrap_or_default();
    let mut pinned_members = Object::default();
    for name in MEMBERS {
        if let Some(value) = members.get(name).filter(|value| !value.is_null()) {
            pinned_members.set(name, value.clone());
        }
    }
    pinned_members.raw()
}

/// Hashes a definition. Member order, the spelling of numbers and strings, and members that are not pinned do not
/// affect the hash.
pub fn hash(definition: &Raw) -> String {
    hex(&Sha256::digest(canonical(&pinned(definition))))
}

#[cfg(test)]
mod tests;
