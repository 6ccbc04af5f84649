//! Everything a request needs to see of one moment: the catalog, what of it the callers of each project see, and the
//! gates of its modules.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use hikite_core::caller::Caller;
use hikite_core::catalog::{Catalog, Module};
use hikite_core::json::Raw;
use hikite_core::limits::Limits;
use hikite_core::listing::ListKind;
use hikite_core::permission::Permissions;
use hikite_core::view::View;
use parking_lot::RwLock;

use crate::command::Detail;
use crate::exchange::{Mask, Masks};
use crate::gate::Gate;
use crate::list::items;
use crate::open::Sheet;
use crate::project::Project;
use crate::surface::Surfaces;

type Lists = HashMap<(Surfaces, ListKind), Arc<Vec<Raw>>>;
type Sheets = HashMap<(Arc<str>, Detail), Arc<Sheet>>;

#[derive(Debug)]
pub(crate) struct Snapshot {
    pub(crate) catalog: Arc<Catalog>,
    gates: HashMap<Arc<str>, Arc<Gate>>,
    /// Which state of each module this is; what was kept of another is not asked for.
    generations: HashMap<Arc<str>, u64>,
    /// For callers without a project, who see everything.
    everything: Shown,
    /// For callers of a project that there is not, or not any more.
    nothing: Shown,
    projects: HashMap<Arc<str>, Within>,
    /// Of whom the accounts allow less than everything, each with what is left.
    masked: HashMap<Arc<str>, Personal>,
    /// The same for everybody who has no accounts of their own.
    others: Option<Personal>,
}

/// What one subject sees, outside any project and in each.
#[derive(Debug)]
struct Personal {
    masks: Vec<(Arc<str>, Vec<Arc<Permissions>>)>,
    outside: OnceLock<Shown>,
    projects: HashMap<Arc<str>, OnceLock<Shown>>,
}

/// A project, and what is seen in it as soon as somebody looks.
#[derive(Debug)]
struct Within {
    project: Arc<Project>,
    shown: OnceLock<Shown>,
}

/// A view, and what has been rendered from it so far.
#[derive(Debug)]
struct Shown {
    view: View,
    lists: RwLock<Lists>,
    sheets: RwLock<Sheets>,
}

impl Snapshot {
    /// Before anything is known.
    pub(crate) fn empty() -> Self {
        Self::new(Catalog::default(), HashMap::new(), HashMap::new(), &[], &Masks::default())
    }

    pub(crate) fn new(
        catalog: Catalog,
        gates: HashMap<Arc<str>, Arc<Gate>>,
        generations: HashMap<Arc<str>, u64>,
        projects: &[Arc<Project>],
        masks: &Masks,
    ) -> Self {
        let catalog = Arc::new(catalog);
        let masked = masks
            .subjects
            .iter()
            .map(|(subject, mask)| (Arc::clone(subject), Personal::new(&catalog, mask, projects)));
        let within = |project: &Arc<Project>| {
            (Arc::clone(&project.name), Within { project: Arc::clone(project), shown: OnceLock::new() })
        };
        Self {
            everything: Shown::new(View::new(Arc::clone(&catalog))),
            nothing: Shown::new(View::nothing(&catalog)),
            masked: masked.collect(),
            others: (!masks.others.is_empty()).then(|| Personal::new(&catalog, &masks.others, projects)),
            projects: projects.iter().map(within).collect(),
            catalog,
            gates,
            generations,
        }
    }

    /// What whoever runs this hikite sees: everything.
    pub(crate) fn owner_view(&self) -> &View {
        &self.everything.view
    }

    /// What one caller sees.
    pub(crate) fn view_of(&self, caller: &Caller) -> &View {
        &self.shown_to(caller).view
    }

    pub(crate) fn project_of(&self, caller: &Caller) -> Option<&Arc<Project>> {
        self.projects.get(caller.project.as_ref()?).map(|within| &within.project)
    }

    pub(crate) fn gates(&self) -> &HashMap<Arc<str>, Arc<Gate>> {
        &self.gates
    }

    /// The gate of a module; every module of the catalog has one.
    pub(crate) fn gate(&self, module: &Module) -> &Arc<Gate> {
        &self.gates[&module.name]
    }

    /// The module and which state of it this is.
    pub(crate) fn state<'a>(&self, module: &'a Module) -> (&'a Arc<str>, u64) {
        (&module.name, self.generation(&module.name).unwrap_or_default())
    }

    pub(crate) fn generation(&self, module: &str) -> Option<u64> {
        self.generations.get(module).copied()
    }

    /// The items of a list as these surfaces show it, rendered once per snapshot and view.
    pub(crate) fn list(
        &self,
        caller: &Caller,
        surfaces: Surfaces,
        kind: ListKind,
        limits: &Limits,
    ) -> Arc<Vec<Raw>> {
        let shown = self.shown_to(caller);
        let key = (surfaces, kind);
        if let Some(list) = shown.lists.read().get(&key) {
            return Arc::clone(list);
        }
        let list = Arc::new(items(&shown.view, surfaces, kind, limits));
        Arc::clone(shown.lists.write().entry(key).or_insert(list))
    }

    /// What one module of the caller's view offers, rendered once, too.
    pub(crate) fn sheet(
        &self,
        caller: &Caller,
        module: &Module,
        detail: Detail,
        limits: &Limits,
    ) -> Arc<Sheet> {
        let shown = self.shown_to(caller);
        let key = (Arc::clone(&module.name), detail);
        if let Some(sheet) = shown.sheets.read().get(&key) {
            return Arc::clone(sheet);
        }
        let sheet = Arc::new(Sheet::within(module, detail, limits.compact_bytes));
        Arc::clone(shown.sheets.write().entry(key).or_insert(sheet))
    }

    /// What a caller may use, before anything is looked up.
    pub(crate) fn permissions_of(&self, caller: &Caller) -> Permissions {
        self.project_of(caller).map(|project| Permissions::clone(&project.permissions)).unwrap_or_default()
    }

    fn shown_to(&self, caller: &Caller) -> &Shown {
        let personal = self.masked.get(&caller.subject).or(self.others.as_ref());
        if let Some(personal) = personal.filter(|personal| !personal.masks.is_empty()) {
            return self.shown_masked(caller, personal);
        }
        let Some(name) = &caller.project else { return &self.everything };
        let Some(within) = self.projects.get(name) else { return &self.nothing };
        let narrowed = || View::narrowed(&self.catalog, &within.project.permissions);
        within.shown.get_or_init(|| Shown::new(narrowed()))
    }

    fn shown_masked<'a>(&'a self, caller: &Caller, personal: &'a Personal) -> &'a Shown {
        let place = match &caller.project {
            None => &personal.outside,
            Some(name) => match personal.projects.get(name) {
                Some(place) => place,
                None => return &self.nothing,
            },
        };
        place.get_or_init(|| {
            let permissions = self.permissions_of(caller).masked(personal.masks.clone());
            Shown::new(View::narrowed(&self.catalog, &Arc::new(permissions)))
        })
    }
}

impl Personal {
    fn new(catalog: &Catalog, mask: &Mask, projects: &[Arc<Project>]) -> Self {
        let held_back = |module: &Module| {
            let allowed = mask.get(module.source.provider()?)?;
            Some((Arc::clone(&module.name), allowed.clone()))
        };
        Self {
            masks: catalog.modules.iter().filter_map(held_back).collect(),
            outside: OnceLock::new(),
            projects: projects.iter().map(|project| (Arc::clone(&project.name), OnceLock::new())).collect(),
        }
    }
}

impl Shown {
    fn new(view: View) -> Self {
        Self { view, lists: RwLock::default(), sheets: RwLock::default() }
    }
}
