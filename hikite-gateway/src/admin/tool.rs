//! Administration of tools: registration at run time, switches, and overrides of texts. Changes are written to the store
//! first and published afterwards.

use std::collections::HashMap;
use std::sync::Arc;

use hikite_core::caller::Caller;
use hikite_core::error::{Error, ErrorKind};
use hikite_core::json::{Object, Raw};
use hikite_core::key::ToolKey;
use hikite_core::origin::ConfigOrigin;
use hikite_core::registration::{ToolRegistration, name_conflict};
use hikite_core::source::ToolHandler;
use hikite_core::switch::DisabledReason;
use hikite_store::{DocumentRow, RegisteredToolRow};

use crate::catalogs::Catalogs;
use crate::discovery::Discovery;
use crate::overrides::{TEXT, TextOverride, TextOverrides};
use crate::registry::{RegistryStore, read};
use crate::tool_registry::{RegisteredTool, ToolRegistry};
use hikite_store::clock::now_ms;

#[derive(Debug)]
pub struct ToolAdmin {
    pub(crate) catalogs: Arc<Catalogs>,
    pub(crate) discovery: Arc<Discovery>,
    pub(crate) registry: Arc<RegistryStore>,
}

impl ToolAdmin {
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
        if !self.registry.store.tools().put(&row, registration.overwrite).await? {
            return Err(name_conflict(&key.tool));
        }
        if !enabled || self.catalogs.with_tool_registry(|tool_registry| tool_registry.switches.contains_key(&key)) {
            self.registry.store.tools().set_switch(&key, enabled).await?;
        }
        let entry = RegisteredTool {
            registration: Arc::new(registration),
            implementation,
            registered_at: row.registered_at,
            origin: ConfigOrigin::Store,
        };
        self.catalogs.change_tool_registry(|tool_registry| {
            tool_registry.switches.remove(&key);
            if !enabled {
                tool_registry.switches.insert(key.clone(), false);
            }
            tool_registry.put(entry);
        });
        self.discovery.tool_object(&key)
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
        self.catalogs.change_tool_registry(|tool_registry| tool_registry.put(entry));
        Ok(())
    }

    pub async fn unregister(&self, name: &str) -> Result<(), Error> {
        let _turn = self.registry.turn.lock().await;
        let key = self.catalogs.owner_view().any_tool(name)?.key.clone();
        match self.catalogs.with_tool_registry(|tool_registry| tool_registry.get(&key).map(|entry| entry.origin)) {
            Some(ConfigOrigin::Store) => {
                self.registry.store.tools().remove(&key).await?;
            }
            Some(ConfigOrigin::Program) => {}
            Some(ConfigOrigin::File) => return Err(managed_by_file_error(&key)),
            None => {
                return Err(Error::new(ErrorKind::Conflict, format!("`{key}` is not a registered tool."))
                    .hint("Tools of servers cannot be unregistered. Disable it instead."));
            }
        }
        self.catalogs.change_tool_registry(|tool_registry| tool_registry.remove(&key));
        Ok(())
    }

    /// Enables or disables a tool and returns its REST object.
    pub async fn switch(&self, name: &str, enabled: bool) -> Result<Raw, Error> {
        self.discovery.lookup.look_up(&Caller::owner(), |view| view.any_tool(name).map(drop)).await?;
        let _turn = self.registry.turn.lock().await;
        let view = self.catalogs.owner_view();
        let tool = view.any_tool(name)?;
        if enabled && tool.disabled_reason == Some(DisabledReason::File) {
            return Err(managed_by_file_error(&tool.key));
        }
        self.registry.store.tools().set_switch(&tool.key, enabled).await?;
        self.catalogs.change_tool_registry(|tool_registry| {
            tool_registry.switches.insert(tool.key.clone(), enabled);
        });
        self.discovery.tool_object(&tool.key)
    }

    /// Fails if the config file uses the name, or another tool does and `overwrite` is not set.
    fn is_free(&self, registration: &ToolRegistration) -> Result<(), Error> {
        let key = &registration.key;
        if self.catalogs.is_configured(&key.module) {
            return Err(Error::new(
                ErrorKind::Conflict,
                format!("The module `{}` is managed by the config file.", key.module),
            )
            .hint("Choose another `module`."));
        }
        match self.catalogs.with_tool_registry(|tool_registry| tool_registry.get(key).map(|entry| entry.origin)) {
            Some(ConfigOrigin::File) => Err(managed_by_file_error(key)),
            Some(_) if !registration.overwrite => Err(name_conflict(&key.tool)),
            _ => Ok(()),
        }
    }

    /// Changes the overrides of a tool and returns its REST object.
    pub async fn override_texts(&self, name: &str, form: &Object) -> Result<Raw, Error> {
        self.discovery.lookup.look_up(&Caller::owner(), |view| view.any_tool(name).map(drop)).await?;
        {
            let _turn = self.registry.turn.lock().await;
            let key = self.catalogs.owner_view().any_tool(name)?.key.clone();
            let before = self
                .catalogs
                .with_tool_registry(|tool_registry| tool_registry.texts.get(&key).cloned())
                .unwrap_or_default();
            let text = before.changed(form)?;
            self.write_override(&key, &text).await?;
            self.catalogs.change_tool_registry(|tool_registry| {
                tool_registry.texts.remove(&key);
                if !text.is_empty() {
                    tool_registry.texts.insert(key, text);
                }
            });
        }
        self.discovery.tool(&Caller::owner(), name).await
    }

    async fn write_override(&self, key: &ToolKey, text: &TextOverride) -> Result<(), Error> {
        let store = &self.registry.store;
        let (id, now) = (key.to_string(), now_ms());
        if text.is_empty() {
            store.documents().take(TEXT, &id, now).await?;
            return Ok(());
        }
        let document = text.object().with("module", &*key.module).with("tool", &*key.tool).raw();
        loop {
            let before = store.documents().get(TEXT, &id, now).await?;
            let version = before.as_ref().map_or(1, |before| before.version);
            let (kind, id, owner) = (TEXT, id.clone(), String::new());
            let entry =
                DocumentRow { kind, id, owner, document: document.clone(), version, created_at: now, expires_at: 0 };
            let done = match before {
                Some(_) => store.documents().change(&entry).await?,
                None => store.documents().put(&entry).await?,
            };
            if done {
                return Ok(());
            }
        }
    }

    /// Reads all overrides from the store.
    async fn read_overrides(&self) -> Result<TextOverrides, Error> {
        let entries = self.registry.store.documents().all(TEXT, None, now_ms()).await?;
        let read = |entry: &DocumentRow| {
            let form = entry.document.object()?;
            Some((ToolKey::new(form.text("module")?, form.text("tool")?), TextOverride::read(&form)))
        };
        Ok(entries.iter().filter_map(read).collect())
    }

    /// Reads registered tools, switches and texts from the store.
    pub(super) async fn read_store(&self) -> Result<(), Error> {
        let rows = self.registry.store.tools().registered().await?;
        let switches = self.registry.store.tools().switches().await?;
        let texts = self.read_overrides().await?;
        let (away, more) =
            self.catalogs.with_tool_registry(|tool_registry| self.registry.differences(tool_registry, &rows));
        let switches: HashMap<ToolKey, bool> = switches.into_iter().collect();
        if away.is_empty()
            && more.is_empty()
            && self
                .catalogs
                .with_tool_registry(|tool_registry| tool_registry.switches == switches && tool_registry.texts == texts)
        {
            return Ok(());
        }
        self.catalogs.change_tool_registry(|tool_registry| {
            tool_registry.switches = switches;
            tool_registry.texts = texts;
            tool_registry.replace(away, more);
        });
        Ok(())
    }

    /// Persists first-seen timestamps. A failed write is retried.
    pub(super) async fn persist_first_seen(&self) -> Result<(), Error> {
        let unsaved = self.catalogs.with_tool_registry(ToolRegistry::take_unsaved);
        if unsaved.is_empty() {
            return Ok(());
        }
        let written = self.registry.store.tools().note_seen(&unsaved, now_ms()).await;
        if written.is_err() {
            self.catalogs.with_tool_registry(|tool_registry| tool_registry.restore_unsaved(unsaved));
        }
        Ok(written?)
    }
}

fn managed_by_file_error(key: &ToolKey) -> Error {
    Error::new(ErrorKind::Conflict, format!("`{key}` is managed by the config file."))
        .hint("Change it in the config file.")
}
