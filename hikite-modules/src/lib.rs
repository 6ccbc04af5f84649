//! Tools that are described, not programmed: requests made from templates. Nothing here knows who may call what:
//! a call that arrives here has been decided.

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

/// What is wrong with the `http` member of a form, where nobody wants the tool yet.
pub fn faults(http: &Raw, schema: &Raw) -> Vec<Fault> {
    form::Form::read(http, schema).err().unwrap_or_default()
}

/// Tools that send their requests through `client`.
pub fn maker(client: Client, limits: Arc<Limits>) -> Maker {
    Arc::new(move |http, schema| {
        let tool = HttpTool::read(http, schema, client.clone(), &limits)?;
        Ok(Arc::new(tool))
    })
}
