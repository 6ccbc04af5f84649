//! Everything a request needs to see of one moment: the catalog, what of it the callers of each project see, and the
//! gates of its modules.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, OnceLock};

use hikite_core::caller::{Caller, OWNER};
use hikite_core::catalog::{Catalog, Module};
use hikite_core::json::Raw;
use hikite_core::limits::Limits;
use hikite_core::listing::ListKind;
use hikite_core::permission::{self, Permissions};
use hikite_core::view::View;
use parking_lot::RwLock;

use crate::command::Detail;
use crate::exchange::{Mask, Masks};
use crate::gate::Gate;
use crate::identity::OF_CLIENT;
use crate::list::items;
use crate::open::Sheet;
use crate::people::OF_TOKEN;
use crate::preview;
use crate::project::Project;
use crate::surface::Surfaces;

type Lists = HashMap<(Surfaces, ListKind), Arc<Vec<Raw>>>;
/// What a menu costs, and what it would with every tool in it; in tokens.
type Weights = HashMap<Surfaces, (usize, usize)>;
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
    /// By subject, for those with rules of their own; nothing where these allow everything.
    personal: HashMap<Arc<str>, Option<Personal>>,
    /// The owner, whom the default mask is not for.
    owner: Arc<str>,
    /// For everybody else, where the accounts that everybody uses allow less than everything.
    others: Option<Personal>,
    /// For people of whom no more is known than their subject: the same, and the default mask.
    strangers: Option<Personal>,
    /// Whether it is of single sessions, and not of everybody.
    is_apart: bool,
}

/// The masks that views are narrowed by.
#[derive(Clone, Copy)]
pub(crate) struct MaskInput<'a> {
    pub(crate) users: &'a UserMasks,
    /// Of people who have none of their own.
    pub(crate) default: Option<&'a Arc<Permissions>>,
    /// The present owner, whom the default is not for.
    pub(crate) owner: &'a Arc<str>,
    pub(crate) accounts: &'a Masks,
}

/// What one subject may use wherever it works, and what it sees, outside any project and in each, as soon as it looks.
#[derive(Debug)]
struct Personal {
    mask: Arc<Permissions>,
    outside: OnceLock<Shown>,
    projects: HashMap<Arc<str>, OnceLock<Shown>>,
}

/// By subject, what its user is allowed.
pub type UserMasks = HashMap<Arc<str>, Arc<Permissions>>;

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
    weights: RwLock<Weights>,
    counted: RwLock<Weights>,
    sheets: RwLock<Sheets>,
}

impl Snapshot {
    /// Before anything is known.
    pub(crate) fn empty() -> Self {
        let masks = MaskInput {
            users: &UserMasks::new(),
            default: None,
            owner: &OWNER.into(),
            accounts: &Masks::default(),
        };
        Self::new(Catalog::default(), HashMap::new(), HashMap::new(), &[], masks)
    }

    pub(crate) fn new(
        catalog: Catalog,
        gates: HashMap<Arc<str>, Arc<Gate>>,
        generations: HashMap<Arc<str>, u64>,
        projects: &[Arc<Project>],
        MaskInput { users, default, owner, accounts }: MaskInput<'_>,
    ) -> Self {
        let catalog = Arc::new(catalog);
        let of = |user: Option<&Arc<Permissions>>, accounts: &Mask| {
            let mask = Permissions::together(user.cloned(), by_module(&catalog, accounts));
            (!mask.is_everything()).then(|| Personal::new(mask, projects))
        };
        let subjects: HashSet<&Arc<str>> = users.keys().chain(accounts.subjects.keys()).collect();
        let personal = subjects.into_iter().map(|subject| {
            let own = accounts.subjects.get(subject).unwrap_or(&accounts.others);
            let user = users.get(subject).or(default.filter(|_| is_person(subject, owner)));
            (Arc::clone(subject), of(user, own))
        });
        let personal = personal.collect();
        let others = of(None, &accounts.others);
        let strangers = of(default, &accounts.others);
        let within = |project: &Arc<Project>| {
            (Arc::clone(&project.name), Within { project: Arc::clone(project), shown: OnceLock::new() })
        };
        Self {
            everything: Shown::new(View::new(Arc::clone(&catalog))),
            nothing: Shown::new(View::nothing(&catalog)),
            projects: projects.iter().map(within).collect(),
            personal,
            owner: Arc::clone(owner),
            others,
            strangers,
            catalog,
            gates,
            generations,
            is_apart: false,
        }
    }

    /// The same moment with another catalog, for one caller. `generations` are those of the modules that differ.
    pub(crate) fn apart(
        &self,
        catalog: Arc<Catalog>,
        generations: HashMap<Arc<str>, u64>,
        caller: &Caller,
    ) -> Self {
        let project = self.project_of(caller).cloned();
        let projects = project.as_slice();
        let again = |own: &Personal| Personal::new(Arc::clone(&own.mask), projects);
        let personal = self.personal.get(&caller.subject).map(|own| own.as_ref().map(again));
        let within = |project: &Arc<Project>| {
            (Arc::clone(&project.name), Within { project: Arc::clone(project), shown: OnceLock::new() })
        };
        Self {
            everything: Shown::new(View::new(Arc::clone(&catalog)).apart()),
            nothing: Shown::new(View::nothing(&catalog)),
            projects: projects.iter().map(within).collect(),
            personal: personal.into_iter().map(|own| (Arc::clone(&caller.subject), own)).collect(),
            owner: Arc::clone(&self.owner),
            others: self.others.as_ref().map(again),
            strangers: self.strangers.as_ref().map(again),
            catalog,
            gates: self.gates.clone(),
            generations: self.generations.clone().into_iter().chain(generations).collect(),
            is_apart: true,
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

    /// About how many tokens these surfaces cost as a menu, and how many a flat list of all tools would; weighed once.
    pub(crate) fn weight(&self, caller: &Caller, surfaces: Surfaces, limits: &Limits) -> (usize, usize) {
        let shown = self.shown_to(caller);
        if let Some(weight) = shown.weights.read().get(&surfaces) {
            return *weight;
        }
        let weight = preview::guess(&shown.view, &self.list(caller, surfaces, ListKind::Tools, limits));
        *shown.weights.write().entry(surfaces).or_insert(weight)
    }

    /// The same, counted exactly.
    pub(crate) fn counted(
        &self,
        caller: &Caller,
        surfaces: Surfaces,
        limits: &Limits,
        count: impl Fn(&str) -> usize,
    ) -> (usize, usize) {
        let shown = self.shown_to(caller);
        if let Some(counted) = shown.counted.read().get(&surfaces) {
            return *counted;
        }
        let menu = self.list(caller, surfaces, ListKind::Tools, limits);
        let counted = preview::weigh(&shown.view, &menu, count);
        *shown.counted.write().entry(surfaces).or_insert(counted)
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

    /// All that a caller's view is narrowed by.
    pub(crate) fn permissions_of(&self, caller: &Caller) -> Vec<Arc<Permissions>> {
        let project = self.project_of(caller).map(|project| &project.permissions);
        let personal = self.personal_of(caller);
        project.into_iter().chain(personal.map(|personal| &personal.mask)).cloned().collect()
    }

    /// Nothing where the subject may have everything.
    fn personal_of(&self, caller: &Caller) -> Option<&Personal> {
        let unknown = || {
            if is_person(&caller.subject, &self.owner) {
                self.strangers.as_ref()
            } else {
                self.others.as_ref()
            }
        };
        self.personal.get(&caller.subject).map_or_else(unknown, Option::as_ref)
    }

    fn shown_to(&self, caller: &Caller) -> &Shown {
        let personal = self.personal_of(caller);
        let narrowed = |permissions: &Arc<Permissions>| {
            let view = View::narrowed(&self.catalog, permissions);
            Shown::new(if self.is_apart { view.apart() } else { view })
        };
        let Some(name) = &caller.project else {
            return personal.map_or(&self.everything, |own| own.outside.get_or_init(|| narrowed(&own.mask)));
        };
        let Some(within) = self.projects.get(name) else { return &self.nothing };
        let rules = &within.project.permissions;
        match personal {
            None => within.shown.get_or_init(|| narrowed(rules)),
            Some(own) => {
                let both =
                    || Permissions::together([Arc::clone(rules), Arc::clone(&own.mask)], HashMap::new());
                own.projects.get(name).map_or(&self.nothing, |shown| shown.get_or_init(|| narrowed(&both())))
            }
        }
    }
}

impl Personal {
    fn new(mask: Arc<Permissions>, projects: &[Arc<Project>]) -> Self {
        let projects = projects.iter().map(|project| (Arc::clone(&project.name), OnceLock::new()));
        Self { mask, outside: OnceLock::new(), projects: projects.collect() }
    }
}

/// True if a subject is a person whom the default mask is for: not the owner, and no program that stands for itself.
fn is_person(subject: &str, owner: &str) -> bool {
    subject != owner && !subject.starts_with(OF_TOKEN) && !subject.starts_with(OF_CLIENT)
}

/// What the accounts of a provider allow, for each module that is called with them.
fn by_module(catalog: &Catalog, accounts: &Mask) -> permission::Accounts {
    let held_back = |module: &Module| {
        let allowed = accounts.get(module.source.provider()?)?;
        Some((Arc::clone(&module.name), allowed.clone()))
    };
    catalog.modules.iter().filter_map(held_back).collect()
}

impl Shown {
    fn new(view: View) -> Self {
        Self {
            view,
            lists: RwLock::default(),
            weights: RwLock::default(),
            counted: RwLock::default(),
            sheets: RwLock::default(),
        }
    }
}
