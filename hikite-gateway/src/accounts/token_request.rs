//! One request to a provider's token endpoint. Transient failures (5xx, resets, timeouts) are retried with growing
//! delays while the refresh lease lasts; a refusal is not retried.

use std::time::Duration;

use hikite_core::call_policy::RetryPolicy;
use hikite_core::credential::TokenRequest;
use hikite_core::error::{Error, ErrorKind};
use hikite_core::retry;
use tokio::time::Instant;

use super::AccountCredentials;
use super::provider::AccountProvider;
use super::token::{AccountTokens, TokenOutcome};
use crate::random;
use hikite_store::clock::now_ms;

/// Number of retries, and the delay before the first.
const RETRY: RetryPolicy = RetryPolicy { attempts: 3, delay: Duration::from_millis(400) };

impl AccountCredentials<'_> {
    /// Sends a token request. `before` supplies the refresh token if the provider returns no new one.
    pub(super) async fn send_token_request(
        self,
        provider: &AccountProvider,
        request: TokenRequest,
        before: Option<&AccountTokens>,
    ) -> Result<TokenOutcome, Error> {
        let limit = self.0.timing.lease.mul_f32(0.8).max(Duration::from_secs(2));
        let (end, each) = (Instant::now() + limit, limit / 2);
        let mut made = 0;
        loop {
            let answer = tokio::time::timeout(each, self.0.endpoint.post(request.clone())).await;
            let answer = answer.unwrap_or_else(|_| {
                let message = format!("{} does not respond.", provider.title);
                Err(Error::new(ErrorKind::UpstreamUnavailable, message).hint("Try again in a moment."))
            });
            let asked_to_wait = answer.as_ref().ok().and_then(|answer| answer.retry_after);
            let said = answer.map(|answer| TokenOutcome::read(provider, &answer, before, now_ms()));
            let is_short = match &said {
                Ok(said) => matches!(said, TokenOutcome::Transient(_)),
                Err(error) => error.kind == ErrorKind::UpstreamUnavailable,
            };
            // Half of the delay is not random: an endpoint that restarts needs a moment.
            let backoff = retry::backoff(RETRY, made, 0.5 + random::share() / 2.0);
            let backoff = backoff.max(asked_to_wait.unwrap_or_default());
            made += 1;
            if !is_short || made > RETRY.attempts || Instant::now() + backoff >= end {
                return said;
            }
            tracing::debug!(provider = %provider.name, attempt = made, "retrying the token request");
            tokio::time::sleep(backoff).await;
        }
    }
}
