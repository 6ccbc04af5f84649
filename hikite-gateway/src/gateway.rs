//! The gateway: holds the current snapshot, replaces it when the lists of a source or the rules change, and notifies
//! the open sessions.

use std::cell::OnceCell;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use hikite_core::breaker;
use hikite_core::caller::{OWNER, SessionId};
use hikite_core::catalog::{Catalog, Module, ModuleRule, Tool};
use hikite_core::category::CategoryRule;
use hikite_core::limits::Limits;
use hikite_core::listing::ListKind;
use hikite_core::origin::ConfigOrigin;
use hikite_core::permission::Permissions;
use hikite_core::registration::ToolRegistration;
use hikite_core::selector::JqRunner;
use hikite_core::share::Allowance;
use hikite_core::signer::HmacSigner;
use hikite_core::source::{CallContext, Invocation, SourceEvent, SourceListener, SourceMethod, ToolHandler};
use hikite_core::view::View;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::accounts::AccountStore;
use crate::admission::{AdmissionGate, Throttle};
use crate::audit::Auditor;
use crate::cache::Cache;
use crate::clock::now_ms;
use crate::config_admin::ConfigAdmin;
use crate::describe::SentDescriptions;
use crate::freshness::Freshness;
use crate::generation::Generations;
use crate::handle::ResultStore;
use crate::health::ModuleHealth;
use crate::meter::{Meter, ModuleMeter};
use crate::node::random_id;
use crate::off_worker::run_blocking;
use crate::overlay::Overlays;
use crate::overrides::with_overrides;
use crate::overview::DisabledModule;
use crate::people::People;
use crate::pin::PinStore;
use crate::project::{Project, ProjectMap};
use crate::registry::RegistryStore;
use crate::resource_link::ResourceLinks;
use crate::search::Search;
use crate::session::OpenSessions;
use crate::share::{SharedSlots, SlotKind};
use crate::snapshot::{CatalogParts, Snapshot, UserPermissions, ViewBounds};
use crate::surface::{Surface, Surfaces};
use crate::swap::Swap;
use crate::token_savings::TokenSavings;
use crate::tool_registry::{RegisteredTool, ToolRegistry};
use crate::view_cache::BuiltCount;
use crate::viewer::Viewer;

const BATCHES: SlotKind = SlotKind { resource: "batches", limit: "batches", things: "batches running" };
const JQ: SlotKind = SlotKind { resource: "jq", limit: "jq_processes", things: "programs in jq running" };

/// Rules of the config.
#[derive(Clone, Debug, Default)]
pub struct GatewayRules {
    pub modules: Vec<(ModuleRule, Throttle)>,
    /// Modules that the config file disables.
    pub disabled: Vec<Arc<str>>,
    pub categories: Vec<Arc<CategoryRule>>,
    pub tools: Vec<(ToolRegistration, Arc<dyn ToolHandler>)>,
    pub projects: Vec<Arc<Project>>,
    /// Permissions of users who have none of their own.
    pub default_permissions: Option<Arc<Permissions>>,
}

/// Inputs of the catalog.
#[derive(Debug, Default)]
pub(crate) struct CatalogState {
    rules: GatewayRules,
    tool_registry: ToolRegistry,
    projects: Arc<ProjectMap>,
    masks: Arc<UserPermissions>,
    /// Subject of the owner, if there is one.
    owner: Option<Arc<str>>,
    pub(crate) pins: PinStore,
}

pub struct Gateway {
    pub(crate) limits: Arc<Limits>,
    pub(crate) sessions: OpenSessions,
    pub(crate) seal: HmacSigner,
    /// Unique id of this process.
    process: Arc<str>,
    pub(crate) registry: RegistryStore,
    pub(crate) people: People,
    pub(crate) freshness: Freshness,
    pub(crate) auditor: Auditor,
    pub(crate) cache: Cache,
    pub(crate) meter: Meter,
    pub(crate) search: Search,
    pub(crate) sent: SentDescriptions,
    /// Store of long results that clients read in parts.
    pub(crate) result_store: ResultStore,
    pub(crate) batches: SharedSlots<()>,
    /// Concurrency limit for jq programs.
    pub(crate) jq: SharedSlots<()>,
    /// Runner of jq programs, if available.
    pub(crate) jq_runner: OnceLock<Arc<dyn JqRunner>>,
    /// Accounts with which services are called, if available.
    pub(crate) accounts: OnceLock<Arc<AccountStore>>,
    /// Token savings not persisted yet.
    pub(crate) token_savings: TokenSavings,
    /// Error of the config file while an older version is in force.
    pub(crate) config_error: Mutex<Option<String>>,
    /// Configuration administration, if available.
    pub(crate) config_admin: OnceLock<Arc<dyn ConfigAdmin>>,
    pub(crate) generations: Generations,
    pub(crate) current: Swap<CatalogState, Snapshot>,
    /// Catalogs of single sessions that differ from the shared one.
    pub(crate) overlays: Overlays,
    /// Resource links that results contained.
    pub(crate) links: ResourceLinks,
    /// Number of views built since the start.
    views_built: Arc<BuiltCount>,
    /// Time of the last replacement of the rules.
    applied: Mutex<Instant>,
}

impl std::fmt::Debug for Gateway {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gateway").finish_non_exhaustive()
    }
}

impl Gateway {
    /// Builds a gateway. `seal` signs values that clients return: ids of tasks, sessions and suspended calls.
    pub fn new(limits: Arc<Limits>, seal: HmacSigner, registry: RegistryStore) -> Arc<Self> {
        let process: Arc<str> = random_id().unwrap_or_default().into();
        let views_built = Arc::new(BuiltCount::default());
        Arc::new_cyclic(|gateway| Self {
            current: Swap::new(CatalogState::default(), Snapshot::empty(&limits, Arc::clone(&views_built))),
            views_built,
            cache: Cache::new(&limits),
            result_store: ResultStore::new(&limits, &process),
            batches: SharedSlots::new(BATCHES, Allowance::of(limits.batches, limits.caller_share)),
            jq: SharedSlots::new(JQ, Allowance::of(limits.jq_processes.max(1), limits.caller_share)),
            process,
            jq_runner: OnceLock::new(),
            accounts: OnceLock::new(),
            token_savings: TokenSavings::default(),
            config_error: Mutex::default(),
            config_admin: OnceLock::new(),
            generations: Generations::default(),
            freshness: Freshness::new(limits.max_staleness),
            limits,
            seal,
            people: People::new(registry.store().clone()),
            registry,
            auditor: Auditor::default(),
            meter: Meter::default(),
            search: Search::new(Weak::clone(gateway)),
            sent: SentDescriptions::default(),
            sessions: OpenSessions::default(),
            overlays: Overlays::default(),
            links: ResourceLinks::default(),
            applied: Mutex::new(Instant::now()),
        })
    }

    /// Returns the listener that the source of a module reports to.
    pub fn listener(self: &Arc<Self>, module: impl Into<Arc<str>>) -> SourceListener {
        let (gateway, module): (Weak<Self>, Arc<str>) = (Arc::downgrade(self), module.into());
        Arc::new(move |event| {
            if let Some(gateway) = gateway.upgrade() {
                gateway.handle_event(&module, event);
            }
        })
    }

    /// Replaces all rules at once; running requests keep their snapshot.
    pub fn apply(&self, mut rules: GatewayRules) {
        *self.applied.lock() = Instant::now();
        self.people.take(std::mem::take(&mut rules.projects));
        self.rebuild(|state| state.take(rules));
        self.publish_projects();
        self.registry.refresh();
    }

    /// Replaces all projects at once and notifies the sessions whose lists change.
    pub fn set_projects(&self, projects: Vec<Arc<Project>>) {
        let named = projects.into_iter().map(|project| (Arc::clone(&project.name), project));
        self.replace_projects(Arc::new(named.collect()));
    }

    pub(crate) fn replace_projects(&self, projects: Arc<ProjectMap>) {
        if let Some(accounts) = self.accounts.get() {
            let naming = projects.values().filter(|project| !project.accounts.is_empty());
            let rule = |project: &Arc<Project>| (Arc::clone(&project.name), project.accounts.clone());
            accounts.set_account_rules(&naming.map(rule).collect());
        }
        self.replace_bounds(|state| state.projects = projects);
    }

    /// Returns the permissions of users, which apply in every project.
    pub(crate) fn masks(&self) -> Arc<UserPermissions> {
        self.current.with(|state| Arc::clone(&state.masks))
    }

    /// Replaces the permissions of users and notifies the sessions whose lists change.
    pub fn set_masks(&self, masks: UserPermissions) {
        let same = |known: &UserPermissions| {
            let is_same = |(subject, mask): (&Arc<str>, &Arc<Permissions>)| {
                let alike = |own: &Arc<Permissions>| Arc::ptr_eq(own, mask) || own.fingerprint() == mask.fingerprint();
                known.get(subject).is_some_and(alike)
            };
            known.len() == masks.len() && masks.iter().all(is_same)
        };
        if !self.current.with(|state| same(&state.masks)) {
            self.replace_bounds(|state| state.masks = Arc::new(masks));
        }
    }

    /// Sets the owner, whom the default permissions do not restrict.
    pub(crate) fn set_owner(&self, owner: Option<Arc<str>>) {
        if self.current.with(|state| state.owner != owner) {
            self.replace_bounds(|state| state.owner = owner);
        }
    }

    /// Sets the accounts with which services are called; once.
    pub fn set_accounts(&self, accounts: Arc<AccountStore>) {
        let _ = self.accounts.set(accounts);
    }

    pub fn accounts(&self) -> Option<&Arc<AccountStore>> {
        self.accounts.get()
    }

    /// Applies the current permissions of the accounts to all views.
    pub fn show_accounts(&self) {
        // The catalog leaves out modules without a login, so a changed login needs a rebuild.
        if self.snapshot().catalog.modules.iter().all(Module::is_login_state_unchanged) {
            self.replace_bounds(|_| {});
        } else {
            self.refresh();
        }
    }

    pub(crate) fn with_tool_registry<T>(&self, look: impl FnOnce(&mut ToolRegistry) -> T) -> T {
        self.current.with(|state| look(&mut state.tool_registry))
    }

    pub(crate) fn change_tool_registry(&self, change: impl FnOnce(&mut ToolRegistry)) {
        self.rebuild(|state| change(&mut state.tool_registry));
    }

    pub(crate) fn with_pins<T>(&self, look: impl FnOnce(&mut PinStore) -> T) -> T {
        self.current.with(|state| look(&mut state.pins))
    }

    pub(crate) fn change_pins(&self, change: impl FnOnce(&mut PinStore)) {
        self.rebuild(|state| change(&mut state.pins));
    }

    /// Returns the disabled modules.
    pub(crate) fn disabled_modules(&self) -> Vec<DisabledModule> {
        self.current.with(|state| {
            let all = state.all_modules(&self.limits).into_iter().map(|(rule, _)| rule);
            let switched =
                all.filter(|rule| state.tool_registry.is_module_disabled(&rule.name)).map(DisabledModule::AtRuntime);
            switched.chain(state.rules.disabled.iter().cloned().map(DisabledModule::File)).collect()
        })
    }

    /// Returns the origin of the module of this name, enabled or not, and whether it consists of registered tools.
    pub fn origin_of_module(&self, name: &str) -> Option<(ConfigOrigin, bool)> {
        let modules = self.current.with(|state| state.all_modules(&self.limits));
        let found = modules.iter().find(|(rule, _)| &*rule.name == name);
        found.map(|(rule, _)| (rule.origin, rule.registered))
    }

    /// Returns the names of all modules, enabled or not.
    pub fn module_names(&self) -> Vec<Arc<str>> {
        let modules = self.current.with(|state| state.all_modules(&self.limits));
        modules.into_iter().map(|(rule, _)| rule.name).collect()
    }

    /// Returns `true` if the config defines this module.
    pub(crate) fn is_configured(&self, module: &str) -> bool {
        self.current.with(|state| state.rules.modules.iter().any(|(rule, _)| &*rule.name == module))
    }

    /// Returns the age of the data read from the store.
    pub fn freshness(&self) -> &Freshness {
        &self.freshness
    }

    pub fn seal(&self) -> &HmacSigner {
        &self.seal
    }

    /// Returns the unique id of this process.
    pub fn process(&self) -> &Arc<str> {
        &self.process
    }

    /// Returns the id of the process that stores the long result which a text refers to.
    pub fn process_of_result(text: &[u8]) -> Option<&str> {
        crate::handle::process_in(text)
    }

    /// Returns a view of everything, for the operator of this hikite and never for a request.
    pub fn owner_view(&self) -> View {
        self.snapshot().owner_view().clone()
    }

    /// Returns the view of a caller, from its session if there is one.
    pub fn view_of<'a>(&self, viewer: impl Into<Viewer<'a>>) -> View {
        let viewer = viewer.into();
        self.snapshot_for(viewer).view_of(viewer.caller)
    }

    /// Returns the circuit breaker state of a module, or `None` if there is no such module.
    pub fn breaker_state(&self, module: &str) -> Option<breaker::CircuitState> {
        self.snapshot().gates().get(module).map(|gate| gate.health.state())
    }

    pub(crate) fn snapshot(&self) -> Arc<Snapshot> {
        self.current.load()
    }

    /// Returns the remaining time that an unfiltered list may wait for newly configured servers.
    pub(crate) fn list_wait(&self) -> Duration {
        self.left_of(self.limits.all_lists)
    }

    /// Returns the remaining time that a list may wait while none of the new servers has returned anything.
    pub(crate) fn first_list_wait(&self) -> Duration {
        self.left_of(self.limits.first_list)
    }

    fn left_of(&self, limit: Duration) -> Duration {
        let applied = *self.applied.lock();
        (applied + limit).saturating_duration_since(Instant::now())
    }

    /// Rebuilds the catalog from the current lists of the sources.
    pub(crate) fn refresh(&self) {
        self.rebuild(|_| {});
    }

    /// Sets a client's log level on every source that it sees, including those not running yet.
    pub async fn set_level(&self, params: hikite_core::json::Object, context: &CallContext) {
        for module in self.snapshot().view_of(&context.session.caller).modules() {
            let invocation = Invocation { method: SourceMethod::SetLevel, params: params.clone() };
            let _ = module.source.call(invocation, context.clone()).await;
        }
    }

    pub fn roots_changed(&self, session: SessionId) {
        for module in &self.snapshot().catalog.modules {
            module.source.roots_changed(session);
        }
    }

    fn handle_event(&self, module: &str, event: SourceEvent) {
        let snapshot = self.snapshot();
        match &event {
            SourceEvent::ListChanged => self.refresh(),
            SourceEvent::SessionListChanged { sessions } => self.overlay(sessions),
            SourceEvent::ListAnnounced { kinds, sessions } => {
                let concerns = |viewer: Viewer<'_>, surfaces, kind| {
                    let snapshot = self.snapshot_for(viewer);
                    shows(&snapshot.view_of(viewer.caller), module, surfaces, kind)
                };
                // Templates and skills are announced as resources.
                let list_of = |kind| match kind {
                    ListKind::Templates | ListKind::Skills => ListKind::Resources,
                    kind => kind,
                };
                let said = |viewer: Viewer<'_>, surfaces, kind| {
                    kinds.contains(&list_of(kind)) && concerns(viewer, surfaces, kind)
                };
                self.sessions.notify_list_changes(sessions.as_deref(), said);
            }
            SourceEvent::ResourceUpdated { params, .. } => {
                if let Some(uri) = params.object().and_then(|params| params.text("uri")) {
                    self.cache.invalidate_resource(&uri);
                }
                self.sessions.deliver_event(event, |caller| snapshot.view_of(caller).shows_module(module));
            }
            SourceEvent::Log { .. } | SourceEvent::ElicitationComplete { .. } => {
                self.sessions.deliver_event(event, |caller| snapshot.view_of(caller).module(module).is_some());
            }
        }
    }

    /// Rebuilds the catalog after a change and notifies the affected sessions.
    fn rebuild(&self, change: impl FnOnce(&mut CatalogState)) {
        let changed = OnceCell::new();
        let make = |state: &mut CatalogState, before: &Snapshot| {
            change(state);
            let modules = state.modules(&self.limits);
            let catalog = state.catalog(&modules, &before.catalog);
            let gates = modules
                .iter()
                .map(|(rule, throttle)| {
                    let meter = self.meter.module(&rule.name);
                    (Arc::clone(&rule.name), before.gate_like(rule, *throttle, &self.limits, meter))
                })
                .collect();
            let generations = self.generations.follow(before, &catalog, &self.cache);
            let changed = changed.get_or_init(|| catalog.changed_modules(&before.catalog));
            let parts = CatalogParts { catalog: Arc::new(catalog), gates, generations };
            before.with_catalog(parts, changed.as_deref(), self.bounds(state, before))
        };
        let notify = |before: &Arc<Snapshot>, after: &Arc<Snapshot>| {
            self.meter.keep(|name| after.gates().contains_key(name));
            self.search.schedule_rebuild();
            self.notify_sessions(before, after, changed.get().and_then(Option::as_deref));
        };
        run_blocking(|| self.current.replace(make, notify));
        self.rebuild_overlays();
    }

    /// Publishes the same catalog with other permissions and notifies the affected sessions. Views with unchanged
    /// permissions are not rebuilt.
    fn replace_bounds(&self, change: impl FnOnce(&mut CatalogState)) {
        let make = |state: &mut CatalogState, before: &Snapshot| {
            change(state);
            before.with_bounds(self.bounds(state, before))
        };
        let notify = |before: &Arc<Snapshot>, after: &Arc<Snapshot>| {
            self.notify_sessions(before, after, Some(&[]));
        };
        run_blocking(|| self.current.replace(make, notify));
        self.rebuild_overlays();
    }

    fn bounds(&self, state: &CatalogState, before: &Snapshot) -> ViewBounds {
        let known = &before.bounds().accounts;
        ViewBounds {
            projects: Arc::clone(&state.projects),
            users: Arc::clone(&state.masks),
            default: state.rules.default_permissions.clone(),
            owner: state.owner.clone().unwrap_or_else(|| OWNER.into()),
            accounts: self.accounts.get().map_or_else(|| Arc::clone(known), |accounts| accounts.masks(known)),
        }
    }

    /// Notifies every session whose lists changed. `changed` names the modules that differ.
    fn notify_sessions(&self, before: &Snapshot, after: &Snapshot, changed: Option<&[Arc<str>]>) {
        self.sessions.notify_list_changes(None, |viewer: Viewer<'_>, surfaces: Surfaces, kind| {
            let list = |snapshot: &Snapshot| snapshot.list(viewer.caller, surfaces, kind, &self.limits);
            let has_overlay = viewer.session.is_some_and(|session| self.has_overlay(session));
            !has_overlay && !after.shows_same_as(before, viewer.caller, changed) && list(before) != list(after)
        });
    }

    /// Returns the number of views in memory and the number built since the start.
    pub fn view_counts(&self) -> (usize, u64) {
        (self.snapshot().views().len(), self.views_built.get())
    }

    /// Drops views that nobody has used for a while.
    pub fn drop_idle_views(&self) {
        self.snapshot().drop_idle_views();
    }
}

/// Returns `true` if a list shown to a client contains something of a module.
fn shows(view: &View, module: &str, surfaces: Surfaces, kind: ListKind) -> bool {
    let Some(own) = view.module(module) else { return false };
    match kind {
        ListKind::Tools => surfaces.contains(Surface::Direct) && own.tools.iter().any(Tool::is_enabled),
        _ => own.listing.as_ref().is_some_and(|listing| !listing.of(kind).is_empty()),
    }
}

impl CatalogState {
    /// Takes new rules. Tools of the file take precedence over registered tools of the same name.
    fn take(&mut self, mut rules: GatewayRules) {
        let away = self.tool_registry.of(ConfigOrigin::File).map(|(key, _)| key.clone()).collect();
        let now = now_ms();
        let tools = std::mem::take(&mut rules.tools).into_iter().map(|(registration, implementation)| {
            let key = &registration.key;
            if self.tool_registry.get(key).is_some_and(|entry| entry.origin != ConfigOrigin::File) {
                tracing::warn!(tool = %key, "the config file defines a tool that is also registered; the file's definition is used");
            }
            let registered_at = self.tool_registry.known_since(key).unwrap_or(now);
            let registration = Arc::new(registration);
            RegisteredTool { registration, implementation, registered_at, origin: ConfigOrigin::File }
        });
        let tools = tools.collect();
        self.tool_registry.replace(away, tools);
        self.rules = rules;
    }

    fn catalog(&mut self, modules: &[(ModuleRule, Throttle)], before: &Catalog) -> Catalog {
        let offers = self.pins.check_modules(modules.iter().map(|(rule, _)| rule), now_ms());
        let catalog = Catalog::of(offers, &self.rules.categories, &self.tool_registry.switches, before);
        self.tool_registry.note_first_seen(&catalog, now_ms());
        catalog
    }

    /// Returns the enabled modules.
    fn modules(&self, limits: &Limits) -> Vec<(ModuleRule, Throttle)> {
        let mut modules = self.all_modules(limits);
        modules.retain(|(rule, _)| !self.tool_registry.is_module_disabled(&rule.name));
        if !self.tool_registry.texts.is_empty() {
            for (rule, _) in &mut modules {
                *rule = with_overrides(rule, &self.tool_registry.texts);
            }
        }
        modules
    }

    /// Returns the modules of the file, then the registered ones.
    fn all_modules(&self, limits: &Limits) -> Vec<(ModuleRule, Throttle)> {
        let own = self.rules.modules.iter();
        let taken = |name: &str| own.clone().any(|(rule, _)| &*rule.name == name);
        let registered = self.tool_registry.modules().filter(|rule| !taken(&rule.name));
        let throttle = Throttle::of(limits);
        own.clone().cloned().chain(registered.map(|rule| (rule.clone(), throttle))).collect()
    }
}

impl Snapshot {
    /// Returns the gate of a module: the existing one if source and limits are the same, so that a reload keeps the
    /// running calls; with other limits a new one with the same health. Registered tools come and go within one module.
    fn gate_like(
        &self,
        rule: &ModuleRule,
        throttle: Throttle,
        limits: &Limits,
        meter: Arc<ModuleMeter>,
    ) -> Arc<AdmissionGate> {
        let old = self.catalog.module(&rule.name);
        let same = old.is_some_and(|old| old.registered && rule.registered || Arc::ptr_eq(&old.source, &rule.source));
        match self.gates().get(&rule.name).filter(|_| same) {
            Some(gate) if gate.throttle == throttle => Arc::clone(gate),
            Some(gate) => Arc::new(AdmissionGate::new(throttle, Arc::clone(&gate.health), meter)),
            None => Arc::new(AdmissionGate::new(throttle, Arc::new(ModuleHealth::new(limits)), meter)),
        }
    }
}
