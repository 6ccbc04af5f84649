//! Tools registered at run time, and the switches that enable or disable any tool. Changes are written to the store
//! first and published afterwards; changes of other processes are read by `catch_up_with_store`.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use hikite_core::annotation;
use hikite_core::caller::Caller;
use hikite_core::error::{Error, Kind};
use hikite_core::fault::{self, Fault};
use hikite_core::json::{Object, Raw};
use hikite_core::keeper::Keeper;
use hikite_core::key::ToolKey;
use hikite_core::register::{Maker, Registration, taken};
use hikite_core::source::Implementation;
use hikite_core::switch::Off;
use hikite_store::{Changes, Registered, Store, change_kind};

use crate::aside::aside;
use crate::clock::now_ms;
use crate::gateway::Gateway;
use crate::pin::PIN;
use crate::roster::{Entry, Roster};
use crate::text::TEXT;

/// Reads a tool's document and builds its implementation.
pub fn read(form: &Object, maker: &Maker) -> Result<(Registration, Arc<dyn Implementation>), Error> {
    // Schemas and patterns are compiled, and a few bytes of a pattern may expand to very many.
    aside(|| read_here(form, maker))
}

fn read_here(form: &Object, maker: &Maker) -> Result<(Registration, Arc<dyn Implementation>), Error> {
    let mut registration = Registration::read(form)?;
    let http = registration.http.as_ref().ok_or_else(|| {
        fault::error(&[Fault::new("/http", "`http` is required: the request that the tool makes")])
            .hint("give at least `{\"url\": \"https://…\"}`")
    })?;
    let implementation = maker(http, &registration.schema()).map_err(|faults| fault::error(&faults))?;
    let method = http.object().and_then(|http| http.text("method")).unwrap_or_else(|| "GET".into());
    registration.annotate(&annotation::of_method(&method));
    Ok((registration, implementation))
}

/// Persistence of registered tools and switches.
pub struct Registry {
    pub(crate) store: Store,
    maker: Maker,
    /// Serializes changes, so that memory follows the store in order.
    pub(crate) turn: tokio::sync::Mutex<()>,
    /// Store revision that memory reflects.
    revision: AtomicI64,
}

impl std::fmt::Debug for Registry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Registry").finish_non_exhaustive()
    }
}

impl Registry {
    pub fn new(store: Store, maker: Maker) -> Self {
        Self { store, maker, turn: tokio::sync::Mutex::default(), revision: AtomicI64::new(-1) }
    }

    pub(crate) fn store(&self) -> &Store {
        &self.store
    }

    /// Forces a full read: tools that the config file overrode may be the store's again.
    pub(crate) fn look_again(&self) {
        self.revision.store(-1, Ordering::Relaxed);
    }

    fn entry(&self, row: &Registered) -> Result<Entry, Error> {
        let form = row.form.object().unwrap_or_default();
        let (registration, implementation) = read(&form, &self.maker)?;
        Ok(Entry {
            registration: Arc::new(registration),
            implementation,
            registered_at: row.registered_at,
            keeper: Keeper::Store,
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
        let row = Registered { key: key.clone(), form: kept.raw().copied(), registered_at: now_ms() };
        if !self.registry.store.put_registered(&row, registration.overwrite).await? {
            return Err(taken(&key.tool));
        }
        if !enabled || self.with_roster(|roster| roster.switches.contains_key(&key)) {
            self.registry.store.set_switch(&key, enabled).await?;
        }
        let entry = Entry {
            registration: Arc::new(registration),
            implementation,
            registered_at: row.registered_at,
            keeper: Keeper::Store,
        };
        self.change_roster(|roster| {
            roster.switches.remove(&key);
            if !enabled {
                roster.switches.insert(key.clone(), false);
            }
            roster.put(entry);
        });
        self.tool_object(&key)
    }

    /// Registers a tool of the embedding program. It lives as long as the program; its switch is persistent.
    pub async fn register_own(
        &self,
        registration: Registration,
        implementation: Arc<dyn Implementation>,
    ) -> Result<(), Error> {
        let _turn = self.registry.turn.lock().await;
        self.is_free(&registration)?;
        let entry = Entry {
            registration: Arc::new(registration),
            implementation,
            registered_at: now_ms(),
            keeper: Keeper::Program,
        };
        self.change_roster(|roster| roster.put(entry));
        Ok(())
    }

    pub async fn unregister(&self, name: &str) -> Result<(), Error> {
        let _turn = self.registry.turn.lock().await;
        let key = self.owner_view().any_tool(name)?.key.clone();
        match self.with_roster(|roster| roster.get(&key).map(|entry| entry.keeper)) {
            Some(Keeper::Store) => {
                self.registry.store.remove_registered(&key).await?;
            }
            Some(Keeper::Program) => {}
            Some(Keeper::File) => return Err(of_the_file(&key)),
            None => {
                return Err(Error::new(Kind::Conflict, format!("`{key}` is not a registered tool"))
                    .hint("tools of servers cannot be unregistered; disable it instead"));
            }
        }
        self.change_roster(|roster| roster.remove(&key));
        Ok(())
    }

    /// Enables or disables a tool and returns its REST object.
    pub async fn switch(&self, name: &str, enabled: bool) -> Result<Raw, Error> {
        self.look_up(&Caller::owner(), |view| view.any_tool(name).map(drop)).await?;
        let _turn = self.registry.turn.lock().await;
        let view = self.owner_view();
        let tool = view.any_tool(name)?;
        if enabled && tool.off == Some(Off::File) {
            return Err(of_the_file(&tool.key));
        }
        self.registry.store.set_switch(&tool.key, enabled).await?;
        self.change_roster(|roster| {
            roster.switches.insert(tool.key.clone(), enabled);
        });
        self.tool_object(&tool.key)
    }

    /// Reads store changes into memory, and persists newly seen tools.
    pub async fn catch_up_with_store(&self) -> Result<(), Error> {
        // A full disk can still be read.
        let written = self.write_down_news().await;
        self.read_store().await?;
        written
    }

    async fn read_store(&self) -> Result<(), Error> {
        let _turn = self.registry.turn.lock().await;
        let began = self.freshness.begin_read();
        let known = self.registry.revision.load(Ordering::Relaxed);
        let changes = self.registry.store.changes_since(known).await?;
        if changes.to != known {
            self.take_in(&changes).await?;
            // Not before: an incomplete read is repeated. A revoked token must not stay valid.
            let _ = self.registry.revision.compare_exchange(
                known,
                changes.to,
                Ordering::Relaxed,
                Ordering::Relaxed,
            );
        }
        self.freshness.note_read(began);
        Ok(())
    }

    /// Reads only the changed kinds.
    async fn take_in(&self, changes: &Changes) -> Result<(), Error> {
        if changes.concern(&[PIN]) {
            self.read_pins().await?;
        }
        if let Some(identity) = self.people.identity() {
            identity.follow_store(changes).await?;
        }
        self.follow_people(changes).await?;
        if changes.concern(&[change_kind::MEMORY]) {
            self.recall().await?;
        }
        if changes.concern(&[change_kind::TOOL, change_kind::SWITCH, TEXT]) {
            self.read_tools().await?;
        }
        Ok(())
    }

    async fn read_tools(&self) -> Result<(), Error> {
        let rows = self.registry.store.registered().await?;
        let switches = self.registry.store.switches().await?;
        let texts = self.read_texts().await?;
        let (away, more) = self.with_roster(|roster| self.registry.differences(roster, &rows));
        let switches: HashMap<ToolKey, bool> = switches.into_iter().collect();
        if away.is_empty()
            && more.is_empty()
            && self.with_roster(|roster| roster.switches == switches && roster.texts == texts)
        {
            return Ok(());
        }
        self.change_roster(|roster| {
            roster.switches = switches;
            roster.texts = texts;
            roster.replace(away, more);
        });
        Ok(())
    }

    /// Persists first-seen timestamps and new pins. A failed write is retried.
    pub async fn write_down_news(&self) -> Result<(), Error> {
        self.write_down_pins().await?;
        let fresh = self.with_roster(Roster::take_fresh);
        if fresh.is_empty() {
            return Ok(());
        }
        let written = self.registry.store.note_seen(&fresh, now_ms()).await;
        if written.is_err() {
            self.with_roster(|roster| roster.give_back(fresh));
        }
        Ok(written?)
    }

    /// Reads the store for the first time, before any request is served.
    pub async fn open_store(&self) -> Result<(), Error> {
        let seen = self.registry.store.first_seen().await?;
        self.with_roster(|roster| roster.remember(seen));
        self.catch_up_with_store().await
    }

    /// Fails if the config file uses the name, or another tool does and `overwrite` is not set.
    fn is_free(&self, registration: &Registration) -> Result<(), Error> {
        let key = &registration.key;
        if self.is_configured(&key.module) {
            return Err(Error::new(
                Kind::Conflict,
                format!("the module `{}` is managed by the file", key.module),
            )
            .hint("choose another `module`"));
        }
        match self.with_roster(|roster| roster.get(key).map(|entry| entry.keeper)) {
            Some(Keeper::File) => Err(of_the_file(key)),
            Some(_) if !registration.overwrite => Err(taken(&key.tool)),
            _ => Ok(()),
        }
    }
}

impl Registry {
    /// Returns the tools to remove from and add to memory to match the store. Tools of the config file or the program
    /// take precedence.
    fn differences(&self, roster: &Roster, rows: &[Registered]) -> (Vec<ToolKey>, Vec<Entry>) {
        let kept: HashMap<&ToolKey, &Registered> = rows.iter().map(|row| (&row.key, row)).collect();
        let gone = roster.of(Keeper::Store).filter(|(key, _)| !kept.contains_key(key));
        let away = gone.map(|(key, _)| key.clone()).collect();
        let news = rows.iter().filter(|row| match roster.get(&row.key) {
            None => true,
            Some(entry) => entry.keeper == Keeper::Store && entry.registered_at != row.registered_at,
        });
        let more = news.filter_map(|row| match self.entry(row) {
            Ok(entry) => Some(entry),
            Err(error) => {
                tracing::warn!(tool = %row.key, %error, "a registered tool cannot be used and is left out");
                None
            }
        });
        (away, more.collect())
    }
}

fn of_the_file(key: &ToolKey) -> Error {
    Error::new(Kind::Conflict, format!("`{key}` is managed by the file")).hint("change it in the config file")
}

#[cfg(test)]
mod stress;
#[cfg(test)]
mod tests;
