//! Retry policy: backoff between attempts, and a budget per module that keeps retries from multiplying an outage.
//!
//! It is ours because a budget is shared by all calls of a module, and libraries that retry a future count for that
//! future alone.

use std::time::Duration;

use crate::call_policy::RetryPolicy;

/// Longest backoff.
pub const BACKOFF_MAX: Duration = Duration::from_secs(30);

/// Exponential backoff with full jitter: a random part of the delay, doubled for every attempt made. `random` lies
/// between 0 and 1.
pub fn backoff(retry: RetryPolicy, made: u32, random: f64) -> Duration {
    let longest = retry.delay.saturating_mul(2_u32.saturating_pow(made)).min(BACKOFF_MAX);
    longest.mul_f64(random.clamp(0.0, 1.0))
}

/// Retry credit earned per call.
const CREDIT_PER_CALL: f64 = 0.2;
/// Most credit that successful calls accumulate. One retry: an outage would spend any savings at once.
const CREDIT_MAX: f64 = 1.0;
/// Consecutive failures that earn no credit, because their share was saved up front.
const FAILURES_WITHOUT_CREDIT: u32 = 5;
/// Most credit that failing calls accumulate.
const FAILING_CREDIT_MAX: f64 = 10.0;

/// Retry budget of one module. Of five or more consecutive failing calls, at most a fifth is retried, whatever came
/// before; of fewer, one call.
#[derive(Clone, Copy, Debug)]
pub struct RetryBudget {
    credit: f64,
    /// Calls that failed since the last success; retries are not counted.
    failures: u32,
}

impl Default for RetryBudget {
    fn default() -> Self {
        Self { credit: CREDIT_MAX, failures: 0 }
    }
}

impl RetryBudget {
    /// Records a successful call; `first` if its first attempt succeeded.
    pub fn succeeded(&mut self, first: bool) {
        self.failures = 0;
        self.credit = (self.credit + if first { CREDIT_PER_CALL } else { 0.0 }).min(CREDIT_MAX);
    }

    /// Records that the first attempt of a call failed.
    pub fn failed(&mut self) {
        self.failures = self.failures.saturating_add(1);
        // The first failures only pay back the saved credit.
        if self.failures > FAILURES_WITHOUT_CREDIT {
            self.credit = (self.credit + CREDIT_PER_CALL).min(FAILING_CREDIT_MAX);
        }
    }

    /// Takes one retry from the budget; returns `false` if it is exhausted.
    pub fn take(&mut self) -> bool {
        // 0.2 has no exact binary representation; five shares must still add up to one retry.
        let enough = self.credit > 1.0 - CREDIT_PER_CALL / 2.0;
        if enough {
            self.credit = (self.credit - 1.0).max(0.0);
        }
        enough
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_and_are_jittered_from_nothing_to_all() {
        let retry = RetryPolicy { attempts: 9, delay: Duration::from_millis(100) };
        let longest: Vec<u128> = (0..4).map(|made| backoff(retry, made, 1.0).as_millis()).collect();
        assert_eq!(longest, [100, 200, 400, 800]);
        assert_eq!(backoff(retry, 3, 0.0), Duration::ZERO);
        assert_eq!(backoff(retry, 2, 0.5), Duration::from_millis(200));
        assert_eq!(backoff(retry, u32::MAX, 1.0), BACKOFF_MAX);
    }

    /// Lets every call fail and retry as often as the budget allows.
    fn attempts_in_outage(budget: &mut RetryBudget, calls: u32) -> u32 {
        let mut further = 0;
        for _ in 0..calls {
            budget.failed();
            while budget.take() {
                further += 1;
            }
        }
        further
    }

    #[test]
    fn an_outage_is_multiplied_by_a_fifth_at_most_whatever_came_before() {
        for healthy in [0, 1, 7, 10_000] {
            for calls in 1..500 {
                let mut budget = RetryBudget::default();
                (0..healthy).for_each(|_| budget.succeeded(true));
                let further = attempts_in_outage(&mut budget, calls);
                assert!(further <= (calls / 5).max(1), "{further} of {calls} after {healthy}");
                assert!(further >= (calls / 5).saturating_sub(1), "{further} of {calls}: it is not stingy");
            }
        }
    }

    #[test]
    fn one_outage_does_not_save_for_the_next() {
        let mut budget = RetryBudget::default();
        (0..1000).for_each(|_| budget.failed());
        budget.succeeded(false);
        assert!(attempts_in_outage(&mut budget, 10) <= 2);
    }

    #[test]
    fn calls_that_only_succeed_when_tried_again_use_up_their_share() {
        let mut budget = RetryBudget::default();
        let mut further = 0;
        for _ in 0..1000 {
            budget.failed();
            if budget.take() {
                further += 1;
                budget.succeeded(false);
            }
        }
        assert!(further <= 201, "{further}");
        (0..5).for_each(|_| budget.succeeded(true));
        assert!(budget.take(), "five good calls earn one more attempt");
    }
}
