//! Everything a request needs to see of one moment: the catalog, the gates of its modules, and the lists that
//! have been rendered from it so far.

use std::collections::HashMap;
use std::sync::Arc;

use hikite_core::catalog::{Catalog, Module};
use hikite_core::json::Raw;
use hikite_core::listing::ListKind;
use hikite_core::view::View;
use parking_lot::RwLock;

use crate::gate::Gate;
use crate::list::items;
use crate::surface::Surfaces;

type Lists = HashMap<(Surfaces, ListKind), Arc<Vec<Raw>>>;

#[derive(Debug)]
pub(crate) struct Snapshot {
    pub(crate) catalog: Arc<Catalog>,
    gates: HashMap<Arc<str>, Arc<Gate>>,
    /// Which state of each module this is; what was kept of another is not asked for.
    generations: HashMap<Arc<str>, u64>,
    lists: RwLock<Lists>,
}

impl Snapshot {
    /// Before anything is known.
    pub(crate) fn empty() -> Self {
        Self::new(Catalog::default(), HashMap::new(), HashMap::new())
    }

    pub(crate) fn new(
        catalog: Catalog,
        gates: HashMap<Arc<str>, Arc<Gate>>,
        generations: HashMap<Arc<str>, u64>,
    ) -> Self {
        Self { catalog: Arc::new(catalog), gates, generations, lists: RwLock::default() }
    }

    pub(crate) fn view(&self) -> View {
        View::new(Arc::clone(&self.catalog))
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

    /// The items of a list as these surfaces show it, rendered once per snapshot.
    pub(crate) fn list(&self, surfaces: Surfaces, kind: ListKind) -> Arc<Vec<Raw>> {
        let key = (surfaces, kind);
        if let Some(list) = self.lists.read().get(&key) {
            return Arc::clone(list);
        }
        let list = Arc::new(items(&self.view(), surfaces, kind));
        Arc::clone(self.lists.write().entry(key).or_insert(list))
    }
}
