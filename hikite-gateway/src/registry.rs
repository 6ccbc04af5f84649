//! Tools registered at run time, and the switches that enable or disable any tool. Changes are written to the store
//! first and published afterwards; changes of other processes are read by `catch_up_with_store`.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use hikite_core::annotation;
use hikite_core::caller::Caller;
use hikite_core::error::{Error, ErrorKind};
use hikite_core::json::{Object, Raw};
use hikite_core::key::ToolKey;
use hikite_core::origin::ConfigOrigin;
use hikite_core::registration::{HttpToolBuilder, ToolRegistration, name_conflict};
use hikite_core::source::ToolHandler;
use hikite_core::switch::DisabledReason;
use hikite_core::violation::{self, Violation};
use hikite_store::{ChangeSet, RegisteredToolRow, Store, change_kind};

use crate::clock::now_ms;
use crate::gateway::Gateway;
use crate::off_worker::run_blocking;
use crate::overrides::TEXT;
use crate::pin::PIN;
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
    maker: HttpToolBuilder,
    /// Serializes changes, so that memory follows the store in order.
    pub(crate) turn: tokio::sync::Mutex<()>,
    /// Store revision that memory reflects.
    revision: AtomicI64,
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

impl Gateway {
    /// Registers the tool that `form` describes and returns its REST object; `overwrite: true` replaces a tool of the
    /// same name.
    pub async fn register(&self, form: &Object) -> Result<Raw, Error> {
        let (mut registration, implementation) = read(form, &self.registry.maker)?;
        let key = registration.key.clone();
        // Only the config file disables a tool for good; here `enabled` is the initial state of the switch.
        let enabled = std::mem::replace(&mut registration.enabled, true);
        let _turn = self.registry.turn.lock().await;
        self.is_free(&registration)?;
        let mut kept = form.clone();
        for once in ["overwrite", "enabled"] {
            kept.remove(once);
        }
        let row = RegisteredToolRow { key: key.clone(), form: kept.raw().copied(), registered_at: now_ms() };
        if !self.registry.store.put_registered_tool(&row, registration.overwrite).await? {
            return Err(name_conflict(&key.tool));
        }
        if !enabled || self.with_tool_registry(|tool_registry| tool_registry.switches.contains_key(&key)) {
            self.registry.store.set_switch(&key, enabled).await?;
        }
        let entry = RegisteredTool {
            registration: Arc::new(registration),
            implementation,
            registered_at: row.registered_at,
            origin: ConfigOrigin::Store,
        };
        self.change_tool_registry(|tool_registry| {
            tool_registry.switches.remove(&key);
            if !enabled {
                tool_registry.switches.insert(key.clone(), false);
            }
            tool_registry.put(entry);
        });
        self.tool_object(&key)
    }

    /// Registers a tool of the embedding program. It lives as long as the program; its switch is persistent.
    pub async fn register_embedded(
        &self,
        registration: ToolRegistration,
        implementation: Arc<dyn ToolHandler>,
    ) -> Result<(), Error> {
        let _turn = self.registry.turn.lock().await;
        self.is_free(&registration)?;
        let entry = RegisteredTool {
            registration: Arc::new(registration),
            implementation,
            registered_at: now_ms(),
            origin: ConfigOrigin::Program,
        };
        self.change_tool_registry(|tool_registry| tool_registry.put(entry));
        Ok(())
    }

    pub async fn unregister(&self, name: &str) -> Result<(), Error> {
        let _turn = self.registry.turn.lock().await;
        let key = self.owner_view().any_tool(name)?.key.clone();
        match self.with_tool_registry(|tool_registry| tool_registry.get(&key).map(|entry| entry.origin)) {
            Some(ConfigOrigin::Store) => {
                self.registry.store.remove_registered_tool(&key).await?;
            }
            Some(ConfigOrigin::Program) => {}
            Some(ConfigOrigin::File) => return Err(managed_by_file_error(&key)),
            None => {
                return Err(Error::new(ErrorKind::Conflict, format!("`{key}` is not a registered tool."))
                    .hint("Tools of servers cannot be unregistered. Disable it instead."));
            }
        }
        self.change_tool_registry(|tool_registry| tool_registry.remove(&key));
        Ok(())
    }

    /// Enables or disables a tool and returns its REST object.
    pub async fn switch(&self, name: &str, enabled: bool) -> Result<Raw, Error> {
        self.look_up(&Caller::owner(), |view| view.any_tool(name).map(drop)).await?;
        let _turn = self.registry.turn.lock().await;
        let view = self.owner_view();
        let tool = view.any_tool(name)?;
        if enabled && tool.disabled_reason == Some(DisabledReason::File) {
            return Err(managed_by_file_error(&tool.key));
        }
        self.registry.store.set_switch(&tool.key, enabled).await?;
        self.change_tool_registry(|tool_registry| {
            tool_registry.switches.insert(tool.key.clone(), enabled);
        });
        self.tool_object(&tool.key)
    }

    /// Reads store changes into memory, and persists newly seen tools.
    pub async fn catch_up_with_store(&self) -> Result<(), Error> {
        // A full disk can still be read.
        let written = self.persist_first_seen().await;
        self.read_store().await?;
        written
    }

    async fn read_store(&self) -> Result<(), Error> {
        let _turn = self.registry.turn.lock().await;
        let began = self.freshness.begin_read();
        let known = self.registry.revision.load(Ordering::Relaxed);
        let changes = self.registry.store.changes_since(known).await?;
        if changes.to != known {
            self.apply_changes(&changes).await?;
            // Not before: an incomplete read is repeated. A revoked token must not stay valid.
            let _ = self.registry.revision.compare_exchange(known, changes.to, Ordering::Relaxed, Ordering::Relaxed);
        }
        self.freshness.note_read(began);
        Ok(())
    }

    /// Reads only the changed kinds.
    async fn apply_changes(&self, changes: &ChangeSet) -> Result<(), Error> {
        if changes.concern(&[PIN]) {
            self.read_pins().await?;
        }
        if let Some(identity) = self.people.identity() {
            identity.follow_store(changes).await?;
        }
        self.apply_user_changes(changes).await?;
        if changes.concern(&[change_kind::MEMORY]) {
            self.read_usage_memory().await?;
        }
        if changes.concern(&[change_kind::TOOL, change_kind::SWITCH, TEXT]) {
            self.read_tools().await?;
        }
        Ok(())
    }

    async fn read_tools(&self) -> Result<(), Error> {
        let rows = self.registry.store.registered().await?;
        let switches = self.registry.store.switches().await?;
        let texts = self.read_overrides().await?;
        let (away, more) = self.with_tool_registry(|tool_registry| self.registry.differences(tool_registry, &rows));
        let switches: HashMap<ToolKey, bool> = switches.into_iter().collect();
        if away.is_empty()
            && more.is_empty()
            && self
                .with_tool_registry(|tool_registry| tool_registry.switches == switches && tool_registry.texts == texts)
        {
            return Ok(());
        }
        self.change_tool_registry(|tool_registry| {
            tool_registry.switches = switches;
            tool_registry.texts = texts;
            tool_registry.replace(away, more);
        });
        Ok(())
    }

    /// Persists first-seen timestamps and new pins. A failed write is retried.
    pub async fn persist_first_seen(&self) -> Result<(), Error> {
        self.persist_pins().await?;
        let unsaved = self.with_tool_registry(ToolRegistry::take_unsaved);
        if unsaved.is_empty() {
            return Ok(());
        }
        let written = self.registry.store.note_seen(&unsaved, now_ms()).await;
        if written.is_err() {
            self.with_tool_registry(|tool_registry| tool_registry.restore_unsaved(unsaved));
        }
        Ok(written?)
    }

    /// Reads the store for the first time, before any request is served.
    pub async fn open_store(&self) -> Result<(), Error> {
        let seen = self.registry.store.first_seen().await?;
        self.with_tool_registry(|tool_registry| tool_registry.load_first_seen(seen));
        self.catch_up_with_store().await
    }

    /// Fails if the config file uses the name, or another tool does and `overwrite` is not set.
    fn is_free(&self, registration: &ToolRegistration) -> Result<(), Error> {
        let key = &registration.key;
        if self.is_configured(&key.module) {
            return Err(Error::new(
                ErrorKind::Conflict,
                format!("The module `{}` is managed by the config file.", key.module),
            )
            .hint("Choose another `module`."));
        }
        match self.with_tool_registry(|tool_registry| tool_registry.get(key).map(|entry| entry.origin)) {
            Some(ConfigOrigin::File) => Err(managed_by_file_error(key)),
            Some(_) if !registration.overwrite => Err(name_conflict(&key.tool)),
            _ => Ok(()),
        }
    }
}

impl RegistryStore {
    /// Returns the tools to remove from and add to memory to match the store. Tools of the config file or the program
    /// take precedence.
    fn differences(
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

fn managed_by_file_error(key: &ToolKey) -> Error {
    Error::new(ErrorKind::Conflict, format!("`{key}` is managed by the config file."))
        .hint("Change it in the config file.")
}

#[cfg(test)]
mod stress;
#[cfg(test)]
mod tests;
