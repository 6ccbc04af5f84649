//! Construction of a gateway: every part gets all that it needs when it is built.

use std::sync::Arc;

use hikite_core::limits::Limits;
use hikite_core::selector::JqRunner;
use hikite_core::share::Allowance;
use hikite_core::signer::HmacSigner;
use parking_lot::Mutex;

use crate::accounts::AccountStore;
use crate::admin::{AccessAdmin, Admin, ModuleAdmin, PinAdmin, Previews, Status, StoreSync, ToolAdmin};
use crate::answers::Answers;
use crate::audit::{AuditSettings, Auditor};
use crate::batch::Batches;
use crate::cache::Cache;
use crate::catalogs::CatalogsBuilder;
use crate::config_admin::ConfigAdmin;
use crate::describe::SentDescriptions;
use crate::discovery::Discovery;
use crate::executor::Executor;
use crate::freshness::Freshness;
use crate::gateway::Gateway;
use crate::handle::ResultStore;
use crate::lookup::Lookup;
use crate::meter::Meter;
use crate::node::random_id;
use crate::registry::RegistryStore;
use crate::resource_link::ResourceLinks;
use crate::search::Search;
use crate::session::OpenSessions;
use crate::sessions::Sessions;
use crate::share::{SharedSlots, SlotKind};
use crate::token_savings::TokenSavings;
use hikite_identity::People;

const BATCHES: SlotKind = SlotKind { resource: "batches", limit: "batches", things: "batches running" };
const JQ: SlotKind = SlotKind { resource: "jq", limit: "jq_processes", things: "programs in jq running" };

/// Everything that a gateway is built from. `None` leaves a feature out for the life of the gateway.
#[derive(Debug)]
pub struct GatewayBuilder {
    pub limits: Arc<Limits>,
    /// Signer of values that clients return: ids of tasks, sessions and suspended calls.
    pub seal: HmacSigner,
    pub registry: RegistryStore,
    pub people: Arc<People>,
    /// Accounts with which services are called.
    pub accounts: Option<Arc<AccountStore>>,
    /// Runner of jq programs.
    pub jq_runner: Option<Arc<dyn JqRunner>>,
    /// Administration of upstream servers and categories at run time.
    pub config_admin: Option<Arc<dyn ConfigAdmin>>,
    /// Audit settings; with them, `build` must run within a tokio runtime.
    pub audit: Option<AuditSettings>,
}

/// The parts that other parts are built from.
struct BaseParts {
    limits: Arc<Limits>,
    registry: Arc<RegistryStore>,
    people: Arc<People>,
    accounts: Option<Arc<AccountStore>>,
    config_admin: Option<Arc<dyn ConfigAdmin>>,
    freshness: Arc<Freshness>,
    meter: Arc<Meter>,
    token_savings: Arc<TokenSavings>,
    auditor: Arc<Auditor>,
    cache: Arc<Cache>,
    open_sessions: Arc<OpenSessions>,
}

impl GatewayBuilder {
    /// Returns the builder of a gateway without optional features.
    pub fn new(limits: Arc<Limits>, seal: HmacSigner, registry: RegistryStore) -> Self {
        let people = Arc::new(People::new(registry.store().clone()));
        Self { limits, seal, registry, people, accounts: None, jq_runner: None, config_admin: None, audit: None }
    }

    pub fn build(self) -> Arc<Gateway> {
        let Self { limits, seal, registry, people, accounts, jq_runner, config_admin, audit } = self;
        let process: Arc<str> = random_id().unwrap_or_default().into();
        let store = registry.store().clone();
        let meter = Arc::<Meter>::default();
        let base = BaseParts {
            freshness: Arc::new(Freshness::new(limits.max_staleness)),
            token_savings: Arc::new(TokenSavings::new(Arc::clone(&meter), store.clone())),
            auditor: Arc::new(Auditor::new(store, people.names(), &limits, audit)),
            cache: Arc::new(Cache::new(&limits)),
            open_sessions: Arc::default(),
            registry: Arc::new(registry),
            limits,
            people,
            accounts,
            config_admin,
            meter,
        };
        let search = base.search();
        let answers = Arc::new(base.answers(&search, &process, jq_runner));
        let executor = Arc::new(base.executor(&search, seal.clone()));
        let discovery = Arc::new(base.discovery(&search));
        let batches = Arc::new(base.batches(&search, &executor, &answers));
        let sessions = Sessions {
            open: Arc::clone(&base.open_sessions),
            catalogs: Arc::clone(&search.catalogs),
            discovery: Arc::clone(&discovery),
            answers: Arc::clone(&answers),
        };
        let admin = base.admin(&search, &discovery, &answers, &batches);
        Arc::new(Gateway {
            process,
            seal,
            catalogs: Arc::clone(&search.catalogs),
            lookup: base.lookup(&search),
            search,
            discovery,
            answers,
            executor,
            batches,
            sessions: Arc::new(sessions),
            admin,
            limits: base.limits,
            registry: base.registry,
            people: base.people,
            accounts: base.accounts,
            freshness: base.freshness,
            meter: base.meter,
            token_savings: base.token_savings,
            auditor: base.auditor,
        })
    }
}

impl BaseParts {
    /// Builds the catalogs, and the search that follows them.
    fn search(&self) -> Arc<Search> {
        Search::new(self.registry.store().clone(), |on_rebuild| {
            let builder = CatalogsBuilder {
                limits: Arc::clone(&self.limits),
                sessions: Arc::clone(&self.open_sessions),
                accounts: self.accounts.clone(),
                cache: Arc::clone(&self.cache),
                meter: Arc::clone(&self.meter),
                on_rebuild,
            };
            Arc::new(builder.build())
        })
    }

    fn lookup(&self, search: &Search) -> Lookup {
        Lookup::new(Arc::clone(&search.catalogs), Arc::clone(&self.limits))
    }

    fn answers(&self, search: &Search, process: &str, jq_runner: Option<Arc<dyn JqRunner>>) -> Answers {
        let allowance = Allowance::of(self.limits.jq_processes.max(1), self.limits.caller_share);
        Answers {
            limits: Arc::clone(&self.limits),
            catalogs: Arc::clone(&search.catalogs),
            sessions: Arc::clone(&self.open_sessions),
            result_store: ResultStore::new(&self.limits, process),
            jq_runner,
            jq_slots: SharedSlots::new(JQ, allowance),
        }
    }

    fn executor(&self, search: &Search, seal: HmacSigner) -> Executor {
        Executor {
            limits: Arc::clone(&self.limits),
            catalogs: Arc::clone(&search.catalogs),
            lookup: self.lookup(search),
            auditor: Arc::clone(&self.auditor),
            cache: Arc::clone(&self.cache),
            meter: Arc::clone(&self.meter),
            accounts: self.accounts.clone(),
            links: ResourceLinks::default(),
            seal,
        }
    }

    fn discovery(&self, search: &Arc<Search>) -> Discovery {
        Discovery {
            limits: Arc::clone(&self.limits),
            catalogs: Arc::clone(&search.catalogs),
            lookup: self.lookup(search),
            search: Arc::clone(search),
            auditor: Arc::clone(&self.auditor),
            token_savings: Arc::clone(&self.token_savings),
            sent: SentDescriptions::default(),
        }
    }

    fn batches(&self, search: &Arc<Search>, executor: &Arc<Executor>, answers: &Arc<Answers>) -> Batches {
        Batches {
            limits: Arc::clone(&self.limits),
            catalogs: Arc::clone(&search.catalogs),
            lookup: self.lookup(search),
            auditor: Arc::clone(&self.auditor),
            executor: Arc::clone(executor),
            answers: Arc::clone(answers),
            search: Arc::clone(search),
            slots: SharedSlots::new(BATCHES, Allowance::of(self.limits.batches, self.limits.caller_share)),
        }
    }

    fn admin(
        &self,
        search: &Arc<Search>,
        discovery: &Arc<Discovery>,
        answers: &Arc<Answers>,
        batches: &Arc<Batches>,
    ) -> Admin {
        let catalogs = || Arc::clone(&search.catalogs);
        let registry = || Arc::clone(&self.registry);
        let people = || Arc::clone(&self.people);
        let tools =
            Arc::new(ToolAdmin { catalogs: catalogs(), discovery: Arc::clone(discovery), registry: registry() });
        let pins = Arc::new(PinAdmin { catalogs: catalogs(), registry: registry() });
        let access = Arc::new(AccessAdmin { catalogs: catalogs(), people: people(), accounts: self.accounts.clone() });
        let modules = ModuleAdmin {
            catalogs: catalogs(),
            lookup: self.lookup(search),
            registry: registry(),
            meter: Arc::clone(&self.meter),
            accounts: self.accounts.clone(),
            config: self.config_admin.clone(),
        };
        let previews = Previews {
            limits: Arc::clone(&self.limits),
            catalogs: catalogs(),
            lookup: self.lookup(search),
            discovery: Arc::clone(discovery),
            people: people(),
            config: self.config_admin.clone(),
        };
        let status = Status {
            catalogs: catalogs(),
            store: self.registry.store().clone(),
            auditor: Arc::clone(&self.auditor),
            meter: Arc::clone(&self.meter),
            freshness: Arc::clone(&self.freshness),
            token_savings: Arc::clone(&self.token_savings),
            people: people(),
            accounts: self.accounts.clone(),
            pins: Arc::clone(&pins),
            answers: Arc::clone(answers),
            batches: Arc::clone(batches),
            config_error: Mutex::default(),
            invalid_entries: Mutex::default(),
        };
        let store = StoreSync {
            catalogs: catalogs(),
            registry: registry(),
            freshness: Arc::clone(&self.freshness),
            people: people(),
            search: Arc::clone(search),
            tools: Arc::clone(&tools),
            pins: Arc::clone(&pins),
            access: Arc::clone(&access),
        };
        Admin { tools, modules, pins, access, previews, status, store, config: self.config_admin.clone() }
    }
}
