//! A search index with its catalog, the positions of its tools, and the masks of the views that query it.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use hikite_core::catalog::{Catalog, Module};
use hikite_core::key::ToolKey;
use hikite_core::search::{SearchIndex, ToolDocument};
use hikite_core::tool_set::ToolSet;
use hikite_core::view::View;
use parking_lot::Mutex;

/// Maximum number of cached masks per index.
const VIEWS: usize = 64;

pub(crate) struct CatalogIndex {
    pub(crate) catalog: Arc<Catalog>,
    /// Index with vectors of the built-in encoder, as far as they are computed.
    pub(crate) local: SearchIndex,
    /// Index with vectors of the configured model.
    pub(crate) remote: Option<SearchIndex>,
    pub(super) layout: Arc<IndexLayout>,
}

/// The parts that adding vectors does not change.
pub(super) struct IndexLayout {
    places: HashMap<ToolKey, usize>,
    modules: HashMap<Arc<str>, Range<usize>>,
    masks: Mutex<Vec<(View, Arc<ToolSet>)>>,
}

impl CatalogIndex {
    /// Indexes a catalog, reusing the unchanged parts of `before`.
    pub(super) fn build(catalog: &Arc<Catalog>, before: Option<&Self>) -> Self {
        Self::of(Arc::clone(catalog), &catalog.modules, before)
    }

    /// Indexes one view as if nothing else existed: not even term statistics reveal a hidden tool.
    pub(super) fn restricted(&self, view: &View) -> Self {
        Self::of(Arc::clone(&self.catalog), view.modules(), Some(self))
    }

    fn of(catalog: Arc<Catalog>, all: &[Module], before: Option<&Self>) -> Self {
        let mut documents = Vec::with_capacity(before.map_or(0, |before| before.local.len()));
        let mut modules = HashMap::with_capacity(all.len());
        for module in all {
            let start = documents.len();
            documents.extend(module.tools.iter().map(|tool| ToolDocument::of(module, tool)));
            modules.insert(Arc::clone(&module.name), start..documents.len());
        }
        if let Some(before) = before.filter(|before| before.local.documents() == documents.as_slice()) {
            // The tools are unchanged: the new catalog differs in a project, a switch or a resource.
            return Self {
                catalog,
                local: before.local.clone(),
                remote: before.remote.clone(),
                layout: Arc::clone(&before.layout),
            };
        }
        let places = documents.iter().enumerate().map(|(at, document)| (document.key.clone(), at)).collect();
        let remote = before
            .and_then(|before| before.remote.as_ref())
            .map(|remote| SearchIndex::build(documents.clone(), Some(remote)));
        let local = SearchIndex::build(documents, before.map(|before| &before.local));
        let layout = IndexLayout { places, modules, masks: Mutex::default() };
        Self { catalog, local, remote, layout: Arc::new(layout) }
    }

    pub(super) fn with_local(&self, local: SearchIndex) -> Self {
        let remote = self.remote.clone();
        Self { catalog: Arc::clone(&self.catalog), local, remote, layout: Arc::clone(&self.layout) }
    }

    pub(super) fn with_remote(&self, remote: SearchIndex) -> Self {
        let local = self.local.clone();
        Self { catalog: Arc::clone(&self.catalog), local, remote: Some(remote), layout: Arc::clone(&self.layout) }
    }

    /// Returns a copy with the vectors that `whole` has for its tools.
    pub(super) fn with_vectors_of(&self, whole: &Self) -> Self {
        let local = self.local.with_vectors_of(&whole.local);
        let remote = whole.remote.as_ref().map(|remote| self.local.with_vectors_of(remote));
        Self { catalog: Arc::clone(&self.catalog), local, remote, layout: Arc::clone(&self.layout) }
    }

    /// Returns `true` if all tools have vectors.
    pub(super) fn is_encoded(&self) -> bool {
        let whole = |index: &SearchIndex| index.encoded() == index.len();
        whole(&self.local) && self.remote.as_ref().is_none_or(whole)
    }

    pub(super) fn place(&self, key: &ToolKey) -> Option<usize> {
        self.layout.places.get(key).copied()
    }

    pub(super) fn key(&self, at: usize) -> &ToolKey {
        &self.local.document(at).key
    }

    /// Returns the mask of a view's enabled tools. The view may be of a newer catalog than the index; tools that are
    /// not in both are left out.
    pub(super) fn mask(&self, view: &View) -> Arc<ToolSet> {
        let same = |known: &View| std::ptr::eq(known.modules(), view.modules());
        let mut masks = self.layout.masks.lock();
        if let Some((_, mask)) = masks.iter().find(|(known, _)| same(known)) {
            return Arc::clone(mask);
        }
        let mut mask = ToolSet::none(self.local.len());
        for at in view.enabled_tools().filter_map(|tool| self.place(&tool.key)) {
            mask.set(at, true);
        }
        let mask = Arc::new(mask);
        if masks.len() == VIEWS {
            masks.remove(0);
        }
        masks.push((view.clone(), Arc::clone(&mask)));
        mask
    }

    /// Returns the positions of a module's tools.
    pub(super) fn module(&self, name: &str) -> Range<usize> {
        self.layout.modules.get(name).cloned().unwrap_or_default()
    }

    /// Removes a module's tools from a mask.
    pub(super) fn without(&self, module: &str, mask: &mut ToolSet) {
        for at in self.module(module) {
            mask.set(at, false);
        }
    }
}

/// Returns the number of tools in the mask that have a vector.
pub(super) fn encoded(index: &SearchIndex, mask: &ToolSet) -> usize {
    let missing = index.without_vector();
    mask.count() - missing.into_iter().filter(|at| mask.contains(*at)).count()
}

impl std::fmt::Debug for CatalogIndex {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Ready({})", self.local.len())
    }
}
