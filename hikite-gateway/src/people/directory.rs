//! One moment of all projects and tokens, put together so that a request need only look.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use hikite_core::caller::{Caller, Scopes};
use hikite_core::json::{Object, Raw};
use hikite_core::time::rfc3339;
use hikite_store::ProjectRow;

use super::Known;
use super::token::{Hash, Token, read_hash};
use crate::project::Project;

#[derive(Debug, Default)]
pub(super) struct Directory {
    projects: BTreeMap<Arc<str>, Entry>,
    tokens: Vec<Arc<Token>>,
    /// Those that let somebody in, until they expire.
    by_hash: HashMap<Hash, Bearer>,
    good: HashMap<Arc<str>, u64>,
    /// Names that the file took over from the store.
    shadowed: BTreeSet<Arc<str>>,
}

#[derive(Debug)]
struct Entry {
    project: Arc<Project>,
    /// When it was made; those of the file have always been there.
    created_at: Option<u64>,
}

#[derive(Debug)]
struct Bearer {
    caller: Caller,
    expires_at: u64,
}

impl Directory {
    pub(super) fn of(known: &Known) -> Self {
        let mut directory = Self::default();
        for row in &known.projects {
            if let Some(project) = read(row) {
                directory.put(project, Some(row.created_at));
            }
        }
        for project in &known.file {
            if directory.put(Arc::clone(project), None) {
                directory.shadowed.insert(Arc::clone(&project.name));
            }
        }
        for row in &known.tokens {
            let Some(token) = Token::of(row).map(Arc::new) else { continue };
            if let (Some(hash), true) = (read_hash(&row.hash), directory.admits(&token)) {
                let bearer = Bearer { caller: token.caller(), expires_at: token.expires_at };
                directory.by_hash.insert(hash, bearer);
                directory.good.insert(Arc::clone(&token.id), token.expires_at);
            }
            directory.tokens.push(token);
        }
        directory
    }

    /// Whether there was one of this name.
    fn put(&mut self, project: Arc<Project>, created_at: Option<u64>) -> bool {
        self.projects.insert(Arc::clone(&project.name), Entry { project, created_at }).is_some()
    }

    /// A token for a project is good while there is such a one and its subject belongs to it.
    fn admits(&self, token: &Token) -> bool {
        let Some(project) = &token.project else { return true };
        self.project(project).is_some_and(|project| is_open_to(project, &token.subject))
    }

    pub(super) fn bearer(&self, hash: &Hash, now: impl FnOnce() -> u64) -> Option<Caller> {
        let found = self.by_hash.get(hash)?;
        (found.expires_at == 0 || now() < found.expires_at).then(|| found.caller.clone())
    }

    /// An admin may enter any project; anybody else who is in none those that name it.
    pub(super) fn enter(&self, caller: &Caller, name: &str) -> Option<Caller> {
        let project = self.project(name)?;
        let may = match &caller.project {
            Some(own) => **own == *name,
            None => caller.scopes.contains(Scopes::ADMIN) || project.members.contains(&caller.subject),
        };
        may.then(|| caller.within(Arc::clone(&project.name)))
    }

    pub(super) fn is_good(&self, id: &str, now: u64) -> bool {
        self.good.get(id).is_some_and(|expires_at| *expires_at == 0 || now < *expires_at)
    }

    pub(super) fn project(&self, name: &str) -> Option<&Arc<Project>> {
        self.projects.get(name).map(|entry| &entry.project)
    }

    pub(super) fn projects(&self) -> impl Iterator<Item = &Arc<Project>> {
        self.projects.values().map(|entry| &entry.project)
    }

    pub(super) fn tokens(&self) -> &[Arc<Token>] {
        &self.tokens
    }

    /// Its form, its name, since when it is there, and whether the file manages it.
    pub(super) fn project_object(&self, name: &str) -> Option<Raw> {
        let Entry { project, created_at } = self.projects.get(name)?;
        let mut object = Object::default().with("name", &*project.name);
        for (member, value) in project.form().iter() {
            object.set(member, value.clone());
        }
        let created_at = created_at.map_or_else(Raw::null, |at| rfc3339(at).into());
        object.set("createdAt", created_at);
        Some(object.with("managedByFile", Raw::of(&project.managed_by_file)).raw())
    }

    /// Whether requests would meet the same projects there.
    pub(super) fn has_same_projects(&self, other: &Self) -> bool {
        let forms = |directory: &Self| -> Vec<(Arc<str>, Raw)> {
            directory.projects().map(|project| (Arc::clone(&project.name), project.form().raw())).collect()
        };
        forms(self) == forms(other)
    }

    /// Says once that the file comes before the store.
    pub(super) fn warn_of_new(&self, before: &Self) {
        for project in self.shadowed.difference(&before.shadowed) {
            tracing::warn!(%project, "the file names a project that is in the store too; the file's is used");
        }
    }
}

/// Whether a subject may work in a project: everybody may in one that names nobody.
pub(super) fn is_open_to(project: &Project, subject: &Arc<str>) -> bool {
    project.members.is_empty() || project.members.contains(subject)
}

/// A row that is no project keeps nobody else out, and lets nobody in.
fn read(row: &ProjectRow) -> Option<Arc<Project>> {
    let form = row.form.object().unwrap_or_default();
    let read = Project::read(&row.name, &form);
    let told =
        |error: &_| tracing::error!(project = row.name, %error, "a project cannot be used and is left out");
    read.inspect_err(told).ok().map(Arc::new)
}
