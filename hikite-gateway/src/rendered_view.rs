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
use crate::describe::ModuleDescription;
use crate::list::items;
use crate::surface::Surfaces;
use crate::token_count;

type RenderedLists = HashMap<(Surfaces, ListKind), Arc<Vec<Raw>>>;
/// Token counts of a menu, and of a flat list of all tools.
type TokenCounts = HashMap<Surfaces, (usize, usize)>;
type RenderedDescriptions = HashMap<(Arc<str>, Detail), Arc<ModuleDescription>>;

#[derive(Debug)]
pub(crate) struct RenderedView {
    pub(crate) view: View,
    lists: RwLock<RenderedLists>,
    estimates: RwLock<TokenCounts>,
    token_counts: RwLock<TokenCounts>,
    descriptions: RwLock<RenderedDescriptions>,
    /// Time of the last use, in milliseconds since 1970.
    used_at: AtomicU64,
    /// Approximate memory use.
    bytes: AtomicUsize,
}

impl RenderedView {
    pub(crate) fn new(view: View, now: u64) -> Self {
        Self {
            bytes: AtomicUsize::new(view.bytes()),
            view,
            lists: RwLock::default(),
            estimates: RwLock::default(),
            token_counts: RwLock::default(),
            descriptions: RwLock::default(),
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
    pub(crate) fn token_estimate(&self, surfaces: Surfaces, limits: &Limits) -> (usize, usize) {
        if let Some(token_estimate) = self.estimates.read().get(&surfaces) {
            return *token_estimate;
        }
        let token_estimate = token_count::estimate_tokens(&self.view, &self.list(surfaces, ListKind::Tools, limits));
        *self.estimates.write().entry(surfaces).or_insert(token_estimate)
    }

    /// Returns exact token counts of the menu and of a flat list, computed once.
    pub(crate) fn token_counts(
        &self,
        surfaces: Surfaces,
        limits: &Limits,
        count: impl Fn(&str) -> usize,
    ) -> (usize, usize) {
        if let Some(token_counts) = self.token_counts.read().get(&surfaces) {
            return *token_counts;
        }
        let menu = self.list(surfaces, ListKind::Tools, limits);
        let token_counts = token_count::count_tokens(&self.view, &menu, count);
        *self.token_counts.write().entry(surfaces).or_insert(token_counts)
    }

    /// Returns a module's description, rendered once.
    pub(crate) fn description(&self, module: &Module, detail: Detail, limits: &Limits) -> Arc<ModuleDescription> {
        let key = (Arc::clone(&module.name), detail);
        if let Some(description) = self.descriptions.read().get(&key) {
            return Arc::clone(description);
        }
        let description = Arc::new(ModuleDescription::within(module, detail, limits.compact_bytes));
        self.grow(description.bytes());
        Arc::clone(self.descriptions.write().entry(key).or_insert(description))
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
