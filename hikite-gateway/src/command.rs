//! What every surface translates into.

use std::time::Duration;

use hikite_core::about::Retry;
use hikite_core::caller::Scopes;
use hikite_core::json::Object;
use hikite_core::key::ToolKey;
use hikite_core::source::Method;

use crate::batch::Batch;
use crate::handle::Part;
use crate::present::Wanted;
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
    /// Show what modules offer.
    Open(Opening),
    /// Run a tool, and give its result in the form that is wanted.
    Execute {
        target: Target,
        params: Object,
        options: CallOptions,
        wanted: Wanted,
        dialect: Dialect,
    },
    /// Run many tools, some of which wait for others.
    Batch(Batch),
    /// Read a resource, or a part of an answer that was kept, and give it as the result of a tool.
    Fetch {
        uri: String,
        part: Part,
        params: Object,
        dialect: Dialect,
    },
    /// Get a prompt, and give it as the result of a tool.
    Recite {
        module: Option<String>,
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
            Self::Describe { .. } | Self::Search { .. } | Self::Open(_) => Scopes::READ,
            _ => Scopes::CALL,
        }
    }
}

/// How much is told of a tool that was found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Detail {
    Names,
    #[default]
    Signatures,
    Schemas,
}

impl Detail {
    pub const ALL: [(&'static str, Self); 3] =
        [("names", Self::Names), ("signatures", Self::Signatures), ("schemas", Self::Schemas)];
}

/// Which modules are opened, and how far.
#[derive(Clone, Debug, Default)]
pub struct Opening {
    pub modules: Vec<String>,
    /// Only these of their tools, and nothing else; none means everything.
    pub tools: Vec<String>,
    pub detail: Detail,
    /// Send also what this conversation has been sent before.
    pub refresh: bool,
    /// Hashes of what the client says it has.
    pub known: Vec<String>,
    /// Those of `tools/call`.
    pub params: Object,
}

/// In which words a result is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// As a tool's own result: `call`.
    Result,
    /// The value in `{result}`: `tool_execute`.
    Value,
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
    /// By its module and its own name there.
    Keyed(ToolKey),
    InCategory {
        category: String,
        name: String,
    },
}
