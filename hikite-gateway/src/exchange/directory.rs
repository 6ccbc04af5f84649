//! One moment of all accounts, put together so that a call need only look.

use std::collections::HashMap;
use std::sync::Arc;

use hikite_core::json::Object;
use hikite_store::Entry;

use super::account::Account;

#[derive(Debug, Default)]
pub(super) struct Directory {
    /// The oldest first.
    accounts: Vec<Arc<Account>>,
    by_id: HashMap<Arc<str>, Arc<Account>>,
    /// Our own apps with providers, as far as they are in the store.
    apps: HashMap<String, Object>,
}

impl Directory {
    pub(super) fn of(accounts: &[Entry], apps: &[Entry]) -> Self {
        let accounts: Vec<Arc<Account>> = accounts.iter().filter_map(Account::of).map(Arc::new).collect();
        let by_id = accounts.iter().map(|account| (Arc::clone(&account.id), Arc::clone(account))).collect();
        let apps = apps.iter().filter_map(|entry| Some((entry.id.clone(), entry.form.object()?))).collect();
        Self { accounts, by_id, apps }
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

    /// Those of one subject with one provider.
    pub(super) fn own(&self, subject: &str, provider: &str) -> impl Iterator<Item = &Arc<Account>> {
        self.accounts.iter().filter(move |a| &*a.subject == subject && &*a.provider == provider)
    }

    pub(super) fn named(&self, subject: &str, provider: &str, name: &str) -> Option<Arc<Account>> {
        self.own(subject, provider).find(|account| account.name == name).cloned()
    }

    /// The one that is marked, else the first.
    pub(super) fn default_of(&self, subject: &str, provider: &str) -> Option<Arc<Account>> {
        let marked = self.own(subject, provider).find(|account| account.is_default);
        marked.or_else(|| self.own(subject, provider).next()).cloned()
    }

    pub(super) fn shared(&self, provider: &str) -> impl Iterator<Item = Arc<Account>> {
        self.accounts.iter().filter(move |a| a.shared && &*a.provider == provider).cloned()
    }

    /// All that a subject may call with.
    pub(super) fn usable(&self, subject: &str, provider: &str) -> impl Iterator<Item = &Arc<Account>> {
        self.accounts.iter().filter(move |a| (&*a.subject == subject || a.shared) && &*a.provider == provider)
    }

    /// Whether everybody would see the same tools with it.
    pub(super) fn looks_like(&self, other: &Self) -> bool {
        let face = |account: &Arc<Account>| {
            let mask = account.permissions.form();
            (Arc::clone(&account.id), Arc::clone(&account.provider), account.shared, mask)
        };
        self.accounts.iter().map(face).eq(other.accounts.iter().map(face))
    }
}
