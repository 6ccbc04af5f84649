//! Documents of tools that are registered at run time, and their persistence.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use hikite_core::annotation;
use hikite_core::error::Error;
use hikite_core::json::Object;
use hikite_core::key::ToolKey;
use hikite_core::origin::ConfigOrigin;
use hikite_core::registration::{HttpToolBuilder, ToolRegistration};
use hikite_core::source::ToolHandler;
use hikite_core::violation::{self, Violation};
use hikite_store::{RegisteredToolRow, Store};

use crate::off_worker::run_blocking;
use crate::tool_registry::{RegisteredTool, ToolRegistry};

/// Reads a tool's document and builds its implementation.
pub fn read(form: &Object, maker: &HttpToolBuilder) -> Result<(ToolRegistration, Arc<dyn ToolHandler>), Error> {
    // Schemas and patterns are compiled, and a few bytes of a pattern may expand to very many.
    run_blocking(|| read_here(form, maker))
}

fn read_here(form: &Object, maker: &HttpToolBuilder) -> Result<(ToolRegistration, Arc<dyn ToolHandler>), Error> {
    let mut registration = ToolRegistration::read(form)?;
    let http = registration.http.as_ref().ok_or_else(|| {
        violation::error(&[Violation::new("/http", "`http` is required: the HTTP request of the tool.")])
            .hint("Give at least `{\"url\": \"https://…\"}`.")
    })?;
    let implementation = maker(http, &registration.schema()).map_err(|faults| violation::error(&faults))?;
    let method = http.object().and_then(|http| http.text("method")).unwrap_or_else(|| "GET".into());
    registration.annotate(&annotation::from_method(&method));
    Ok((registration, implementation))
}

/// Persistence of registered tools and switches.
pub struct RegistryStore {
    pub(crate) store: Store,
    pub(crate) maker: HttpToolBuilder,
    /// Serializes changes, so that memory follows the store in order.
    pub(crate) turn: tokio::sync::Mutex<()>,
    /// Store revision that memory reflects.
    pub(crate) revision: AtomicI64,
}

impl std::fmt::Debug for RegistryStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RegistryStore").finish_non_exhaustive()
    }
}

impl RegistryStore {
    pub fn new(store: Store, maker: HttpToolBuilder) -> Self {
        Self { store, maker, turn: tokio::sync::Mutex::default(), revision: AtomicI64::new(-1) }
    }

    pub(crate) fn store(&self) -> &Store {
        &self.store
    }

    /// Forces a full read: tools that the config file overrode may be the store's again.
    pub(crate) fn refresh(&self) {
        self.revision.store(-1, Ordering::Relaxed);
    }

    fn entry(&self, row: &RegisteredToolRow) -> Result<RegisteredTool, Error> {
        let form = row.form.object().unwrap_or_default();
        let (registration, implementation) = read(&form, &self.maker)?;
        Ok(RegisteredTool {
            registration: Arc::new(registration),
            implementation,
            registered_at: row.registered_at,
            origin: ConfigOrigin::Store,
        })
    }
}

impl RegistryStore {
    /// Returns the tools to remove from and add to memory to match the store. Tools of the config file or the program
    /// take precedence.
    pub(crate) fn differences(
        &self,
        tool_registry: &ToolRegistry,
        rows: &[RegisteredToolRow],
    ) -> (Vec<ToolKey>, Vec<RegisteredTool>) {
        let kept: HashMap<&ToolKey, &RegisteredToolRow> = rows.iter().map(|row| (&row.key, row)).collect();
        let gone = tool_registry.of(ConfigOrigin::Store).filter(|(key, _)| !kept.contains_key(key));
        let away = gone.map(|(key, _)| key.clone()).collect();
        let news = rows.iter().filter(|row| match tool_registry.get(&row.key) {
            None => true,
            Some(entry) => entry.origin == ConfigOrigin::Store && entry.registered_at != row.registered_at,
        });
        let more = news.filter_map(|row| match self.entry(row) {
            Ok(entry) => Some(entry),
            Err(error) => {
                tracing::warn!(tool = %row.key, %error, "a registered tool is invalid and is skipped");
                None
            }
        });
        (away, more.collect())
    }
}

#[cfg(test)]
mod stress;
#[cfg(test)]
mod tests;
