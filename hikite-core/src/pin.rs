//! A pin: what a tool of a server looked like when it was approved. What is pinned is all that a model is told of it and
//! goes by; pictures and notes of the server to itself are not. Nothing is decided here that needs to be remembered.

mod diff;
mod passage;

use sha2::{Digest, Sha256};

use crate::hex::hex;
use crate::json::{Object, Raw, canonical};

pub use diff::{Change, diff};
pub use passage::{Passage, passages};

/// What becomes of a definition that nobody approved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Pinning {
    /// Whatever a server says is taken.
    #[default]
    Off,
    /// What is seen first is taken; what differs from it later waits.
    Tofu,
    /// What is new waits, too.
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

/// Why a tool is held back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// It is not what was approved.
    Changed,
    /// Nobody approved it yet.
    New,
    /// Somebody blocked it.
    Blocked,
}

impl Why {
    pub fn word(self) -> &'static str {
        match self {
            Self::Changed => "changed",
            Self::New => "new",
            Self::Blocked => "blocked",
        }
    }

    /// In a few words, for people.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Changed => "changed since it was approved",
            Self::New => "is new and not approved yet",
            Self::Blocked => "was blocked",
        }
    }
}

/// The members that are pinned, in the order people read them.
const MEMBERS: [&str; 6] = ["name", "title", "description", "annotations", "inputSchema", "outputSchema"];

/// What is pinned of a definition.
pub fn pinned(definition: &Raw) -> Raw {
    let members = definition.object().unwrap_or_default();
    let mut kept = Object::default();
    for name in MEMBERS {
        if let Some(value) = members.get(name).filter(|value| !value.is_null()) {
            kept.set(name, value.clone());
        }
    }
    kept.raw()
}

/// Says of two definitions whether they are the same: in what order members are written does not matter, nor does how
/// a number or a text is spelled, nor what is not pinned.
pub fn hash(definition: &Raw) -> String {
    hex(&Sha256::digest(canonical(&pinned(definition))))
}

#[cfg(test)]
mod tests;
