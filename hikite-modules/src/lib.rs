//! Declarative tools: HTTP requests built from templates and module files. Authorization of callers happens elsewhere.

mod address;
mod answer;
mod body;
mod builtin;
pub mod convert;
mod escape;
mod expression;
mod file;
mod form;
mod header;
pub mod jq;
mod module;
pub mod openapi;
mod parameter;
mod pick;
mod reference;
mod scope;
mod template;
mod tool;

use std::sync::Arc;

use hikite_core::fault::Fault;
use hikite_core::json::Raw;
use hikite_core::limits::Limits;
use hikite_core::register::Maker;
use hikite_egress::Client;

pub use builtin::BUILTIN;
pub use file::{Language, Named, SCHEMA};
pub use module::{About, Review, Service, Settings, review};
pub use tool::HttpTool;

/// Returns the violations in the `http` member of a registration without building the tool.
pub fn faults(http: &Raw, schema: &Raw) -> Vec<Fault> {
    form::Form::read(http, schema).err().unwrap_or_default()
}

/// Returns a factory of tools that send their requests through `client`.
pub fn maker(client: Client, limits: Arc<Limits>) -> Maker {
    Arc::new(move |http, schema| {
        let tool = HttpTool::read(http, schema, client.clone(), &limits)?;
        Ok(Arc::new(tool))
    })
}
