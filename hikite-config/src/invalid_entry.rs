//! Entries of the file that are left out because they are invalid, so that one server, provider or service cannot stop
//! the others. Faults anywhere else still reject the whole file.

use std::fmt;
use std::sync::Arc;

use super::Config;
use super::position::ConfigPath;
use super::problem::{Problem, Problems};

/// An entry that is left out, and its faults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidEntry {
    pub id: EntryId,
    pub problems: Problems,
    /// `true` if its previous definition stays active.
    pub keeps_previous: bool,
}

/// The entry that a problem belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryId {
    pub kind: EntryKind,
    pub name: Arc<str>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// An entry of `mcpServers`.
    Server,
    /// An entry of `providers`.
    Provider,
    /// A name in `modules.builtin`.
    Service,
}

impl EntryId {
    /// Returns the entry that contains the path.
    pub(crate) fn of(path: &ConfigPath<'_>) -> Option<Self> {
        let (section, name) = path.entry()?;
        let kind = match section {
            "mcpServers" => EntryKind::Server,
            "providers" => EntryKind::Provider,
            _ => return None,
        };
        Some(Self { kind, name: name.into() })
    }
}

impl InvalidEntry {
    /// Groups problems by entry; `None` if a problem belongs to no entry.
    pub(crate) fn group(file: &str, problems: &[Problem]) -> Option<Vec<Self>> {
        let mut entries: Vec<Self> = Vec::new();
        for problem in problems {
            let id = problem.entry.clone()?;
            if !entries.iter().any(|entry| entry.id == id) {
                let problems = Problems { file: file.to_owned(), errors: Vec::new(), warnings: Vec::new() };
                entries.push(Self { id: id.clone(), problems, keeps_previous: false });
            }
            let entry = entries.iter_mut().find(|entry| entry.id == id)?;
            entry.problems.errors.push(problem.clone());
        }
        Some(entries)
    }
}

impl fmt::Display for InvalidEntry {
    /// Writes one line: the entry, its state, and each fault with its hint.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.id.kind {
            EntryKind::Server => "server",
            EntryKind::Provider => "provider",
            EntryKind::Service => "service",
        };
        let state = if self.keeps_previous { "keeps its previous definition" } else { "is disabled" };
        write!(f, "the {kind} `{}` {state}: {}", self.id.name, self.problems.summary())
    }
}

impl Config {
    /// Removes the invalid entries.
    pub(crate) fn without(mut self, invalid: Vec<InvalidEntry>) -> Self {
        for entry in &invalid {
            let name = &entry.id.name;
            match entry.id.kind {
                EntryKind::Server => {
                    self.servers.retain(|server| server.name != *name);
                    if !self.disabled.contains(name) {
                        self.disabled.push(Arc::clone(name));
                    }
                }
                EntryKind::Provider => self.providers.retain(|provider| *provider.name != **name),
                EntryKind::Service => {}
            }
        }
        Self { invalid, ..self }
    }

    /// Gives each invalid entry its definition in `before`, if it has one there.
    pub fn keep_previous(&mut self, before: &Self) {
        for entry in &mut self.invalid {
            let name = &entry.id.name;
            match entry.id.kind {
                EntryKind::Server => {
                    let Some(server) = before.servers.iter().find(|server| server.name == *name) else { continue };
                    self.servers.push(server.clone());
                    self.disabled.retain(|disabled| disabled != name);
                }
                EntryKind::Provider => {
                    let Some(provider) = before.providers.iter().find(|provider| *provider.name == **name) else {
                        continue;
                    };
                    self.providers.push(provider.clone());
                }
                EntryKind::Service => continue,
            }
            entry.keeps_previous = true;
        }
        let order = &self.server_names;
        self.servers.sort_by_key(|server| order.iter().position(|name| *name == server.name));
    }

    /// Returns an error with the faults of all invalid entries.
    pub fn check_entries(&self) -> Result<(), Problems> {
        let mut entries = self.invalid.iter();
        let Some(first) = entries.next() else { return Ok(()) };
        let mut problems = first.problems.clone();
        problems.errors.extend(entries.flat_map(|entry| entry.problems.errors.clone()));
        problems.errors.sort_by_key(|problem| problem.place);
        problems.warnings.clone_from(&self.warnings);
        Err(problems)
    }

    /// Returns `true` if the provider is left out. Its services must not run with another account.
    pub fn is_provider_invalid(&self, name: &str) -> bool {
        let is_it = |entry: &InvalidEntry| entry.id.kind == EntryKind::Provider && &*entry.id.name == name;
        self.invalid.iter().any(|entry| is_it(entry) && !entry.keeps_previous)
    }
}
