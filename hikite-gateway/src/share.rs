//! Limited slots shared fairly among callers: `hikite_core::share` behind a lock. A slot is released on drop; waiting
//! callers are served by how few slots they hold.

mod usage;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use hikite_core::error::Error;
use hikite_core::share::{Allowance, Full, ShareHolder, Shares};
use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::time::Instant;

pub use usage::{Usage, metrics};

/// Maximum number of callers counted by name; later ones are counted together.
const NAMES: usize = 64;
const OTHERS: &str = "(others)";

/// The slots of one resource.
#[derive(Debug)]
pub struct Places<V>(Arc<Inner<V>>);

#[derive(Debug)]
struct Inner<V> {
    kind: PlaceKind,
    started: Instant,
    state: Mutex<State<V>>,
}

/// The resource that slots are for.
#[derive(Clone, Copy, Debug)]
pub struct PlaceKind {
    /// Unique label in metrics.
    pub resource: &'static str,
    /// Name of the member of `limits`.
    pub limit: &'static str,
    /// Plural noun for error messages.
    pub things: &'static str,
}

#[derive(Debug)]
struct State<V> {
    shares: Shares<V>,
    waiting: Vec<Waiter<V>>,
    refused: Tally,
    evicted: Tally,
}

#[derive(Debug)]
struct Waiter<V> {
    holder: ShareHolder,
    value: V,
    turn: oneshot::Sender<Place<V>>,
}

/// A slot, released on drop.
#[derive(Debug)]
pub struct Place<V> {
    inner: Arc<Inner<V>>,
    name: Arc<str>,
    number: u64,
}

/// Event counts by caller.
#[derive(Debug, Default)]
pub(crate) struct Tally(HashMap<Arc<str>, u64>);

impl Tally {
    pub(crate) fn count(&mut self, name: &Arc<str>) {
        let is_known = self.0.contains_key(name) || self.0.len() < NAMES;
        let name = if is_known { Arc::clone(name) } else { Arc::from(OTHERS) };
        *self.0.entry(name).or_default() += 1;
    }
}

impl<V> Clone for Places<V> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<V> Places<V> {
    pub fn new(kind: PlaceKind, allowance: Allowance) -> Self {
        let state = State {
            shares: Shares::new(allowance),
            waiting: Vec::new(),
            refused: Tally::default(),
            evicted: Tally::default(),
        };
        Self(Arc::new(Inner { kind, started: Instant::now(), state: Mutex::new(state) }))
    }

    /// Takes a slot and returns the value of the evicted slot, if any. `idle_since` returns since when a slot has
    /// been idle, or `None` if it must not be evicted; its second argument says whether the slot is the taker's own.
    pub fn take(
        &self,
        holder: &ShareHolder,
        value: V,
        idle_since: impl Fn(&V, bool) -> Option<Instant>,
    ) -> Result<(Place<V>, Option<V>), Error> {
        let since = |value: &V, own: bool| {
            idle_since(value, own).map(|at| at.saturating_duration_since(self.0.started))
        };
        let mut state = self.0.state.lock();
        match state.shares.take(holder, value, self.0.started.elapsed(), since) {
            Ok(taken) => {
                let out = taken.out.map(|out| {
                    state.evicted.count(&out.holder);
                    out.value
                });
                Ok((self.place(holder, taken.number), out))
            }
            Err(full) => {
                state.refused.count(&holder.name);
                Err(self.refusal(holder, full))
            }
        }
    }

    /// Takes a slot without evicting another.
    pub fn take_free(&self, holder: &ShareHolder, value: V) -> Result<Place<V>, Error> {
        self.take(holder, value, |_, _| None).map(|(place, _)| place)
    }

    /// Visits the values of all slots.
    pub fn for_each(&self, look: impl FnMut(&V)) {
        self.0.state.lock().shares.values().for_each(look);
    }

    /// Returns the number of taken slots.
    pub fn total(&self) -> usize {
        self.0.state.lock().shares.total()
    }

    fn place(&self, holder: &ShareHolder, number: u64) -> Place<V> {
        Place { inner: Arc::clone(&self.0), name: Arc::clone(&holder.name), number }
    }

    fn refusal(&self, holder: &ShareHolder, full: Full) -> Error {
        let PlaceKind { resource, limit, things } = self.0.kind;
        tracing::debug!(caller = &*holder.name, resource, "a place was refused");
        full.error(things, limit)
    }
}

impl<V: Send + 'static> Places<V> {
    /// Waits for a slot. The caller with the fewest slots is served first, then the first to arrive.
    pub async fn wait(&self, holder: &ShareHolder, value: V, within: Duration) -> Result<Place<V>, Error> {
        let turn = {
            let mut state = self.0.state.lock();
            if state.waiting.is_empty() && state.shares.look(holder).is_ok() {
                let now = self.0.started.elapsed();
                if let Ok(taken) = state.shares.take(holder, value, now, |_, _| None) {
                    return Ok(self.place(holder, taken.number));
                }
                return Err(self.refusal(holder, Full::All));
            }
            let (sender, turn) = oneshot::channel();
            state.waiting.push(Waiter { holder: holder.clone(), value, turn: sender });
            turn
        };
        // A waiter may be limited by its own share while other slots are free.
        self.0.serve();
        if let Ok(Ok(place)) = tokio::time::timeout(within, turn).await {
            return Ok(place);
        }
        let mut state = self.0.state.lock();
        state.waiting.retain(|waiter| !waiter.turn.is_closed());
        state.refused.count(&holder.name);
        let full = state.shares.look(holder).err().unwrap_or(Full::All);
        Err(self.refusal(holder, full))
    }
}

impl<V> Inner<V> {
    /// Hands free slots to waiters.
    fn serve(self: &Arc<Self>) {
        while let Some((turn, place)) = self.next() {
            // Outside the lock: a slot whose waiter has gone is released at once.
            drop(turn.send(place));
        }
    }

    fn next(self: &Arc<Self>) -> Option<(oneshot::Sender<Place<V>>, Place<V>)> {
        let mut state = self.state.lock();
        let State { shares, waiting, .. } = &mut *state;
        waiting.retain(|waiter| !waiter.turn.is_closed());
        let fits = waiting.iter().enumerate().filter(|(_, waiter)| shares.look(&waiter.holder).is_ok());
        let (at, _) = fits.min_by_key(|(at, waiter)| (shares.held(&waiter.holder.name), *at))?;
        let Waiter { holder, value, turn } = waiting.remove(at);
        let taken = shares.take(&holder, value, self.started.elapsed(), |_, _| None).ok()?;
        Some((turn, Place { inner: Arc::clone(self), name: holder.name, number: taken.number }))
    }
}

impl<V> Drop for Place<V> {
    fn drop(&mut self) {
        let (value, somebody_waits) = {
            let mut state = self.inner.state.lock();
            (state.shares.free(&self.name, self.number), !state.waiting.is_empty())
        };
        if somebody_waits {
            self.inner.serve();
        }
        // Outside the lock: the value may be large, or notify others on drop.
        drop(value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIND: PlaceKind = PlaceKind { resource: "jq", limit: "jq_processes", things: "programs in jq" };
    const MOMENT: Duration = Duration::from_secs(1);

    fn places(all: usize, percent: usize) -> Places<()> {
        Places::new(KIND, Allowance::of(all, percent))
    }

    fn owner() -> ShareHolder {
        ShareHolder { name: "owner".into(), privileged: true }
    }

    #[tokio::test(start_paused = true)]
    async fn who_holds_least_is_served_first() {
        let places = places(2, 100);
        let (greedy, modest) = (ShareHolder::stranger("greedy"), ShareHolder::stranger("modest"));
        let held = places.wait(&greedy, (), MOMENT).await.expect("free");
        let other = places.wait(&greedy, (), MOMENT).await.expect("free");
        let (first, second) = tokio::join!(async { places.wait(&greedy, (), MOMENT).await }, async {
            let waiting = places.wait(&modest, (), MOMENT);
            let freed = async {
                tokio::time::sleep(MOMENT / 2).await;
                drop(other);
            };
            tokio::join!(waiting, freed).0
        });
        assert!(first.is_err() && second.is_ok(), "it came first, and holds one already");
        drop((held, second));
        assert_eq!(places.total(), 0);
        assert_eq!(places.usage().refused, [(Arc::from("greedy"), 1)]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_flood_leaves_a_place_for_an_admin_and_nothing_leaks() {
        let places = places(4, 50);
        let flood: Vec<_> =
            (0..6).map(|number| ShareHolder::stranger(if number % 2 == 0 { "a" } else { "b" })).collect();
        let mut held = Vec::new();
        for holder in &flood {
            held.extend(places.wait(holder, (), MOMENT).await.ok());
        }
        assert_eq!(held.len(), 3, "two of one, one of the other, one is set aside");
        let place = places.wait(&owner(), (), MOMENT).await.expect("set aside");
        // A cancelled waiter leaves nothing behind.
        let given_up = tokio::time::timeout(MOMENT / 10, places.wait(&flood[0], (), MOMENT)).await;
        assert!(given_up.is_err());
        drop((held, place));
        assert_eq!(places.total(), 0);
        assert!(places.wait(&flood[0], (), MOMENT).await.is_ok());
    }

    #[test]
    fn names_that_are_counted_have_an_end() {
        let mut tally = Tally::default();
        for number in 0..NAMES * 3 {
            tally.count(&Arc::from(number.to_string()));
        }
        assert_eq!(tally.0.len(), NAMES + 1);
        assert_eq!(tally.0.get(OTHERS), Some(&(NAMES as u64 * 2)));
    }
}
