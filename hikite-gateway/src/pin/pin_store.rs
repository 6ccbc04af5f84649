//! Approved tool definitions compared with the definitions that servers offer now. The comparison runs again whenever
//! either side changes.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use hikite_core::catalog::ModuleRule;
use hikite_core::json::Raw;
use hikite_core::key::ToolKey;
use hikite_core::listing::{ListItem, Listing};
use hikite_core::offer::{HeldItem, ModuleOffer};
use hikite_core::pin::{self, HoldReason, Pinning};

#[derive(Debug, Default)]
pub(crate) struct PinStore {
    approved: BTreeMap<ToolKey, ToolPin>,
    modules: HashMap<Arc<str>, ModuleCheck>,
    /// Pins created on first sight and not persisted yet.
    unsaved: Vec<(ToolKey, Raw)>,
    /// Tools that only single sessions are offered, listed for the administrator.
    session_tools: BTreeMap<ToolKey, OfferedDefinition>,
    /// Incremented with every change of the approvals.
    revision: u64,
}

/// Maximum number of tools of single sessions.
const SESSION_TOOLS: usize = 1000;

/// Decision about a tool, made by an administrator or on first sight.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ToolPin {
    /// Hash of the approved definition; empty if none was approved.
    pub(crate) hash: Arc<str>,
    pub(crate) blocked: bool,
    /// Time of the decision, in milliseconds since 1970.
    pub(crate) at: u64,
}

/// A module's listing when it was last checked, and the result.
#[derive(Debug)]
struct ModuleCheck {
    pins: Pinning,
    revision: u64,
    listing: Option<Arc<Listing>>,
    seen: BTreeMap<Arc<str>, OfferedDefinition>,
    shown: Option<Arc<Listing>>,
    held: Arc<[HeldItem]>,
}

/// A tool as its server offers it now.
#[derive(Clone, Debug)]
pub(crate) struct OfferedDefinition {
    pub(crate) definition: Raw,
    pub(crate) hash: Arc<str>,
}

impl PinStore {
    /// Checks all modules and returns their offers to the catalog.
    pub(crate) fn check_modules<'a>(
        &mut self,
        rules: impl Iterator<Item = &'a ModuleRule>,
        now: u64,
    ) -> Vec<ModuleOffer> {
        let mut before = std::mem::take(&mut self.modules);
        let offer = |rule: &ModuleRule| match rule.pins {
            Pinning::Off => ModuleOffer::whole(rule.clone()),
            _ => self.check_module(rule, before.remove(&rule.name), now),
        };
        rules.map(offer).collect()
    }

    fn check_module(&mut self, rule: &ModuleRule, before: Option<ModuleCheck>, now: u64) -> ModuleOffer {
        let listing = rule.source.listing();
        let same_listing = |check: &ModuleCheck| match (&check.listing, &listing) {
            (Some(old), Some(new)) => Arc::ptr_eq(old, new),
            (old, new) => old.is_none() && new.is_none(),
        };
        let check = match before {
            Some(check) if check.pins == rule.pins && check.revision == self.revision && same_listing(&check) => check,
            before => self.check_listing(rule, listing, before.as_ref(), now),
        };
        let offer = ModuleOffer { rule: rule.clone(), listing: check.shown.clone(), held: Arc::clone(&check.held) };
        self.modules.insert(Arc::clone(&rule.name), check);
        offer
    }

    /// Checks the listing that one session alone is offered, and returns the module's offer to that session's
    /// catalog.
    pub(crate) fn check_session_listing(&mut self, rule: &ModuleRule, listing: &Arc<Listing>, now: u64) -> ModuleOffer {
        if rule.pins == Pinning::Off {
            let held = [].into();
            return ModuleOffer { rule: rule.clone(), listing: Some(Arc::clone(listing)), held };
        }
        let common = self.modules.remove(&rule.name);
        let check = self.check_listing(rule, Some(Arc::clone(listing)), common.as_ref(), now);
        let is_common = |tool: &Arc<str>| common.as_ref().is_some_and(|common| common.seen.contains_key(tool));
        for (tool, seen) in check.seen.into_iter().filter(|(tool, _)| !is_common(tool)) {
            self.session_tools.insert(ToolKey::new(Arc::clone(&rule.name), tool), seen);
            if self.session_tools.len() > SESSION_TOOLS {
                self.session_tools.pop_first();
            }
        }
        self.modules.extend(common.map(|common| (Arc::clone(&rule.name), common)));
        ModuleOffer { rule: rule.clone(), listing: check.shown, held: check.held }
    }

    fn check_listing(
        &mut self,
        rule: &ModuleRule,
        listing: Option<Arc<Listing>>,
        before: Option<&ModuleCheck>,
        now: u64,
    ) -> ModuleCheck {
        let known = |item: &ListItem| {
            let seen = before?.seen.get(&item.name)?;
            (seen.definition == item.raw).then(|| seen.clone())
        };
        let (mut seen, mut held) = (BTreeMap::new(), Vec::new());
        for item in listing.iter().flat_map(|listing| &listing.tools) {
            let offered = known(item).unwrap_or_else(|| OfferedDefinition {
                definition: item.raw.clone(),
                hash: pin::hash(&item.raw).into(),
            });
            let key = ToolKey::new(Arc::clone(&rule.name), Arc::clone(&item.name));
            if let Some(why) = self.hold_reason(&key, &offered, rule.pins, now) {
                held.push(HeldItem { item: item.clone(), why });
            }
            seen.insert(Arc::clone(&item.name), offered);
        }
        let shown = match &listing {
            Some(listing) if !held.is_empty() => {
                let stays = |item: &&ListItem| held.iter().all(|held| held.item.name != item.name);
                let tools = listing.tools.iter().filter(stays).cloned().collect();
                Some(Arc::new(Listing { tools, ..Listing::clone(listing) }))
            }
            other => other.clone(),
        };
        if listing.is_none() {
            held = self.blocked_of(&rule.name);
        } else {
            log_newly_held(rule, &held, before.map_or(&[], |before| &before.held));
        }
        ModuleCheck { pins: rule.pins, revision: self.revision, listing, seen, shown, held: held.into() }
    }

    /// Returns the reason to hold a tool back, if any. A tool seen for the first time is pinned, unless pinning is
    /// strict.
    fn hold_reason(
        &mut self,
        key: &ToolKey,
        offered: &OfferedDefinition,
        pins: Pinning,
        now: u64,
    ) -> Option<HoldReason> {
        match self.approved.get(key) {
            Some(pin) if pin.blocked => Some(HoldReason::Blocked),
            Some(pin) => (pin.hash != offered.hash).then_some(HoldReason::Changed),
            None if pins == Pinning::Strict => Some(HoldReason::New),
            None => {
                let pin = ToolPin { hash: Arc::clone(&offered.hash), blocked: false, at: now };
                self.approved.insert(key.clone(), pin);
                self.unsaved.push((key.clone(), pin::pinned(&offered.definition).copied()));
                None
            }
        }
    }

    /// Returns the blocked tools of a module whose listing is not known yet.
    fn blocked_of(&self, module: &str) -> Vec<HeldItem> {
        let first = ToolKey::new(module, "");
        let own = self.approved.range(first..).take_while(|(key, _)| *key.module == *module);
        let held = |(key, _): (&ToolKey, &ToolPin)| HeldItem {
            item: ListItem { name: Arc::clone(&key.tool), raw: Raw::empty_object() },
            why: HoldReason::Blocked,
        };
        own.filter(|(_, pin)| pin.blocked).map(held).collect()
    }

    pub(crate) fn pin(&self, key: &ToolKey) -> Option<&ToolPin> {
        self.approved.get(key)
    }

    pub(crate) fn seen(&self, key: &ToolKey) -> Option<&OfferedDefinition> {
        let common = self.modules.get(&key.module).and_then(|check| check.seen.get(&key.tool));
        common.or_else(|| self.session_tools.get(key))
    }

    /// Returns the pinning rule of a module; `Off` for an unknown one.
    pub(crate) fn rule(&self, module: &str) -> Pinning {
        self.modules.get(module).map(|check| check.pins).unwrap_or_default()
    }

    /// Returns the keys of all pinned or offered tools, sorted.
    pub(crate) fn keys(&self) -> Vec<ToolKey> {
        let offered = self.modules.iter().flat_map(|(module, check)| {
            check.seen.keys().map(|tool| ToolKey::new(Arc::clone(module), Arc::clone(tool)))
        });
        let session_tools = self.session_tools.keys().cloned();
        let mut keys: Vec<ToolKey> = self.approved.keys().cloned().chain(offered).chain(session_tools).collect();
        keys.sort_unstable();
        keys.dedup();
        keys
    }

    /// Applies decisions of an administrator.
    pub(crate) fn set(&mut self, decided: impl IntoIterator<Item = (ToolKey, ToolPin)>) {
        for (key, pin) in decided {
            self.unsaved.retain(|(unsaved, _)| *unsaved != key);
            self.approved.insert(key, pin);
        }
        self.revision += 1;
    }

    /// Returns `true` if the stored pins differ from memory. Pins that are not persisted yet are expected to be
    /// missing from the store.
    pub(crate) fn differs_from(&mut self, stored: &BTreeMap<ToolKey, ToolPin>) -> bool {
        self.unsaved.retain(|(key, _)| !stored.contains_key(key));
        self.approved.len() != stored.len() + self.unsaved.len()
            || stored.iter().any(|(key, pin)| self.approved.get(key) != Some(pin))
    }

    pub(crate) fn take(&mut self, stored: BTreeMap<ToolKey, ToolPin>) {
        let before = std::mem::replace(&mut self.approved, stored);
        self.unsaved.retain(|(key, _)| !self.approved.contains_key(key));
        for (key, _) in &self.unsaved {
            if let Some(pin) = before.get(key) {
                self.approved.insert(key.clone(), pin.clone());
            }
        }
        self.revision += 1;
    }

    /// Returns the pins to persist. They stay until `written` confirms them.
    pub(crate) fn unsaved(&self) -> Vec<(ToolKey, ToolPin, Raw)> {
        let whole = |(key, definition): &(ToolKey, Raw)| {
            Some((key.clone(), self.approved.get(key)?.clone(), definition.clone()))
        };
        self.unsaved.iter().filter_map(whole).collect()
    }

    pub(crate) fn written(&mut self, written: &[(ToolKey, ToolPin, Raw)]) {
        let keys: HashSet<&ToolKey> = written.iter().map(|(key, ..)| key).collect();
        self.unsaved.retain(|(key, _)| !keys.contains(key));
    }
}

/// Logs every tool that is newly held back, once.
fn log_newly_held(rule: &ModuleRule, held: &[HeldItem], before: &[HeldItem]) {
    for HeldItem { item, why } in held.iter().filter(|held| !before.contains(held)) {
        let (module, tool) = (&*rule.name, &*item.name);
        tracing::warn!(module, tool, "held back: the tool {}; see `hikite pin list`", why.reason());
    }
}
