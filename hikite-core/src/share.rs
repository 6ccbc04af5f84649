//! Fair sharing of limited capacity: a total number of places, a share per holder, and eviction when they run out.
//! Pure: the time is an argument; nothing waits and nothing is locked.

mod usage;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use crate::caller::{Caller, Scopes};
use crate::error::{Error, ErrorKind};
pub use usage::{CallerCounts, CallerTally, SlotUsage};

/// Smallest number of places from which some are reserved for admins.
const RESERVE_FROM_PLACES: usize = 3;
/// One in this many places is reserved for admins.
const PLACES_PER_RESERVED: usize = 16;
/// Suggested retry delay for a caller over its limit.
const RETRY_AFTER: Duration = Duration::from_secs(5);
/// Longest holder name, in characters. It serves as key and as label.
const NAME_CHARS_MAX: usize = 256;

/// Limits of one resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allowance {
    /// Places in total.
    pub all: usize,
    /// Places per holder.
    pub each: usize,
    /// Places of `all` that only privileged holders may take.
    pub reserved: usize,
}

impl Allowance {
    /// Computes limits: `all` places, `percent` of them per holder, and a reserve for admins.
    pub fn of(all: usize, percent: usize) -> Self {
        let each = Self::part(all, percent);
        let reserved = if all < RESERVE_FROM_PLACES { 0 } else { (all / PLACES_PER_RESERVED).max(1) };
        Self { all, each, reserved }
    }

    /// Removes the reserve, for callers that are not authenticated yet.
    #[must_use]
    pub fn without_reserve(self) -> Self {
        Self { reserved: 0, ..self }
    }

    /// Returns one holder's share of `all`, at least 1.
    pub fn part(all: usize, percent: usize) -> usize {
        let part = (all as u128 * percent.min(100) as u128) / 100;
        usize::try_from(part).unwrap_or(all).max(1)
    }
}

/// A holder of places: a caller by its subject, across all its tokens, or an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShareHolder {
    pub name: Arc<str>,
    /// Admins have no share limit and may take the reserved places.
    pub privileged: bool,
}

impl ShareHolder {
    /// Creates an unprivileged holder, identified by an address or similar.
    pub fn unprivileged(name: impl Into<Arc<str>>) -> Self {
        Self { name: name.into(), privileged: false }
    }
}

impl From<&Caller> for ShareHolder {
    fn from(caller: &Caller) -> Self {
        let name = match caller.subject.char_indices().nth(NAME_CHARS_MAX) {
            Some((end, _)) => Arc::from(&caller.subject[..end]),
            None => Arc::clone(&caller.subject),
        };
        Self { name, privileged: caller.scopes.contains(Scopes::ADMIN) }
    }
}

/// Reason why no place was available.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitExceeded {
    /// The holder has used up its share.
    Share,
    /// All places are taken.
    All,
}

impl LimitExceeded {
    /// Returns the public error. `things` is the plural noun, `limit` the member of `limits`.
    pub fn error(self, things: &str, limit: &str) -> Error {
        match self {
            Self::Share => Error::new(ErrorKind::RateLimit, format!("You have too many {things}.")).hint(format!(
                "Finish or close some of them, then try again. One caller may use the part of `limits.{limit}` \
                     that `limits.caller_share` sets."
            )),
            Self::All => Error::new(ErrorKind::Overloaded, format!("There are too many {things}."))
                .hint(format!("Try again in a moment. The limit is `limits.{limit}`.")),
        }
        .after(RETRY_AFTER)
    }
}

/// An acquired place, and the place that was evicted for it.
#[derive(Debug, PartialEq, Eq)]
pub struct AcquiredPlace<V> {
    pub number: u64,
    pub evicted: Option<EvictedPlace<V>>,
}

/// A place that its holder lost.
#[derive(Debug, PartialEq, Eq)]
pub struct EvictedPlace<V> {
    pub holder: Arc<str>,
    pub number: u64,
    pub value: V,
}

/// Holders and their places. `V` is a value stored with each place and returned on eviction.
#[derive(Debug)]
pub struct Shares<V> {
    allowance: Allowance,
    total: usize,
    next: u64,
    holders: HashMap<Arc<str>, HolderPlaces<V>>,
}

#[derive(Debug)]
struct HolderPlaces<V> {
    places: HashMap<u64, (Duration, V)>,
    /// Places by a lower bound of the time since which each has been idle; corrected on access.
    order: BTreeSet<(Duration, u64)>,
}

impl<V> Default for HolderPlaces<V> {
    fn default() -> Self {
        Self { places: HashMap::new(), order: BTreeSet::new() }
    }
}

impl<V> Shares<V> {
    pub fn new(allowance: Allowance) -> Self {
        Self { allowance, total: 0, next: 0, holders: HashMap::new() }
    }

    pub fn allowance(&self) -> Allowance {
        self.allowance
    }

    /// Takes a place. A holder over its share evicts one of its own places; if all are taken, the largest holder loses
    /// one. `idle_since` returns since when a place has been idle (`None` if it is in use or must stay); its second
    /// argument is `true` for a place of the taker.
    pub fn take(
        &mut self,
        holder: &ShareHolder,
        value: V,
        now: Duration,
        idle_since: impl Fn(&V, bool) -> Option<Duration>,
    ) -> Result<AcquiredPlace<V>, LimitExceeded> {
        let evicted = match self.look(holder) {
            Ok(()) => None,
            Err(LimitExceeded::Share) => {
                let number = self.longest_idle(&holder.name, now, |value| idle_since(value, true));
                Some((Arc::clone(&holder.name), number.ok_or(LimitExceeded::Share)?))
            }
            Err(LimitExceeded::All) => Some(self.find_eviction(holder, now, idle_since).ok_or(LimitExceeded::All)?),
        };
        let evicted = evicted.and_then(|(holder, number)| {
            self.free(&holder, number).map(|value| EvictedPlace { holder, number, value })
        });
        self.next += 1;
        let held = self.holders.entry(Arc::clone(&holder.name)).or_default();
        held.places.insert(self.next, (now, value));
        held.order.insert((now, self.next));
        self.total += 1;
        Ok(AcquiredPlace { number: self.next, evicted })
    }

    /// Checks that a place is free for this holder.
    pub fn look(&self, holder: &ShareHolder) -> Result<(), LimitExceeded> {
        if !holder.privileged && self.held(&holder.name) >= self.allowance.each {
            return Err(LimitExceeded::Share);
        }
        let reserved = if holder.privileged { 0 } else { self.allowance.reserved };
        if self.total >= self.allowance.all.saturating_sub(reserved) { Err(LimitExceeded::All) } else { Ok(()) }
    }

    /// Releases a place and returns its value, unless it was evicted before.
    pub fn free(&mut self, name: &str, number: u64) -> Option<V> {
        let held = self.holders.get_mut(name)?;
        let (since, value) = held.places.remove(&number)?;
        held.order.remove(&(since, number));
        if held.places.is_empty() {
            self.holders.remove(name);
        }
        self.total -= 1;
        Some(value)
    }

    pub fn held(&self, name: &str) -> usize {
        self.holders.get(name).map_or(0, |held| held.places.len())
    }

    pub fn total(&self) -> usize {
        self.total
    }

    /// Returns the values of all places, in no particular order.
    pub fn values(&self) -> impl Iterator<Item = &V> {
        self.holders.values().flat_map(|held| held.places.values().map(|(_, value)| value))
    }

    /// Returns the holders of most places, at most `count`.
    pub fn top(&self, count: usize) -> Vec<(Arc<str>, usize)> {
        let mut all: Vec<(Arc<str>, usize)> =
            self.holders.iter().map(|(name, held)| (Arc::clone(name), held.places.len())).collect();
        all.sort_by(|one, other| other.1.cmp(&one.1).then_with(|| one.0.cmp(&other.0)));
        all.truncate(count);
        all
    }

    /// Finds the longest idle place of the largest holder: one with more places than the taker, or the taker itself.
    fn find_eviction(
        &mut self,
        holder: &ShareHolder,
        now: Duration,
        idle_since: impl Fn(&V, bool) -> Option<Duration>,
    ) -> Option<(Arc<str>, u64)> {
        let own = self.held(&holder.name);
        let mut candidates: Vec<(usize, Option<Duration>, Arc<str>)> = self
            .holders
            .iter()
            .filter(|(name, held)| held.places.len() > own || **name == holder.name)
            .map(|(name, held)| (held.places.len(), held.order.first().map(|(since, _)| *since), Arc::clone(name)))
            .collect();
        candidates.sort_unstable_by(|one, other| other.0.cmp(&one.0).then_with(|| one.1.cmp(&other.1)));
        candidates.into_iter().find_map(|(_, _, name)| {
            let is_own = name == holder.name;
            let number = self.longest_idle(&name, now, |value| idle_since(value, is_own))?;
            Some((name, number))
        })
    }

    /// Returns the longest idle place of a holder.
    fn longest_idle(&mut self, name: &str, now: Duration, idle_since: impl Fn(&V) -> Option<Duration>) -> Option<u64> {
        let held = self.holders.get_mut(name)?;
        // Each place is looked at once, and at most once more after its time was corrected.
        for _ in 0..held.order.len() * 2 {
            let (since, number) = *held.order.first()?;
            let (idle_bound, value) = held.places.get_mut(&number)?;
            let actual = idle_since(value);
            if actual.is_some_and(|actual| actual <= since) {
                return Some(number);
            }
            // Places in use sort after all idle ones.
            let later = actual.unwrap_or(now).max(since + Duration::from_nanos(1));
            *idle_bound = later;
            held.order.remove(&(since, number));
            held.order.insert((later, number));
        }
        None
    }
}

#[cfg(test)]
mod tests;
