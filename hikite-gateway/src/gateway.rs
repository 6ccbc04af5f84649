//! The gateway itself: holds the current snapshot, replaces it when a source's lists or the rules change, and
//! tells the open sessions.

use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use hikite_core::breaker;
use hikite_core::caller::{Caller, SessionId};
use hikite_core::catalog::{Catalog, Module, ModuleRule};
use hikite_core::category::CategoryRule;
use hikite_core::limits::Limits;
use hikite_core::listing::ListKind;
use hikite_core::register::Registration;
use hikite_core::seal::Seal;
use hikite_core::source::{CallContext, Event, Implementation, Invocation, Listener, Method};
use hikite_core::view::View;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::audit::Auditor;
use crate::cache::Cache;
use crate::clock::now_ms;
use crate::gate::{Gate, Throttle};
use crate::generation::Generations;
use crate::health::Health;
use crate::meter::{Meter, ModuleMeter};
use crate::registry::Registry;
use crate::roster::{Entry, Keeper, Roster};
use crate::session::Sessions;
use crate::snapshot::Snapshot;
use crate::surface::Surfaces;
use crate::swap::Swap;

/// What the config decides.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    pub modules: Vec<(ModuleRule, Throttle)>,
    pub categories: Vec<Arc<CategoryRule>>,
    pub tools: Vec<(Registration, Arc<dyn Implementation>)>,
}

/// What the catalog is made of.
#[derive(Debug, Default)]
struct State {
    rules: Rules,
    roster: Roster,
}

pub struct Gateway {
    pub(crate) limits: Arc<Limits>,
    pub(crate) sessions: Sessions,
    pub(crate) seal: Seal,
    pub(crate) registry: Registry,
    pub(crate) auditor: Auditor,
    pub(crate) cache: Cache,
    pub(crate) meter: Meter,
    generations: Generations,
    current: Swap<State, Snapshot>,
    /// When the rules were last replaced.
    applied: Mutex<Instant>,
}

impl std::fmt::Debug for Gateway {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gateway").finish_non_exhaustive()
    }
}

impl Gateway {
    /// `seal` is for what clients bring back: ids of tasks, sessions and waiting calls.
    pub fn new(limits: Arc<Limits>, seal: Seal, registry: Registry) -> Arc<Self> {
        Arc::new(Self {
            cache: Cache::new(&limits),
            generations: Generations::default(),
            limits,
            seal,
            registry,
            auditor: Auditor::default(),
            meter: Meter::default(),
            sessions: Sessions::default(),
            current: Swap::new(State::default(), Snapshot::empty()),
            applied: Mutex::new(Instant::now()),
        })
    }

    /// What sources are given to report to.
    pub fn listener(self: &Arc<Self>) -> Listener {
        let gateway: Weak<Self> = Arc::downgrade(self);
        Arc::new(move |event| {
            if let Some(gateway) = gateway.upgrade() {
                gateway.hear(event);
            }
        })
    }

    /// Replaces all rules at once; requests under way keep the snapshot they started with.
    pub fn apply(&self, rules: Rules) {
        *self.applied.lock() = Instant::now();
        self.rebuild(|state| state.take(rules));
        self.registry.look_again();
    }

    pub(crate) fn with_roster<T>(&self, look: impl FnOnce(&mut Roster) -> T) -> T {
        self.current.with(|state| look(&mut state.roster))
    }

    pub(crate) fn change_roster(&self, change: impl FnOnce(&mut Roster)) {
        self.rebuild(|state| change(&mut state.roster));
    }

    /// Whether the config names this module.
    pub(crate) fn is_configured(&self, module: &str) -> bool {
        self.current.with(|state| state.rules.modules.iter().any(|(rule, _)| &*rule.name == module))
    }

    pub fn seal(&self) -> &Seal {
        &self.seal
    }

    pub fn view(&self) -> View {
        self.snapshot().view()
    }

    /// What one caller may see. Today every caller is the owner, who sees everything.
    pub(crate) fn view_of(&self, _: &Caller) -> View {
        self.view()
    }

    /// Whether calls of a module are sent at present; `None` if there is no such module.
    pub fn breaker_state(&self, module: &str) -> Option<breaker::State> {
        self.snapshot().gates().get(module).map(|gate| gate.health.state())
    }

    pub(crate) fn snapshot(&self) -> Arc<Snapshot> {
        self.current.load()
    }

    /// Waits for modules that have never told their lists, as long as `limit` at most.
    pub async fn wait_for_lists(&self, limit: Duration, which: impl Fn(&Module) -> bool) {
        self.wait_until(limit, which, |_| false).await;
    }

    /// The same, but only until `enough` is there: who waits for one thing is not held up by the rest.
    pub(crate) async fn wait_until(
        &self,
        limit: Duration,
        which: impl Fn(&Module) -> bool,
        enough: impl Fn(&View) -> bool,
    ) {
        let snapshot = self.snapshot();
        let missing =
            snapshot.catalog.modules.iter().filter(|module| module.listing.is_none() && which(module));
        let mut waiting: FuturesUnordered<_> = missing.map(|module| module.source.first_listing()).collect();
        let waited = async {
            while waiting.next().await.is_some() {
                self.catch_up();
                if enough(&self.view()) {
                    break;
                }
            }
        };
        let _ = tokio::time::timeout(limit, waited).await;
    }

    /// Waits for servers that have just been named, as long as an unfiltered list would: what hikite says of itself
    /// depends on what they offer.
    pub async fn settle(&self) {
        self.wait_for_lists(self.patience(), |_| true).await;
    }

    /// What is left of the time that an unfiltered list may wait for servers that have just been named.
    pub(crate) fn patience(&self) -> Duration {
        let applied = *self.applied.lock();
        (applied + self.limits.all_lists).saturating_duration_since(Instant::now())
    }

    /// Takes in lists that are known but not yet in the catalog.
    fn catch_up(&self) {
        let behind = |module: &Module| module.listing.is_none() && module.source.listing().is_some();
        if self.snapshot().catalog.modules.iter().any(behind) {
            self.rebuild(|_| {});
        }
    }

    /// A client's log level concerns every source, also those that do not run yet.
    pub async fn set_level(&self, params: hikite_core::json::Object, context: &CallContext) {
        for module in &self.snapshot().catalog.modules {
            let invocation = Invocation { method: Method::SetLevel, params: params.clone() };
            let _ = module.source.call(invocation, context.clone()).await;
        }
    }

    pub fn roots_changed(&self, session: SessionId) {
        for module in &self.snapshot().catalog.modules {
            module.source.roots_changed(session);
        }
    }

    fn hear(&self, event: Event) {
        match &event {
            Event::ListChanged => return self.rebuild(|_| {}),
            Event::ResourceUpdated { params, .. } => {
                if let Some(uri) = params.object().and_then(|params| params.text("uri")) {
                    self.cache.forget_resource(&uri);
                }
            }
            Event::Log { .. } | Event::ElicitationComplete { .. } => {}
        }
        self.sessions.hand_on(event);
    }

    /// Makes the catalog anew after a change, and tells the sessions what it means for them.
    fn rebuild(&self, change: impl FnOnce(&mut State)) {
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
            Snapshot::new(catalog, gates, generations)
        };
        self.current.replace(make, |before, after| {
            self.meter.keep(|name| after.gates().contains_key(name));
            self.sessions.tell_changes(|surfaces: Surfaces, kind| {
                let differs = |kind| before.list(surfaces, kind) != after.list(surfaces, kind);
                // Templates and skills are news of the resources.
                let resources = || differs(ListKind::Templates) || differs(ListKind::Skills);
                differs(kind) || kind == ListKind::Resources && resources()
            });
        });
    }
}

impl State {
    /// The file's own tools come before registered ones of the same name.
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
        let rules: Vec<ModuleRule> = modules.iter().map(|(rule, _)| rule.clone()).collect();
        let catalog = Catalog::build(&rules, &self.rules.categories, &self.roster.switches, before);
        self.roster.look_at(&catalog, now_ms());
        catalog
    }

    /// Those of the file, then the registered ones.
    fn modules(&self, limits: &Limits) -> Vec<(ModuleRule, Throttle)> {
        let own = self.rules.modules.iter();
        let taken = |name: &str| own.clone().any(|(rule, _)| &*rule.name == name);
        let registered = self.roster.modules().filter(|rule| !taken(&rule.name));
        let throttle = Throttle::of(limits);
        own.clone().cloned().chain(registered.map(|rule| (rule.clone(), throttle))).collect()
    }
}

impl Snapshot {
    /// The module's gate if its source and its limits are the same, so that a reload does not forget what is running;
    /// with other limits at least how the source has been doing. Registered tools come and go in one module.
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
