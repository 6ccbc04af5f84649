//! One request to a provider's token endpoint. Transient failures (5xx, resets, timeouts) are retried with growing
//! delays while the refresh lease lasts; a refusal is not retried.

use std::time::Duration;

use hikite_core::about::Retry;
use hikite_core::credential::TokenRequest;
use hikite_core::error::{Error, Kind};
use hikite_core::retry;
use tokio::time::Instant;

use super::Accounts;
use super::provider::Provider;
use super::token::{Said, Tokens};
use crate::clock::now_ms;
use crate::random;

/// Number of retries, and the delay before the first.
const RETRY: Retry = Retry { attempts: 3, delay: Duration::from_millis(400) };

impl Accounts {
    /// Sends a token request. `before` supplies the refresh token if the provider returns no new one.
    pub(super) async fn ask_endpoint(
        &self,
        provider: &Provider,
        request: TokenRequest,
        before: Option<&Tokens>,
    ) -> Result<Said, Error> {
        let limit = self.pace.lease.mul_f32(0.8).max(Duration::from_secs(2));
        let (end, each) = (Instant::now() + limit, limit / 2);
        let mut made = 0;
        loop {
            let answer = tokio::time::timeout(each, self.endpoint.post(request.clone())).await;
            let answer = answer.unwrap_or_else(|_| {
                let message = format!("{} does not answer", provider.title);
                Err(Error::new(Kind::UpstreamUnavailable, message).hint("try again in a moment"))
            });
            let asked_to_wait = answer.as_ref().ok().and_then(|answer| answer.retry_after);
            let said = answer.map(|answer| Said::read(provider, &answer, before, now_ms()));
            let is_short = match &said {
                Ok(said) => matches!(said, Said::Later(_)),
                Err(error) => error.kind == Kind::UpstreamUnavailable,
            };
            // Half of the delay is not random: an endpoint that restarts needs a moment.
            let pause = retry::pause(RETRY, made, 0.5 + random::share() / 2.0);
            let pause = pause.max(asked_to_wait.unwrap_or_default());
            made += 1;
            if !is_short || made > RETRY.attempts || Instant::now() + pause >= end {
                return said;
            }
            tracing::debug!(provider = %provider.name, attempt = made, "the token endpoint is asked again");
            tokio::time::sleep(pause).await;
        }
    }
}
