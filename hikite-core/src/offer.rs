//! A module's contribution to a catalog: its rule, the current listing of its source, and the tools that are held back.
//! Pin checks and the catalog use the same listing, so it cannot change in between.

use std::sync::Arc;

use crate::catalog::module_rule::ModuleRule;
use crate::key::ToolKey;
use crate::listing::{ListItem, Listing};
use crate::name::DirectNames;
use crate::pin::HoldReason;
use crate::switch::DisabledReason;
use crate::tool_selection::ToolRef;

#[derive(Clone, Debug)]
pub struct ModuleOffer {
    pub rule: ModuleRule,
    /// Listing without the held tools.
    pub listing: Option<Arc<Listing>>,
    pub held: Arc<[HeldItem]>,
}

impl ModuleOffer {
    /// Takes everything that the source lists now.
    pub fn whole(rule: ModuleRule) -> Self {
        let listing = rule.source.listing();
        Self { rule, listing, held: [].into() }
    }

    /// Returns `true` if both contribute the same to a catalog. Parts are compared by pointer, so an equal but rebuilt
    /// part counts as different.
    pub(crate) fn is_equivalent(&self, other: &Self) -> bool {
        let (old, new) = (&self.rule, &other.rule);
        let same_listing = match (&self.listing, &other.listing) {
            (Some(old), Some(new)) => Arc::ptr_eq(old, new),
            (old, new) => old.is_none() && new.is_none(),
        };
        same_listing
            && self.held == other.held
            && Arc::ptr_eq(&old.source, &new.source)
            && Arc::ptr_eq(&old.selection, &new.selection)
            && Arc::ptr_eq(&old.about, &new.about)
            && old.description == new.description
            && (old.registered, old.origin, old.pins) == (new.registered, new.origin, new.pins)
            && (old.policy, old.resources) == (new.policy, new.resources)
    }
}

/// A tool that is hidden from all callers, as its source lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldItem {
    pub item: ListItem,
    pub why: HoldReason,
}

/// A held tool in a catalog. Its names are reserved, so that calls get the reason and no other tool takes its name.
#[derive(Clone, Debug)]
pub struct HeldTool {
    pub key: ToolKey,
    /// Name after the module's own override.
    pub name: Arc<str>,
    /// Names that the `direct` surface would list.
    pub direct: DirectNames,
    pub why: HoldReason,
}

impl HeldTool {
    pub(crate) fn read(rule: &ModuleRule, held: &HeldItem) -> Self {
        let own = &held.item.name;
        let change = rule.selection.override_of(&rule.name, own);
        let name: Arc<str> =
            change.and_then(|change| change.name.as_deref()).map_or_else(|| Arc::clone(own), Arc::from);
        let key = ToolKey::new(Arc::clone(&rule.name), Arc::clone(own));
        Self { key, direct: DirectNames::plain(&name), name, why: held.why }
    }

    pub(crate) fn disabled_reason(&self) -> DisabledReason {
        DisabledReason::Held { key: self.key.clone(), why: self.why }
    }

    pub(crate) fn matches(&self, name: &ToolRef) -> bool {
        name.matches(&self.key.module, &self.key.tool)
    }
}
