//! Immutable snapshot of all users and grants, indexed for lookups by requests.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use hikite_core::caller::Scopes;
use hikite_store::{DocumentRow, GrantRow, UserRow};

use super::user::{User, Users};
use super::{grant, removal};

#[derive(Clone, Debug, Default)]
pub(super) struct IdentitySnapshot {
    /// Users by subject.
    users: Arc<Users>,
    grants: HashMap<Arc<str>, GrantSummary>,
    /// Ids of remembered removals.
    removed: HashSet<String>,
}

/// The part of a grant that requests need.
#[derive(Clone, Debug)]
pub(super) struct GrantSummary {
    pub(super) subject: Arc<str>,
    pub(super) expires_at: u64,
    /// Scopes of a client that acts for itself; `None` if it acts for a user.
    pub(super) own: Option<Scopes>,
}

impl IdentitySnapshot {
    pub(super) fn of(users: &[UserRow], grants: &[GrantRow], removed: &[DocumentRow]) -> Self {
        let removed = removed.iter().map(|entry| entry.id.clone()).collect();
        let mut snapshot = Self { removed, ..Self::default() };
        for user in users.iter().filter_map(User::of) {
            snapshot.put_user(Arc::new(user));
        }
        for grant in grants {
            snapshot.put_grant(grant);
        }
        snapshot
    }

    pub(super) fn put_user(&mut self, user: Arc<User>) {
        Arc::make_mut(&mut self.users).insert(Arc::clone(&user.subject), user);
    }

    /// Removes a user and its grants.
    pub(super) fn remove_user(&mut self, subject: &str) {
        Arc::make_mut(&mut self.users).remove(subject);
        self.remove_grants_of(subject);
        if subject.contains('#') {
            self.removed.insert(removal::id_of(subject));
        }
    }

    /// Removes the user with this id, if any.
    pub(super) fn remove_user_by_id(&mut self, id: &str) {
        let subject = self.users.values().find(|user| *user.id == *id).map(|user| Arc::clone(&user.subject));
        if let Some(subject) = subject {
            self.remove_user(&subject);
        }
    }

    pub(super) fn remove_grants_of(&mut self, subject: &str) {
        self.grants.retain(|_, mark| *mark.subject != *subject);
    }

    pub(super) fn is_removed(&self, subject: &str) -> bool {
        !self.removed.is_empty() && self.removed.contains(&removal::id_of(subject))
    }

    pub(super) fn put_grant(&mut self, grant: &GrantRow) {
        self.grants.insert(grant.id.as_str().into(), grant::summary(grant));
    }

    pub(super) fn remove_grants(&mut self, ids: &[String]) {
        for id in ids {
            self.grants.remove(id.as_str());
        }
    }

    pub(super) fn user(&self, subject: &str) -> Option<&Arc<User>> {
        self.users.get(subject)
    }

    pub(super) fn user_table(&self) -> &Arc<Users> {
        &self.users
    }

    pub(super) fn users(&self) -> impl Iterator<Item = &Arc<User>> {
        self.users.values()
    }

    pub(super) fn grant(&self, id: &str) -> Option<&GrantSummary> {
        self.grants.get(id)
    }

    /// Returns the scopes of a grant, or `None` if it has ended or its user is gone or locked out.
    pub(super) fn allowed(&self, id: &str, now: u64) -> Option<Scopes> {
        let mark = self.grants.get(id).filter(|mark| mark.expires_at == 0 || now < mark.expires_at)?;
        match mark.own {
            Some(own) => Some(own),
            None => self.user(&mark.subject).filter(|user| !user.disabled).map(|user| user.role.scopes()),
        }
    }
}
