//! Projects and personal access tokens: who may call, and in which project. Both are held in memory, so that
//! authenticating a request costs one hash and one lookup; changes in the store are followed by revision. Projects of
//! the config file override those of the store.

mod change;
mod directory;
mod directory_change;
mod token;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use arc_swap::ArcSwap;
use hikite_core::caller::Caller;
use hikite_core::error::Error;
use hikite_store::clock::now_ms;
use hikite_store::{ChangeSet, GrantRow, Record, Store, change_kind};
use parking_lot::Mutex;
use tokio::sync::watch;

use crate::identity::{Identity, REMOVED, User, UserAuthority, Users, only_the_owner};
use crate::identity_provider::IdentityProviders;
use crate::project::Project;
use directory::{AccessDirectory, DirectoryUser};
pub use token::{OF_TOKEN, PersonalToken};

/// Store changes that may end open sessions although nothing of them is held here.
const ENDING: [&str; 3] = [change_kind::USER, GrantRow::KIND, REMOVED];

pub struct People {
    store: Store,
    /// Serializes changes, so that memory follows the store in order.
    turn: tokio::sync::Mutex<()>,
    /// Store revision that memory reflects.
    revision: AtomicI64,
    /// User table that the directory was built from.
    users: Mutex<Option<Arc<Users>>>,
    update_lock: Mutex<()>,
    directory: Arc<ArcSwap<AccessDirectory>>,
    changes: watch::Sender<u64>,
    /// Local users, if logins are enabled.
    identity: Option<Arc<Identity>>,
    /// External identity providers.
    identity_providers: Option<Arc<IdentityProviders>>,
}

/// Names of subjects, for audit records.
#[derive(Clone, Debug)]
pub struct SubjectNames(Arc<ArcSwap<AccessDirectory>>);

impl SubjectNames {
    /// Returns the id and name of the user behind a subject.
    pub fn of(&self, subject: &str) -> Option<(Arc<str>, Arc<str>)> {
        let directory = self.0.load();
        directory.user(subject).map(|user| (Arc::clone(&user.id), Arc::clone(&user.name)))
    }
}

impl std::fmt::Debug for People {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("People").finish_non_exhaustive()
    }
}

/// The projects, and their changes.
#[derive(Clone, Copy, Debug)]
pub struct ProjectRegistry<'a>(&'a People);

/// The personal tokens, and their changes.
#[derive(Clone, Copy, Debug)]
pub struct TokenRegistry<'a>(&'a People);

impl People {
    /// Returns the projects and tokens of a store, without logins.
    pub fn new(store: Store) -> Self {
        Self {
            store,
            turn: tokio::sync::Mutex::default(),
            revision: AtomicI64::new(-1),
            users: Mutex::default(),
            update_lock: Mutex::default(),
            directory: Arc::default(),
            changes: watch::Sender::default(),
            identity: None,
            identity_providers: None,
        }
    }

    /// Returns the projects and tokens of a store, with logins and maybe external identity providers.
    pub fn with_identity(
        store: Store,
        identity: Arc<Identity>,
        identity_providers: Option<Arc<IdentityProviders>>,
    ) -> Self {
        Self { identity: Some(identity), identity_providers, ..Self::new(store) }
    }

    pub fn projects(&self) -> ProjectRegistry<'_> {
        ProjectRegistry(self)
    }

    pub fn tokens(&self) -> TokenRegistry<'_> {
        TokenRegistry(self)
    }

    pub fn identity(&self) -> Option<&Arc<Identity>> {
        self.identity.as_ref()
    }

    pub fn identity_providers(&self) -> Option<&Arc<IdentityProviders>> {
        self.identity_providers.as_ref()
    }

    /// Replaces the projects of the config file.
    pub fn take(&self, file: Vec<Arc<Project>>) {
        self.update(|directory| directory.set_file(file));
    }

    /// Reads users, projects and tokens from the store. Returns `true` if projects changed.
    pub async fn read_store(&self) -> Result<bool, Error> {
        if let Some(identity) = self.identity() {
            identity.read_store().await?;
        }
        self.read_tokens().await
    }

    /// Reads projects and tokens from the store, with the users already known. Returns `true` if projects changed.
    pub async fn read_tokens(&self) -> Result<bool, Error> {
        let _turn = self.turn.lock().await;
        self.read().await
    }

    /// Applies store changes of projects, tokens and users. Returns `true` if projects changed.
    pub async fn follow_store(&self, changes: &ChangeSet) -> Result<bool, Error> {
        let _turn = self.turn.lock().await;
        if changes.continue_from(self.revision.load(Ordering::Relaxed)) {
            return self.apply_changes(changes).await;
        }
        self.read().await
    }

    async fn read(&self) -> Result<bool, Error> {
        let changes = self.store.changes().since(self.revision.load(Ordering::Relaxed)).await?;
        self.apply_changes(&changes).await
    }

    /// Reads only the changed rows and publishes them in one step.
    async fn apply_changes(&self, changes: &ChangeSet) -> Result<bool, Error> {
        let news = directory_change::read(&self.store, changes).await?;
        // Users as `Identity` has them: no token may authenticate before its user's permissions apply.
        let users = match self.identity() {
            Some(identity) => Some(identity.users().table()),
            None if changes.concern(&[change_kind::USER]) => {
                let rows = self.store.users().all().await?;
                self.update(|directory| directory.set_users(rows.iter().map(DirectoryUser::from)));
                None
            }
            None => None,
        };
        let users = users.filter(|users| !self.has_users(users));
        let mut differs = false;
        if users.is_some() || !news.is_empty() {
            self.update(|directory| {
                if let Some(users) = &users {
                    directory.set_users(users.values().map(DirectoryUser::from));
                }
                differs = news.apply_to(directory);
            });
            if users.is_some() {
                *self.users.lock() = users;
            }
        }
        self.revision.store(changes.to, Ordering::Relaxed);
        if changes.concern(&ENDING) {
            self.notify();
        }
        Ok(differs)
    }

    fn has_users(&self, users: &Arc<Users>) -> bool {
        self.users.lock().as_ref().is_some_and(|known| Arc::ptr_eq(known, users))
    }

    fn update(&self, change: impl FnOnce(&mut AccessDirectory)) {
        let _one = self.update_lock.lock();
        let mut next = AccessDirectory::clone(&self.directory.load());
        change(&mut next);
        self.directory.store(Arc::new(next));
        self.notify();
    }

    fn notify(&self) {
        self.changes.send_modify(|count| *count = count.wrapping_add(1));
    }

    /// Returns a channel that signals whenever somebody may have lost access.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Returns the caller of the local token: the current owner.
    pub fn owner(&self) -> Caller {
        match self.directory.load().owner() {
            Some(owner) => Caller { subject: Arc::clone(&owner.subject), ..Caller::owner() },
            None => Caller::owner(),
        }
    }

    /// Returns the right with which a caller changes users and their data; whether the caller may do so at all is
    /// checked elsewhere. A token or client that acts for the owner does not have the owner's right, since any
    /// program that holds it could use it. `is_in_person` means that the caller holds the local token or a logged-in
    /// browser session.
    pub fn right_of(&self, caller: &Caller, is_in_person: bool) -> UserAuthority {
        if is_in_person && caller.is_admin() && caller.subject == self.owner().subject {
            UserAuthority::Owner
        } else {
            UserAuthority::Admin
        }
    }

    /// Fails if the subject is the owner and the right is not the owner's.
    pub fn check_right(&self, subject: &str, right: UserAuthority) -> Result<(), Error> {
        let is_owner = self.directory.load().user(subject).is_some_and(DirectoryUser::is_owner);
        if is_owner && right != UserAuthority::Owner { Err(only_the_owner()) } else { Ok(()) }
    }

    /// Returns the id and name of the user behind a subject.
    pub fn name_of(&self, subject: &str) -> Option<(Arc<str>, Arc<str>)> {
        self.names().of(subject)
    }

    pub fn names(&self) -> SubjectNames {
        SubjectNames(Arc::clone(&self.directory))
    }

    /// Returns the caller that a secret authenticates; `None` if it is unknown, expired or revoked, or its project is
    /// gone.
    pub fn bearer(&self, secret: &str) -> Option<Caller> {
        if !secret.starts_with(token::PREFIX) {
            return None;
        }
        self.directory.load().bearer(&token::hash(secret), now_ms)
    }

    /// Returns the caller within a project, if it exists and the caller may enter it.
    pub fn enter(&self, caller: &Caller, project: &str) -> Option<Caller> {
        self.directory.load().enter(caller, project)
    }

    /// Returns the caller of a project-bound token within its project, if the user may enter it. The right to enter
    /// is the user's; the scopes are those of the token.
    pub fn enter_bound_project(&self, caller: Caller) -> Option<Caller> {
        let Some(project) = caller.project.clone() else { return Some(caller) };
        let user = self.identity().and_then(|identity| identity.users().of_subject(&caller.subject));
        let scopes = user.map_or(caller.scopes, |user| user.role.scopes());
        let inside = self.enter(&Caller { project: None, scopes, ..caller.clone() }, &project)?;
        Some(Caller { scopes: caller.scopes.both(inside.scopes), ..inside })
    }

    /// Returns `true` if a user may work in a project. A user who is bound to a project may work only there.
    pub fn user_may_enter(&self, user: &User, project: &str) -> bool {
        if let Some(own) = &user.project {
            return **own == *project && self.directory.load().project(project).is_some();
        }
        let caller = Caller { scopes: user.role.scopes(), ..Caller::named(Arc::clone(&user.subject)) };
        self.enter(&caller, project).is_some()
    }

    /// Returns the caller within the project that its user is bound to. Returns `None` if that project is gone or the
    /// caller asked for another one.
    pub fn confine(&self, caller: Caller) -> Option<Caller> {
        let Some(own) = self.bound_to(&caller) else { return Some(caller) };
        match &caller.project {
            Some(project) if *project == own => Some(caller),
            Some(_) => None,
            None => {
                let project = Arc::clone(&self.directory.load().project(&own)?.name);
                Some(caller.within(project))
            }
        }
    }

    /// Returns the project that the caller's user is bound to.
    fn bound_to(&self, caller: &Caller) -> Option<Arc<str>> {
        self.identity()?.users().of_subject(&caller.subject)?.project.clone()
    }

    /// Returns `true` if a user may continue in the caller's project: the one they are bound to, or one they belong
    /// to.
    fn may_continue(&self, user: &User, caller: &Caller) -> bool {
        if user.project.is_some() && user.project != caller.project {
            return false;
        }
        let Some(name) = &caller.project else { return true };
        let directory = self.directory.load();
        let is_open = |project: &Arc<Project>| directory.is_open_to(project, &caller.subject);
        directory.project(name).is_some_and(is_open) || self.user_may_enter(user, name)
    }

    /// Returns `true` if a caller's authentication is still valid: the user is active and may work in the project,
    /// and the token or grant is alive. A caller without a token has none to check.
    pub fn is_still_valid(&self, caller: &Caller) -> bool {
        let user = self.identity().and_then(|identity| identity.users().of_subject(&caller.subject));
        if !self.is_admitted(&caller.subject) || user.is_some_and(|user| !self.may_continue(&user, caller)) {
            return false;
        }
        let Some(id) = &caller.token else { return true };
        let granted = self.identity().and_then(|identity| identity.tokens().is_alive(id));
        granted.unwrap_or_else(|| self.directory.load().is_good(id, now_ms()))
    }

    /// Returns `false` for users who are disabled or deleted, and for removed external users.
    pub fn is_admitted(&self, subject: &str) -> bool {
        self.directory.load().is_admitted(subject)
            && !self.identity().is_some_and(|identity| identity.users().is_removed(subject))
    }

    /// Returns the expiry of a token or grant; `None` if it never expires or does not exist.
    pub fn expires_at(&self, id: &str) -> Option<u64> {
        let directory = self.directory.load();
        let Some(token) = directory.token(id) else {
            return self.identity()?.tokens().ends_at(id);
        };
        Some(token.expires_at).filter(|at| *at > 0)
    }
}

#[cfg(test)]
mod tests;
