//! The gateway: a thin front over parts with one duty each, which `GatewayBuilder` builds.

use std::sync::Arc;

use hikite_core::limits::Limits;
use hikite_core::signer::HmacSigner;

use crate::accounts::AccountStore;
use crate::admin::Admin;
use crate::answers::Answers;
use crate::audit::Auditor;
use crate::batch::Batches;
use crate::catalogs::{Catalogs, GatewayRules};
use crate::discovery::Discovery;
use crate::executor::Executor;
use crate::freshness::Freshness;
use crate::lookup::Lookup;
use crate::meter::Meter;
use crate::registry::RegistryStore;
use crate::search::Search;
use crate::sessions::Sessions;
use crate::token_savings::TokenSavings;
use hikite_identity::People;

pub struct Gateway {
    pub(crate) limits: Arc<Limits>,
    /// Unique id of this process.
    pub(crate) process: Arc<str>,
    /// Signer of values that clients return.
    pub(crate) seal: HmacSigner,
    pub(crate) registry: Arc<RegistryStore>,
    pub(crate) people: Arc<People>,
    pub(crate) accounts: Option<Arc<AccountStore>>,
    pub(crate) freshness: Arc<Freshness>,
    pub(crate) meter: Arc<Meter>,
    pub(crate) token_savings: Arc<TokenSavings>,
    pub(crate) auditor: Arc<Auditor>,
    pub(crate) catalogs: Arc<Catalogs>,
    pub(crate) lookup: Lookup,
    pub(crate) search: Arc<Search>,
    pub(crate) discovery: Arc<Discovery>,
    pub(crate) answers: Arc<Answers>,
    pub(crate) executor: Arc<Executor>,
    pub(crate) batches: Arc<Batches>,
    pub(crate) sessions: Arc<Sessions>,
    pub(crate) admin: Admin,
}

impl std::fmt::Debug for Gateway {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gateway").finish_non_exhaustive()
    }
}

impl Gateway {
    /// Replaces all rules at once; running requests keep their snapshot.
    pub fn apply(&self, mut rules: GatewayRules) {
        self.people.take(std::mem::take(&mut rules.projects));
        self.catalogs.apply(rules);
        self.admin.access.publish_projects();
        self.registry.refresh();
    }

    /// Returns the unique id of this process.
    pub fn process(&self) -> &Arc<str> {
        &self.process
    }

    pub fn seal(&self) -> &HmacSigner {
        &self.seal
    }

    /// Returns the projects, the tokens and the users.
    pub fn people(&self) -> &People {
        &self.people
    }

    /// Returns the accounts with which services are called, if available.
    pub fn accounts(&self) -> Option<&Arc<AccountStore>> {
        self.accounts.as_ref()
    }

    /// Returns the age of the data read from the store.
    pub fn freshness(&self) -> &Freshness {
        &self.freshness
    }

    pub fn meter(&self) -> &Meter {
        &self.meter
    }

    pub fn token_savings(&self) -> &TokenSavings {
        &self.token_savings
    }

    pub fn auditor(&self) -> &Auditor {
        &self.auditor
    }

    /// Returns the snapshots and views of what the modules offer.
    pub fn catalogs(&self) -> &Arc<Catalogs> {
        &self.catalogs
    }

    /// Returns the lookup that waits for first listings.
    pub fn lookup(&self) -> &Lookup {
        &self.lookup
    }

    pub fn search(&self) -> &Search {
        &self.search
    }

    /// Returns lists, descriptions and search for clients.
    pub fn discovery(&self) -> &Discovery {
        &self.discovery
    }

    pub fn batches(&self) -> &Batches {
        &self.batches
    }

    /// Returns the registration of client sessions.
    pub fn sessions(&self) -> &Arc<Sessions> {
        &self.sessions
    }

    pub fn admin(&self) -> &Admin {
        &self.admin
    }
}
