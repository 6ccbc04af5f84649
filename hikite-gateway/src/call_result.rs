//! Result of a request, with what its transport has to know about it.

use hikite_core::json::{Object, Raw};

/// Result of a request as its client gets it. On most surfaces a refused or failed tool call is a result too.
#[derive(Clone, Debug)]
pub struct CallResult {
    pub raw: Raw,
    /// `true` if the result states that the caller's scopes do not allow the call.
    pub insufficient_scope: bool,
}

impl CallResult {
    /// Changes the form of the result.
    #[must_use]
    pub fn map(self, change: impl FnOnce(Raw) -> Raw) -> Self {
        Self { raw: change(self.raw), ..self }
    }
}

impl From<Raw> for CallResult {
    fn from(raw: Raw) -> Self {
        Self { raw, insufficient_scope: false }
    }
}

/// Copies the other members of the original result.
pub(crate) fn with_other_members(result: &Object, members: &Object) -> Object {
    let rest = members.iter().filter(|(name, _)| !matches!(*name, "content" | "structuredContent"));
    result.iter().chain(rest).map(|(name, value)| (name.into(), value.clone())).collect()
}
