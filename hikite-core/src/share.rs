//! Shares of what everybody uses: places in all, places that one holder may take, and who gives way when they run out.
//! Pure: the time is an argument, nothing waits here and nothing is locked.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use crate::caller::{Caller, Scopes};
use crate::error::{Error, Kind};

/// Below this many places none is set aside for admins.
const FEW: usize = 3;
/// One place of so many is set aside for admins.
const SET_ASIDE: usize = 16;
/// When somebody who holds too much may come back.
const RETRY_AFTER: Duration = Duration::from_secs(5);
/// Longer names are cut: a name is a key and a label.
const NAME_CHARS: usize = 256;

/// Bounds of one kind of thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allowance {
    /// Places in all.
    pub all: usize,
    /// Places of one holder.
    pub each: usize,
    /// Places of `all` that only privileged holders may take.
    pub reserved: usize,
}

impl Allowance {
    /// `all` places, of which one holder may take `percent`, and some only an admin.
    pub fn of(all: usize, percent: usize) -> Self {
        let each = Self::part(all, percent);
        let reserved = if all < FEW { 0 } else { (all / SET_ASIDE).max(1) };
        Self { all, each, reserved }
    }

    /// The allowance where nobody is known to be an admin yet.
    #[must_use]
    pub fn without_reserve(self) -> Self {
        Self { reserved: 0, ..self }
    }

    /// One holder's part of `all`, which is never nothing.
    pub fn part(all: usize, percent: usize) -> usize {
        let part = (all as u128 * percent.min(100) as u128) / 100;
        usize::try_from(part).unwrap_or(all).max(1)
    }
}

/// A holder of places: a caller by its subject, however many tokens it has, or an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShareHolder {
    pub name: Arc<str>,
    /// An admin is not held to a share, and may take the places that are set aside.
    pub privileged: bool,
}

impl ShareHolder {
    /// An address, or whatever else a stranger is known by.
    pub fn stranger(name: impl Into<Arc<str>>) -> Self {
        Self { name: name.into(), privileged: false }
    }
}

impl From<&Caller> for ShareHolder {
    fn from(caller: &Caller) -> Self {
        let name = match caller.subject.char_indices().nth(NAME_CHARS) {
            Some((end, _)) => Arc::from(&caller.subject[..end]),
            None => Arc::clone(&caller.subject),
        };
        Self { name, privileged: caller.scopes.contains(Scopes::ADMIN) }
    }
}

/// Why a place was not given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Full {
    /// The holder has its share.
    Share,
    /// All places are taken.
    All,
}

impl Full {
    /// The public error. `things` is the plural, `limit` the member of `limits`.
    pub fn error(self, things: &str, limit: &str) -> Error {
        match self {
            Self::Share => {
                Error::new(Kind::RateLimit, format!("this caller has too many {things}")).hint(format!(
                    "finish or close some of them, then try again; one caller may have the part of \
                     `limits.{limit}` that `limits.caller_share` says"
                ))
            }
            Self::All => Error::new(Kind::Overloaded, format!("there are too many {things}"))
                .hint(format!("try again in a moment; `limits.{limit}` is the limit")),
        }
        .after(RETRY_AFTER)
    }
}

/// The place that was given, and the one that gave way for it.
#[derive(Debug, PartialEq, Eq)]
pub struct Taken<V> {
    pub number: u64,
    pub out: Option<Evicted<V>>,
}

/// A place that its holder lost.
#[derive(Debug, PartialEq, Eq)]
pub struct Evicted<V> {
    pub holder: Arc<str>,
    pub number: u64,
    pub value: V,
}

/// The holders and their places. `V` is whatever the owner of the table wants to see again when a place gives way.
#[derive(Debug)]
pub struct Shares<V> {
    allowance: Allowance,
    total: usize,
    next: u64,
    holders: HashMap<Arc<str>, Held<V>>,
}

#[derive(Debug)]
struct Held<V> {
    places: HashMap<u64, (Duration, V)>,
    /// By a time since which each place may have been idle: never later than the true one, corrected when looked at.
    order: BTreeSet<(Duration, u64)>,
}

impl<V> Default for Held<V> {
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

    /// Takes a place. Where the holder has its share, a place of its own gives way; where all are taken, one of whoever
    /// holds most. `idle_since` says since when a place has been idle (`None`: it is in use, or must stay), and is told
    /// whether it is the taker's own.
    pub fn take(
        &mut self,
        holder: &ShareHolder,
        value: V,
        now: Duration,
        idle_since: impl Fn(&V, bool) -> Option<Duration>,
    ) -> Result<Taken<V>, Full> {
        let out = match self.look(holder) {
            Ok(()) => None,
            Err(Full::Share) => {
                let number = self.oldest(&holder.name, now, |value| idle_since(value, true));
                Some((Arc::clone(&holder.name), number.ok_or(Full::Share)?))
            }
            Err(Full::All) => Some(self.victim(holder, now, idle_since).ok_or(Full::All)?),
        };
        let out = out.and_then(|(holder, number)| {
            self.free(&holder, number).map(|value| Evicted { holder, number, value })
        });
        self.next += 1;
        let held = self.holders.entry(Arc::clone(&holder.name)).or_default();
        held.places.insert(self.next, (now, value));
        held.order.insert((now, self.next));
        self.total += 1;
        Ok(Taken { number: self.next, out })
    }

    /// True if a place is free for this holder.
    pub fn look(&self, holder: &ShareHolder) -> Result<(), Full> {
        if !holder.privileged && self.held(&holder.name) >= self.allowance.each {
            return Err(Full::Share);
        }
        let reserved = if holder.privileged { 0 } else { self.allowance.reserved };
        if self.total >= self.allowance.all.saturating_sub(reserved) { Err(Full::All) } else { Ok(()) }
    }

    /// Gives a place back; what was kept with it, if it had not given way before.
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

    /// Everything that is kept with a place, in no order.
    pub fn values(&self) -> impl Iterator<Item = &V> {
        self.holders.values().flat_map(|held| held.places.values().map(|(_, value)| value))
    }

    /// The holders of most places, at most `count` of them.
    pub fn top(&self, count: usize) -> Vec<(Arc<str>, usize)> {
        let mut all: Vec<(Arc<str>, usize)> =
            self.holders.iter().map(|(name, held)| (Arc::clone(name), held.places.len())).collect();
        all.sort_by(|one, other| other.1.cmp(&one.1).then_with(|| one.0.cmp(&other.0)));
        all.truncate(count);
        all
    }

    /// The longest idle place of whoever holds most: of somebody with more than the taker, or of the taker itself.
    fn victim(
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
            .map(|(name, held)| {
                (held.places.len(), held.order.first().map(|(since, _)| *since), Arc::clone(name))
            })
            .collect();
        candidates.sort_unstable_by(|one, other| other.0.cmp(&one.0).then_with(|| one.1.cmp(&other.1)));
        candidates.into_iter().find_map(|(_, _, name)| {
            let is_own = name == holder.name;
            let number = self.oldest(&name, now, |value| idle_since(value, is_own))?;
            Some((name, number))
        })
    }

    /// The place of a holder that has been idle for longest.
    fn oldest(
        &mut self,
        name: &str,
        now: Duration,
        idle_since: impl Fn(&V) -> Option<Duration>,
    ) -> Option<u64> {
        let held = self.holders.get_mut(name)?;
        // Each is looked at once, and once more at the place in the order that it then gets.
        for _ in 0..held.order.len() * 2 {
            let (since, number) = *held.order.first()?;
            let (kept, value) = held.places.get_mut(&number)?;
            let actual = idle_since(value);
            if actual.is_some_and(|actual| actual <= since) {
                return Some(number);
            }
            // One that is in use stands behind all that are idle.
            let later = actual.unwrap_or(now).max(since + Duration::from_nanos(1));
            *kept = later;
            held.order.remove(&(since, number));
            held.order.insert((later, number));
        }
        None
    }
}

#[cfg(test)]
mod tests;
