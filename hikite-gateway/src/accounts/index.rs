//! Immutable snapshot of all accounts, indexed for lookups by calls.

use std::collections::HashMap;
use std::sync::Arc;

use hikite_core::json::Object;
use hikite_store::{AccountRow, DocumentRow};

use super::account::Account;

#[derive(Debug, Default)]
pub(super) struct AccountIndex {
    /// Ordered by age, oldest first.
    accounts: Vec<Arc<Account>>,
    by_id: HashMap<Arc<str>, Arc<Account>>,
    by_subject: HashMap<Arc<str>, Vec<Arc<Account>>>,
    shared: Vec<Arc<Account>>,
    /// Our OAuth clients at providers that are in the store.
    apps: HashMap<String, Object>,
}

impl AccountIndex {
    pub(super) fn of(accounts: &[AccountRow], apps: &[DocumentRow]) -> Self {
        let accounts = accounts.iter().map(|row| Arc::new(Account::of(row))).collect();
        let apps = apps.iter().filter_map(|entry| Some((entry.id.clone(), entry.document.object()?))).collect();
        Self::build(accounts, apps)
    }

    /// Returns a copy with some accounts replaced by their stored state; `None` removes one.
    pub(super) fn with(&self, changed: &[(&str, Option<AccountRow>)]) -> Self {
        let is_changed = |account: &&Arc<Account>| changed.iter().any(|(id, _)| **id == *account.id);
        let mut accounts: Vec<Arc<Account>> =
            self.accounts.iter().filter(|account| !is_changed(account)).cloned().collect();
        let now = changed.iter().filter_map(|(_, row)| row.as_ref().map(Account::of));
        accounts.extend(now.map(Arc::new));
        accounts.sort_by(|a, b| (a.created_at, &a.id).cmp(&(b.created_at, &b.id)));
        Self::build(accounts, self.apps.clone())
    }

    fn build(accounts: Vec<Arc<Account>>, apps: HashMap<String, Object>) -> Self {
        let by_id = accounts.iter().map(|account| (Arc::clone(&account.id), Arc::clone(account))).collect();
        let mut by_subject: HashMap<Arc<str>, Vec<Arc<Account>>> = HashMap::new();
        for account in &accounts {
            by_subject.entry(Arc::clone(&account.subject)).or_default().push(Arc::clone(account));
        }
        let shared = accounts.iter().filter(|account| account.shared).cloned().collect();
        Self { accounts, by_id, by_subject, shared, apps }
    }

    /// Returns `true` if a subject has an account of its own.
    pub(super) fn has_own(&self, subject: &str) -> bool {
        self.by_subject.contains_key(subject)
    }

    /// Returns all accounts that a subject may use, with any provider.
    pub(super) fn usable_by(&self, subject: &str) -> impl Iterator<Item = &Arc<Account>> {
        let own = self.by_subject.get(subject).into_iter().flatten().filter(|account| !account.shared);
        own.chain(&self.shared)
    }

    pub(super) fn all(&self) -> &[Arc<Account>] {
        &self.accounts
    }

    pub(super) fn app(&self, provider: &str) -> Option<&Object> {
        self.apps.get(provider)
    }

    pub(super) fn has(&self, provider: &str) -> bool {
        self.accounts.iter().any(|account| &*account.provider == provider)
    }

    pub(super) fn by_id(&self, id: &str) -> Option<Arc<Account>> {
        self.by_id.get(id).cloned()
    }

    /// Returns the accounts of one subject with one provider.
    pub(super) fn own(&self, subject: &str, provider: &str) -> impl Iterator<Item = &Arc<Account>> {
        let own = self.by_subject.get(subject).into_iter().flatten();
        own.filter(move |account| &*account.provider == provider)
    }

    pub(super) fn named(&self, subject: &str, provider: &str, name: &str) -> Option<Arc<Account>> {
        self.own(subject, provider).find(|account| account.name == name).cloned()
    }

    /// Returns the account marked as default, else the oldest.
    pub(super) fn default_of(&self, subject: &str, provider: &str) -> Option<Arc<Account>> {
        let marked = self.own(subject, provider).find(|account| account.is_default);
        marked.or_else(|| self.own(subject, provider).next()).cloned()
    }

    pub(super) fn shared(&self, provider: &str) -> impl Iterator<Item = Arc<Account>> {
        self.shared.iter().filter(move |account| &*account.provider == provider).cloned()
    }

    /// Returns the accounts with one provider that a subject may use.
    pub(super) fn usable(&self, subject: &str, provider: &str) -> impl Iterator<Item = &Arc<Account>> {
        self.accounts.iter().filter(move |a| (&*a.subject == subject || a.shared) && &*a.provider == provider)
    }

    /// Returns `true` if everybody sees the same tools with both snapshots.
    pub(super) fn shows_same_tools(&self, other: &Self) -> bool {
        let face = |account: &Arc<Account>| {
            let mask = account.permissions.form();
            let whose = (Arc::clone(&account.subject), account.name.clone(), account.shared);
            (Arc::clone(&account.id), Arc::clone(&account.provider), whose, mask)
        };
        self.accounts.iter().map(face).eq(other.accounts.iter().map(face))
    }
}
