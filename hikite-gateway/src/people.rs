//! Who may come in and where: the projects and the personal tokens. Both are kept in memory, so that a request costs
//! one hash and one look; the store is followed as the registry follows it. What the file names comes first.

mod change;
mod directory;
mod news;
mod token;

use std::collections::HashSet;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwap;
use hikite_core::caller::Caller;
use hikite_core::error::Error;
use hikite_core::fault::{self, Fault};
use hikite_core::json::{Object, Raw};
use hikite_store::{Changes, Store, change_kind};
use parking_lot::Mutex;
use tokio::sync::watch;

use crate::clock::now_ms;
use crate::entrance::Entrances;
use crate::gateway::Gateway;
use crate::identity::{GRANT, Identity, REMOVED, Right, User, Users, only_the_owner};
use crate::project::Project;
use crate::snapshot::UserMasks;
use directory::{Directory, Person};
pub(crate) use token::OF_TOKEN;
pub use token::Token;

/// What changes here may end what somebody has open, also where nothing of it is kept in this directory.
const ENDING: [&str; 3] = [change_kind::USER, GRANT, REMOVED];

pub struct People {
    store: Store,
    /// Changes are made one at a time, so that memory follows the store in order.
    turn: tokio::sync::Mutex<()>,
    /// The store's revision that memory shows.
    revision: AtomicI64,
    /// The users that are shown, as whoever knows them has them.
    users: Mutex<Option<Arc<Users>>>,
    learning: Mutex<()>,
    shown: Arc<ArcSwap<Directory>>,
    changes: watch::Sender<u64>,
    /// Who people are that log in, where they can.
    identity: OnceLock<Arc<Identity>>,
    /// The other ways in.
    entrances: OnceLock<Arc<Entrances>>,
}

/// The names of subjects, for records.
#[derive(Clone, Debug)]
pub(crate) struct Names(Arc<ArcSwap<Directory>>);

impl Names {
    /// Id and name of the user, if it is one.
    pub(crate) fn of(&self, subject: &str) -> Option<(Arc<str>, Arc<str>)> {
        let shown = self.0.load();
        shown.user(subject).map(|user| (Arc::clone(&user.id), Arc::clone(&user.name)))
    }
}

impl std::fmt::Debug for People {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("People").finish_non_exhaustive()
    }
}

impl People {
    pub fn new(store: Store) -> Self {
        Self {
            store,
            turn: tokio::sync::Mutex::default(),
            revision: AtomicI64::new(-1),
            users: Mutex::default(),
            learning: Mutex::default(),
            shown: Arc::default(),
            changes: watch::Sender::default(),
            identity: OnceLock::new(),
            entrances: OnceLock::new(),
        }
    }

    /// From now on people can log in.
    pub fn identify_with(&self, identity: Arc<Identity>) {
        // There is one of them for as long as we run.
        let _ = self.identity.set(identity);
    }

    pub fn identity(&self) -> Option<&Arc<Identity>> {
        self.identity.get()
    }

    /// From now on there are other ways in.
    pub fn enter_through(&self, entrances: Arc<Entrances>) {
        let _ = self.entrances.set(entrances);
    }

    pub fn entrances(&self) -> Option<&Arc<Entrances>> {
        self.entrances.get()
    }

    /// Takes the projects of the file, in place of those it had before.
    pub fn take(&self, file: Vec<Arc<Project>>) {
        self.learn(|directory| directory.set_file(file));
    }

    /// Takes in what the store holds; whether that changed anything about projects.
    pub async fn read_store(&self) -> Result<bool, Error> {
        if let Some(identity) = self.identity() {
            identity.read_store().await?;
        }
        self.read_tokens().await
    }

    /// Takes in projects and tokens, with the users that are known; whether that changed anything about projects.
    pub(crate) async fn read_tokens(&self) -> Result<bool, Error> {
        let _turn = self.turn.lock().await;
        self.read().await
    }

    /// Takes in what changed in the store, as far as it concerns projects, tokens and users; whether that changed anything
    /// about projects.
    pub(crate) async fn follow_store(&self, changes: &Changes) -> Result<bool, Error> {
        let _turn = self.turn.lock().await;
        if changes.continue_from(self.revision.load(Ordering::Relaxed)) {
            return self.take_in(changes).await;
        }
        self.read().await
    }

    async fn read(&self) -> Result<bool, Error> {
        let changes = self.store.changes_since(self.revision.load(Ordering::Relaxed)).await?;
        self.take_in(&changes).await
    }

    /// Reads what changed and nothing else, and shows it as one step.
    async fn take_in(&self, changes: &Changes) -> Result<bool, Error> {
        let news = news::read(&self.store, changes).await?;
        // Those that are known where people log in: a token is not let in before the mask of its user is.
        let users = match self.identity() {
            Some(identity) => Some(identity.user_table()),
            None if changes.concern(&[change_kind::USER]) => {
                let rows = self.store.users().await?;
                self.learn(|directory| directory.set_users(rows.iter().map(Person::from)));
                None
            }
            None => None,
        };
        let users = users.filter(|users| !self.has_users(users));
        let mut differs = false;
        if users.is_some() || !news.is_empty() {
            self.learn(|directory| {
                if let Some(users) = &users {
                    directory.set_users(users.values().map(Person::from));
                }
                differs = news.put_into(directory);
            });
            if users.is_some() {
                *self.users.lock() = users;
            }
        }
        self.revision.store(changes.to, Ordering::Relaxed);
        if changes.concern(&ENDING) {
            self.tell();
        }
        Ok(differs)
    }

    fn has_users(&self, users: &Arc<Users>) -> bool {
        self.users.lock().as_ref().is_some_and(|known| Arc::ptr_eq(known, users))
    }

    fn learn(&self, change: impl FnOnce(&mut Directory)) {
        let _one = self.learning.lock();
        let mut next = Directory::clone(&self.shown.load());
        change(&mut next);
        self.shown.store(Arc::new(next));
        self.tell();
    }

    fn tell(&self) {
        self.changes.send_modify(|count| *count = count.wrapping_add(1));
    }

    /// Tells of every moment at which somebody may have lost what they had.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// The caller for the local token, and for whoever sits at the machine: the present owner.
    pub fn owner(&self) -> Caller {
        match self.shown.load().owner() {
            Some(owner) => Caller { subject: Arc::clone(&owner.subject), ..Caller::owner() },
            None => Caller::owner(),
        }
    }

    /// With which right a caller changes users and what is theirs. Whether it may at all is for others to say. A token or a
    /// client that acts for the owner is not the owner: what it may do, a program may do that has it. `is_in_person` says
    /// that the caller holds the local token or sits at a browser that is logged in.
    pub fn right_of(&self, caller: &Caller, is_in_person: bool) -> Right {
        if is_in_person && caller.is_admin() && caller.subject == self.owner().subject {
            Right::Owner
        } else {
            Right::Admin
        }
    }

    /// Only the owner changes what is the owner's.
    pub fn check_right(&self, subject: &str, right: Right) -> Result<(), Error> {
        let is_owner = self.shown.load().user(subject).is_some_and(Person::is_owner);
        if is_owner && right != Right::Owner { Err(only_the_owner()) } else { Ok(()) }
    }

    /// The id and name of the user behind a subject, if it is one.
    pub fn name_of(&self, subject: &str) -> Option<(Arc<str>, Arc<str>)> {
        self.names().of(subject)
    }

    pub(crate) fn names(&self) -> Names {
        Names(Arc::clone(&self.shown))
    }

    /// Who bears this secret; nobody if it is unknown, expired or taken back, or its project is gone.
    pub fn bearer(&self, secret: &str) -> Option<Caller> {
        if !secret.starts_with(token::PREFIX) {
            return None;
        }
        self.shown.load().bearer(&token::hash(secret), now_ms)
    }

    /// The caller in this project, if there is such a one that it may enter.
    pub fn enter(&self, caller: &Caller, project: &str) -> Option<Caller> {
        self.shown.load().enter(caller, project)
    }

    /// The caller of a token that is for one project, in that project, if its person may enter it. The right to enter is
    /// the person's; what may be done there is what the token allows.
    pub fn enter_bound(&self, caller: Caller) -> Option<Caller> {
        let Some(project) = caller.project.clone() else { return Some(caller) };
        let user = self.identity().and_then(|identity| identity.user_of(&caller.subject));
        let scopes = user.map_or(caller.scopes, |user| user.role.scopes());
        let inside = self.enter(&Caller { project: None, scopes, ..caller.clone() }, &project)?;
        Some(Caller { scopes: caller.scopes.both(inside.scopes), ..inside })
    }

    /// True if a user may work in a project: their own alone, where they are bound to one.
    pub fn person_may_enter(&self, user: &User, project: &str) -> bool {
        if let Some(own) = &user.project {
            return **own == *project && self.shown.load().project(project).is_some();
        }
        let caller = Caller { scopes: user.role.scopes(), ..Caller::named(Arc::clone(&user.subject)) };
        self.enter(&caller, project).is_some()
    }

    /// The caller in the project that its person is bound to, if it is bound to one. Nobody, where that project is gone or
    /// the caller came for another.
    pub fn confine(&self, caller: Caller) -> Option<Caller> {
        let Some(own) = self.bound_to(&caller) else { return Some(caller) };
        match &caller.project {
            Some(project) if *project == own => Some(caller),
            Some(_) => None,
            None => {
                let project = Arc::clone(&self.shown.load().project(&own)?.name);
                Some(caller.within(project))
            }
        }
    }

    /// The project that a caller's person may not leave.
    fn bound_to(&self, caller: &Caller) -> Option<Arc<str>> {
        self.identity()?.user_of(&caller.subject)?.project.clone()
    }

    /// True if a user may go on where the caller works: in the project that they are bound to, or in one that they belong to.
    fn may_stay(&self, user: &User, caller: &Caller) -> bool {
        if user.project.is_some() && user.project != caller.project {
            return false;
        }
        let Some(name) = &caller.project else { return true };
        let shown = self.shown.load();
        let is_open = |project: &Arc<Project>| shown.is_open_to(project, &caller.subject);
        shown.project(name).is_some_and(is_open) || self.person_may_enter(user, name)
    }

    /// True if what a caller came with is still good: its user may come in and belongs where it works, and its token or
    /// grant lives. A caller without a token is not in question.
    pub fn still_knows(&self, caller: &Caller) -> bool {
        let user = self.identity().and_then(|identity| identity.user_of(&caller.subject));
        if !self.lets_in(&caller.subject) || user.is_some_and(|user| !self.may_stay(&user, caller)) {
            return false;
        }
        let Some(id) = &caller.token else { return true };
        let granted = self.identity().and_then(|identity| identity.is_alive(id));
        granted.unwrap_or_else(|| self.shown.load().is_good(id, now_ms()))
    }

    /// Whether a subject may come in at all: not a user who is locked out or gone, nor one from elsewhere who was removed.
    pub fn lets_in(&self, subject: &str) -> bool {
        self.shown.load().lets_in(subject)
            && !self.identity().is_some_and(|identity| identity.is_removed(subject))
    }

    /// When a token or a grant expires; nothing if it never does or there is none.
    pub fn expires_at(&self, id: &str) -> Option<u64> {
        let shown = self.shown.load();
        let Some(token) = shown.token(id) else {
            return self.identity()?.ends_at(id);
        };
        Some(token.expires_at).filter(|at| *at > 0)
    }

    /// All of them by name.
    pub fn projects(&self) -> Vec<Arc<Project>> {
        self.shown.load().projects().values().cloned().collect()
    }

    /// All of them, the oldest first, whether they are good or not.
    pub fn tokens(&self) -> Vec<Arc<Token>> {
        self.shown.load().tokens()
    }

    /// The project as people and programs see it.
    pub fn project_object(&self, name: &str) -> Result<Raw, Error> {
        self.shown.load().project_object(name).ok_or_else(|| change::no_project(name))
    }

    pub fn project_objects(&self) -> Vec<Raw> {
        let shown = self.shown.load();
        shown.projects().keys().filter_map(|name| shown.project_object(name)).collect()
    }

    /// Refuses a form of a user that names a project that is not there.
    pub fn check_project_of(&self, form: &Object) -> Result<(), Error> {
        let Some(name) = form.text("project") else { return Ok(()) };
        if self.shown.load().project(&name).is_some() {
            return Ok(());
        }
        Err(fault::error(&[Fault::new(fault::step("project"), format!("there is no project `{name}`"))]))
    }

    /// The tokens as people and programs see them; nothing there opens anything.
    pub fn token_objects(&self) -> Vec<Raw> {
        let (shown, now) = (self.shown.load(), now_ms());
        shown.tokens().iter().map(|token| shown.token_object(token, now)).collect()
    }
}

impl Gateway {
    pub fn people(&self) -> &People {
        &self.people
    }

    /// Everyone sees what their user is allowed now.
    pub fn show_users(&self) {
        let users = self.people.identity().map(|identity| identity.users()).unwrap_or_default();
        let mask = |user: &Arc<User>| Some((Arc::clone(&user.subject), user.permissions.clone()?));
        // What still runs for somebody who is gone sees no more than they did.
        let known: HashSet<&Arc<str>> = users.iter().map(|user| &user.subject).collect();
        let mut masks = UserMasks::clone(&self.masks());
        masks.retain(|subject, _| !known.contains(subject));
        masks.extend(users.iter().filter_map(mask));
        self.set_masks(masks);
        let owner = self.people.identity().and_then(|identity| identity.owner());
        self.set_owner(owner.map(|owner| Arc::clone(&owner.subject)));
    }

    /// Requests meet users as they are now: their masks first, then their tokens, projects and accounts.
    pub async fn follow_users(&self) -> Result<(), Error> {
        self.show_users();
        if self.people.read_tokens().await? {
            self.show_projects();
        }
        if let Some(accounts) = self.accounts() {
            accounts.read_store().await?;
            if accounts.take_news() {
                self.show_accounts();
            }
        }
        Ok(())
    }

    /// The same for what changed in the store.
    pub(crate) async fn follow_people(&self, changes: &Changes) -> Result<(), Error> {
        if changes.concern(&[change_kind::USER]) {
            self.show_users();
        }
        let differs = self.people.follow_store(changes).await?;
        // Somebody may have read them in passing, and shown nobody.
        if differs || !Arc::ptr_eq(self.people.shown.load().projects(), &self.snapshot().bounds().projects) {
            self.show_projects();
        }
        if let Some(accounts) = self.accounts() {
            accounts.follow_store(changes).await?;
            if accounts.take_news() {
                self.show_accounts();
            }
        }
        Ok(())
    }

    /// Refuses a form of a user that names a project that is not there.
    pub fn check_project_of(&self, form: &Object) -> Result<(), Error> {
        self.people.check_project_of(form)
    }

    /// Everyone sees the projects as they are now.
    pub fn show_projects(&self) {
        self.replace_projects(Arc::clone(self.people.shown.load().projects()));
    }
}

#[cfg(test)]
mod tests;
