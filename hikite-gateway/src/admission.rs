//! Admission control of one module: concurrency, queue length and rate of its calls.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use hikite_core::caller::{Caller, Scopes};
use hikite_core::error::{Error, ErrorKind};
use hikite_core::limits::Limits;
use hikite_core::rate::{Bucket, Rate};
use parking_lot::Mutex;
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore, SemaphorePermit};
use tokio::time::Instant;

use crate::health::ModuleHealth;
use crate::meter::ModuleMeter;

/// Retry delay reported to callers of an overloaded module, enough for some waiting calls to run.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// The limits of one module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Throttle {
    pub concurrency: usize,
    pub queue: usize,
    pub rate: Option<Rate>,
    pub timeout: Duration,
}

impl Throttle {
    /// Returns the default limits of a module.
    pub fn of(limits: &Limits) -> Self {
        Self {
            concurrency: limits.module_concurrency,
            queue: limits.module_queue,
            rate: None,
            timeout: limits.call_timeout,
        }
    }
}

#[derive(Debug)]
pub(crate) struct AdmissionGate {
    pub(crate) throttle: Throttle,
    pub(crate) health: Arc<ModuleHealth>,
    pub(crate) meter: Arc<ModuleMeter>,
    permits: Semaphore,
    /// Bounds running and waiting calls together.
    capacity: Semaphore,
    bucket: Mutex<Bucket>,
    started: Instant,
    /// Share of each holder with calls here: an account, or a caller without one.
    shares: Mutex<HashMap<Arc<str>, Arc<AdmissionShare>>>,
}

/// Half of a module's capacity: slow calls of one account or caller leave the rest to others.
#[derive(Debug)]
pub(crate) struct AdmissionShare {
    permits: Arc<Semaphore>,
    capacity: Arc<Semaphore>,
}

/// The permits of a running call.
#[derive(Debug)]
pub(crate) struct CallPermit<'a> {
    permit: SemaphorePermit<'a>,
    capacity: SemaphorePermit<'a>,
    share: Option<(Arc<AdmissionShare>, [OwnedSemaphorePermit; 2])>,
}

impl CallPermit<'_> {
    /// Drops the permits without returning them, because they were released before and not taken back.
    pub(crate) fn forget(self) {
        self.permit.forget();
        self.capacity.forget();
        if let Some((_, held)) = self.share {
            held.into_iter().for_each(OwnedSemaphorePermit::forget);
        }
    }

    /// Returns the holder's share of the module's capacity, if it is bounded.
    pub(crate) fn share(&self) -> Option<Arc<AdmissionShare>> {
        self.share.as_ref().map(|(share, _)| Arc::clone(share))
    }
}

impl AdmissionGate {
    pub(crate) fn new(throttle: Throttle, health: Arc<ModuleHealth>, meter: Arc<ModuleMeter>) -> Self {
        Self {
            health,
            permits: Semaphore::new(throttle.concurrency.min(Semaphore::MAX_PERMITS)),
            capacity: Semaphore::new(throttle.concurrency.saturating_add(throttle.queue).min(Semaphore::MAX_PERMITS)),
            bucket: Mutex::default(),
            started: Instant::now(),
            shares: Mutex::default(),
            throttle,
            meter,
        }
    }

    /// Waits for admission of a call. A call that the circuit breaker would refuse fails at once. Admins who call
    /// without an account are not bound to a share.
    pub(crate) async fn enter(
        &self,
        module: &str,
        account: Option<&Arc<str>>,
        caller: &Caller,
    ) -> Result<CallPermit<'_>, Error> {
        self.health.check(module, account)?;
        if let Some(rate) = self.throttle.rate {
            self.bucket.lock().take(rate, self.started.elapsed()).map_err(|wait| {
                self.meter.rate_limited();
                Error::new(
                    ErrorKind::RateLimit,
                    format!("`{module}` accepts at most {} calls per {:?}.", rate.count, rate.per),
                )
                .hint(format!("Try again in {} s.", wait.as_secs_f64().ceil()))
                .after(wait)
            })?;
        }
        let full = || {
            Error::new(ErrorKind::Overloaded, format!("Too many calls are waiting for `{module}`."))
                .hint("Try again in a moment.")
                .after(RETRY_AFTER)
        };
        let holder = account.or_else(|| (!caller.scopes.contains(Scopes::ADMIN)).then_some(&caller.subject));
        let share = holder.map(|holder| self.share_of(holder));
        let of_share = share.as_ref().map(|share| Arc::clone(&share.capacity).try_acquire_owned());
        let share_room = of_share.transpose().map_err(|_| {
            let whose = if account.is_some() { "this account" } else { "this caller" };
            Error::new(
                ErrorKind::Overloaded,
                format!("Too many calls of `{module}` are running or waiting for {whose}."),
            )
            .hint("Wait until some of them finish. Half of a module's slots are reserved for other callers.")
            .after(RETRY_AFTER)
        })?;
        let capacity = self.capacity.try_acquire().map_err(|_| full())?;
        // Waiting has a limit of its own; the deadline of the call starts with its admission.
        let turn = tokio::time::timeout(self.throttle.timeout, async {
            let own = match &share {
                Some(share) => Some(Arc::clone(&share.permits).acquire_owned().await?),
                None => None,
            };
            Ok::<_, AcquireError>((own, self.permits.acquire().await?))
        });
        let (own, permit) = turn.await.map_err(|_| full())?.map_err(|_| full())?;
        let held = own.zip(share_room).map(<[_; 2]>::from);
        Ok(CallPermit { permit, capacity, share: share.zip(held) })
    }

    fn share_of(&self, holder: &Arc<str>) -> Arc<AdmissionShare> {
        let half = |all: usize| Arc::new(Semaphore::new(all.div_ceil(2).clamp(1, Semaphore::MAX_PERMITS)));
        let mut shares = self.shares.lock();
        if !shares.contains_key(holder) {
            // Unused shares can be dropped, because a new one has the same state.
            shares.retain(|_, share| Arc::strong_count(&share.capacity) > 1 || Arc::strong_count(share) > 1);
        }
        let made = || {
            let Throttle { concurrency, queue, .. } = self.throttle;
            Arc::new(AdmissionShare { permits: half(concurrency), capacity: half(concurrency.saturating_add(queue)) })
        };
        Arc::clone(shares.entry(Arc::clone(holder)).or_insert_with(made))
    }

    /// Returns `true` if a call may be retried: the account's budget and the module's rate allow it.
    pub(crate) fn may_retry(&self, account: Option<&Arc<str>>) -> bool {
        let is_in_rate = |rate| self.bucket.lock().take(rate, self.started.elapsed()).is_ok();
        self.health.may_retry(account) && self.throttle.rate.is_none_or(is_in_rate)
    }

    /// Returns the number of waiting calls.
    pub(crate) fn waiting(&self) -> usize {
        let taken =
            |all: usize, free: &Semaphore| all.min(Semaphore::MAX_PERMITS).saturating_sub(free.available_permits());
        let inside = taken(self.throttle.concurrency.saturating_add(self.throttle.queue), &self.capacity);
        inside.saturating_sub(taken(self.throttle.concurrency, &self.permits))
    }

    /// Releases the permits of a call that waits for its client, in its holder's share as well.
    pub(crate) fn release_permits(&self, share: Option<&AdmissionShare>) {
        if let Some(share) = share {
            share.capacity.add_permits(1);
            share.permits.add_permits(1);
        }
        self.capacity.add_permits(1);
        self.permits.add_permits(1);
    }

    /// Takes the permits back, waiting until they are free.
    pub(crate) async fn reacquire_permits(&self, share: Option<&AdmissionShare>) {
        let of_share = share.map(|share| [&*share.capacity, &*share.permits]);
        for semaphore in of_share.into_iter().flatten().chain([&self.capacity, &self.permits]) {
            if let Ok(permit) = semaphore.acquire().await {
                permit.forget();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use hikite_core::limits::Limits;

    use super::*;
    use crate::meter::Meter;

    fn gate(throttle: Throttle) -> AdmissionGate {
        AdmissionGate::new(
            throttle,
            Arc::new(ModuleHealth::new(&Limits::default())),
            Meter::default().module(&"m".into()),
        )
    }

    async fn enter<'a>(gate: &'a AdmissionGate, account: Option<&Arc<str>>) -> Result<CallPermit<'a>, Error> {
        gate.enter("m", account, &Caller::owner()).await
    }

    fn throttle(concurrency: usize, queue: usize, rate: Option<&str>) -> Throttle {
        Throttle { concurrency, queue, rate: rate.and_then(Rate::parse), timeout: Duration::from_secs(1) }
    }

    #[tokio::test(start_paused = true)]
    async fn calls_wait_their_turn_and_the_queue_has_an_end() {
        let gate = gate(throttle(1, 1, None));
        let first = enter(&gate, None).await.expect("a place");
        let second = enter(&gate, None);
        tokio::pin!(second);
        assert!(tokio::time::timeout(Duration::from_millis(5), &mut second).await.is_err(), "it waits");
        assert_eq!(gate.waiting(), 1);
        let refused = enter(&gate, None).await.expect_err("no room");
        assert_eq!((refused.kind, refused.retry_after), (ErrorKind::Overloaded, Some(RETRY_AFTER)));
        drop(first);
        assert!(second.await.is_ok());
        assert_eq!(gate.waiting(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_lent_place_is_used_by_others_and_counted_once() {
        let gate = gate(throttle(1, 0, None));
        let asking = enter(&gate, None).await.expect("a place");
        gate.release_permits(None);
        let other = enter(&gate, None).await.expect("the lent place");
        assert!(enter(&gate, None).await.is_err());
        let back = gate.reacquire_permits(None);
        tokio::pin!(back);
        assert!(tokio::time::timeout(Duration::from_millis(5), &mut back).await.is_err(), "it is taken");
        drop(other);
        back.await;
        assert!(enter(&gate, None).await.is_err());
        gate.release_permits(None);
        asking.forget();
        let next = enter(&gate, None).await.expect("the one place");
        assert!(enter(&gate, None).await.is_err(), "and no other");
        drop(next);
    }

    #[tokio::test(start_paused = true)]
    async fn a_rate_refuses_and_says_when_to_come_back() {
        let gate = gate(throttle(9, 9, Some("2/m")));
        for _ in 0..2 {
            assert!(enter(&gate, None).await.is_ok());
        }
        let refused = enter(&gate, None).await.expect_err("over the rate");
        assert_eq!((refused.kind, refused.hint.as_deref()), (ErrorKind::RateLimit, Some("Try again in 30 s.")));
        tokio::time::advance(Duration::from_secs(30)).await;
        assert!(enter(&gate, None).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn one_account_leaves_room_for_the_others() {
        let throttle = Throttle { concurrency: 4, queue: 0, ..Throttle::of(&Limits::default()) };
        let gate = AdmissionGate::new(
            throttle,
            Arc::new(ModuleHealth::new(&Limits::default())),
            Meter::default().module(&"m".into()),
        );
        let [work, home] = ["work", "home"].map(Arc::<str>::from);
        let first = enter(&gate, Some(&work)).await.expect("a place");
        let _second = enter(&gate, Some(&work)).await.expect("a place");
        assert_eq!(enter(&gate, Some(&work)).await.expect_err("its share").kind, ErrorKind::Overloaded);
        let _other = enter(&gate, Some(&home)).await.expect("the others' places");
        drop(first);
        let _again = enter(&gate, Some(&work)).await.expect("its own place again");
    }

    #[tokio::test(start_paused = true)]
    async fn one_caller_leaves_places_to_others() {
        let gate = gate(throttle(2, 0, None));
        let (alice, bob) = (Caller::named("alice"), Caller::named("bob"));
        let held = gate.enter("m", None, &alice).await.expect("a place");
        let refused = gate.enter("m", None, &alice).await.expect_err("half of the places are hers");
        assert_eq!(refused.kind, ErrorKind::Overloaded);
        let other = gate.enter("m", None, &bob).await.expect("the other half");
        drop((held, other));
        assert!(gate.enter("m", None, &alice).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_that_asks_its_client_lends_its_share_too() {
        let gate = gate(throttle(1, 0, None));
        let alice = Caller::named("alice");
        let asking = gate.enter("m", None, &alice).await.expect("a place");
        let share = asking.share().expect("a share");
        gate.release_permits(Some(&share));
        let other = gate.enter("m", None, &alice).await.expect("the lent place, in her own share");
        drop(other);
        gate.reacquire_permits(Some(&share)).await;
        assert!(gate.enter("m", None, &alice).await.is_err());
        gate.release_permits(Some(&share));
        asking.forget();
        let next = gate.enter("m", None, &alice).await.expect("the one place");
        assert!(gate.enter("m", None, &alice).await.is_err(), "and no other");
        drop(next);
    }
}
