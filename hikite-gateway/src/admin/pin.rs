//! Administration of pins: which tool definitions are approved.

mod change;
mod object;
mod record;

use std::sync::Arc;

use crate::catalogs::Catalogs;
use crate::registry::RegistryStore;

pub use object::{PinFilter, PinState, PinnedTool};

#[derive(Debug)]
pub struct PinAdmin {
    pub(crate) catalogs: Arc<Catalogs>,
    pub(crate) registry: Arc<RegistryStore>,
}
