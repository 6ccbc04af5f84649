//! A view with its rendered forms: lists, their token counts, and module descriptions.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use hikite_core::catalog::Module;
use hikite_core::json::Raw;
use hikite_core::limits::Limits;
use hikite_core::listing::ListKind;
use hikite_core::view::View;
use parking_lot::RwLock;

use crate::command::Detail;
use crate::list::items;
use crate::open::Sheet;
use crate::preview;
use crate::surface::Surfaces;

type Lists = HashMap<(Surfaces, ListKind), Arc<Vec<Raw>>>;
/// Token counts of a menu, and of a flat list of all tools.
type Weights = HashMap<Surfaces, (usize, usize)>;
type Sheets = HashMap<(Arc<str>, Detail), Arc<Sheet>>;

#[derive(Debug)]
pub(crate) struct Shown {
    pub(crate) view: View,
    lists: RwLock<Lists>,
    weights: RwLock<Weights>,
    counted: RwLock<Weights>,
    sheets: RwLock<Sheets>,
    /// Time of the last use, in milliseconds since 1970.
    used_at: AtomicU64,
    /// Approximate memory use.
    bytes: AtomicUsize,
}

impl Shown {
    pub(crate) fn new(view: View, now: u64) -> Self {
        Self {
            bytes: AtomicUsize::new(view.bytes()),
            view,
            lists: RwLock::default(),
            weights: RwLock::default(),
            counted: RwLock::default(),
            sheets: RwLock::default(),
            used_at: AtomicU64::new(now),
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    pub(crate) fn used_at(&self) -> u64 {
        self.used_at.load(Ordering::Relaxed)
    }

    pub(crate) fn touch(&self, now: u64) {
        self.used_at.store(now, Ordering::Relaxed);
    }

    /// Returns the items of a list as these surfaces show it, rendered once.
    pub(crate) fn list(&self, surfaces: Surfaces, kind: ListKind, limits: &Limits) -> Arc<Vec<Raw>> {
        let key = (surfaces, kind);
        if let Some(list) = self.lists.read().get(&key) {
            return Arc::clone(list);
        }
        let list = Arc::new(items(&self.view, surfaces, kind, limits));
        self.grow(list.len() * size_of::<Raw>() + written_bytes(&list));
        Arc::clone(self.lists.write().entry(key).or_insert(list))
    }

    /// Returns the estimated token counts of these surfaces' menu and of a flat list of all tools, computed once.
    pub(crate) fn weight(&self, surfaces: Surfaces, limits: &Limits) -> (usize, usize) {
        if let Some(weight) = self.weights.read().get(&surfaces) {
            return *weight;
        }
        let weight = preview::guess(&self.view, &self.list(surfaces, ListKind::Tools, limits));
        *self.weights.write().entry(surfaces).or_insert(weight)
    }

    /// Returns exact token counts of the menu and of a flat list, computed once.
    pub(crate) fn counted(
        &self,
        surfaces: Surfaces,
        limits: &Limits,
        count: impl Fn(&str) -> usize,
    ) -> (usize, usize) {
        if let Some(counted) = self.counted.read().get(&surfaces) {
            return *counted;
        }
        let menu = self.list(surfaces, ListKind::Tools, limits);
        let counted = preview::weigh(&self.view, &menu, count);
        *self.counted.write().entry(surfaces).or_insert(counted)
    }

    /// Returns a module's description, rendered once.
    pub(crate) fn sheet(&self, module: &Module, detail: Detail, limits: &Limits) -> Arc<Sheet> {
        let key = (Arc::clone(&module.name), detail);
        if let Some(sheet) = self.sheets.read().get(&key) {
            return Arc::clone(sheet);
        }
        let sheet = Arc::new(Sheet::within(module, detail, limits.compact_bytes));
        self.grow(sheet.bytes());
        Arc::clone(self.sheets.write().entry(key).or_insert(sheet))
    }

    fn grow(&self, bytes: usize) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// Returns the bytes that belong to this list alone. Menus are few items written for this view; the items of longer
/// lists are shared definitions.
fn written_bytes(list: &[Raw]) -> usize {
    const MENU: usize = 64;
    if list.len() > MENU { 0 } else { list.iter().map(|item| item.bytes().len()).sum() }
}
