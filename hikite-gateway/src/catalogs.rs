//! The catalogs: the current snapshot with its views, its replacement when the lists of a source or the rules change,
//! and the notification of the sessions whose lists differ. Calls nothing on a source but its listing.

mod event;
mod overlay;
mod state;

use std::cell::OnceCell;
use std::sync::Arc;

use hikite_core::breaker;
use hikite_core::caller::{Caller, OWNER, SessionId};
use hikite_core::catalog::Module;
use hikite_core::error::{Error, ErrorKind};
use hikite_core::limits::Limits;
use hikite_core::origin::ConfigOrigin;
use hikite_core::permission::Permissions;
use hikite_core::view::View;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::accounts::AccountStore;
use crate::cache::Cache;
use crate::generation::Generations;
use crate::meter::Meter;
use crate::off_worker::run_blocking;
use crate::pin::PinStore;
use crate::session::OpenSessions;
use crate::snapshot::{CatalogParts, Snapshot, UserPermissions, ViewBounds};
use crate::surface::Surfaces;
use crate::swap::Swap;
use crate::tool_registry::ToolRegistry;
use crate::view_cache::BuiltCount;
use crate::viewer::Viewer;
use hikite_identity::{Project, ProjectMap};
use overlay::Overlays;
use state::CatalogState;

pub(crate) use state::DisabledModule;
pub use state::GatewayRules;

/// The parts that `Catalogs` is built from.
pub(crate) struct CatalogsBuilder {
    pub(crate) limits: Arc<Limits>,
    pub(crate) sessions: Arc<OpenSessions>,
    pub(crate) accounts: Option<Arc<AccountStore>>,
    /// Cache whose results become invalid when their module changes.
    pub(crate) cache: Arc<Cache>,
    pub(crate) meter: Arc<Meter>,
    /// Called after every rebuild of the catalog. Must not block.
    pub(crate) on_rebuild: Box<dyn Fn() + Send + Sync>,
}

pub struct Catalogs {
    limits: Arc<Limits>,
    sessions: Arc<OpenSessions>,
    pub(crate) accounts: Option<Arc<AccountStore>>,
    cache: Arc<Cache>,
    meter: Arc<Meter>,
    on_rebuild: Box<dyn Fn() + Send + Sync>,
    generations: Generations,
    current: Swap<CatalogState, Snapshot>,
    /// Catalogs of single sessions that differ from the shared one.
    overlays: Overlays,
    /// Number of views built since the start.
    views_built: Arc<BuiltCount>,
    /// Time of the last replacement of the rules.
    applied: Mutex<Instant>,
}

impl std::fmt::Debug for Catalogs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Catalogs").finish_non_exhaustive()
    }
}

impl CatalogsBuilder {
    /// Builds catalogs without modules.
    pub(crate) fn build(self) -> Catalogs {
        let Self { limits, sessions, accounts, cache, meter, on_rebuild } = self;
        let views_built = Arc::new(BuiltCount::default());
        Catalogs {
            current: Swap::new(CatalogState::default(), Snapshot::empty(&limits, Arc::clone(&views_built))),
            views_built,
            generations: Generations::default(),
            overlays: Overlays::default(),
            applied: Mutex::new(Instant::now()),
            limits,
            sessions,
            accounts,
            cache,
            meter,
            on_rebuild,
        }
    }
}

/// Reading.
impl Catalogs {
    /// Returns the shared snapshot.
    pub(crate) fn snapshot(&self) -> Arc<Snapshot> {
        self.current.load()
    }

    /// Returns the snapshot that a viewer's request uses.
    pub(crate) fn snapshot_for<'a>(&self, viewer: impl Into<Viewer<'a>>) -> Arc<Snapshot> {
        let viewer = viewer.into();
        self.own_snapshot(viewer).unwrap_or_else(|| self.snapshot())
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

    /// Returns the caller's project, if it exists.
    pub fn project_of(&self, caller: &Caller) -> Option<Arc<Project>> {
        self.snapshot().project_of(caller).cloned()
    }

    /// Returns the surfaces of a caller: the requested ones if the project allows all of them, else the project's,
    /// else the default.
    pub fn surfaces_for(&self, caller: &Caller, asked: Option<Surfaces>, default: Surfaces) -> Result<Surfaces, Error> {
        let own = self.snapshot().project_of(caller).and_then(|project| project.surfaces);
        match (asked, own) {
            (None, own) => Ok(own.unwrap_or(default)),
            (Some(asked), None) => Ok(asked),
            (Some(asked), Some(own)) if asked.is_within(own) => Ok(asked),
            (Some(asked), Some(own)) => {
                let asked = asked.names().join(",");
                Err(Error::new(
                    ErrorKind::Authorization,
                    format!("`surface={asked}` is not available in this project."),
                )
                .hint(format!("Leave it out, or choose one of: {}.", own.names().join(", "))))
            }
        }
    }

    /// Returns the circuit breaker state of a module, or `None` if there is no such module.
    pub fn breaker_state(&self, module: &str) -> Option<breaker::CircuitState> {
        self.snapshot().gates().get(module).map(|gate| gate.health.state())
    }

    /// Returns the disabled modules.
    pub(crate) fn disabled_modules(&self) -> Vec<DisabledModule> {
        self.current.with(|state| state.disabled_modules(&self.limits))
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

    /// Returns the permissions of users, which apply in every project.
    pub(crate) fn masks(&self) -> Arc<UserPermissions> {
        self.current.with(|state| Arc::clone(&state.masks))
    }

    pub(crate) fn with_tool_registry<T>(&self, look: impl FnOnce(&mut ToolRegistry) -> T) -> T {
        self.current.with(|state| look(&mut state.tool_registry))
    }

    pub(crate) fn with_pins<T>(&self, look: impl FnOnce(&mut PinStore) -> T) -> T {
        self.current.with(|state| look(&mut state.pins))
    }

    /// Returns the time of the last replacement of the rules.
    pub(crate) fn applied_at(&self) -> Instant {
        *self.applied.lock()
    }

    /// Returns the number of views in memory and the number built since the start.
    pub fn view_counts(&self) -> (usize, u64) {
        (self.snapshot().views().len(), self.views_built.get())
    }
}

/// Changes.
impl Catalogs {
    /// Replaces all rules at once; running requests keep their snapshot.
    pub(crate) fn apply(&self, rules: GatewayRules) {
        *self.applied.lock() = Instant::now();
        self.rebuild(|state| state.take(rules));
    }

    /// Replaces all projects at once and notifies the sessions whose lists change.
    pub fn set_projects(&self, projects: Vec<Arc<Project>>) {
        let named = projects.into_iter().map(|project| (Arc::clone(&project.name), project));
        self.replace_projects(Arc::new(named.collect()));
    }

    pub(crate) fn replace_projects(&self, projects: Arc<ProjectMap>) {
        if let Some(accounts) = &self.accounts {
            let naming = projects.values().filter(|project| !project.accounts.is_empty());
            let rule = |project: &Arc<Project>| (Arc::clone(&project.name), project.accounts.clone());
            accounts.set_account_rules(&naming.map(rule).collect());
        }
        self.replace_bounds(|state| state.projects = projects);
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

    /// Returns `true` if the caller has to connect an account before it can call the module.
    pub(crate) fn lacks_account(&self, caller: &Caller, module: &Module) -> bool {
        let lacks = |(accounts, provider): (&Arc<AccountStore>, &str)| {
            accounts.choose(caller, provider, None).is_ok_and(|chosen| chosen.is_none())
        };
        module.needs_login || self.accounts.as_ref().zip(module.source.provider()).is_some_and(lacks)
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

    pub(crate) fn change_tool_registry(&self, change: impl FnOnce(&mut ToolRegistry)) {
        self.rebuild(|state| change(&mut state.tool_registry));
    }

    pub(crate) fn change_pins(&self, change: impl FnOnce(&mut PinStore)) {
        self.rebuild(|state| change(&mut state.pins));
    }

    /// Rebuilds the catalog from the current lists of the sources.
    pub(crate) fn refresh(&self) {
        self.rebuild(|_| {});
    }

    /// Drops views that nobody has used for a while.
    pub fn drop_idle_views(&self) {
        self.snapshot().drop_idle_views();
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
            (self.on_rebuild)();
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
            accounts: self.accounts.as_ref().map_or_else(|| Arc::clone(known), |accounts| accounts.masks(known)),
        }
    }

    /// Notifies every session whose lists changed. `changed` names the modules that differ.
    fn notify_sessions(&self, before: &Snapshot, after: &Snapshot, changed: Option<&[Arc<str>]>) {
        self.sessions.notify_list_changes(None, |viewer: Viewer<'_>, surfaces: Surfaces, kind| {
            let list = |snapshot: &Snapshot| snapshot.list(viewer.caller, surfaces, kind, &self.limits);
            let has_overlay = viewer.session.is_some_and(|session: SessionId| self.has_overlay(session));
            !has_overlay && !after.shows_same_as(before, viewer.caller, changed) && list(before) != list(after)
        });
    }
}
