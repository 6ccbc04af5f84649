//! What is known of a tool beside its definition, and how calls of it are run where it differs from its module.

use std::sync::Arc;
use std::time::Duration;

use crate::annotation;
use crate::json::{Object, Raw};

/// What whoever registered a tool says of it. Tools of upstream servers have little of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct About {
    pub version: Option<Arc<str>>,
    pub tags: Vec<Arc<str>>,
    pub category: Option<Arc<str>>,
    pub author: Option<Arc<str>>,
    /// `{description, parameters, expectedResult?}`, as they were given.
    pub examples: Vec<Raw>,
    /// Names or keys of the tools it needs.
    pub dependencies: Vec<Arc<str>>,
    pub policy: Policy,
}

/// What a tool's annotations promise. What is not promised is not assumed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Promise {
    pub read_only: bool,
    pub idempotent: bool,
}

impl Promise {
    /// Reads the `annotations` of a definition.
    pub fn read(definition: &Raw) -> Self {
        Self::of(&annotation::of_definition(definition))
    }

    /// Of a tool with these annotations.
    pub fn of(annotations: &Object) -> Self {
        let hint = |name: &str| annotations.get(name).is_some_and(|value| value.as_str() == "true");
        Self { read_only: hint("readOnlyHint"), idempotent: hint("idempotentHint") }
    }

    /// Whether running it twice does no more than running it once.
    pub fn is_repeatable(self) -> bool {
        self.read_only || self.idempotent
    }
}

/// How calls of one tool are run, where somebody decided it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    pub timeout: Option<Duration>,
    pub retry: Option<Retry>,
    /// How long a result may be given again to the same caller for the same arguments.
    pub cache: Option<Duration>,
}

impl Policy {
    /// What is decided here, and where nothing is, what `other` decides.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            timeout: self.timeout.or(other.timeout),
            retry: self.retry.or(other.retry),
            cache: self.cache.or(other.cache),
        }
    }
}

/// Further attempts after a failure that allows them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry {
    /// Besides the first.
    pub attempts: u32,
    /// The first pause; each further one may be twice as long.
    pub delay: Duration,
}

impl Retry {
    /// The first pause where none is named.
    pub const DELAY: Duration = Duration::from_secs(1);
}
