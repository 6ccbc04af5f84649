//! A circuit breaker for one account of a service or one upstream server: it opens after a number of consecutive
//! failures, rejects calls for a pause, and then lets one probe through. A pure state machine: the caller passes the
//! time.
//!
//! It is ours because the libraries for this read the clock themselves or wrap the call, which is decided elsewhere.

use std::time::Duration;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BreakerPolicy {
    /// Consecutive failures that open the breaker; zero disables it.
    pub failures: u32,
    /// First pause; it doubles each time a probe fails.
    pub pause: Duration,
    pub longest_pause: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CircuitState {
    /// All calls pass.
    Closed,
    /// No call passes until the pause is over.
    Open,
    /// One probe is running.
    HalfOpen,
}

impl CircuitState {
    pub const ALL: [Self; 3] = [Self::Closed, Self::Open, Self::HalfOpen];

    /// Returns the more restrictive of the two states.
    #[must_use]
    pub fn stricter(self, other: Self) -> Self {
        let severity = |state: Self| match state {
            Self::Closed => 0,
            Self::HalfOpen => 1,
            Self::Open => 2,
        };
        if severity(other) > severity(self) { other } else { self }
    }

    pub fn word(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Open => "open",
            Self::HalfOpen => "half-open",
        }
    }
}

/// Permission for one call, handed back with its outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BreakerPermit {
    Regular,
    /// The single call that tests whether the source has recovered.
    Probe,
}

/// A circuit breaker. Times are durations since an arbitrary fixed start.
#[derive(Clone, Copy, Debug, Default)]
pub struct Breaker {
    failures: u32,
    /// Number of times it opened since the last success.
    openings: u32,
    /// End of the current pause, if the breaker is not closed.
    until: Option<Duration>,
    probing: bool,
}

impl Breaker {
    /// Admits a call, or returns the time until the next call may pass.
    pub fn admit(&mut self, now: Duration) -> Result<BreakerPermit, Duration> {
        match self.until {
            None => Ok(BreakerPermit::Regular),
            Some(until) if now < until => Err(until.saturating_sub(now)),
            Some(_) if self.probing => Err(Duration::ZERO),
            Some(_) => {
                self.probing = true;
                Ok(BreakerPermit::Probe)
            }
        }
    }

    /// Returns the time until the next call may pass, without claiming the probe; `None` if a call would pass now.
    pub fn retry_after(&self, now: Duration) -> Option<Duration> {
        let rest = self.until?.saturating_sub(now);
        (self.probing || !rest.is_zero()).then_some(rest)
    }

    /// Records that the source answered, with whatever result.
    pub fn succeeded(&mut self, permit: BreakerPermit) {
        // A call sent before the breaker opened says nothing about the current state.
        if permit == BreakerPermit::Probe || self.until.is_none() {
            *self = Self::default();
        }
    }

    /// Records that the source did not answer, or reported that it cannot. `random` is between 0 and 1.
    pub fn failed(&mut self, rule: BreakerPolicy, permit: BreakerPermit, now: Duration, random: f64) {
        if permit == BreakerPermit::Regular && self.until.is_some() {
            return;
        }
        self.failures = self.failures.saturating_add(1);
        self.probing = false;
        if rule.failures > 0 && self.failures >= rule.failures {
            let grown = rule.pause.saturating_mul(2_u32.saturating_pow(self.openings));
            // At least half the pause is certain; the jitter keeps modules that failed together from probing together.
            let jittered = grown.min(rule.longest_pause).mul_f64(0.5 + random.clamp(0.0, 1.0) / 2.0);
            self.until = Some(now + jittered);
            self.openings = self.openings.saturating_add(1);
        }
    }

    /// Records that a call ended without an outcome. A probe becomes available again.
    pub fn abandoned(&mut self, permit: BreakerPermit) {
        if permit == BreakerPermit::Probe {
            self.probing = false;
        }
    }

    pub fn state(&self) -> CircuitState {
        match self.until {
            None => CircuitState::Closed,
            Some(_) if self.probing => CircuitState::HalfOpen,
            Some(_) => CircuitState::Open,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: BreakerPolicy =
        BreakerPolicy { failures: 3, pause: Duration::from_secs(5), longest_pause: Duration::from_secs(15) };

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn opened() -> Breaker {
        let mut breaker = Breaker::default();
        for _ in 0..3 {
            let permit = breaker.admit(at(0)).expect("closed");
            breaker.failed(RULE, permit, at(0), 1.0);
        }
        breaker
    }

    #[test]
    fn it_opens_after_failures_in_a_row_and_not_before() {
        let mut breaker = Breaker::default();
        for _ in 0..10 {
            breaker.failed(RULE, BreakerPermit::Regular, at(0), 1.0);
            breaker.failed(RULE, BreakerPermit::Regular, at(0), 1.0);
            assert_eq!(breaker.admit(at(0)), Ok(BreakerPermit::Regular));
            breaker.succeeded(BreakerPermit::Regular);
        }
        assert_eq!(breaker.state(), CircuitState::Closed);
        let mut breaker = opened();
        assert_eq!(breaker.state(), CircuitState::Open);
        assert_eq!(breaker.admit(at(2)), Err(at(3)));
        assert_eq!(breaker.retry_after(at(2)), Some(at(3)));
    }

    #[test]
    fn one_probe_passes_and_closes_it() {
        let mut breaker = opened();
        assert_eq!(breaker.retry_after(at(5)), None);
        assert_eq!(breaker.admit(at(5)), Ok(BreakerPermit::Probe));
        assert_eq!(breaker.state(), CircuitState::HalfOpen);
        assert_eq!(breaker.admit(at(5)), Err(at(0)), "only one");
        assert_eq!(breaker.retry_after(at(5)), Some(at(0)));
        breaker.succeeded(BreakerPermit::Probe);
        assert_eq!((breaker.state(), breaker.admit(at(5))), (CircuitState::Closed, Ok(BreakerPermit::Regular)));
    }

    #[test]
    fn a_probe_that_fails_opens_it_for_longer_up_to_a_limit() {
        let mut breaker = opened();
        let mut now = at(5);
        for pause in [10, 15, 15] {
            let permit = breaker.admit(now).expect("a probe");
            breaker.failed(RULE, permit, now, 1.0);
            assert_eq!(breaker.admit(now), Err(at(pause)));
            now += at(pause);
        }
    }

    #[test]
    fn a_probe_that_is_given_up_leaves_the_question_to_the_next() {
        let mut breaker = opened();
        let permit = breaker.admit(at(5)).expect("a probe");
        breaker.abandoned(permit);
        assert_eq!(breaker.admit(at(5)), Ok(BreakerPermit::Probe));
    }

    #[test]
    fn what_was_sent_before_it_opened_changes_nothing() {
        let mut breaker = opened();
        breaker.succeeded(BreakerPermit::Regular);
        breaker.failed(RULE, BreakerPermit::Regular, at(4), 1.0);
        breaker.abandoned(BreakerPermit::Regular);
        assert_eq!(breaker.admit(at(4)), Err(at(1)));
    }

    #[test]
    fn the_pause_is_jittered_and_zero_failures_mean_never() {
        let mut breaker = Breaker::default();
        for _ in 0..3 {
            breaker.failed(RULE, BreakerPermit::Regular, at(0), 0.0);
        }
        assert_eq!(breaker.admit(at(0)), Err(RULE.pause / 2));
        let mut never = Breaker::default();
        for _ in 0..100 {
            never.failed(BreakerPolicy { failures: 0, ..RULE }, BreakerPermit::Regular, at(0), 1.0);
        }
        assert_eq!(never.state(), CircuitState::Closed);
    }
}
