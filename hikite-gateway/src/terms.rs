//! Execution settings of one call: those of the call, else of the tool, else of the module, within the limits.

use std::time::Duration;

use hikite_core::about::{Policy, Promise, Retry};
use hikite_core::limits::Limits;

use crate::cache::Keep;
use crate::command::CallOptions;
use crate::gate::Throttle;

#[derive(Debug)]
pub(crate) struct Terms {
    pub(crate) timeout: Duration,
    /// The caller set a shorter timeout than the config.
    pub(crate) hasty: bool,
    /// Retry policy; `None` for calls that must not run twice.
    pub(crate) retry: Option<Retry>,
    /// Cache key and lifetime, if the result is cacheable.
    pub(crate) keep: Option<Keep>,
}

impl Terms {
    pub(crate) fn new(
        throttle: &Throttle,
        limits: &Limits,
        policy: Policy,
        promise: Promise,
        options: CallOptions,
    ) -> Self {
        let usual = policy.timeout.unwrap_or(throttle.timeout);
        let timeout = options.timeout.map_or(usual, |asked| asked.min(limits.call_timeout_max));
        let retry = options
            .retry
            .or(policy.retry)
            .filter(|_| promise.is_repeatable())
            .map(|retry| Retry { attempts: retry.attempts.min(limits.retry_attempts), ..retry });
        Self { timeout, hasty: timeout < usual, retry, keep: None }
    }

    /// Returns the settings of a read-only request.
    pub(crate) fn of_reading(throttle: &Throttle, limits: &Limits, policy: Policy) -> Self {
        let promise = Promise { read_only: true, idempotent: true };
        Self::new(throttle, limits, policy, promise, CallOptions::default())
    }

    /// Returns the settings of a request without retries, with the module's timeout.
    pub(crate) fn plain(throttle: &Throttle) -> Self {
        Self { timeout: throttle.timeout, hasty: false, retry: None, keep: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn terms(policy: Policy, promise: Promise, options: CallOptions) -> Terms {
        let throttle = Throttle { concurrency: 1, queue: 0, rate: None, timeout: SECOND * 30 };
        Terms::new(&throttle, &Limits::default(), policy, promise, options)
    }

    #[test]
    fn the_call_counts_over_the_tool_and_the_tool_over_the_module() {
        let policy = Policy { timeout: Some(SECOND * 5), ..Policy::default() };
        let asks = |seconds| CallOptions { timeout: Some(SECOND * seconds), ..CallOptions::default() };
        let timeout = |policy, options| {
            let terms = terms(policy, Promise::default(), options);
            (terms.timeout.as_secs(), terms.hasty)
        };
        assert_eq!(timeout(Policy::default(), CallOptions::default()), (30, false));
        assert_eq!(timeout(policy, CallOptions::default()), (5, false));
        assert_eq!(timeout(policy, asks(9)), (9, false));
        assert_eq!(timeout(policy, asks(2)), (2, true));
        assert_eq!(timeout(policy, asks(100_000)), (600, false), "the limit holds");
    }

    #[test]
    fn only_what_may_run_twice_is_ever_tried_again() {
        let retry = Retry { attempts: 99, delay: SECOND };
        let policy = Policy { retry: Some(retry), ..Policy::default() };
        let options = CallOptions { retry: Some(Retry { attempts: 1, ..retry }), ..CallOptions::default() };
        let attempts =
            |policy, promise, options| terms(policy, promise, options).retry.map(|retry| retry.attempts);
        let idempotent = Promise { idempotent: true, ..Promise::default() };
        let read_only = Promise { read_only: true, ..Promise::default() };
        assert_eq!(attempts(policy, Promise::default(), options), None);
        assert_eq!(attempts(Policy::default(), idempotent, CallOptions::default()), None, "off by default");
        assert_eq!(attempts(policy, idempotent, CallOptions::default()), Some(5), "the limit holds");
        assert_eq!(attempts(policy, read_only, options), Some(1));
    }
}
