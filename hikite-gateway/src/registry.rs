//! Tools that are registered while we run, and the switches of all tools.

use hikite_core::error::{Error, Kind};
use hikite_core::json::{Object, Raw};

use crate::gateway::Gateway;

impl Gateway {
    /// Registers the tool that `form` describes; `overwrite: true` in it replaces one of the same name. Gives its
    /// tool object.
    pub async fn register(&self, _form: &Object) -> Result<Raw, Error> {
        Err(Error::new(Kind::Internal, "not yet"))
    }

    pub async fn unregister(&self, name: &str) -> Result<(), Error> {
        Err(Error::new(Kind::ToolNotFound, format!("Tool not found: {name}")))
    }

    /// Switches a tool on or off and gives its tool object.
    pub async fn switch(&self, name: &str, _enabled: bool) -> Result<Raw, Error> {
        Err(Error::new(Kind::ToolNotFound, format!("Tool not found: {name}")))
    }
}
