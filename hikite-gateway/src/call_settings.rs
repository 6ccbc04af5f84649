//! Execution settings of one call: those of the call, else of the tool, else of the module, within the limits.

use std::time::Duration;

use hikite_core::call_policy::{CallPolicy, RetryPolicy, ToolHints};
use hikite_core::limits::Limits;

use crate::admission::Throttle;
use crate::cache::CacheRequest;
use crate::command::CallOptions;

#[derive(Debug)]
pub(crate) struct CallSettings {
    pub(crate) timeout: Duration,
    /// The caller set a shorter timeout than the config.
    pub(crate) has_short_timeout: bool,
    /// Retry policy; `None` for calls that must not run twice.
    pub(crate) retry: Option<RetryPolicy>,
    /// Cache key and lifetime, if the result is cacheable.
    pub(crate) cache_request: Option<CacheRequest>,
}

impl CallSettings {
    pub(crate) fn new(
        throttle: &Throttle,
        limits: &Limits,
        policy: CallPolicy,
        hints: ToolHints,
        options: CallOptions,
    ) -> Self {
        let usual = policy.timeout.unwrap_or(throttle.timeout);
        let timeout = options.timeout.map_or(usual, |asked| asked.min(limits.call_timeout_max));
        let retry = options
            .retry
            .or(policy.retry)
            .filter(|_| hints.is_safe_to_repeat())
            .map(|retry| RetryPolicy { attempts: retry.attempts.min(limits.retry_attempts), ..retry });
        Self { timeout, has_short_timeout: timeout < usual, retry, cache_request: None }
    }

    /// Returns the settings of a read-only request.
    pub(crate) fn for_read(throttle: &Throttle, limits: &Limits, policy: CallPolicy) -> Self {
        let hints = ToolHints { read_only: true, idempotent: true };
        Self::new(throttle, limits, policy, hints, CallOptions::default())
    }

    /// Returns the settings of a request without retries, with the module's timeout.
    pub(crate) fn plain(throttle: &Throttle) -> Self {
        Self { timeout: throttle.timeout, has_short_timeout: false, retry: None, cache_request: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn terms(policy: CallPolicy, hints: ToolHints, options: CallOptions) -> CallSettings {
        let throttle = Throttle { concurrency: 1, queue: 0, rate: None, timeout: SECOND * 30 };
        CallSettings::new(&throttle, &Limits::default(), policy, hints, options)
    }

    #[test]
    fn the_call_counts_over_the_tool_and_the_tool_over_the_module() {
        let policy = CallPolicy { timeout: Some(SECOND * 5), ..CallPolicy::default() };
        let asks = |seconds| CallOptions { timeout: Some(SECOND * seconds), ..CallOptions::default() };
        let timeout = |policy, options| {
            let terms = terms(policy, ToolHints::default(), options);
            (terms.timeout.as_secs(), terms.has_short_timeout)
        };
        assert_eq!(timeout(CallPolicy::default(), CallOptions::default()), (30, false));
        assert_eq!(timeout(policy, CallOptions::default()), (5, false));
        assert_eq!(timeout(policy, asks(9)), (9, false));
        assert_eq!(timeout(policy, asks(2)), (2, true));
        assert_eq!(timeout(policy, asks(100_000)), (600, false), "the limit holds");
    }

    #[test]
    fn only_what_may_run_twice_is_ever_tried_again() {
        let retry = RetryPolicy { attempts: 99, delay: SECOND };
        let policy = CallPolicy { retry: Some(retry), ..CallPolicy::default() };
        let options = CallOptions { retry: Some(RetryPolicy { attempts: 1, ..retry }), ..CallOptions::default() };
        let attempts = |policy, hints, options| terms(policy, hints, options).retry.map(|retry| retry.attempts);
        let idempotent = ToolHints { idempotent: true, ..ToolHints::default() };
        let read_only = ToolHints { read_only: true, ..ToolHints::default() };
        assert_eq!(attempts(policy, ToolHints::default(), options), None);
        assert_eq!(attempts(CallPolicy::default(), idempotent, CallOptions::default()), None, "off by default");
        assert_eq!(attempts(policy, idempotent, CallOptions::default()), Some(5), "the limit holds");
        assert_eq!(attempts(policy, read_only, options), Some(1));
    }
}
