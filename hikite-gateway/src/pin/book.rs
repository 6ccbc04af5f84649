//! Approved tool definitions compared with the definitions that servers offer now. The comparison runs again whenever
//! either side changes.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use hikite_core::catalog::ModuleRule;
use hikite_core::json::Raw;
use hikite_core::key::ToolKey;
use hikite_core::listing::{Item, Listing};
use hikite_core::offer::{Held, Offer};
use hikite_core::pin::{self, Pinning, Why};

#[derive(Debug, Default)]
pub(crate) struct Book {
    approved: BTreeMap<ToolKey, Pin>,
    modules: HashMap<Arc<str>, Judged>,
    /// Pins created on first sight and not persisted yet.
    fresh: Vec<(ToolKey, Raw)>,
    /// Tools that only single sessions are offered, listed for the administrator.
    elsewhere: BTreeMap<ToolKey, Seen>,
    /// Incremented with every change of the approvals.
    revision: u64,
}

/// Maximum number of tools of single sessions.
const ELSEWHERE: usize = 1000;

/// Decision about a tool, made by an administrator or on first sight.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pin {
    /// Hash of the approved definition; empty if none was approved.
    pub(crate) hash: Arc<str>,
    pub(crate) blocked: bool,
    /// Time of the decision, in milliseconds since 1970.
    pub(crate) at: u64,
}

/// A module's listing when it was last checked, and the result.
#[derive(Debug)]
struct Judged {
    pins: Pinning,
    revision: u64,
    listing: Option<Arc<Listing>>,
    seen: BTreeMap<Arc<str>, Seen>,
    shown: Option<Arc<Listing>>,
    held: Arc<[Held]>,
}

/// A tool as its server offers it now.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) definition: Raw,
    pub(crate) hash: Arc<str>,
}

impl Book {
    /// Checks all modules and returns their offers to the catalog.
    pub(crate) fn judge<'a>(&mut self, rules: impl Iterator<Item = &'a ModuleRule>, now: u64) -> Vec<Offer> {
        let mut before = std::mem::take(&mut self.modules);
        let offer = |rule: &ModuleRule| match rule.pins {
            Pinning::Off => Offer::whole(rule.clone()),
            _ => self.judge_module(rule, before.remove(&rule.name), now),
        };
        rules.map(offer).collect()
    }

    fn judge_module(&mut self, rule: &ModuleRule, before: Option<Judged>, now: u64) -> Offer {
        let listing = rule.source.listing();
        let same_listing = |judged: &Judged| match (&judged.listing, &listing) {
            (Some(old), Some(new)) => Arc::ptr_eq(old, new),
            (old, new) => old.is_none() && new.is_none(),
        };
        let judged = match before {
            Some(judged)
                if judged.pins == rule.pins && judged.revision == self.revision && same_listing(&judged) =>
            {
                judged
            }
            before => self.judge_listing(rule, listing, before.as_ref(), now),
        };
        let offer =
            Offer { rule: rule.clone(), listing: judged.shown.clone(), held: Arc::clone(&judged.held) };
        self.modules.insert(Arc::clone(&rule.name), judged);
        offer
    }

    /// Checks the listing that one session alone is offered, and returns the module's offer to that session's
    /// catalog.
    pub(crate) fn judge_own(&mut self, rule: &ModuleRule, listing: &Arc<Listing>, now: u64) -> Offer {
        if rule.pins == Pinning::Off {
            let held = [].into();
            return Offer { rule: rule.clone(), listing: Some(Arc::clone(listing)), held };
        }
        let common = self.modules.remove(&rule.name);
        let judged = self.judge_listing(rule, Some(Arc::clone(listing)), common.as_ref(), now);
        let is_common =
            |tool: &Arc<str>| common.as_ref().is_some_and(|common| common.seen.contains_key(tool));
        for (tool, seen) in judged.seen.into_iter().filter(|(tool, _)| !is_common(tool)) {
            self.elsewhere.insert(ToolKey::new(Arc::clone(&rule.name), tool), seen);
            if self.elsewhere.len() > ELSEWHERE {
                self.elsewhere.pop_first();
            }
        }
        self.modules.extend(common.map(|common| (Arc::clone(&rule.name), common)));
        Offer { rule: rule.clone(), listing: judged.shown, held: judged.held }
    }

    fn judge_listing(
        &mut self,
        rule: &ModuleRule,
        listing: Option<Arc<Listing>>,
        before: Option<&Judged>,
        now: u64,
    ) -> Judged {
        let known = |item: &Item| {
            let seen = before?.seen.get(&item.name)?;
            (seen.definition == item.raw).then(|| seen.clone())
        };
        let (mut seen, mut held) = (BTreeMap::new(), Vec::new());
        for item in listing.iter().flat_map(|listing| &listing.tools) {
            let offered = known(item)
                .unwrap_or_else(|| Seen { definition: item.raw.clone(), hash: pin::hash(&item.raw).into() });
            let key = ToolKey::new(Arc::clone(&rule.name), Arc::clone(&item.name));
            if let Some(why) = self.verdict(&key, &offered, rule.pins, now) {
                held.push(Held { item: item.clone(), why });
            }
            seen.insert(Arc::clone(&item.name), offered);
        }
        let shown = match &listing {
            Some(listing) if !held.is_empty() => {
                let stays = |item: &&Item| held.iter().all(|held| held.item.name != item.name);
                let tools = listing.tools.iter().filter(stays).cloned().collect();
                Some(Arc::new(Listing { tools, ..Listing::clone(listing) }))
            }
            other => other.clone(),
        };
        if listing.is_none() {
            held = self.blocked_of(&rule.name);
        } else {
            tell_news(rule, &held, before.map_or(&[], |before| &before.held));
        }
        Judged { pins: rule.pins, revision: self.revision, listing, seen, shown, held: held.into() }
    }

    /// Returns the reason to hold a tool back, if any. A tool seen for the first time is pinned, unless pinning is
    /// strict.
    fn verdict(&mut self, key: &ToolKey, offered: &Seen, pins: Pinning, now: u64) -> Option<Why> {
        match self.approved.get(key) {
            Some(pin) if pin.blocked => Some(Why::Blocked),
            Some(pin) => (pin.hash != offered.hash).then_some(Why::Changed),
            None if pins == Pinning::Strict => Some(Why::New),
            None => {
                let pin = Pin { hash: Arc::clone(&offered.hash), blocked: false, at: now };
                self.approved.insert(key.clone(), pin);
                self.fresh.push((key.clone(), pin::pinned(&offered.definition).copied()));
                None
            }
        }
    }

    /// Returns the blocked tools of a module whose listing is not known yet.
    fn blocked_of(&self, module: &str) -> Vec<Held> {
        let first = ToolKey::new(module, "");
        let own = self.approved.range(first..).take_while(|(key, _)| *key.module == *module);
        let held = |(key, _): (&ToolKey, &Pin)| Held {
            item: Item { name: Arc::clone(&key.tool), raw: Raw::empty_object() },
            why: Why::Blocked,
        };
        own.filter(|(_, pin)| pin.blocked).map(held).collect()
    }

    pub(crate) fn pin(&self, key: &ToolKey) -> Option<&Pin> {
        self.approved.get(key)
    }

    pub(crate) fn seen(&self, key: &ToolKey) -> Option<&Seen> {
        let common = self.modules.get(&key.module).and_then(|judged| judged.seen.get(&key.tool));
        common.or_else(|| self.elsewhere.get(key))
    }

    /// Returns the pinning rule of a module; `Off` for an unknown one.
    pub(crate) fn rule(&self, module: &str) -> Pinning {
        self.modules.get(module).map(|judged| judged.pins).unwrap_or_default()
    }

    /// Returns the keys of all pinned or offered tools, sorted.
    pub(crate) fn keys(&self) -> Vec<ToolKey> {
        let offered = self.modules.iter().flat_map(|(module, judged)| {
            judged.seen.keys().map(|tool| ToolKey::new(Arc::clone(module), Arc::clone(tool)))
        });
        let elsewhere = self.elsewhere.keys().cloned();
        let mut keys: Vec<ToolKey> = self.approved.keys().cloned().chain(offered).chain(elsewhere).collect();
        keys.sort_unstable();
        keys.dedup();
        keys
    }

    /// Applies decisions of an administrator.
    pub(crate) fn set(&mut self, decided: impl IntoIterator<Item = (ToolKey, Pin)>) {
        for (key, pin) in decided {
            self.fresh.retain(|(fresh, _)| *fresh != key);
            self.approved.insert(key, pin);
        }
        self.revision += 1;
    }

    /// Returns `true` if the stored pins differ from memory. Pins that are not persisted yet are expected to be
    /// missing from the store.
    pub(crate) fn differs_from(&mut self, stored: &BTreeMap<ToolKey, Pin>) -> bool {
        self.fresh.retain(|(key, _)| !stored.contains_key(key));
        self.approved.len() != stored.len() + self.fresh.len()
            || stored.iter().any(|(key, pin)| self.approved.get(key) != Some(pin))
    }

    pub(crate) fn take(&mut self, stored: BTreeMap<ToolKey, Pin>) {
        let before = std::mem::replace(&mut self.approved, stored);
        self.fresh.retain(|(key, _)| !self.approved.contains_key(key));
        for (key, _) in &self.fresh {
            if let Some(pin) = before.get(key) {
                self.approved.insert(key.clone(), pin.clone());
            }
        }
        self.revision += 1;
    }

    /// Returns the pins to persist. They stay until `written` confirms them.
    pub(crate) fn fresh(&self) -> Vec<(ToolKey, Pin, Raw)> {
        let whole = |(key, definition): &(ToolKey, Raw)| {
            Some((key.clone(), self.approved.get(key)?.clone(), definition.clone()))
        };
        self.fresh.iter().filter_map(whole).collect()
    }

    pub(crate) fn written(&mut self, written: &[(ToolKey, Pin, Raw)]) {
        let keys: HashSet<&ToolKey> = written.iter().map(|(key, ..)| key).collect();
        self.fresh.retain(|(key, _)| !keys.contains(key));
    }
}

/// Logs every tool that is newly held back, once.
fn tell_news(rule: &ModuleRule, held: &[Held], before: &[Held]) {
    for Held { item, why } in held.iter().filter(|held| !before.contains(held)) {
        let (module, tool) = (&*rule.name, &*item.name);
        tracing::warn!(module, tool, "held back: the tool {}; see `hikite pin list`", why.reason());
    }
}
