//! What every surface translates into.

use std::time::Duration;

use hikite_core::about::Retry;
use hikite_core::caller::Scopes;
use hikite_core::json::Object;
use hikite_core::source::Method;

use crate::search::Inquiry;

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
    /// Find tools. The params are those of `tools/call`.
    Search {
        asked: Inquiry,
        detail: Detail,
        params: Object,
    },
    /// Run a tool that was found, and give the value of its result.
    Execute {
        name: String,
        params: Object,
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
            Self::Describe { .. } | Self::Search { .. } => Scopes::READ,
            _ => Scopes::CALL,
        }
    }
}

/// How much is told of a tool that was found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Detail {
    Names,
    #[default]
    Signatures,
    Schemas,
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
