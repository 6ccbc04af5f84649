//! An immutable snapshot of projects, tokens and users, indexed for authentication.

use std::collections::HashMap;
use std::sync::Arc;

use hikite_core::caller::{Caller, OWNER, Scopes};
use hikite_core::json::{Object, Raw};
use hikite_core::time::rfc3339;
use hikite_store::{ProjectRow, TokenRow, UserRow};

use super::token::{PersonalToken, TokenHash, read_hash};
use crate::identity::{Role, USER_ID, User};
use crate::project::{Project, ProjectMap};

/// Directory of projects, tokens and users. Cheap to clone: a changed copy shares everything else.
#[derive(Clone, Debug, Default)]
pub(super) struct AccessDirectory {
    /// Effective projects: the store's, overridden by the config file's.
    projects: Arc<ProjectMap>,
    /// Projects of the store, including overridden ones.
    stored: Arc<ProjectMap>,
    /// Projects of the config file.
    file: Arc<ProjectMap>,
    tokens: Arc<HashMap<Arc<str>, Arc<PersonalToken>>>,
    by_hash: Arc<HashMap<TokenHash, Arc<PersonalToken>>>,
    /// Users by subject.
    users: Arc<HashMap<Arc<str>, DirectoryUser>>,
    owner: Option<DirectoryUser>,
}

/// The part of a user that authentication needs.
#[derive(Clone, Debug)]
pub(super) struct DirectoryUser {
    pub(super) id: Arc<str>,
    pub(super) name: Arc<str>,
    pub(super) subject: Arc<str>,
    /// `None` if the stored role is invalid; such a user cannot authenticate.
    pub(super) role: Option<Role>,
    pub(super) disabled: bool,
}

impl DirectoryUser {
    pub(super) fn is_owner(&self) -> bool {
        self.role == Some(Role::Owner)
    }

    fn is_active(&self) -> bool {
        !self.disabled && self.role.is_some()
    }

    /// Returns `true` if `member` is the user's id or current name, or the external subject.
    fn is_named(&self, member: &str) -> bool {
        *self.id == *member
            || *self.name == *member
            || self.subject.contains('#') && *self.subject == *member
            || self.is_owner() && member == OWNER
    }
}

impl From<&Arc<User>> for DirectoryUser {
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

impl From<&UserRow> for DirectoryUser {
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

impl AccessDirectory {
    /// Replaces the projects of the config file.
    pub(super) fn set_file(&mut self, file: Vec<Arc<Project>>) {
        let named = file.into_iter().map(|project| (Arc::clone(&project.name), project));
        let before = std::mem::replace(&mut self.file, Arc::new(named.collect()));
        let fresh = self.file.keys().filter(|name| !before.contains_key(*name));
        fresh.for_each(|name| self.warn_of_shadow(name));
        self.overlay();
    }

    /// Replaces the projects of the store. Returns `true` if the effective projects changed.
    pub(super) fn set_projects(&mut self, rows: &[ProjectRow]) -> bool {
        let read = rows.iter().filter_map(|row| {
            let known = self.stored.get(&*row.name).filter(|known| is_of(known, row));
            known.cloned().or_else(|| read(row))
        });
        let stored: ProjectMap = read.map(|project| (Arc::clone(&project.name), project)).collect();
        let before = Arc::clone(&self.projects);
        let earlier = std::mem::replace(&mut self.stored, Arc::new(stored));
        let fresh = self.stored.keys().filter(|name| !earlier.contains_key(*name));
        fresh.for_each(|name| self.warn_of_shadow(name));
        self.overlay();
        let is_same = |(name, project): (&Arc<str>, &Arc<Project>)| {
            self.projects.get(name).is_some_and(|now| Arc::ptr_eq(now, project))
        };
        before.len() != self.projects.len() || !before.iter().all(is_same)
    }

    /// Replaces or removes one project of the store. Returns `true` if the effective projects changed.
    pub(super) fn set_project(&mut self, name: &str, row: Option<&ProjectRow>) -> bool {
        let known = self.stored.get(name);
        if row.zip(known).is_some_and(|(row, known)| is_of(known, row)) {
            return false;
        }
        let project = row.and_then(read);
        let is_new = known.is_none();
        let put = |projects: &mut Arc<ProjectMap>| {
            let projects = Arc::make_mut(projects);
            match &project {
                Some(project) => projects.insert(Arc::clone(&project.name), Arc::clone(project)).is_some(),
                None => projects.remove(name).is_some(),
            }
        };
        let was_there = put(&mut self.stored);
        if is_new {
            self.warn_of_shadow(name);
        }
        if self.file.contains_key(name) {
            return false;
        }
        put(&mut self.projects);
        was_there || project.is_some()
    }

    fn overlay(&mut self) {
        let mut projects = ProjectMap::clone(&self.stored);
        projects.extend(self.file.iter().map(|(name, project)| (Arc::clone(name), Arc::clone(project))));
        self.projects = Arc::new(projects);
    }

    /// Warns that the config file overrides a stored project.
    fn warn_of_shadow(&self, project: &str) {
        if self.file.contains_key(project) && self.stored.contains_key(project) {
            tracing::warn!(%project, "the config file defines a project that is also in the store; the file's definition is used");
        }
    }

    /// Replaces all tokens.
    pub(super) fn set_tokens(&mut self, rows: &[TokenRow]) {
        (self.tokens, self.by_hash) = (Arc::default(), Arc::default());
        for row in rows {
            self.put_token(row);
        }
    }

    /// Replaces the tokens of one project.
    pub(super) fn set_tokens_of(&mut self, project: &str, rows: &[TokenRow]) {
        let is_of = |token: &&Arc<PersonalToken>| token.project.as_deref() == Some(project);
        let gone: Vec<Arc<str>> = self.tokens.values().filter(is_of).map(|token| Arc::clone(&token.id)).collect();
        for id in &gone {
            self.remove_token(id);
        }
        for row in rows {
            self.put_token(row);
        }
    }

    pub(super) fn put_token(&mut self, row: &TokenRow) {
        self.remove_token(&row.id);
        let Some(token) = PersonalToken::of(row).map(Arc::new) else { return };
        if let Some(hash) = read_hash(&row.hash) {
            Arc::make_mut(&mut self.by_hash).insert(hash, Arc::clone(&token));
        }
        Arc::make_mut(&mut self.tokens).insert(Arc::clone(&token.id), token);
    }

    pub(super) fn remove_token(&mut self, id: &str) {
        if self.tokens.contains_key(id) {
            Arc::make_mut(&mut self.tokens).remove(id);
            Arc::make_mut(&mut self.by_hash).retain(|_, token| *token.id != *id);
        }
    }

    /// Replaces all users.
    pub(super) fn set_users(&mut self, users: impl Iterator<Item = DirectoryUser>) {
        self.users = Arc::new(users.map(|user| (Arc::clone(&user.subject), user)).collect());
        self.owner = self.users.values().find(|user| user.is_owner()).cloned();
    }

    /// Returns `true` if a token's user is active and, for a project token, the project exists and is open to its
    /// subject.
    fn admits(&self, token: &PersonalToken) -> bool {
        if !self.is_admitted(&token.subject) {
            return false;
        }
        let Some(project) = &token.project else { return true };
        self.project(project).is_some_and(|project| self.is_open_to(project, &token.subject))
    }

    /// Returns `false` for disabled or deleted users.
    pub(super) fn is_admitted(&self, subject: &str) -> bool {
        match self.users.get(subject) {
            Some(user) => user.is_active(),
            None => !subject.starts_with(USER_ID),
        }
    }

    /// Returns the token's caller, limited to the scopes of the user it acts for.
    fn caller(&self, token: &PersonalToken) -> Caller {
        let caller = token.caller();
        match self.users.get(&token.subject).and_then(|user| user.role) {
            Some(role) => role.cap(caller),
            None => caller,
        }
    }

    pub(super) fn user(&self, subject: &str) -> Option<&DirectoryUser> {
        self.users.get(subject)
    }

    /// Returns a user by id or name.
    pub(super) fn user_named(&self, named: &str) -> Option<&DirectoryUser> {
        let by_id = self.users.values().find(|user| *user.id == *named);
        by_id.or_else(|| self.users.values().find(|user| *user.name == *named))
    }

    pub(super) fn owner(&self) -> Option<&DirectoryUser> {
        self.owner.as_ref()
    }

    /// Returns `true` if a subject may work in a project. A project without members is open to all.
    pub(super) fn is_open_to(&self, project: &Project, subject: &Arc<str>) -> bool {
        project.members.is_empty() || self.is_member(project, subject)
    }

    fn is_member(&self, project: &Project, subject: &Arc<str>) -> bool {
        match self.users.get(subject) {
            Some(user) => project.members.iter().any(|member| user.is_named(member)),
            None => project.members.contains(subject),
        }
    }

    pub(super) fn bearer(&self, hash: &TokenHash, now: impl FnOnce() -> u64) -> Option<Caller> {
        let token = self.by_hash.get(hash)?;
        let is_over = token.expires_at != 0 && now() >= token.expires_at;
        (!is_over && self.admits(token)).then(|| self.caller(token))
    }

    /// Returns the caller within a project. Administrators may enter every project; other callers outside a project
    /// may enter those that name them.
    pub(super) fn enter(&self, caller: &Caller, name: &str) -> Option<Caller> {
        let project = self.project(name)?;
        let may = match &caller.project {
            Some(own) => **own == *name,
            None => caller.scopes.contains(Scopes::ADMIN) || self.is_member(project, &caller.subject),
        };
        may.then(|| caller.within(Arc::clone(&project.name)))
    }

    pub(super) fn is_good(&self, id: &str, now: u64) -> bool {
        let is_good =
            |token: &Arc<PersonalToken>| (token.expires_at == 0 || now < token.expires_at) && self.admits(token);
        self.tokens.get(id).is_some_and(is_good)
    }

    pub(super) fn project(&self, name: &str) -> Option<&Arc<Project>> {
        self.projects.get(name)
    }

    /// Returns the effective projects by name.
    pub(super) fn projects(&self) -> &Arc<ProjectMap> {
        &self.projects
    }

    /// Returns the REST object of a token, with the user it acts for.
    pub(super) fn token_object(&self, token: &PersonalToken, now: u64) -> Raw {
        let user = self.user(&token.subject);
        let text = |text: Option<&Arc<str>>| text.map_or_else(Raw::null, |text| Raw::from(&**text));
        token
            .object(self.is_good(&token.id, now))
            .with("user", text(user.map(|user| &user.name)))
            .with("userId", text(user.map(|user| &user.id)))
            .raw()
    }

    pub(super) fn token(&self, id: &str) -> Option<&Arc<PersonalToken>> {
        self.tokens.get(id)
    }

    /// Returns all tokens, oldest first.
    pub(super) fn tokens(&self) -> Vec<Arc<PersonalToken>> {
        let mut tokens: Vec<Arc<PersonalToken>> = self.tokens.values().cloned().collect();
        tokens.sort_by(|a, b| (a.created_at, &a.id).cmp(&(b.created_at, &b.id)));
        tokens
    }

    /// Returns the REST object of a project: its document plus name, creation time and `managedByFile`.
    pub(super) fn project_object(&self, name: &str) -> Option<Raw> {
        let project = self.projects.get(name)?;
        let mut object = Object::default().with("name", &*project.name);
        for (member, value) in project.form().iter() {
            object.set(member, value.clone());
        }
        let created_at = project.created_at.map_or_else(Raw::null, |at| rfc3339(at).into());
        object.set("createdAt", created_at);
        Some(object.with("managedByFile", Raw::of(&project.managed_by_file)).raw())
    }
}

/// Returns `true` if a project was read from exactly this row.
fn is_of(project: &Project, row: &ProjectRow) -> bool {
    project.created_at == Some(row.created_at) && project.stored_document.as_ref() == Some(&row.form)
}

/// Reads a row. An invalid one is logged and left out.
fn read(row: &ProjectRow) -> Option<Arc<Project>> {
    let form = row.form.object().unwrap_or_default();
    let read = Project::read(&row.name, &form);
    let told = |error: &_| tracing::error!(project = row.name, %error, "a project is invalid and is skipped");
    let project = read.inspect_err(told).ok()?;
    let (created_at, stored_document) = (Some(row.created_at), Some(row.form.clone()));
    Some(Arc::new(Project { created_at, stored_document, ..project }))
}
