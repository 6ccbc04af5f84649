//! Health of one module: circuit breakers and retry budgets. Calls of a service are judged per account, so that
//! failures of one account stop that account only; an upstream server is one connection and has one breaker. Outlives
//! the gate, so that a reload keeps its state.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use hikite_core::breaker::{Breaker, Pass, Rule, State};
use hikite_core::error::{Error, Kind};
use hikite_core::json::Raw;
use hikite_core::limits::Limits;
use hikite_core::retry::Budget;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::random;

/// Number of accounts above which those with a closed breaker are dropped.
const ACCOUNTS: usize = 1024;

#[derive(Debug)]
pub(crate) struct Health {
    rule: Rule,
    books: Mutex<Books>,
    started: Instant,
}

#[derive(Debug, Default)]
struct Books {
    /// State of calls without an account.
    plain: Book,
    accounts: HashMap<Arc<str>, Book>,
}

#[derive(Debug, Default)]
struct Book {
    breaker: Breaker,
    budget: Budget,
    /// Error that opened the breaker.
    reason: Option<Box<str>>,
}

impl Books {
    fn get(&self, account: Option<&Arc<str>>) -> Option<&Book> {
        account.map_or(Some(&self.plain), |account| self.accounts.get(account))
    }

    fn of(&mut self, account: Option<&Arc<str>>) -> &mut Book {
        let Some(account) = account else { return &mut self.plain };
        if self.accounts.len() >= ACCOUNTS && !self.accounts.contains_key(account) {
            self.accounts.retain(|_, book| book.breaker.state() != State::Closed);
        }
        self.accounts.entry(Arc::clone(account)).or_default()
    }
}

/// Conclusion about the source from the end of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Well,
    Unwell,
    Nothing,
}

/// An attempt in flight. Dropped without `close` it says nothing about the source, because its caller disconnected.
#[derive(Debug)]
pub(crate) struct Attempt<'a> {
    health: &'a Health,
    account: Option<Arc<str>>,
    pass: Pass,
    first: bool,
}

impl Health {
    pub(crate) fn new(limits: &Limits) -> Self {
        let rule = Rule {
            failures: limits.breaker_failures,
            pause: limits.breaker_pause,
            longest_pause: limits.breaker_pause_max,
        };
        Self { rule, books: Mutex::default(), started: Instant::now() }
    }

    /// Returns the worst state of all breakers.
    pub(crate) fn state(&self) -> State {
        let books = self.books.lock();
        let accounts = books.accounts.values().map(|book| book.breaker.state());
        accounts.fold(books.plain.breaker.state(), State::worse)
    }

    /// Returns the accounts whose breaker is not closed, ordered by id.
    pub(crate) fn troubled(&self) -> Vec<(Arc<str>, State)> {
        let books = self.books.lock();
        let states = books.accounts.iter().map(|(account, book)| (Arc::clone(account), book.breaker.state()));
        let mut troubled: Vec<_> = states.filter(|(_, state)| *state != State::Closed).collect();
        troubled.sort_by(|one, other| one.0.cmp(&other.0));
        troubled
    }

    /// Returns the breaker state of calls without an account.
    pub(crate) fn plain(&self) -> State {
        self.books.lock().plain.breaker.state()
    }

    /// Returns `true` if every breaker is open, so that no call passes.
    pub(crate) fn is_shut(&self) -> bool {
        let books = self.books.lock();
        let is_open = |book: &Book| book.breaker.state() == State::Open;
        is_open(&books.plain) || !books.accounts.is_empty() && books.accounts.values().all(is_open)
    }

    /// Fails at once if the breaker would refuse the call after it has waited in the queue.
    pub(crate) fn look(&self, module: &str, account: Option<&Arc<str>>) -> Result<(), Error> {
        let books = self.books.lock();
        let Some(book) = books.get(account) else { return Ok(()) };
        match book.breaker.refuses(self.started.elapsed()) {
            Some(rest) => Err(resting(module, account, book, rest)),
            None => Ok(()),
        }
    }

    /// Starts an attempt; `first` is `false` for a retry.
    pub(crate) fn attempt(
        &self,
        module: &str,
        account: Option<&Arc<str>>,
        first: bool,
    ) -> Result<Attempt<'_>, Error> {
        let mut books = self.books.lock();
        let book = books.of(account);
        let entered = book.breaker.enter(self.started.elapsed());
        let pass = entered.map_err(|rest| resting(module, account, book, rest))?;
        Ok(Attempt { health: self, account: account.cloned(), pass, first })
    }

    /// Resets all breakers and budgets after somebody repaired the source.
    pub(crate) fn forgive(&self) {
        *self.books.lock() = Books::default();
    }

    /// Takes one retry from the account's budget.
    pub(crate) fn may_try_again(&self, account: Option<&Arc<str>>) -> bool {
        self.books.lock().of(account).budget.take()
    }
}

impl Attempt<'_> {
    /// Records the outcome. A timeout does not count if the caller set a shorter one than the configuration.
    pub(crate) fn close(mut self, outcome: &Result<Raw, Error>, hasty: bool) {
        let (health, pass) = (self.health, self.pass);
        let mut books = health.books.lock();
        let book = books.of(self.account.as_ref());
        match (verdict(outcome, hasty), outcome) {
            (Verdict::Well, _) => {
                book.breaker.succeeded(pass);
                if outcome.is_ok() {
                    book.budget.succeeded(self.first);
                }
            }
            (Verdict::Unwell, Err(error)) => {
                book.breaker.failed(health.rule, pass, health.started.elapsed(), random::share());
                book.reason = Some(error.message.clone());
            }
            _ => book.breaker.left(pass),
        }
        if self.first && outcome.as_ref().is_err_and(|error| error.kind.face().retry) {
            book.budget.failed();
        }
        drop(books);
        // Nothing is left for the destructor.
        self.pass = Pass::Plain;
    }
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        if self.pass == Pass::Probe {
            self.health.books.lock().of(self.account.as_ref()).breaker.left(self.pass);
        }
    }
}

fn verdict(outcome: &Result<Raw, Error>, hasty: bool) -> Verdict {
    let Err(error) = outcome else { return Verdict::Well };
    match error.kind {
        // The connection pool has a backoff of its own.
        Kind::UpstreamUnavailable if error.unsent => Verdict::Nothing,
        Kind::Timeout if hasty => Verdict::Nothing,
        Kind::UpstreamUnavailable | Kind::Timeout => Verdict::Unwell,
        Kind::Cancelled | Kind::Internal | Kind::Overloaded | Kind::RateLimit => Verdict::Nothing,
        // A refusal by the source shows that it works.
        _ => Verdict::Well,
    }
}

fn resting(module: &str, account: Option<&Arc<str>>, book: &Book, rest: Duration) -> Error {
    // While a probe is running, one second is the best estimate.
    let wait = rest.max(Duration::from_secs(1));
    let reason = book.reason.as_deref().unwrap_or("it failed too often");
    let with = if account.is_some() { " with this account" } else { "" };
    Error::new(Kind::UpstreamUnavailable, format!("`{module}` is left alone for a while{with}: {reason}"))
        .hint(format!("it is tried again in {} s", wait.as_secs_f64().ceil()))
        .after(wait)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn health() -> Health {
        Health::new(&Limits { breaker_failures: 3, ..Limits::default() })
    }

    fn end(health: &Health, outcome: &Result<Raw, Error>, hasty: bool) {
        health.attempt("m", None, true).expect("closed").close(outcome, hasty);
    }

    fn unwell(kind: Kind) -> Result<Raw, Error> {
        Err(Error::new(kind, "no"))
    }

    #[tokio::test(start_paused = true)]
    async fn a_module_that_fails_is_left_alone_and_found_again() {
        let health = health();
        for kind in [Kind::UpstreamUnavailable, Kind::Timeout, Kind::UpstreamUnavailable] {
            end(&health, &unwell(kind), false);
        }
        let refused = health.attempt("m", None, true).expect_err("open");
        assert_eq!(refused.kind, Kind::UpstreamUnavailable);
        assert_eq!(&*refused.message, "`m` is left alone for a while: no");
        let wait = refused.retry_after.expect("a time");
        assert!(wait > Duration::from_secs(2) && wait <= Duration::from_secs(5), "{wait:?}");
        assert!(refused.hint.is_some_and(|hint| hint.starts_with("it is tried again in ")));
        tokio::time::advance(wait).await;
        let probe = health.attempt("m", None, true).expect("a probe");
        assert_eq!(health.state(), State::HalfOpen);
        assert!(health.attempt("m", None, true).is_err() && health.look("m", None).is_err());
        // The probe is dropped; the next one decides.
        drop(probe);
        assert_eq!(health.state(), State::Open);
        end(&health, &Ok(Raw::null()), false);
        assert_eq!(health.state(), State::Closed);
    }

    #[tokio::test(start_paused = true)]
    async fn only_what_shows_that_a_source_is_unwell_opens_its_breaker() {
        let health = health();
        let own = [Kind::ToolExecution, Kind::Validation, Kind::Cancelled, Kind::RateLimit, Kind::Overloaded];
        for kind in own {
            (0..9).for_each(|_| end(&health, &unwell(kind), false));
        }
        (0..9).for_each(|_| end(&health, &unwell(Kind::Timeout), true));
        let unsent = Err(Error { unsent: true, ..Error::new(Kind::UpstreamUnavailable, "no") });
        (0..9).for_each(|_| end(&health, &unsent, false));
        (0..9).for_each(|_| drop(health.attempt("m", None, true).expect("closed")));
        assert_eq!(health.state(), State::Closed);
    }

    #[tokio::test(start_paused = true)]
    async fn a_refusal_in_its_own_words_ends_the_row_of_failures() {
        let health = health();
        for _ in 0..5 {
            end(&health, &unwell(Kind::UpstreamUnavailable), false);
            end(&health, &unwell(Kind::UpstreamUnavailable), false);
            end(&health, &unwell(Kind::ToolExecution), false);
        }
        assert_eq!(health.state(), State::Closed);
    }

    #[tokio::test(start_paused = true)]
    async fn one_account_that_fails_stops_no_other() {
        let health = health();
        let [work, home] = ["work", "home"].map(Arc::<str>::from);
        for _ in 0..3 {
            let attempt = health.attempt("m", Some(&work), true).expect("closed");
            attempt.close(&unwell(Kind::UpstreamUnavailable), false);
        }
        let refused = health.look("m", Some(&work)).expect_err("open");
        assert_eq!(&*refused.message, "`m` is left alone for a while with this account: no");
        assert!(health.attempt("m", Some(&work), true).is_err());
        health.attempt("m", Some(&home), true).expect("closed").close(&Ok(Raw::null()), false);
        assert!(health.look("m", Some(&home)).is_ok() && health.look("m", None).is_ok());
        assert_eq!((health.state(), health.plain()), (State::Open, State::Closed));
        assert_eq!(health.troubled(), [(work, State::Open)]);
        assert!(!health.is_shut());
        health.forgive();
        assert_eq!(health.state(), State::Closed);
    }
}
