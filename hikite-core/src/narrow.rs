//! What is left of the modules and categories for somebody who may not see all of them. It is taken away before a catalog
//! is built, so that what is hidden is not there at all: no name, count or answer can depend on it.

use std::sync::Arc;

use crate::annotation;
use crate::caller::TASKS;
use crate::catalog::Catalog;
use crate::category::{Category, CategoryRule};
use crate::json::{Object, Raw};
use crate::key::ToolKey;
use crate::listing::{Item, Listing};
use crate::offer::{Held, Offer};
use crate::permission::Permissions;
use crate::risk::Risk;
use crate::switch::Switches;

/// What a catalog is built from.
#[derive(Clone, Debug, Default)]
pub(crate) struct Given {
    pub(crate) modules: Vec<Offer>,
    pub(crate) categories: Vec<Arc<CategoryRule>>,
    pub(crate) switches: Switches,
    /// For whom it is built; `None` sees everything.
    pub(crate) permissions: Option<Arc<Permissions>>,
}

impl Given {
    /// `whole` is the catalog of everything, which knows the risks of its tools.
    pub(crate) fn narrowed(&self, permissions: &Arc<Permissions>, whole: &Catalog) -> Self {
        let modules: Vec<Offer> =
            self.modules.iter().filter_map(|offer| offer.narrowed(permissions, whole)).collect();
        let seen = |server: &Arc<str>| modules.iter().any(|offer| offer.rule.name == *server);
        let categories = self.categories.iter().filter_map(|rule| narrowed_rule(rule, seen)).collect();
        Self {
            categories,
            modules,
            switches: self.switches.clone(),
            permissions: Some(Arc::clone(permissions)),
        }
    }

    /// Whether a name may be said that no list has.
    pub(crate) fn may_name(&self, module: &Arc<str>, tool: &Arc<str>) -> bool {
        let key = || ToolKey::new(Arc::clone(module), Arc::clone(tool));
        self.permissions.as_ref().is_none_or(|permissions| permissions.allows_unseen(&key()))
    }

    /// Whether a category is there: for who sees everything each is, for others those that have or may get something.
    pub(crate) fn shows(&self, category: &Category) -> bool {
        self.permissions.is_none() || !category.entries.is_empty() || !category.missing.is_empty()
    }
}

impl Offer {
    /// A module is there if one of its tools is, or what it offers beside them; before its list is known, if something
    /// of it could be.
    fn narrowed(&self, permissions: &Permissions, whole: &Catalog) -> Option<Self> {
        let name = &self.rule.name;
        let key_of = |item: &Item| ToolKey::new(Arc::clone(name), Arc::clone(&item.name));
        let Some(listing) = &self.listing else {
            let held = self.held.iter().filter(|held| permissions.allows_unseen(&key_of(&held.item)));
            let held = held.cloned().collect();
            return permissions.may_reach(name).then(|| Self { held, ..self.clone() });
        };
        let allowed = |item: &&Item| {
            let key = key_of(item);
            let known = whole.tool_by_key(&key).filter(|tool| tool.original == item.raw);
            let risk =
                known.map_or_else(|| Risk::of(&annotation::of_definition(&item.raw)), |tool| tool.risk);
            permissions.allows(&key, risk)
        };
        let tools: Vec<Item> = listing.tools.iter().filter(allowed).cloned().collect();
        let held: Arc<[Held]> = self.held.iter().filter(|held| allowed(&&held.item)).cloned().collect();
        let open = permissions.allows_module(name);
        if tools.is_empty() && held.is_empty() && !open {
            return None;
        }
        let listing = if open {
            Listing { tools, cleaned: Vec::new(), ..Listing::clone(listing) }
        } else {
            tools_alone(listing, tools)
        };
        Some(Self { rule: self.rule.clone(), listing: Some(Arc::new(listing)), held })
    }
}

/// Nothing but tools, and whether their calls may go on after they are answered. What the server says to its clients of
/// how to use it is left out too: it may speak of anything.
fn tools_alone(listing: &Listing, tools: Vec<Item>) -> Listing {
    let mut capabilities = Object::default();
    for name in ["tools", "tasks", "logging"] {
        if let Some(promise) = listing.capabilities.get(name) {
            capabilities.set(name, promise.clone());
        }
    }
    let extensions = listing.capabilities.get("extensions").and_then(Raw::object);
    if let Some(tasks) = extensions.and_then(|extensions| extensions.get(TASKS).cloned()) {
        capabilities.set("extensions", Object::default().with(TASKS, tasks));
    }
    Listing {
        tools,
        resources: Vec::new(),
        templates: Vec::new(),
        prompts: Vec::new(),
        skills: Vec::new(),
        instructions: None,
        capabilities,
        info: listing.info.clone(),
        fetched_at: listing.fetched_at,
        revision: listing.revision.clone(),
        ttl_ms: listing.ttl_ms,
        asks_back: listing.asks_back,
        cleaned: Vec::new(),
    }
}

/// A category has those of its servers that are seen; without any it is not there.
fn narrowed_rule(rule: &Arc<CategoryRule>, seen: impl Fn(&Arc<str>) -> bool) -> Option<Arc<CategoryRule>> {
    if rule.servers.iter().all(&seen) {
        return Some(Arc::clone(rule));
    }
    let servers: Vec<Arc<str>> = rule.servers.iter().filter(|server| seen(server)).cloned().collect();
    (!servers.is_empty()).then(|| Arc::new(CategoryRule { servers, ..CategoryRule::clone(rule) }))
}
