//! Limited slots shared fairly among callers: `hikite_core::share` behind a lock. A slot is released on drop; waiting
//! callers are served by how few slots they hold.

mod usage;

use std::sync::Arc;
use std::time::Duration;

use hikite_core::error::Error;
use hikite_core::share::{Allowance, CallerTally, LimitExceeded, ShareHolder, Shares};
use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::time::Instant;

pub use hikite_core::share::SlotUsage;
pub use usage::metrics;

/// The slots of one resource.
#[derive(Debug)]
pub struct SharedSlots<V>(Arc<SlotPool<V>>);

#[derive(Debug)]
struct SlotPool<V> {
    kind: SlotKind,
    started: Instant,
    state: Mutex<SlotPoolState<V>>,
}

/// The resource that slots are for.
#[derive(Clone, Copy, Debug)]
pub struct SlotKind {
    /// Unique label in metrics.
    pub resource: &'static str,
    /// Name of the member of `limits`.
    pub limit: &'static str,
    /// Plural noun for error messages.
    pub things: &'static str,
}

#[derive(Debug)]
struct SlotPoolState<V> {
    shares: Shares<V>,
    waiting: Vec<SlotWaiter<V>>,
    refused: CallerTally,
    evicted: CallerTally,
}

#[derive(Debug)]
struct SlotWaiter<V> {
    holder: ShareHolder,
    value: V,
    turn: oneshot::Sender<SharedSlot<V>>,
}

/// A slot, released on drop.
#[derive(Debug)]
pub struct SharedSlot<V> {
    inner: Arc<SlotPool<V>>,
    name: Arc<str>,
    number: u64,
}

impl<V> Clone for SharedSlots<V> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<V> SharedSlots<V> {
    pub fn new(kind: SlotKind, allowance: Allowance) -> Self {
        let state = SlotPoolState {
            shares: Shares::new(allowance),
            waiting: Vec::new(),
            refused: CallerTally::default(),
            evicted: CallerTally::default(),
        };
        Self(Arc::new(SlotPool { kind, started: Instant::now(), state: Mutex::new(state) }))
    }

    /// Takes a slot and returns the value of the evicted slot, if any. `idle_since` returns since when a slot has
    /// been idle, or `None` if it must not be evicted; its second argument says whether the slot is the taker's own.
    pub fn take(
        &self,
        holder: &ShareHolder,
        value: V,
        idle_since: impl Fn(&V, bool) -> Option<Instant>,
    ) -> Result<(SharedSlot<V>, Option<V>), Error> {
        let since =
            |value: &V, own: bool| idle_since(value, own).map(|at| at.saturating_duration_since(self.0.started));
        let mut state = self.0.state.lock();
        match state.shares.take(holder, value, self.0.started.elapsed(), since) {
            Ok(taken) => {
                let evicted = taken.evicted.map(|evicted| {
                    state.evicted.count(&evicted.holder);
                    evicted.value
                });
                Ok((self.slot(holder, taken.number), evicted))
            }
            Err(full) => {
                state.refused.count(&holder.name);
                Err(self.refusal(holder, full))
            }
        }
    }

    /// Takes a slot without evicting another.
    pub fn take_free(&self, holder: &ShareHolder, value: V) -> Result<SharedSlot<V>, Error> {
        self.take(holder, value, |_, _| None).map(|(slot, _)| slot)
    }

    /// Visits the values of all slots.
    pub fn for_each(&self, look: impl FnMut(&V)) {
        self.0.state.lock().shares.values().for_each(look);
    }

    /// Returns the number of taken slots.
    pub fn total(&self) -> usize {
        self.0.state.lock().shares.total()
    }

    fn slot(&self, holder: &ShareHolder, number: u64) -> SharedSlot<V> {
        SharedSlot { inner: Arc::clone(&self.0), name: Arc::clone(&holder.name), number }
    }

    fn refusal(&self, holder: &ShareHolder, full: LimitExceeded) -> Error {
        let SlotKind { resource, limit, things } = self.0.kind;
        tracing::debug!(caller = &*holder.name, resource, "a slot was refused");
        full.error(things, limit)
    }
}

impl<V: Send + 'static> SharedSlots<V> {
    /// Waits for a slot. The caller with the fewest slots is served first, then the first to arrive.
    pub async fn wait(&self, holder: &ShareHolder, value: V, within: Duration) -> Result<SharedSlot<V>, Error> {
        let turn = {
            let mut state = self.0.state.lock();
            if state.waiting.is_empty() && state.shares.look(holder).is_ok() {
                let now = self.0.started.elapsed();
                if let Ok(taken) = state.shares.take(holder, value, now, |_, _| None) {
                    return Ok(self.slot(holder, taken.number));
                }
                return Err(self.refusal(holder, LimitExceeded::All));
            }
            let (sender, turn) = oneshot::channel();
            state.waiting.push(SlotWaiter { holder: holder.clone(), value, turn: sender });
            turn
        };
        // A waiter may be limited by its own share while other slots are free.
        self.0.serve();
        if let Ok(Ok(slot)) = tokio::time::timeout(within, turn).await {
            return Ok(slot);
        }
        let mut state = self.0.state.lock();
        state.waiting.retain(|waiter| !waiter.turn.is_closed());
        state.refused.count(&holder.name);
        let full = state.shares.look(holder).err().unwrap_or(LimitExceeded::All);
        Err(self.refusal(holder, full))
    }
}

impl<V> SlotPool<V> {
    /// Hands free slots to waiters.
    fn serve(self: &Arc<Self>) {
        while let Some((turn, slot)) = self.next() {
            // Outside the lock: a slot whose waiter has gone is released at once.
            drop(turn.send(slot));
        }
    }

    fn next(self: &Arc<Self>) -> Option<(oneshot::Sender<SharedSlot<V>>, SharedSlot<V>)> {
        let mut state = self.state.lock();
        let SlotPoolState { shares, waiting, .. } = &mut *state;
        waiting.retain(|waiter| !waiter.turn.is_closed());
        let fits = waiting.iter().enumerate().filter(|(_, waiter)| shares.look(&waiter.holder).is_ok());
        let (at, _) = fits.min_by_key(|(at, waiter)| (shares.held(&waiter.holder.name), *at))?;
        let SlotWaiter { holder, value, turn } = waiting.remove(at);
        let taken = shares.take(&holder, value, self.started.elapsed(), |_, _| None).ok()?;
        Some((turn, SharedSlot { inner: Arc::clone(self), name: holder.name, number: taken.number }))
    }
}

impl<V> Drop for SharedSlot<V> {
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

    const KIND: SlotKind = SlotKind { resource: "jq", limit: "jq_processes", things: "programs in jq" };
    const MOMENT: Duration = Duration::from_secs(1);

    fn slots(all: usize, percent: usize) -> SharedSlots<()> {
        SharedSlots::new(KIND, Allowance::of(all, percent))
    }

    fn owner() -> ShareHolder {
        ShareHolder { name: "owner".into(), privileged: true }
    }

    #[tokio::test(start_paused = true)]
    async fn who_holds_least_is_served_first() {
        let slots = slots(2, 100);
        let (greedy, modest) = (ShareHolder::unprivileged("greedy"), ShareHolder::unprivileged("modest"));
        let held = slots.wait(&greedy, (), MOMENT).await.expect("free");
        let other = slots.wait(&greedy, (), MOMENT).await.expect("free");
        let (first, second) = tokio::join!(async { slots.wait(&greedy, (), MOMENT).await }, async {
            let waiting = slots.wait(&modest, (), MOMENT);
            let freed = async {
                tokio::time::sleep(MOMENT / 2).await;
                drop(other);
            };
            tokio::join!(waiting, freed).0
        });
        assert!(first.is_err() && second.is_ok(), "it came first, and holds one already");
        drop((held, second));
        assert_eq!(slots.total(), 0);
        assert_eq!(slots.usage().refused, [(Arc::from("greedy"), 1)]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_flood_leaves_a_place_for_an_admin_and_nothing_leaks() {
        let slots = slots(4, 50);
        let flood: Vec<_> =
            (0..6).map(|number| ShareHolder::unprivileged(if number % 2 == 0 { "a" } else { "b" })).collect();
        let mut held = Vec::new();
        for holder in &flood {
            held.extend(slots.wait(holder, (), MOMENT).await.ok());
        }
        assert_eq!(held.len(), 3, "two of one, one of the other, one is set aside");
        let slot = slots.wait(&owner(), (), MOMENT).await.expect("set aside");
        // A cancelled waiter leaves nothing behind.
        let given_up = tokio::time::timeout(MOMENT / 10, slots.wait(&flood[0], (), MOMENT)).await;
        assert!(given_up.is_err());
        drop((held, slot));
        assert_eq!(slots.total(), 0);
        assert!(slots.wait(&flood[0], (), MOMENT).await.is_ok());
    }
}
