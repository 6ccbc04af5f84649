//! The gateway: holds the current snapshot, replaces it when the lists of a source or the rules change, and notifies
//! the open sessions.

use std::cell::OnceCell;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use hikite_core::breaker;
use hikite_core::caller::{OWNER, SessionId};
use hikite_core::catalog::{Catalog, Module, ModuleRule, Tool};
use hikite_core::category::CategoryRule;
use hikite_core::keeper::Keeper;
use hikite_core::limits::Limits;
use hikite_core::listing::ListKind;
use hikite_core::permission::Permissions;
use hikite_core::register::Registration;
use hikite_core::seal::Seal;
use hikite_core::select::Sieve;
use hikite_core::share::Allowance;
use hikite_core::source::{CallContext, Event, Implementation, Invocation, Listener, Method};
use hikite_core::view::View;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::aside::aside;
use crate::audit::Auditor;
use crate::cache::Cache;
use crate::clock::now_ms;
use crate::exchange::Accounts;
use crate::freshness::Freshness;
use crate::gate::{Gate, Throttle};
use crate::generation::Generations;
use crate::handle::Shelf;
use crate::health::Health;
use crate::link::Links;
use crate::meter::{Meter, ModuleMeter};
use crate::node::random_id;
use crate::open::Sent;
use crate::overlay::Overlays;
use crate::overview::Resting;
use crate::people::People;
use crate::pin::Book;
use crate::project::Project;
use crate::registry::Registry;
use crate::roster::{Entry, Roster};
use crate::saving::Saving;
use crate::search::Search;
use crate::session::Sessions;
use crate::share::{PlaceKind, Places};
use crate::snapshot::{Bounds, CatalogParts, Projects, Snapshot, UserMasks};
use crate::surface::{Surface, Surfaces};
use crate::swap::Swap;
use crate::text::retold;
use crate::viewer::Viewer;
use crate::views::BuiltCount;
use crate::workshop::Workshop;

const BATCHES: PlaceKind = PlaceKind { resource: "batches", limit: "batches", things: "batches running" };
const JQ: PlaceKind = PlaceKind { resource: "jq", limit: "jq_processes", things: "programs in jq running" };

/// Rules of the config.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    pub modules: Vec<(ModuleRule, Throttle)>,
    /// Modules that the config file disables.
    pub disabled: Vec<Arc<str>>,
    pub categories: Vec<Arc<CategoryRule>>,
    pub tools: Vec<(Registration, Arc<dyn Implementation>)>,
    pub projects: Vec<Arc<Project>>,
    /// Permissions of users who have none of their own.
    pub default_permissions: Option<Arc<Permissions>>,
}

/// Inputs of the catalog.
#[derive(Debug, Default)]
pub(crate) struct State {
    rules: Rules,
    roster: Roster,
    projects: Arc<Projects>,
    masks: Arc<UserMasks>,
    /// Subject of the owner, if there is one.
    owner: Option<Arc<str>>,
    pub(crate) pins: Book,
}

pub struct Gateway {
    pub(crate) limits: Arc<Limits>,
    pub(crate) sessions: Sessions,
    pub(crate) seal: Seal,
    /// Unique id of this process.
    process: Arc<str>,
    pub(crate) registry: Registry,
    pub(crate) people: People,
    pub(crate) freshness: Freshness,
    pub(crate) auditor: Auditor,
    pub(crate) cache: Cache,
    pub(crate) meter: Meter,
    pub(crate) search: Search,
    pub(crate) sent: Sent,
    /// Store of long results that clients read in parts.
    pub(crate) shelf: Shelf,
    pub(crate) batches: Places<()>,
    /// Concurrency limit for jq programs.
    pub(crate) jq: Places<()>,
    /// Runner of jq programs, if available.
    pub(crate) sieve: OnceLock<Arc<dyn Sieve>>,
    /// Accounts with which services are called, if available.
    pub(crate) accounts: OnceLock<Arc<Accounts>>,
    /// Token savings not persisted yet.
    pub(crate) saving: Saving,
    /// Error of the config file while an older version is in force.
    pub(crate) wrong_config: Mutex<Option<String>>,
    /// Configuration administration, if available.
    pub(crate) workshop: OnceLock<Arc<dyn Workshop>>,
    pub(crate) generations: Generations,
    pub(crate) current: Swap<State, Snapshot>,
    /// Catalogs of single sessions that differ from the shared one.
    pub(crate) overlays: Overlays,
    /// Resource links that results contained.
    pub(crate) links: Links,
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
    pub fn new(limits: Arc<Limits>, seal: Seal, registry: Registry) -> Arc<Self> {
        let process: Arc<str> = random_id().unwrap_or_default().into();
        let views_built = Arc::new(BuiltCount::default());
        Arc::new_cyclic(|gateway| Self {
            current: Swap::new(State::default(), Snapshot::empty(&limits, Arc::clone(&views_built))),
            views_built,
            cache: Cache::new(&limits),
            shelf: Shelf::new(&limits, &process),
            batches: Places::new(BATCHES, Allowance::of(limits.batches, limits.caller_share)),
            jq: Places::new(JQ, Allowance::of(limits.jq_processes.max(1), limits.caller_share)),
            process,
            sieve: OnceLock::new(),
            accounts: OnceLock::new(),
            saving: Saving::default(),
            wrong_config: Mutex::default(),
            workshop: OnceLock::new(),
            generations: Generations::default(),
            freshness: Freshness::new(limits.max_staleness),
            limits,
            seal,
            people: People::new(registry.store().clone()),
            registry,
            auditor: Auditor::default(),
            meter: Meter::default(),
            search: Search::new(Weak::clone(gateway)),
            sent: Sent::default(),
            sessions: Sessions::default(),
            overlays: Overlays::default(),
            links: Links::default(),
            applied: Mutex::new(Instant::now()),
        })
    }

    /// Returns the listener that the source of a module reports to.
    pub fn listener(self: &Arc<Self>, module: impl Into<Arc<str>>) -> Listener {
        let (gateway, module): (Weak<Self>, Arc<str>) = (Arc::downgrade(self), module.into());
        Arc::new(move |event| {
            if let Some(gateway) = gateway.upgrade() {
                gateway.hear(&module, event);
            }
        })
    }

    /// Replaces all rules at once; running requests keep their snapshot.
    pub fn apply(&self, mut rules: Rules) {
        *self.applied.lock() = Instant::now();
        self.people.take(std::mem::take(&mut rules.projects));
        self.rebuild(|state| state.take(rules));
        self.show_projects();
        self.registry.look_again();
    }

    /// Replaces all projects at once and notifies the sessions whose lists change.
    pub fn set_projects(&self, projects: Vec<Arc<Project>>) {
        let named = projects.into_iter().map(|project| (Arc::clone(&project.name), project));
        self.replace_projects(Arc::new(named.collect()));
    }

    pub(crate) fn replace_projects(&self, projects: Arc<Projects>) {
        if let Some(accounts) = self.accounts.get() {
            let naming = projects.values().filter(|project| !project.accounts.is_empty());
            let rule = |project: &Arc<Project>| (Arc::clone(&project.name), project.accounts.clone());
            accounts.follow_rules(&naming.map(rule).collect());
        }
        self.rebound(|state| state.projects = projects);
    }

    /// Returns the permissions of users, which apply in every project.
    pub(crate) fn masks(&self) -> Arc<UserMasks> {
        self.current.with(|state| Arc::clone(&state.masks))
    }

    /// Replaces the permissions of users and notifies the sessions whose lists change.
    pub fn set_masks(&self, masks: UserMasks) {
        let same = |known: &UserMasks| {
            let is_same = |(subject, mask): (&Arc<str>, &Arc<Permissions>)| {
                let alike = |own: &Arc<Permissions>| {
                    Arc::ptr_eq(own, mask) || own.fingerprint() == mask.fingerprint()
                };
                known.get(subject).is_some_and(alike)
            };
            known.len() == masks.len() && masks.iter().all(is_same)
        };
        if !self.current.with(|state| same(&state.masks)) {
            self.rebound(|state| state.masks = Arc::new(masks));
        }
    }

    /// Sets the owner, whom the default permissions do not restrict.
    pub(crate) fn set_owner(&self, owner: Option<Arc<str>>) {
        if self.current.with(|state| state.owner != owner) {
            self.rebound(|state| state.owner = owner);
        }
    }

    /// Sets the accounts with which services are called; once.
    pub fn exchange_with(&self, accounts: Arc<Accounts>) {
        let _ = self.accounts.set(accounts);
    }

    pub fn accounts(&self) -> Option<&Arc<Accounts>> {
        self.accounts.get()
    }

    /// Applies the current permissions of the accounts to all views.
    pub fn show_accounts(&self) {
        // The catalog leaves out modules without a login, so a changed login needs a rebuild.
        if self.snapshot().catalog.modules.iter().all(Module::is_logged_in_as_before) {
            self.rebound(|_| {});
        } else {
            self.look_again();
        }
    }

    pub(crate) fn with_roster<T>(&self, look: impl FnOnce(&mut Roster) -> T) -> T {
        self.current.with(|state| look(&mut state.roster))
    }

    pub(crate) fn change_roster(&self, change: impl FnOnce(&mut Roster)) {
        self.rebuild(|state| change(&mut state.roster));
    }

    pub(crate) fn with_pins<T>(&self, look: impl FnOnce(&mut Book) -> T) -> T {
        self.current.with(|state| look(&mut state.pins))
    }

    pub(crate) fn change_pins(&self, change: impl FnOnce(&mut Book)) {
        self.rebuild(|state| change(&mut state.pins));
    }

    /// Returns the disabled modules.
    pub(crate) fn resting(&self) -> Vec<Resting> {
        self.current.with(|state| {
            let all = state.all_modules(&self.limits).into_iter().map(|(rule, _)| rule);
            let switched = all.filter(|rule| state.roster.is_off(&rule.name)).map(Resting::Switched);
            switched.chain(state.rules.disabled.iter().cloned().map(Resting::File)).collect()
        })
    }

    /// Returns the origin of the module of this name, enabled or not, and whether it consists of registered tools.
    pub fn keeper_of_module(&self, name: &str) -> Option<(Keeper, bool)> {
        let modules = self.current.with(|state| state.all_modules(&self.limits));
        let found = modules.iter().find(|(rule, _)| &*rule.name == name);
        found.map(|(rule, _)| (rule.keeper, rule.registered))
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

    pub fn seal(&self) -> &Seal {
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
    pub fn breaker_state(&self, module: &str) -> Option<breaker::State> {
        self.snapshot().gates().get(module).map(|gate| gate.health.state())
    }

    pub(crate) fn snapshot(&self) -> Arc<Snapshot> {
        self.current.load()
    }

    /// Returns the remaining time that an unfiltered list may wait for newly configured servers.
    pub(crate) fn patience(&self) -> Duration {
        self.left_of(self.limits.all_lists)
    }

    /// Returns the remaining time that a list may wait while none of the new servers has returned anything.
    pub(crate) fn long_patience(&self) -> Duration {
        self.left_of(self.limits.first_list)
    }

    fn left_of(&self, limit: Duration) -> Duration {
        let applied = *self.applied.lock();
        (applied + limit).saturating_duration_since(Instant::now())
    }

    /// Rebuilds the catalog from the current lists of the sources.
    pub(crate) fn look_again(&self) {
        self.rebuild(|_| {});
    }

    /// Sets a client's log level on every source that it sees, including those not running yet.
    pub async fn set_level(&self, params: hikite_core::json::Object, context: &CallContext) {
        for module in self.snapshot().view_of(&context.session.caller).modules() {
            let invocation = Invocation { method: Method::SetLevel, params: params.clone() };
            let _ = module.source.call(invocation, context.clone()).await;
        }
    }

    pub fn roots_changed(&self, session: SessionId) {
        for module in &self.snapshot().catalog.modules {
            module.source.roots_changed(session);
        }
    }

    fn hear(&self, module: &str, event: Event) {
        let snapshot = self.snapshot();
        match &event {
            Event::ListChanged => self.look_again(),
            Event::OwnListChanged { sessions } => self.overlay(sessions),
            Event::ListAnnounced { kinds, sessions } => {
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
                self.sessions.tell_changes(sessions.as_deref(), said);
            }
            Event::ResourceUpdated { params, .. } => {
                if let Some(uri) = params.object().and_then(|params| params.text("uri")) {
                    self.cache.forget_resource(&uri);
                }
                self.sessions.hand_on(event, |caller| snapshot.view_of(caller).opens(module));
            }
            Event::Log { .. } | Event::ElicitationComplete { .. } => {
                self.sessions.hand_on(event, |caller| snapshot.view_of(caller).module(module).is_some());
            }
        }
    }

    /// Rebuilds the catalog after a change and notifies the affected sessions.
    fn rebuild(&self, change: impl FnOnce(&mut State)) {
        let changed = OnceCell::new();
        let make = |state: &mut State, before: &Snapshot| {
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
        let tell = |before: &Arc<Snapshot>, after: &Arc<Snapshot>| {
            self.meter.keep(|name| after.gates().contains_key(name));
            self.search.look_at_catalog();
            self.tell_sessions(before, after, changed.get().and_then(Option::as_deref));
        };
        aside(|| self.current.replace(make, tell));
        self.overlay_anew();
    }

    /// Publishes the same catalog with other permissions and notifies the affected sessions. Views with unchanged
    /// permissions are not rebuilt.
    fn rebound(&self, change: impl FnOnce(&mut State)) {
        let make = |state: &mut State, before: &Snapshot| {
            change(state);
            before.with_bounds(self.bounds(state, before))
        };
        let tell = |before: &Arc<Snapshot>, after: &Arc<Snapshot>| {
            self.tell_sessions(before, after, Some(&[]));
        };
        aside(|| self.current.replace(make, tell));
        self.overlay_anew();
    }

    fn bounds(&self, state: &State, before: &Snapshot) -> Bounds {
        let known = &before.bounds().accounts;
        Bounds {
            projects: Arc::clone(&state.projects),
            users: Arc::clone(&state.masks),
            default: state.rules.default_permissions.clone(),
            owner: state.owner.clone().unwrap_or_else(|| OWNER.into()),
            accounts: self.accounts.get().map_or_else(|| Arc::clone(known), |accounts| accounts.masks(known)),
        }
    }

    /// Notifies every session whose lists changed. `changed` names the modules that differ.
    fn tell_sessions(&self, before: &Snapshot, after: &Snapshot, changed: Option<&[Arc<str>]>) {
        self.sessions.tell_changes(None, |viewer: Viewer<'_>, surfaces: Surfaces, kind| {
            let list = |snapshot: &Snapshot| snapshot.list(viewer.caller, surfaces, kind, &self.limits);
            let is_apart = viewer.session.is_some_and(|session| self.is_apart(session));
            !is_apart && !after.shows_same_as(before, viewer.caller, changed) && list(before) != list(after)
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

impl State {
    /// Takes new rules. Tools of the file take precedence over registered tools of the same name.
    fn take(&mut self, mut rules: Rules) {
        let away = self.roster.of(Keeper::File).map(|(key, _)| key.clone()).collect();
        let now = now_ms();
        let tools = std::mem::take(&mut rules.tools).into_iter().map(|(registration, implementation)| {
            let key = &registration.key;
            if self.roster.get(key).is_some_and(|entry| entry.keeper != Keeper::File) {
                tracing::warn!(tool = %key, "the file names a tool that is registered too; the file's is used");
            }
            let registered_at = self.roster.known_since(key).unwrap_or(now);
            let registration = Arc::new(registration);
            Entry { registration, implementation, registered_at, keeper: Keeper::File }
        });
        let tools = tools.collect();
        self.roster.replace(away, tools);
        self.rules = rules;
    }

    fn catalog(&mut self, modules: &[(ModuleRule, Throttle)], before: &Catalog) -> Catalog {
        let offers = self.pins.judge(modules.iter().map(|(rule, _)| rule), now_ms());
        let catalog = Catalog::of(offers, &self.rules.categories, &self.roster.switches, before);
        self.roster.look_at(&catalog, now_ms());
        catalog
    }

    /// Returns the enabled modules.
    fn modules(&self, limits: &Limits) -> Vec<(ModuleRule, Throttle)> {
        let mut modules = self.all_modules(limits);
        modules.retain(|(rule, _)| !self.roster.is_off(&rule.name));
        if !self.roster.texts.is_empty() {
            for (rule, _) in &mut modules {
                *rule = retold(rule, &self.roster.texts);
            }
        }
        modules
    }

    /// Returns the modules of the file, then the registered ones.
    fn all_modules(&self, limits: &Limits) -> Vec<(ModuleRule, Throttle)> {
        let own = self.rules.modules.iter();
        let taken = |name: &str| own.clone().any(|(rule, _)| &*rule.name == name);
        let registered = self.roster.modules().filter(|rule| !taken(&rule.name));
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
    ) -> Arc<Gate> {
        let old = self.catalog.module(&rule.name);
        let same = old
            .is_some_and(|old| old.registered && rule.registered || Arc::ptr_eq(&old.source, &rule.source));
        match self.gates().get(&rule.name).filter(|_| same) {
            Some(gate) if gate.throttle == throttle => Arc::clone(gate),
            Some(gate) => Arc::new(Gate::new(throttle, Arc::clone(&gate.health), meter)),
            None => Arc::new(Gate::new(throttle, Arc::new(Health::new(limits)), meter)),
        }
    }
}
