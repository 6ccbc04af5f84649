//! How one module has been doing: its circuit breaker, and what it may still be tried again. Outlives the gate, so
//! that a reload does not forget it.

use std::time::Duration;

use hikite_core::breaker::{Breaker, Pass, Rule, State};
use hikite_core::error::{Error, Kind};
use hikite_core::json::Raw;
use hikite_core::limits::Limits;
use hikite_core::retry::Budget;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::random;

#[derive(Debug)]
pub(crate) struct Health {
    rule: Rule,
    book: Mutex<Book>,
    started: Instant,
}

#[derive(Debug, Default)]
struct Book {
    breaker: Breaker,
    budget: Budget,
    /// What was wrong when the breaker opened.
    reason: Option<Box<str>>,
}

/// What the end of an attempt says of the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Well,
    Unwell,
    Nothing,
}

/// One attempt on its way. Dropped unclosed it says nothing of the source: its caller went away.
#[derive(Debug)]
pub(crate) struct Attempt<'a> {
    health: &'a Health,
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
        Self { rule, book: Mutex::default(), started: Instant::now() }
    }

    pub(crate) fn state(&self) -> State {
        self.book.lock().breaker.state()
    }

    /// Refuses at once what would be refused after it has waited for its turn.
    pub(crate) fn look(&self, module: &str) -> Result<(), Error> {
        let book = self.book.lock();
        match book.breaker.refuses(self.started.elapsed()) {
            Some(rest) => Err(resting(module, &book, rest)),
            None => Ok(()),
        }
    }

    /// `first` is false for what is tried again.
    pub(crate) fn attempt(&self, module: &str, first: bool) -> Result<Attempt<'_>, Error> {
        let mut book = self.book.lock();
        let entered = book.breaker.enter(self.started.elapsed());
        let pass = entered.map_err(|rest| resting(module, &book, rest))?;
        Ok(Attempt { health: self, pass, first })
    }

    /// Somebody saw to the source: what was before says nothing of now.
    pub(crate) fn forgive(&self) {
        *self.book.lock() = Book::default();
    }

    /// Takes one further attempt out of the module's budget.
    pub(crate) fn may_try_again(&self) -> bool {
        self.book.lock().budget.take()
    }
}

impl Attempt<'_> {
    /// `hasty`: the caller gave it less time than the configuration does, so that running out of it says nothing.
    pub(crate) fn close(self, outcome: &Result<Raw, Error>, hasty: bool) {
        let health = self.health;
        let mut book = health.book.lock();
        match (verdict(outcome, hasty), outcome) {
            (Verdict::Well, _) => {
                book.breaker.succeeded(self.pass);
                if outcome.is_ok() {
                    book.budget.succeeded(self.first);
                }
            }
            (Verdict::Unwell, Err(error)) => {
                let now = health.started.elapsed();
                book.breaker.failed(health.rule, self.pass, now, random::share());
                book.reason = Some(error.message.clone());
            }
            _ => book.breaker.left(self.pass),
        }
        if self.first && outcome.as_ref().is_err_and(|error| error.kind.face().retry) {
            book.budget.failed();
        }
        drop(book);
        std::mem::forget(self);
    }
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        self.health.book.lock().breaker.left(self.pass);
    }
}

fn verdict(outcome: &Result<Raw, Error>, hasty: bool) -> Verdict {
    let Err(error) = outcome else { return Verdict::Well };
    match error.kind {
        // Whoever opens connections has pauses of its own.
        Kind::UpstreamUnavailable if error.unsent => Verdict::Nothing,
        Kind::Timeout if hasty => Verdict::Nothing,
        Kind::UpstreamUnavailable | Kind::Timeout => Verdict::Unwell,
        Kind::Cancelled | Kind::Internal | Kind::Overloaded | Kind::RateLimit => Verdict::Nothing,
        // It refused in its own words, so it is there.
        _ => Verdict::Well,
    }
}

fn resting(module: &str, book: &Book, rest: Duration) -> Error {
    // While somebody finds out there is no better guess than a moment.
    let wait = rest.max(Duration::from_secs(1));
    let reason = book.reason.as_deref().unwrap_or("it failed too often");
    Error::new(Kind::UpstreamUnavailable, format!("`{module}` is left alone for a while: {reason}"))
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
        health.attempt("m", true).expect("closed").close(outcome, hasty);
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
        let refused = health.attempt("m", true).expect_err("open");
        assert_eq!(refused.kind, Kind::UpstreamUnavailable);
        assert_eq!(&*refused.message, "`m` is left alone for a while: no");
        let wait = refused.retry_after.expect("a time");
        assert!(wait > Duration::from_secs(2) && wait <= Duration::from_secs(5), "{wait:?}");
        assert!(refused.hint.is_some_and(|hint| hint.starts_with("it is tried again in ")));
        tokio::time::advance(wait).await;
        let probe = health.attempt("m", true).expect("a probe");
        assert_eq!(health.state(), State::HalfOpen);
        assert!(health.attempt("m", true).is_err() && health.look("m").is_err());
        // The one that finds out gives up; the next one does.
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
        (0..9).for_each(|_| drop(health.attempt("m", true).expect("closed")));
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
}
