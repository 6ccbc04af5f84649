//! Metadata of a tool beyond its definition, and the call policy that overrides the policy of its module.

use std::sync::Arc;
use std::time::Duration;

use crate::annotation;
use crate::json::{Object, Raw};

/// Metadata supplied when a tool was registered. Tools of upstream servers have little of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolMetadata {
    pub version: Option<Arc<str>>,
    pub tags: Vec<Arc<str>>,
    pub category: Option<Arc<str>>,
    pub author: Option<Arc<str>>,
    /// Examples as registered: `{description, parameters, expectedResult?}`.
    pub examples: Vec<Raw>,
    /// Names or keys of the tools that this tool needs.
    pub dependencies: Vec<Arc<str>>,
    pub policy: CallPolicy,
}

/// Behavior hints from a tool's annotations. A hint that is absent counts as `false`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ToolHints {
    pub read_only: bool,
    pub idempotent: bool,
}

impl ToolHints {
    /// Reads the `annotations` of a definition.
    pub fn read(definition: &Raw) -> Self {
        Self::of(&annotation::from_definition(definition))
    }

    /// Builds the hints from a tool's annotations.
    pub fn of(annotations: &Object) -> Self {
        let hint = |name: &str| annotations.get(name).is_some_and(|value| value.as_str() == "true");
        Self { read_only: hint("readOnlyHint"), idempotent: hint("idempotentHint") }
    }

    /// Returns `true` if a second run has no further effect.
    pub fn is_safe_to_repeat(self) -> bool {
        self.read_only || self.idempotent
    }
}

/// Settings for calls of one tool; `None` inherits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallPolicy {
    pub timeout: Option<Duration>,
    pub retry: Option<RetryPolicy>,
    /// Time for which a result may be cached for the same caller and the same arguments.
    pub cache: Option<Duration>,
}

impl CallPolicy {
    /// Returns this policy with unset fields taken from `other`.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            timeout: self.timeout.or(other.timeout),
            retry: self.retry.or(other.retry),
            cache: self.cache.or(other.cache),
        }
    }
}

/// Retries after a failure that permits them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Number of retries, not counting the first attempt.
    pub attempts: u32,
    /// Delay before the first retry; each further delay may be twice as long.
    pub delay: Duration,
}

impl RetryPolicy {
    /// Default delay before the first retry.
    pub const DELAY: Duration = Duration::from_secs(1);
}
