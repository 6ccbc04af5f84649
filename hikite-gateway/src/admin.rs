//! Administration: what the UI, the REST API and the CLI manage. One part for each kind of object; callers have checked
//! that the user is an administrator.

mod access;
mod module;
mod pin;
mod preview;
mod status;
mod store_sync;
mod tool;

use std::sync::Arc;

use hikite_core::breaker::CircuitState;
use hikite_core::caller::Caller;
use hikite_core::catalog::Module;
use hikite_core::error::{Error, ErrorKind};

use crate::accounts::AccountStore;
use crate::config_admin::ConfigAdmin;
use crate::health::ModuleHealth;

pub use access::AccessAdmin;
pub use module::ModuleAdmin;
pub use pin::{PinAdmin, PinFilter, PinState, PinnedTool};
pub use preview::Previews;
pub use status::Status;
pub use store_sync::StoreSync;
pub use tool::ToolAdmin;

#[derive(Debug)]
pub struct Admin {
    /// Registered tools, switches and texts of tools.
    pub tools: Arc<ToolAdmin>,
    pub modules: ModuleAdmin,
    /// Approved definitions of tools.
    pub pins: Arc<PinAdmin>,
    /// Users, projects and accounts as requests see them.
    pub access: Arc<AccessAdmin>,
    pub previews: Previews,
    pub status: Status,
    /// Changes that other processes made.
    pub store: StoreSync,
    pub(crate) config: Option<Arc<dyn ConfigAdmin>>,
}

impl Admin {
    /// Returns the administration of upstream servers and categories. Fails where the config cannot be changed at run
    /// time.
    pub fn config(&self) -> Result<&Arc<dyn ConfigAdmin>, Error> {
        self.config
            .as_ref()
            .ok_or_else(|| Error::new(ErrorKind::NotFound, "Runtime configuration is not available in embedded mode."))
    }
}

/// Returns the module's accounts whose circuit breaker is not closed, as far as the caller may know of them.
fn paused_accounts(
    accounts: Option<&Arc<AccountStore>>,
    caller: &Caller,
    module: &Module,
    health: &ModuleHealth,
) -> Vec<(String, CircuitState)> {
    let (Some(accounts), Some(provider)) = (accounts, module.source.provider()) else {
        return Vec::new();
    };
    let shown = |(id, state): (Arc<str>, _)| Some((accounts.label(caller, provider, &id)?, state));
    health.tripped().into_iter().filter_map(shown).collect()
}
