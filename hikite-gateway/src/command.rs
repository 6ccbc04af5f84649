//! The commands that every surface translates its requests into.

use std::time::Duration;

use hikite_core::call_policy::RetryPolicy;
use hikite_core::caller::Scopes;
use hikite_core::compact::AnswerFormat;
use hikite_core::json::{Object, Raw};
use hikite_core::key::ToolKey;
use hikite_core::plan::OnError;
use hikite_core::selector::Selector;
use hikite_core::source::SourceMethod;

#[derive(Clone, Debug)]
pub enum Command {
    /// Describes the tools of a category, all or the named ones.
    Describe {
        category: String,
        names: Option<Vec<String>>,
    },
    /// Runs a tool. The params are those of `tools/call`; the name in them is replaced by the tool's own.
    Call {
        target: ToolTarget,
        params: Object,
        options: CallOptions,
    },
    /// Searches for tools. The params are those of `tools/call`.
    Search {
        requested: ToolQuery,
        detail: Detail,
        params: Object,
    },
    /// Describes what modules offer.
    Open(ModuleQuery),
    /// Runs a tool and renders its result in the requested format.
    Execute {
        target: ToolTarget,
        params: Object,
        options: CallOptions,
        wanted: OutputOptions,
        dialect: Dialect,
    },
    /// Runs many tools with dependencies among them.
    Batch(Batch),
    /// Reads a resource or a part of a stored result, returned as a tool result.
    Fetch {
        uri: String,
        part: ResultPart,
        params: Object,
        dialect: Dialect,
    },
    /// Gets a prompt, returned as a tool result.
    FetchPrompt {
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
    /// Polls, answers or cancels a task that outlives its call.
    Task {
        method: SourceMethod,
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
    /// Returns the scope that the caller needs.
    pub(crate) fn scope(&self) -> Scopes {
        match self {
            Self::Describe { .. } | Self::Search { .. } | Self::Open(_) => Scopes::READ,
            _ => Scopes::CALL,
        }
    }
}

/// Level of detail of tools in a search result.
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

/// The modules to describe, and the level of detail.
#[derive(Clone, Debug, Default)]
pub struct ModuleQuery {
    pub modules: Vec<String>,
    /// Restricts the description to these tools; empty for everything.
    pub tools: Vec<String>,
    pub detail: Detail,
    /// Include definitions that this conversation has received before.
    pub refresh: bool,
    /// Hashes of definitions that the client already has.
    pub known: Vec<String>,
    /// Params of the `tools/call`.
    pub params: Object,
}

/// Form of a rendered result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// A plain tool result: `call`.
    Result,
    /// The value in `{result}`: `tool_execute`.
    Value,
}

/// Options of one call besides its arguments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallOptions {
    pub timeout: Option<Duration>,
    pub retry: Option<RetryPolicy>,
}

/// The tool that a request names.
#[derive(Clone, Debug)]
pub enum ToolTarget {
    Named(String),
    /// Module and own name of the tool.
    Keyed(ToolKey),
    InCategory {
        category: String,
        name: String,
    },
}

/// A search request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolQuery {
    pub queries: Vec<String>,
    pub context: Option<String>,
    pub limit: usize,
}

/// A batch request.
#[derive(Clone, Debug)]
pub struct Batch {
    /// An array of tasks, or a string with one task per line.
    pub commands: Raw,
    /// Check and report, but run nothing.
    pub dry_run: bool,
    pub concurrency: Option<usize>,
    pub on_error: OnError,
    /// Params of the `tools/call`; its `_meta` accompanies every task.
    pub params: Object,
}

/// The requested part of a resource.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResultPart {
    /// Counted from 1.
    pub page: Option<u32>,
    pub jq: Option<String>,
    pub search: Option<String>,
}

/// Output options of a call. Unset options are decided by the project and by the tool's source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OutputOptions {
    pub format: Option<AnswerFormat>,
    pub select: Option<Selector>,
}
