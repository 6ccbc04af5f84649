//! Declarative tools: HTTP requests built from templates and module files. Authorization of callers happens elsewhere.

mod body;
mod builtin;
pub mod convert;
mod definition;
mod definition_reader;
mod escape;
mod expression;
mod file;
mod header;
pub mod jq;
mod module;
pub mod openapi;
mod parameter;
mod reference;
mod response;
mod result_path;
mod scope;
mod template;
mod tool;
mod url_template;

use std::sync::Arc;

use hikite_core::json::Raw;
use hikite_core::limits::Limits;
use hikite_core::registration::HttpToolBuilder;
use hikite_core::violation::Violation;
use hikite_egress::EgressClient;

pub use builtin::BUILTIN;
pub use file::{NamedMap, SCHEMA, TextLanguage};
pub use module::{ModuleReview, Service, ServiceSettings, ToolSummary, review};
pub use tool::HttpTool;

/// Returns the violations in the `http` member of a registration without building the tool.
pub fn faults(http: &Raw, schema: &Raw) -> Vec<Violation> {
    definition::HttpDefinition::read(http, schema).err().unwrap_or_default()
}

/// Returns a factory of tools that send their requests through `client`.
pub fn maker(client: EgressClient, limits: Arc<Limits>) -> HttpToolBuilder {
    Arc::new(move |http, schema| {
        let tool = HttpTool::read(http, schema, client.clone(), &limits)?;
        Ok(Arc::new(tool))
    })
}
