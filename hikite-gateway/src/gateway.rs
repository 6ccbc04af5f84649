//! The gateway itself: holds the current snapshot, replaces it when a source's lists or the rules change, and
//! tells the open sessions.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use arc_swap::ArcSwap;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use hikite_core::caller::SessionId;
use hikite_core::catalog::{Catalog, Module, ModuleRule};
use hikite_core::category::CategoryRule;
use hikite_core::limits::Limits;
use hikite_core::listing::ListKind;
use hikite_core::seal::Seal;
use hikite_core::source::{CallContext, Event, Invocation, Listener, Method};
use hikite_core::view::View;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::gate::{Gate, Throttle};
use crate::meter::{Meter, ModuleMeter};
use crate::session::Sessions;
use crate::snapshot::Snapshot;
use crate::surface::Surfaces;

/// What the config decides.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    pub modules: Vec<(ModuleRule, Throttle)>,
    pub categories: Vec<Arc<CategoryRule>>,
}

pub struct Gateway {
    pub(crate) limits: Arc<Limits>,
    pub(crate) sessions: Sessions,
    pub(crate) seal: Seal,
    pub(crate) meter: Meter,
    snapshot: ArcSwap<Snapshot>,
    rules: Mutex<Rules>,
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
    pub fn new(limits: Arc<Limits>, seal: Seal) -> Arc<Self> {
        Arc::new(Self {
            limits,
            seal,
            meter: Meter::default(),
            sessions: Sessions::default(),
            snapshot: ArcSwap::from_pointee(Snapshot::new(Catalog::default(), HashMap::new())),
            rules: Mutex::default(),
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
        let mut current = self.rules.lock();
        *current = rules;
        self.rebuild(&current);
    }

    pub fn seal(&self) -> &Seal {
        &self.seal
    }

    pub fn view(&self) -> View {
        self.snapshot().view()
    }

    pub(crate) fn snapshot(&self) -> Arc<Snapshot> {
        self.snapshot.load_full()
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
            self.rebuild(&self.rules.lock());
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
        if matches!(event, Event::ListChanged) {
            self.rebuild(&self.rules.lock());
        } else {
            self.sessions.hand_on(event);
        }
    }

    fn rebuild(&self, rules: &Rules) {
        let before = self.snapshot();
        let modules: Vec<ModuleRule> = rules.modules.iter().map(|(rule, _)| rule.clone()).collect();
        let catalog = Catalog::build(&modules, &rules.categories);
        let gates = rules
            .modules
            .iter()
            .map(|(rule, throttle)| {
                let meter = self.meter.module(&rule.name);
                (Arc::clone(&rule.name), before.gate_like(&rule.name, *throttle, meter))
            })
            .collect();
        let after = Arc::new(Snapshot::new(catalog, gates));
        self.meter.keep(|name| after.gates().contains_key(name));
        self.snapshot.store(Arc::clone(&after));
        self.sessions.tell_changes(|surfaces: Surfaces, kind| {
            let differs = |kind| before.list(surfaces, kind) != after.list(surfaces, kind);
            // Templates and skills are news of the resources.
            let resources = || differs(ListKind::Templates) || differs(ListKind::Skills);
            differs(kind) || kind == ListKind::Resources && resources()
        });
    }
}

impl Snapshot {
    /// The module's gate if its limits are the same, so that a reload does not forget what is running.
    fn gate_like(&self, module: &Arc<str>, throttle: Throttle, meter: Arc<ModuleMeter>) -> Arc<Gate> {
        match self.gates().get(module) {
            Some(gate) if gate.throttle == throttle => Arc::clone(gate),
            _ => Arc::new(Gate::new(throttle, meter)),
        }
    }
}
