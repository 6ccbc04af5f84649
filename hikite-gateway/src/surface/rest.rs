//! The REST surface: tools as plain JSON objects, for programs and people rather than models.

use hikite_core::caller::Caller;
use hikite_core::error::{Error, Kind};
use hikite_core::json::Raw;
use hikite_core::source::CallContext;

use crate::command::CallOptions;
use crate::gateway::Gateway;

/// Which tools are asked for; nothing means all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolFilter {
    pub module: Option<String>,
    pub category: Option<String>,
    /// A tool must have all of them.
    pub tags: Vec<String>,
    pub enabled: Option<bool>,
}

/// Some of the things that were asked for, and how many there are in all.
#[derive(Clone, Debug, Default)]
pub struct Found {
    pub items: Vec<Raw>,
    pub total: usize,
}

impl Gateway {
    /// Tool objects from `start` on, `count` at most.
    pub async fn tools_page(&self, _: &Caller, _: &ToolFilter, _start: usize, _count: usize) -> Found {
        Found::default()
    }

    /// One tool object by key or unambiguous name.
    pub async fn tool(&self, _: &Caller, name: &str) -> Result<Raw, Error> {
        Err(Error::new(Kind::ToolNotFound, format!("Tool not found: {name}")))
    }

    /// Tool objects with a `relevance` each, best first.
    pub async fn find_tools(&self, _: &Caller, _query: &str, _: &ToolFilter, _limit: usize) -> Found {
        Found::default()
    }

    /// Runs a tool and gives the value of its result. A result that says `isError` is an error here.
    pub async fn run_tool(
        &self,
        name: &str,
        _parameters: Option<Raw>,
        _: CallOptions,
        _: CallContext,
    ) -> Result<Raw, Error> {
        Err(Error::new(Kind::ToolNotFound, format!("Tool not found: {name}")))
    }

    /// `{name, description, state, version?, tools}` of each module.
    pub async fn module_objects(&self, _: &Caller) -> Vec<Raw> {
        Vec::new()
    }

    /// `{name, description, modules, tools}` of each category.
    pub async fn category_objects(&self, _: &Caller) -> Vec<Raw> {
        Vec::new()
    }
}
