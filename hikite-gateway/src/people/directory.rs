//! One moment of all projects and tokens, put together so that a request need only look.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use hikite_core::caller::{Caller, OWNER, Scopes};
use hikite_core::json::{Object, Raw};
use hikite_core::time::rfc3339;
use hikite_store::{ProjectRow, UserRow};

use super::Known;
use super::token::{Hash, Token, read_hash};
use crate::identity::{Role, USER_ID, User};
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
    /// Those who log in, by their subject.
    users: HashMap<Arc<str>, Person>,
}

/// A user, as far as letting its tokens in needs it.
#[derive(Clone, Debug)]
pub(super) struct Person {
    pub(super) id: Arc<str>,
    pub(super) name: Arc<str>,
    pub(super) subject: Arc<str>,
    /// None where it cannot be read, which lets nobody in.
    pub(super) role: Option<Role>,
    pub(super) disabled: bool,
}

impl Person {
    pub(super) fn is_owner(&self) -> bool {
        self.role == Some(Role::Owner)
    }

    fn is_active(&self) -> bool {
        !self.disabled && self.role.is_some()
    }

    /// By id or by the name they have now; who comes from elsewhere also by what their issuer calls them.
    fn is_named(&self, member: &str) -> bool {
        *self.id == *member
            || *self.name == *member
            || self.subject.contains('#') && *self.subject == *member
            || self.is_owner() && member == OWNER
    }
}

impl From<&Arc<User>> for Person {
    fn from(user: &Arc<User>) -> Self {
        Self {
            id: Arc::clone(&user.id),
            name: Arc::clone(&user.name),
            subject: Arc::clone(&user.subject),
            role: Some(user.role),
            disabled: user.disabled,
        }
    }
}

impl From<&UserRow> for Person {
    fn from(row: &UserRow) -> Self {
        Self {
            id: row.id.as_str().into(),
            name: row.name.as_str().into(),
            subject: row.subject.as_str().into(),
            role: Role::parse(&row.role),
            disabled: row.disabled,
        }
    }
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
        let users = known.users.iter().map(|user| (Arc::clone(&user.subject), user.clone())).collect();
        let mut directory = Self { users, ..Self::default() };
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
                let bearer = Bearer { caller: directory.caller(&token), expires_at: token.expires_at };
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

    /// A token is good while its user may come in, and one for a project while there is such a one and its subject
    /// belongs to it.
    fn admits(&self, token: &Token) -> bool {
        if !self.lets_in(&token.subject) {
            return false;
        }
        let Some(project) = &token.project else { return true };
        self.project(project).is_some_and(|project| self.is_open_to(project, &token.subject))
    }

    /// True if a subject may come in: not a user who is locked out, nor one who is gone.
    pub(super) fn lets_in(&self, subject: &str) -> bool {
        match self.users.get(subject) {
            Some(user) => user.is_active(),
            None => !subject.starts_with(USER_ID),
        }
    }

    /// A token that acts for a user does no more than the user may.
    fn caller(&self, token: &Token) -> Caller {
        let caller = token.caller();
        match self.users.get(&token.subject).and_then(|user| user.role) {
            Some(role) => role.cap(caller),
            None => caller,
        }
    }

    pub(super) fn user(&self, subject: &str) -> Option<&Person> {
        self.users.get(subject)
    }

    /// A user by id or by name.
    pub(super) fn user_named(&self, named: &str) -> Option<&Person> {
        let by_id = self.users.values().find(|user| *user.id == *named);
        by_id.or_else(|| self.users.values().find(|user| *user.name == *named))
    }

    pub(super) fn owner(&self) -> Option<&Person> {
        self.users.values().find(|user| user.is_owner())
    }

    /// True if a subject may work in a project: everybody may in one that names nobody.
    pub(super) fn is_open_to(&self, project: &Project, subject: &Arc<str>) -> bool {
        project.members.is_empty() || self.is_member(project, subject)
    }

    fn is_member(&self, project: &Project, subject: &Arc<str>) -> bool {
        match self.users.get(subject) {
            Some(user) => project.members.iter().any(|member| user.is_named(member)),
            None => project.members.contains(subject),
        }
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
            None => caller.scopes.contains(Scopes::ADMIN) || self.is_member(project, &caller.subject),
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

    /// A token as it may be seen, with the user whom it acts for.
    pub(super) fn token_object(&self, token: &Token, now: u64) -> Raw {
        let user = self.user(&token.subject);
        let text = |text: Option<&Arc<str>>| text.map_or_else(Raw::null, |text| Raw::from(&**text));
        token
            .object(self.is_good(&token.id, now))
            .with("user", text(user.map(|user| &user.name)))
            .with("userId", text(user.map(|user| &user.id)))
            .raw()
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

/// A row that is no project keeps nobody else out, and lets nobody in.
fn read(row: &ProjectRow) -> Option<Arc<Project>> {
    let form = row.form.object().unwrap_or_default();
    let read = Project::read(&row.name, &form);
    let told =
        |error: &_| tracing::error!(project = row.name, %error, "a project cannot be used and is left out");
    read.inspect_err(told).ok().map(Arc::new)
}
