//! Immutable state of one moment: the catalog, the views of each project's callers, and the gates of its modules. A
//! changed project, user or account creates a new snapshot that shares the rest.

use std::collections::HashMap;
use std::sync::Arc;

use hikite_core::caller::{Caller, OWNER};
use hikite_core::catalog::{Catalog, Module};
use hikite_core::json::Raw;
use hikite_core::limits::Limits;
use hikite_core::listing::ListKind;
use hikite_core::permission::{self, PermissionFingerprint, Permissions};
use hikite_core::view::View;

use crate::accounts::{AccountMasks, SubjectMask};
use crate::admission::AdmissionGate;
use crate::command::Detail;
use crate::describe::ModuleDescription;
use crate::rendered_view::RenderedView;
use crate::surface::Surfaces;
use crate::view_cache::{BuiltCount, ViewCache, ViewKey};
use hikite_identity::OF_CLIENT;
use hikite_identity::OF_TOKEN;
use hikite_identity::{Project, ProjectMap};
use hikite_store::clock::now_ms;

/// Permissions of users, by subject.
pub type UserPermissions = HashMap<Arc<str>, Arc<Permissions>>;

#[derive(Debug)]
pub(crate) struct Snapshot {
    pub(crate) catalog: Arc<Catalog>,
    gates: Arc<HashMap<Arc<str>, Arc<AdmissionGate>>>,
    /// Generation of each module; cached results of another generation are not used.
    generations: Arc<HashMap<Arc<str>, u64>>,
    /// View of callers without a project.
    everything: Arc<RenderedView>,
    /// View of callers whose project does not exist.
    nothing: Arc<RenderedView>,
    views: Arc<ViewCache>,
    bounds: ViewBounds,
}

/// Projects, permissions and account masks that restrict views.
#[derive(Clone, Debug)]
pub(crate) struct ViewBounds {
    pub(crate) projects: Arc<ProjectMap>,
    pub(crate) users: Arc<UserPermissions>,
    /// Permissions of users who have none of their own.
    pub(crate) default: Option<Arc<Permissions>>,
    /// Subject of the owner, who is exempt from `default`.
    pub(crate) owner: Arc<str>,
    pub(crate) accounts: Arc<AccountMasks>,
}

impl Default for ViewBounds {
    fn default() -> Self {
        Self {
            projects: Arc::default(),
            users: Arc::default(),
            default: None,
            owner: OWNER.into(),
            accounts: Arc::default(),
        }
    }
}

/// A catalog with the gates and generations of its modules.
#[derive(Debug)]
pub(crate) struct CatalogParts {
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) gates: HashMap<Arc<str>, Arc<AdmissionGate>>,
    pub(crate) generations: HashMap<Arc<str>, u64>,
}

impl Snapshot {
    /// Creates the initial empty snapshot.
    pub(crate) fn empty(limits: &Limits, built: Arc<BuiltCount>) -> Self {
        let catalog: Arc<Catalog> = Arc::default();
        Self {
            everything: Arc::new(RenderedView::new(View::new(Arc::clone(&catalog)), 0)),
            nothing: Arc::new(RenderedView::new(View::nothing(&catalog), 0)),
            views: Arc::new(ViewCache::new(Arc::clone(&catalog), limits.view_bytes, built)),
            catalog,
            gates: Arc::default(),
            generations: Arc::default(),
            bounds: ViewBounds::default(),
        }
    }

    /// Returns a snapshot with another catalog. `changed` names the modules that differ; `None` means that more does.
    pub(crate) fn with_catalog(&self, parts: CatalogParts, changed: Option<&[Arc<str>]>, bounds: ViewBounds) -> Self {
        let CatalogParts { catalog, gates, generations } = parts;
        Self {
            everything: Arc::new(RenderedView::new(View::new(Arc::clone(&catalog)), 0)),
            nothing: Arc::new(RenderedView::new(View::nothing(&catalog), 0)),
            views: Arc::new(self.views.of(Arc::clone(&catalog), changed)),
            catalog,
            gates: Arc::new(gates),
            generations: Arc::new(generations),
            bounds,
        }
    }

    /// Returns a snapshot with a catalog of single sessions. `generations` are those of the modules that differ.
    pub(crate) fn apart(&self, catalog: Arc<Catalog>, generations: HashMap<Arc<str>, u64>) -> Self {
        let changed: Vec<Arc<str>> = generations.keys().cloned().collect();
        let known = self.generations.iter().map(|(name, generation)| (Arc::clone(name), *generation));
        Self {
            everything: Arc::new(RenderedView::new(View::new(Arc::clone(&catalog)).apart(), 0)),
            nothing: Arc::clone(&self.nothing),
            views: Arc::new(self.views.of(Arc::clone(&catalog), Some(&changed)).apart()),
            catalog,
            gates: Arc::clone(&self.gates),
            generations: Arc::new(known.chain(generations).collect()),
            bounds: self.bounds.clone(),
        }
    }

    /// Returns a snapshot with the same catalog and other bounds.
    pub(crate) fn with_bounds(&self, bounds: ViewBounds) -> Self {
        Self {
            catalog: Arc::clone(&self.catalog),
            gates: Arc::clone(&self.gates),
            generations: Arc::clone(&self.generations),
            everything: Arc::clone(&self.everything),
            nothing: Arc::clone(&self.nothing),
            views: Arc::clone(&self.views),
            bounds,
        }
    }

    pub(crate) fn bounds(&self) -> &ViewBounds {
        &self.bounds
    }

    /// Returns the views built so far.
    pub(crate) fn views(&self) -> &ViewCache {
        &self.views
    }

    /// Returns the unrestricted view.
    pub(crate) fn owner_view(&self) -> &View {
        &self.everything.view
    }

    /// Returns the view of a caller.
    pub(crate) fn view_of(&self, caller: &Caller) -> View {
        self.rendered_for(caller).view.clone()
    }

    pub(crate) fn project_of(&self, caller: &Caller) -> Option<&Arc<Project>> {
        self.bounds.projects.get(caller.project.as_ref()?)
    }

    pub(crate) fn gates(&self) -> &HashMap<Arc<str>, Arc<AdmissionGate>> {
        &self.gates
    }

    /// Returns the gate of a module; every module of the catalog has one.
    pub(crate) fn gate(&self, module: &Module) -> &Arc<AdmissionGate> {
        &self.gates[&module.name]
    }

    /// Returns a module's name and generation.
    pub(crate) fn state<'a>(&self, module: &'a Module) -> (&'a Arc<str>, u64) {
        (&module.name, self.generation(&module.name).unwrap_or_default())
    }

    pub(crate) fn generation(&self, module: &str) -> Option<u64> {
        self.generations.get(module).copied()
    }

    /// Returns the items of a list as these surfaces show it, rendered once per view.
    pub(crate) fn list(&self, caller: &Caller, surfaces: Surfaces, kind: ListKind, limits: &Limits) -> Arc<Vec<Raw>> {
        self.rendered_for(caller).list(surfaces, kind, limits)
    }

    /// Returns the estimated token counts of the caller's menu and of a flat list of all tools, computed once per
    /// view.
    pub(crate) fn token_estimate(&self, caller: &Caller, surfaces: Surfaces, limits: &Limits) -> (usize, usize) {
        self.rendered_for(caller).token_estimate(surfaces, limits)
    }

    /// Returns exact token counts of the caller's menu and of a flat list, computed once per view.
    pub(crate) fn token_counts(
        &self,
        caller: &Caller,
        surfaces: Surfaces,
        limits: &Limits,
        count: impl Fn(&str) -> usize,
    ) -> (usize, usize) {
        self.rendered_for(caller).token_counts(surfaces, limits, count)
    }

    /// Returns a module's description, rendered once per view.
    pub(crate) fn description(
        &self,
        caller: &Caller,
        module: &Module,
        detail: Detail,
        limits: &Limits,
    ) -> Arc<ModuleDescription> {
        self.rendered_for(caller).description(module, detail, limits)
    }

    /// Returns all permissions that restrict the caller's view.
    pub(crate) fn permissions_of(&self, caller: &Caller) -> Vec<Arc<Permissions>> {
        let project = self.project_of(caller).map(|project| Arc::clone(&project.permissions));
        let user = self.mask_of(&caller.subject).cloned();
        let accounts = self
            .accounts_of(&caller.subject)
            .map(|mask| Permissions::intersection([], by_module(&self.catalog, &mask)));
        project.into_iter().chain(user).chain(accounts).collect()
    }

    /// Returns `true` if a caller certainly sees the same as in an earlier snapshot, without building a view.
    /// `changed` names the modules that differ between the catalogs.
    pub(crate) fn shows_same_as(&self, before: &Self, caller: &Caller, changed: Option<&[Arc<str>]>) -> bool {
        let (then, now) = (before.key_of(caller), self.key_of(caller));
        if then != now {
            return false;
        }
        if Arc::ptr_eq(&self.views, &before.views) {
            return true;
        }
        let Some(changed) = changed else { return false };
        let Some(key) = now else { return true };
        if let (Some(now), Some(then)) = (self.views.get(&key), before.views.get(&key)) {
            return Arc::ptr_eq(&now, &then);
        }
        let apart = |one: &Arc<Permissions>| !changed.iter().any(|module| one.may_reach(module));
        changed.is_empty() || self.permissions_of(caller).iter().any(apart)
    }

    /// Returns the permissions of the user behind a subject: their own, else the default.
    fn mask_of(&self, subject: &str) -> Option<&Arc<Permissions>> {
        let ViewBounds { users, default, owner, .. } = &self.bounds;
        users.get(subject).or_else(|| default.as_ref().filter(|_| is_person(subject, owner)))
    }

    fn accounts_of(&self, subject: &str) -> Option<Arc<SubjectMask>> {
        self.bounds.accounts.of(subject)
    }

    /// Returns the key of a caller's view; `None` if the caller's project does not exist.
    fn key_of(&self, caller: &Caller) -> Option<ViewKey> {
        let of = |permissions: &Arc<Permissions>| {
            if permissions.is_unrestricted() { PermissionFingerprint::default() } else { permissions.fingerprint() }
        };
        let project = match &caller.project {
            Some(name) => of(&self.bounds.projects.get(name)?.permissions),
            None => PermissionFingerprint::default(),
        };
        let user = self.mask_of(&caller.subject).map(of).unwrap_or_default();
        let accounts = self.accounts_of(&caller.subject).map(|mask| mask.fingerprint).unwrap_or_default();
        Some(ViewKey { project, user, accounts })
    }

    fn rendered_for(&self, caller: &Caller) -> Arc<RenderedView> {
        let Some(key) = self.key_of(caller) else { return Arc::clone(&self.nothing) };
        if key == ViewKey::default() {
            return Arc::clone(&self.everything);
        }
        self.views.get_or_build(key, || {
            let project = self.project_of(caller).map(|project| Arc::clone(&project.permissions));
            let user = self.mask_of(&caller.subject).cloned();
            let accounts = self.accounts_of(&caller.subject);
            let accounts = accounts.map(|mask| by_module(&self.catalog, &mask)).unwrap_or_default();
            Permissions::intersection(project.into_iter().chain(user), accounts)
        })
    }

    /// Drops views that have not been used for a while.
    pub(crate) fn drop_idle_views(&self) {
        self.views.drop_idle(now_ms());
    }
}

/// Returns `true` if the default permissions apply to a subject: a user other than the owner, not a token or client
/// that acts for itself.
fn is_person(subject: &str, owner: &str) -> bool {
    subject != owner && !subject.starts_with(OF_TOKEN) && !subject.starts_with(OF_CLIENT)
}

/// Returns the tools that the subject's accounts allow, for each module of their providers.
fn by_module(catalog: &Catalog, accounts: &SubjectMask) -> permission::AccountPermissions {
    let held_back = |module: &Module| {
        let allowed = accounts.allowed.get(module.source.provider()?)?;
        Some((Arc::clone(&module.name), allowed.clone()))
    };
    catalog.modules.iter().filter_map(held_back).collect()
}
