//! Servers and categories that were configured at runtime and live in the store. Each passes the checks of the config
//! file, but cannot use environment variables or files. Entries of the config file win over entries of the same name.

mod category;
mod import;
mod program;
mod upstream;

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use hikite_config::{Config, ConfigEnvironment, Problems, ServerConfig};
use hikite_core::catalog::ModuleRule;
use hikite_core::category::CategoryRule;
use hikite_core::error::{Error, ErrorKind};
use hikite_core::json::{Object, Raw};
use hikite_core::login::ModuleLogins;
use hikite_core::source::BoxFuture;
use hikite_core::violation::{self, Violation, step};
use hikite_gateway::{ConfigAdmin, PutResult, now_ms};
use hikite_store::DocumentRow;

use super::Runtime;
pub(crate) use program::{StoredServer, TerminalServers};

/// Entry kinds in the store.
pub(crate) const UPSTREAM: &str = "upstream";
const CATEGORY: &str = "category";
const NAME_CHARS: usize = 64;

/// Runtime configuration as last read from the store.
#[derive(Clone, Debug, Default)]
pub(super) struct StoredConfig {
    pub(super) upstreams: Vec<Arc<StoredUpstream>>,
    pub(super) categories: Vec<Arc<StoredCategory>>,
}

#[derive(Debug)]
pub(super) struct StoredUpstream {
    entry: DocumentRow,
    /// The checked server; `None` if the vault could not be opened, the entry is no longer valid, or it is a program
    /// that is not approved on this machine.
    pub(super) server: Option<ServerConfig>,
    /// A program that is not approved on this machine. It never starts.
    unapproved: Option<ServerConfig>,
}

#[derive(Debug)]
pub(super) struct StoredCategory {
    entry: DocumentRow,
    pub(super) rule: Option<Arc<CategoryRule>>,
}

impl StoredConfig {
    /// Returns the servers whose names are not taken by the config file or by `others`.
    pub(super) fn additional_servers(&self, config: &Config, others: &[&ModuleRule]) -> Vec<&ServerConfig> {
        let named = config.servers.iter().map(|server| &server.name).chain(&config.disabled);
        let taken: Vec<&Arc<str>> = named.chain(others.iter().map(|rule| &rule.name)).collect();
        let servers = self.upstreams.iter().filter_map(|saved| saved.server.as_ref());
        servers.filter(|server| !taken.contains(&&server.name)).collect()
    }

    /// Returns the categories of the file, then the stored ones with other names.
    pub(super) fn merged_categories(&self, config: &Config) -> Vec<Arc<CategoryRule>> {
        let taken = |rule: &CategoryRule| config.categories.iter().any(|own| own.name == rule.name);
        let own = self.categories.iter().filter_map(|saved| saved.rule.clone());
        config.categories.iter().cloned().chain(own.filter(|rule| !taken(rule))).collect()
    }
}

impl Runtime {
    /// Applies runtime configuration that other processes changed.
    pub(super) async fn apply_store_changes(&self) -> Result<(), Error> {
        let revision = self.store.changes().revision().await?;
        if self.stored_revision.load(Ordering::Relaxed) != revision {
            // An incomplete read is repeated at the next poll.
            if self.read_stored().await? {
                self.reapply_config();
            }
            self.stored_revision.store(revision, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Reads the runtime configuration, and returns `true` if it changed.
    pub(super) async fn read_stored(&self) -> Result<bool, Error> {
        let before = self.stored.lock().clone();
        let mut now = StoredConfig::default();
        let mut same = true;
        for entry in self.store.documents().all(UPSTREAM, None, now_ms()).await? {
            let known = before.upstreams.iter().find(|known| known.entry == entry && self.is_current(known));
            same &= known.is_some();
            now.upstreams.push(match known {
                Some(known) => Arc::clone(known),
                None => Arc::new(self.open_upstream(entry).await),
            });
        }
        for entry in self.store.documents().all(CATEGORY, None, now_ms()).await? {
            let known = before.categories.iter().find(|known| known.entry == entry);
            same &= known.is_some();
            now.categories.push(known.cloned().unwrap_or_else(|| Arc::new(category::open(entry))));
        }
        let counts = |stored: &StoredConfig| (stored.upstreams.len(), stored.categories.len());
        same &= counts(&now) == counts(&before);
        *self.stored.lock() = now;
        Ok(!same)
    }

    /// Reads the runtime configuration again and applies it.
    async fn reload_stored(&self) -> Result<(), Error> {
        self.read_stored().await?;
        self.reapply_config();
        Ok(())
    }

    /// Applies the active config again, with the current runtime configuration.
    fn reapply_config(&self) {
        let config = self.config.lock().clone();
        if let Some(config) = config
            && let Err(error) = self.apply(&config)
        {
            tracing::error!("stored servers or categories cannot be used: {error:#}");
        }
    }

    /// Inserts or replaces one entry, and returns `true` if it was inserted.
    async fn upsert_stored(&self, kind: &'static str, name: &str, document: Raw) -> Result<bool, Error> {
        loop {
            let now = now_ms();
            let before = self.store.documents().get(kind, name, now).await?;
            let entry = DocumentRow {
                kind,
                id: name.to_owned(),
                owner: String::new(),
                document: document.clone(),
                version: before.as_ref().map_or(1, |before| before.version),
                created_at: now,
                expires_at: 0,
            };
            let done = match &before {
                Some(_) => self.store.documents().change(&entry).await?,
                None => self.store.documents().put(&entry).await?,
            };
            if done {
                return Ok(before.is_none());
            }
        }
    }
}

/// The runtime configuration API that the gateway uses.
#[derive(Debug)]
pub(super) struct RuntimeConfigAdmin(pub(super) std::sync::Weak<Runtime>);

impl RuntimeConfigAdmin {
    fn runtime(&self) -> Result<Arc<Runtime>, Error> {
        self.0.upgrade().ok_or_else(|| Error::new(ErrorKind::Internal, "hikite is shutting down."))
    }
}

impl ConfigAdmin for RuntimeConfigAdmin {
    fn upstreams(&self) -> Vec<Raw> {
        self.0.upgrade().map(|runtime| runtime.upstream_objects()).unwrap_or_default()
    }

    fn put_upstream<'a>(&'a self, name: &'a str, form: &'a Object) -> BoxFuture<'a, Result<PutResult, Error>> {
        Box::pin(async move { self.runtime()?.put_upstream(name, form).await })
    }

    fn remove_upstream<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move { self.runtime()?.remove_upstream(name).await })
    }

    fn import<'a>(&'a self, config: &'a Raw, apply: bool) -> BoxFuture<'a, Result<Raw, Error>> {
        Box::pin(async move { self.runtime()?.import(config, apply).await })
    }

    fn category_document(&self, name: &str) -> Option<Raw> {
        let runtime = self.0.upgrade()?;
        let stored = runtime.stored.lock().clone();
        stored.categories.iter().find(|known| known.entry.id == name).map(|known| known.entry.document.clone())
    }

    fn put_category<'a>(&'a self, name: &'a str, form: &'a Object) -> BoxFuture<'a, Result<bool, Error>> {
        Box::pin(async move { self.runtime()?.put_category(name, form).await })
    }

    fn remove_category<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move { self.runtime()?.remove_category(name).await })
    }

    fn logins(&self) -> Option<Arc<dyn ModuleLogins>> {
        Some(self.0.upgrade()? as Arc<dyn ModuleLogins>)
    }

    fn count(&self, text: &str) -> (usize, &'static str) {
        (hikite_measure::tokens(text), hikite_measure::VOCABULARY)
    }
}

/// Checks a name that is used in URLs, tool keys and text for models.
fn check_name(name: &str) -> Result<(), Error> {
    let fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    if (1..=NAME_CHARS).contains(&name.len()) && name.chars().all(fine) {
        return Ok(());
    }
    let message = format!("The name may contain letters, digits, `-` and `_`, and at most {NAME_CHARS} characters.");
    Err(Error::new(ErrorKind::Validation, message))
}

/// Parses a small config built around one entry, without environment or files. `place` is the path of the entry, like
/// `mcpServers.docs`.
fn parse(text: &str, place: &str) -> Result<Config, Error> {
    let refuse = |_: &Path| Err(io::Error::other("files cannot be read for requests over the network"));
    let outside = ConfigEnvironment { env: &|_| None, read: &refuse };
    Config::parse(text, Path::new("entry"), outside).map_err(|problems| wrong(&problems, place))
}

/// Converts config problems to a validation error with pointers relative to `place`.
fn wrong(problems: &Problems, place: &str) -> Error {
    let faults: Vec<Violation> = problems
        .errors
        .iter()
        .map(|problem| {
            let path = problem.path.strip_prefix(place).unwrap_or_default();
            let pointer: String = path.split('.').filter(|part| !part.is_empty()).map(step).collect();
            let hint = problem.hint.as_deref().map(|hint| format!(". {hint}")).unwrap_or_default();
            Violation::new(pointer, format!("{}{hint}", problem.message))
        })
        .collect();
    let error = violation::error(&faults);
    Error { message: "Validation failed".into(), ..error }
}

fn managed_by_file(what: &str, name: &str) -> Error {
    Error::new(ErrorKind::Conflict, format!("The {what} `{name}` is managed by the config file."))
        .hint("Change it in the config file, or choose another name.")
}
