//! Health of one module: circuit breakers and retry budgets. Calls of a service are judged per account, so that
//! failures of one account stop that account only; an upstream server is one connection and has one breaker. Outlives
//! the gate, so that a reload keeps its state.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use hikite_core::breaker::{Breaker, BreakerPermit, BreakerPolicy, CircuitState};
use hikite_core::error::{Error, ErrorKind};
use hikite_core::json::Raw;
use hikite_core::limits::Limits;
use hikite_core::retry::RetryBudget;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::random;

/// Number of accounts above which those with a closed breaker are dropped.
const ACCOUNTS: usize = 1024;

#[derive(Debug)]
pub(crate) struct ModuleHealth {
    rule: BreakerPolicy,
    breakers: Mutex<BreakerTable>,
    started: Instant,
}

#[derive(Debug, Default)]
struct BreakerTable {
    /// State of calls without an account.
    plain: BreakerState,
    accounts: HashMap<Arc<str>, BreakerState>,
}

#[derive(Debug, Default)]
struct BreakerState {
    breaker: Breaker,
    budget: RetryBudget,
    /// Error that opened the breaker.
    reason: Option<Box<str>>,
}

impl BreakerTable {
    fn get(&self, account: Option<&Arc<str>>) -> Option<&BreakerState> {
        account.map_or(Some(&self.plain), |account| self.accounts.get(account))
    }

    fn of(&mut self, account: Option<&Arc<str>>) -> &mut BreakerState {
        let Some(account) = account else { return &mut self.plain };
        if self.accounts.len() >= ACCOUNTS && !self.accounts.contains_key(account) {
            self.accounts.retain(|_, entry| entry.breaker.state() != CircuitState::Closed);
        }
        self.accounts.entry(Arc::clone(account)).or_default()
    }
}

/// Conclusion about the source from the end of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SourceVerdict {
    Healthy,
    Failing,
    Neutral,
}

/// An attempt in flight. Dropped without `close` it says nothing about the source, because its caller disconnected.
#[derive(Debug)]
pub(crate) struct CallAttempt<'a> {
    health: &'a ModuleHealth,
    account: Option<Arc<str>>,
    permit: BreakerPermit,
    first: bool,
}

impl ModuleHealth {
    pub(crate) fn new(limits: &Limits) -> Self {
        let rule = BreakerPolicy {
            failures: limits.breaker_failures,
            pause: limits.breaker_pause,
            longest_pause: limits.breaker_pause_max,
        };
        Self { rule, breakers: Mutex::default(), started: Instant::now() }
    }

    /// Returns the worst state of all breakers.
    pub(crate) fn state(&self) -> CircuitState {
        let breakers = self.breakers.lock();
        let accounts = breakers.accounts.values().map(|entry| entry.breaker.state());
        accounts.fold(breakers.plain.breaker.state(), CircuitState::stricter)
    }

    /// Returns the accounts whose breaker is not closed, ordered by id.
    pub(crate) fn tripped(&self) -> Vec<(Arc<str>, CircuitState)> {
        let breakers = self.breakers.lock();
        let states = breakers.accounts.iter().map(|(account, entry)| (Arc::clone(account), entry.breaker.state()));
        let mut tripped: Vec<_> = states.filter(|(_, state)| *state != CircuitState::Closed).collect();
        tripped.sort_by(|one, other| one.0.cmp(&other.0));
        tripped
    }

    /// Returns the breaker state of calls without an account.
    pub(crate) fn plain(&self) -> CircuitState {
        self.breakers.lock().plain.breaker.state()
    }

    /// Returns `true` if every breaker is open, so that no call passes.
    pub(crate) fn is_open(&self) -> bool {
        let breakers = self.breakers.lock();
        let is_open = |entry: &BreakerState| entry.breaker.state() == CircuitState::Open;
        is_open(&breakers.plain) || !breakers.accounts.is_empty() && breakers.accounts.values().all(is_open)
    }

    /// Fails at once if the breaker would refuse the call after it has waited in the queue.
    pub(crate) fn check(&self, module: &str, account: Option<&Arc<str>>) -> Result<(), Error> {
        let breakers = self.breakers.lock();
        let Some(entry) = breakers.get(account) else { return Ok(()) };
        match entry.breaker.retry_after(self.started.elapsed()) {
            Some(rest) => Err(breaker_open(module, account, entry, rest)),
            None => Ok(()),
        }
    }

    /// Starts an attempt; `first` is `false` for a retry.
    pub(crate) fn attempt(
        &self,
        module: &str,
        account: Option<&Arc<str>>,
        first: bool,
    ) -> Result<CallAttempt<'_>, Error> {
        let mut breakers = self.breakers.lock();
        let entry = breakers.of(account);
        let admitted = entry.breaker.admit(self.started.elapsed());
        let permit = admitted.map_err(|rest| breaker_open(module, account, entry, rest))?;
        Ok(CallAttempt { health: self, account: account.cloned(), permit, first })
    }

    /// Resets all breakers and budgets after somebody repaired the source.
    pub(crate) fn reset(&self) {
        *self.breakers.lock() = BreakerTable::default();
    }

    /// Takes one retry from the account's budget.
    pub(crate) fn may_retry(&self, account: Option<&Arc<str>>) -> bool {
        self.breakers.lock().of(account).budget.take()
    }
}

impl CallAttempt<'_> {
    /// Records the outcome. A timeout does not count if the caller set a shorter one than the configuration.
    pub(crate) fn close(mut self, outcome: &Result<Raw, Error>, has_short_timeout: bool) {
        let (health, permit) = (self.health, self.permit);
        let mut breakers = health.breakers.lock();
        let entry = breakers.of(self.account.as_ref());
        match (verdict(outcome, has_short_timeout), outcome) {
            (SourceVerdict::Healthy, _) => {
                entry.breaker.succeeded(permit);
                if outcome.is_ok() {
                    entry.budget.succeeded(self.first);
                }
            }
            (SourceVerdict::Failing, Err(error)) => {
                entry.breaker.failed(health.rule, permit, health.started.elapsed(), random::share());
                entry.reason = Some(error.message.clone());
            }
            _ => entry.breaker.abandoned(permit),
        }
        if self.first && outcome.as_ref().is_err_and(|error| error.kind.definition().retry) {
            entry.budget.failed();
        }
        drop(breakers);
        // Nothing is left for the destructor.
        self.permit = BreakerPermit::Regular;
    }
}

impl Drop for CallAttempt<'_> {
    fn drop(&mut self) {
        if self.permit == BreakerPermit::Probe {
            self.health.breakers.lock().of(self.account.as_ref()).breaker.abandoned(self.permit);
        }
    }
}

fn verdict(outcome: &Result<Raw, Error>, has_short_timeout: bool) -> SourceVerdict {
    let Err(error) = outcome else { return SourceVerdict::Healthy };
    match error.kind {
        // The connection pool has a backoff of its own.
        ErrorKind::UpstreamUnavailable if error.unsent => SourceVerdict::Neutral,
        ErrorKind::Timeout if has_short_timeout => SourceVerdict::Neutral,
        ErrorKind::UpstreamUnavailable | ErrorKind::Timeout => SourceVerdict::Failing,
        ErrorKind::Cancelled | ErrorKind::Internal | ErrorKind::Overloaded | ErrorKind::RateLimit => {
            SourceVerdict::Neutral
        }
        // A refusal by the source shows that it works.
        _ => SourceVerdict::Healthy,
    }
}

fn breaker_open(module: &str, account: Option<&Arc<str>>, entry: &BreakerState, rest: Duration) -> Error {
    // While a probe is running, one second is the best estimate.
    let wait = rest.max(Duration::from_secs(1));
    let reason = entry.reason.as_deref().unwrap_or("it failed too often");
    let with = if account.is_some() { " with this account" } else { "" };
    Error::new(
        ErrorKind::UpstreamUnavailable,
        format!("`{module}` is not called for now because of repeated failures{with}: {reason}"),
    )
    .hint(format!("The next attempt is in {} s.", wait.as_secs_f64().ceil()))
    .after(wait)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn health() -> ModuleHealth {
        ModuleHealth::new(&Limits { breaker_failures: 3, ..Limits::default() })
    }

    fn end(health: &ModuleHealth, outcome: &Result<Raw, Error>, has_short_timeout: bool) {
        health.attempt("m", None, true).expect("closed").close(outcome, has_short_timeout);
    }

    fn failing(kind: ErrorKind) -> Result<Raw, Error> {
        Err(Error::new(kind, "no"))
    }

    #[tokio::test(start_paused = true)]
    async fn a_module_that_fails_is_left_alone_and_found_again() {
        let health = health();
        for kind in [ErrorKind::UpstreamUnavailable, ErrorKind::Timeout, ErrorKind::UpstreamUnavailable] {
            end(&health, &failing(kind), false);
        }
        let refused = health.attempt("m", None, true).expect_err("open");
        assert_eq!(refused.kind, ErrorKind::UpstreamUnavailable);
        assert_eq!(&*refused.message, "`m` is not called for now because of repeated failures: no");
        let wait = refused.retry_after.expect("a time");
        assert!(wait > Duration::from_secs(2) && wait <= Duration::from_secs(5), "{wait:?}");
        assert!(refused.hint.is_some_and(|hint| hint.starts_with("The next attempt is in ")));
        tokio::time::advance(wait).await;
        let probe = health.attempt("m", None, true).expect("a probe");
        assert_eq!(health.state(), CircuitState::HalfOpen);
        assert!(health.attempt("m", None, true).is_err() && health.check("m", None).is_err());
        // The probe is dropped; the next one decides.
        drop(probe);
        assert_eq!(health.state(), CircuitState::Open);
        end(&health, &Ok(Raw::null()), false);
        assert_eq!(health.state(), CircuitState::Closed);
    }

    #[tokio::test(start_paused = true)]
    async fn only_what_shows_that_a_source_is_unwell_opens_its_breaker() {
        let health = health();
        let own = [
            ErrorKind::ToolExecution,
            ErrorKind::Validation,
            ErrorKind::Cancelled,
            ErrorKind::RateLimit,
            ErrorKind::Overloaded,
        ];
        for kind in own {
            (0..9).for_each(|_| end(&health, &failing(kind), false));
        }
        (0..9).for_each(|_| end(&health, &failing(ErrorKind::Timeout), true));
        let unsent = Err(Error { unsent: true, ..Error::new(ErrorKind::UpstreamUnavailable, "no") });
        (0..9).for_each(|_| end(&health, &unsent, false));
        (0..9).for_each(|_| drop(health.attempt("m", None, true).expect("closed")));
        assert_eq!(health.state(), CircuitState::Closed);
    }

    #[tokio::test(start_paused = true)]
    async fn a_refusal_in_its_own_words_ends_the_row_of_failures() {
        let health = health();
        for _ in 0..5 {
            end(&health, &failing(ErrorKind::UpstreamUnavailable), false);
            end(&health, &failing(ErrorKind::UpstreamUnavailable), false);
            end(&health, &failing(ErrorKind::ToolExecution), false);
        }
        assert_eq!(health.state(), CircuitState::Closed);
    }

    #[tokio::test(start_paused = true)]
    async fn one_account_that_fails_stops_no_other() {
        let health = health();
        let [work, home] = ["work", "home"].map(Arc::<str>::from);
        for _ in 0..3 {
            let attempt = health.attempt("m", Some(&work), true).expect("closed");
            attempt.close(&failing(ErrorKind::UpstreamUnavailable), false);
        }
        let refused = health.check("m", Some(&work)).expect_err("open");
        assert_eq!(&*refused.message, "`m` is not called for now because of repeated failures with this account: no");
        assert!(health.attempt("m", Some(&work), true).is_err());
        health.attempt("m", Some(&home), true).expect("closed").close(&Ok(Raw::null()), false);
        assert!(health.check("m", Some(&home)).is_ok() && health.check("m", None).is_ok());
        assert_eq!((health.state(), health.plain()), (CircuitState::Open, CircuitState::Closed));
        assert_eq!(health.tripped(), [(work, CircuitState::Open)]);
        assert!(!health.is_open());
        health.reset();
        assert_eq!(health.state(), CircuitState::Closed);
    }
}
