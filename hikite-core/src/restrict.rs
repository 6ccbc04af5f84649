//! Restricts modules and categories to the permissions of a caller. Runs before the catalog is built, so that no name,
//! count or result can depend on a hidden item.

use std::sync::Arc;

use crate::annotation;
use crate::caller::TASKS;
use crate::catalog::Catalog;
use crate::catalog::input::CatalogInput;
use crate::category::{Category, CategoryRule};
use crate::json::{Object, Raw};
use crate::key::ToolKey;
use crate::listing::{ListItem, Listing};
use crate::offer::{HeldItem, ModuleOffer};
use crate::permission::Permissions;
use crate::risk::Risk;

impl CatalogInput {
    /// Returns the input restricted to `permissions`. `whole` is the unrestricted catalog, which holds the risk of each
    /// tool.
    pub(crate) fn restricted(&self, permissions: &Arc<Permissions>, whole: &Catalog) -> Self {
        let modules: Vec<ModuleOffer> =
            self.modules.iter().filter_map(|offer| offer.restricted(permissions, whole)).collect();
        let is_visible = |server: &Arc<str>| modules.iter().any(|offer| offer.rule.name == *server);
        let categories = self.categories.iter().filter_map(|rule| restricted_rule(rule, is_visible)).collect();
        Self { categories, modules, switches: self.switches.clone(), permissions: Some(Arc::clone(permissions)) }
    }

    /// Returns `true` if the category is visible. Without restrictions all are; otherwise only those with tools or with
    /// servers that may still list some.
    pub(crate) fn shows(&self, category: &Category) -> bool {
        self.permissions.is_none() || !category.entries.is_empty() || !category.missing.is_empty()
    }
}

impl ModuleOffer {
    /// Returns the visible part of the module, or `None`. A module is visible if one of its tools is allowed, or its
    /// resources and prompts are. Before its list is known, it is visible if some tool could be allowed.
    fn restricted(&self, permissions: &Permissions, whole: &Catalog) -> Option<Self> {
        let name = &self.rule.name;
        let key_of = |item: &ListItem| ToolKey::new(Arc::clone(name), Arc::clone(&item.name));
        let Some(listing) = &self.listing else {
            let held = self.held.iter().filter(|held| permissions.allows_unlisted(&key_of(&held.item)));
            let held = held.cloned().collect();
            return permissions.may_reach(name).then(|| Self { held, ..self.clone() });
        };
        let allowed = |item: &&ListItem| {
            let key = key_of(item);
            let known = whole.tool_by_key(&key).filter(|tool| tool.original == item.raw);
            let risk = known.map_or_else(|| Risk::of(&annotation::from_definition(&item.raw)), |tool| tool.risk);
            permissions.allows(&key, risk)
        };
        let tools: Vec<ListItem> = listing.tools.iter().filter(allowed).cloned().collect();
        let held: Arc<[HeldItem]> = self.held.iter().filter(|held| allowed(&&held.item)).cloned().collect();
        let open = permissions.allows_module(name);
        if tools.is_empty() && held.is_empty() && !open {
            return None;
        }
        let listing = if open {
            Listing { tools, sanitized: Vec::new(), ..Listing::clone(listing) }
        } else {
            only_tools(listing, tools)
        };
        Some(Self { rule: self.rule.clone(), listing: Some(Arc::new(listing)), held })
    }
}

/// Copies a listing with only its tools and the capabilities that calls need, tasks included. Server instructions are
/// dropped because they may mention hidden items.
fn only_tools(listing: &Listing, tools: Vec<ListItem>) -> Listing {
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
        sends_requests: listing.sends_requests,
        sanitized: Vec::new(),
    }
}

/// Restricts a category to its visible servers; `None` if there are none.
fn restricted_rule(rule: &Arc<CategoryRule>, is_visible: impl Fn(&Arc<str>) -> bool) -> Option<Arc<CategoryRule>> {
    if rule.servers.iter().all(&is_visible) {
        return Some(Arc::clone(rule));
    }
    let servers: Vec<Arc<str>> = rule.servers.iter().filter(|server| is_visible(server)).cloned().collect();
    (!servers.is_empty()).then(|| Arc::new(CategoryRule { servers, ..CategoryRule::clone(rule) }))
}
