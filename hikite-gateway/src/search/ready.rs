//! An index that can be asked, with what is needed around it: which catalog it is of, where each tool stands, and which
//! of them each caller may find.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use hikite_core::catalog::{Catalog, Module};
use hikite_core::key::ToolKey;
use hikite_core::mask::Mask;
use hikite_core::search::{Document, Index};
use hikite_core::view::View;
use parking_lot::Mutex;

/// Views whose masks are kept with an index.
const VIEWS: usize = 64;

pub(crate) struct Ready {
    pub(crate) catalog: Arc<Catalog>,
    /// With vectors of our own encoder, as far as they are made.
    pub(crate) local: Index,
    /// The same with those of the configured model.
    pub(crate) remote: Option<Index>,
    pub(super) layout: Arc<Layout>,
}

/// What stays when only vectors are added.
pub(super) struct Layout {
    places: HashMap<ToolKey, usize>,
    modules: HashMap<Arc<str>, Range<usize>>,
    masks: Mutex<Vec<(View, Arc<Mask>)>>,
}

impl Ready {
    /// Reads the whole catalog; `before` lends what did not change.
    pub(super) fn build(catalog: &Arc<Catalog>, before: Option<&Self>) -> Self {
        Self::of(Arc::clone(catalog), &catalog.modules, before)
    }

    /// Of what one view shows, as if there were nothing else: even how rare a word is tells of no hidden tool.
    pub(super) fn narrowed(&self, view: &View) -> Self {
        Self::of(Arc::clone(&self.catalog), view.modules(), Some(self))
    }

    fn of(catalog: Arc<Catalog>, all: &[Module], before: Option<&Self>) -> Self {
        let mut documents = Vec::with_capacity(before.map_or(0, |before| before.local.len()));
        let mut modules = HashMap::with_capacity(all.len());
        for module in all {
            let start = documents.len();
            documents.extend(module.tools.iter().map(|tool| Document::of(module, tool)));
            modules.insert(Arc::clone(&module.name), start..documents.len());
        }
        if let Some(before) = before.filter(|before| before.local.documents() == documents.as_slice()) {
            // Something else changed: a project, a switch, a resource.
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
            .map(|remote| Index::build(documents.clone(), Some(remote)));
        let local = Index::build(documents, before.map(|before| &before.local));
        let layout = Layout { places, modules, masks: Mutex::default() };
        Self { catalog, local, remote, layout: Arc::new(layout) }
    }

    pub(super) fn with_local(&self, local: Index) -> Self {
        let remote = self.remote.clone();
        Self { catalog: Arc::clone(&self.catalog), local, remote, layout: Arc::clone(&self.layout) }
    }

    pub(super) fn with_remote(&self, remote: Index) -> Self {
        let local = self.local.clone();
        Self {
            catalog: Arc::clone(&self.catalog),
            local,
            remote: Some(remote),
            layout: Arc::clone(&self.layout),
        }
    }

    /// Whether there is nothing left to be read.
    pub(super) fn is_read(&self) -> bool {
        let whole = |index: &Index| index.encoded() == index.len();
        whole(&self.local) && self.remote.as_ref().is_none_or(whole)
    }

    pub(super) fn place(&self, key: &ToolKey) -> Option<usize> {
        self.layout.places.get(key).copied()
    }

    pub(super) fn key(&self, at: usize) -> &ToolKey {
        &self.local.document(at).key
    }

    /// The enabled tools of a view. The view may be of a newer catalog than the index: what is not in both is left out.
    pub(super) fn mask(&self, view: &View) -> Arc<Mask> {
        let same = |known: &View| std::ptr::eq(known.modules(), view.modules());
        let mut masks = self.layout.masks.lock();
        if let Some((_, mask)) = masks.iter().find(|(known, _)| same(known)) {
            return Arc::clone(mask);
        }
        let mut mask = Mask::none(self.local.len());
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

    /// Takes a module's tools out.
    pub(super) fn without(&self, module: &str, mask: &mut Mask) {
        for at in self.layout.modules.get(module).cloned().into_iter().flatten() {
            mask.set(at, false);
        }
    }
}

/// How many places of the mask have a vector.
pub(super) fn encoded(index: &Index, mask: &Mask) -> usize {
    let missing = index.without_vector();
    mask.count() - missing.into_iter().filter(|at| mask.contains(*at)).count()
}

impl std::fmt::Debug for Ready {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Ready({})", self.local.len())
    }
}
