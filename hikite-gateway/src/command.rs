//! What every surface translates into.

use std::time::Duration;

use hikite_core::about::Retry;
use hikite_core::caller::Scopes;
use hikite_core::json::Object;
use hikite_core::source::Method;

#[derive(Clone, Debug)]
pub enum Command {
    /// Show the tools of a category, all or the named ones.
    Describe {
        category: String,
        names: Option<Vec<String>>,
    },
    /// Run a tool. The params are those of `tools/call`; the name in them is replaced by the tool's own.
    Call {
        target: Target,
        params: Object,
        options: CallOptions,
    },
    Read {
        params: Object,
    },
    Subscribe {
        params: Object,
    },
    Unsubscribe {
        params: Object,
    },
    Prompt {
        params: Object,
    },
    Complete {
        params: Object,
    },
    /// Look at, answer or end a call that goes on after it was answered.
    Task {
        method: Method,
        params: Object,
    },
    Skill {
        params: Object,
    },
    Directory {
        params: Object,
    },
}

impl Command {
    /// What a caller must be allowed to do for it.
    pub(crate) fn scope(&self) -> Scopes {
        match self {
            Self::Describe { .. } => Scopes::READ,
            _ => Scopes::CALL,
        }
    }
}

/// What one call asks for beside its arguments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallOptions {
    pub timeout: Option<Duration>,
    pub retry: Option<Retry>,
}

/// Which tool is meant.
#[derive(Clone, Debug)]
pub enum Target {
    Named(String),
    InCategory { category: String, name: String },
}
