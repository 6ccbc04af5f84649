//! Sends one message to the collector, with a few retries where the status allows them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use bytes::Bytes;
use hikite_config::OtlpSection;
use hikite_core::secret::Secret;
use hikite_egress::{EgressClient, read};
use http::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use http::{Method, Request, StatusCode, Uri};
use http_body_util::Full;
use tokio_util::sync::CancellationToken;

use crate::runtime::header_map;

/// Maximum attempts per message, and the first pause between them.
const ATTEMPTS: u32 = 3;
const PAUSE: Duration = Duration::from_millis(500);
/// Maximum bytes read from a response.
const ANSWER_BYTES: usize = 64 * 1024;

#[derive(Debug)]
pub(crate) struct OtlpSender {
    client: EgressClient,
    url: Uri,
    headers: HeaderMap,
    timeout: Duration,
    what: &'static str,
    /// `true` if the last message arrived; only the first failure of an outage is logged.
    is_delivering: AtomicBool,
}

/// The reason a message did not arrive; `is_retryable` if a retry may succeed.
struct ExportFailure {
    reason: String,
    is_retryable: bool,
}

impl OtlpSender {
    pub(crate) fn new(client: &EgressClient, url: &Secret, otlp: &OtlpSection, what: &'static str) -> Result<Self> {
        let url = url.expose().parse().context("the address of the collector is not valid")?;
        let mut headers = header_map(&otlp.headers).context("`telemetry.otlp.headers`")?;
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-protobuf"));
        let is_delivering = AtomicBool::new(true);
        Ok(Self { client: client.clone(), url, headers, timeout: otlp.timeout, what, is_delivering })
    }

    /// Sends a message, and returns `true` if it arrived. There is only one attempt during shutdown.
    pub(crate) async fn send(&self, message: Vec<u8>, stopping: &CancellationToken) -> bool {
        let message = Bytes::from(message);
        let mut pause = PAUSE;
        for attempt in 1..=ATTEMPTS {
            let failure = match self.attempt(message.clone()).await {
                Ok(()) => {
                    if !self.is_delivering.swap(true, Ordering::Relaxed) {
                        tracing::info!("{} are accepted by the collector again", self.what);
                    }
                    return true;
                }
                Err(failure) => failure,
            };
            let ends = attempt == ATTEMPTS || !failure.is_retryable || stopping.is_cancelled();
            if ends || stopping.run_until_cancelled(tokio::time::sleep(pause)).await.is_none() {
                if self.is_delivering.swap(false, Ordering::Relaxed) {
                    tracing::warn!("{} are not accepted by the collector: {}", self.what, failure.reason);
                }
                return false;
            }
            pause *= 2;
        }
        false
    }

    async fn attempt(&self, message: Bytes) -> Result<(), ExportFailure> {
        let mut request = Request::new(Full::new(message));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.url.clone();
        *request.headers_mut() = self.headers.clone();
        let retryable = |reason: String| ExportFailure { reason, is_retryable: true };
        let exchange = async {
            let answer = self.client.send(request).await.map_err(|error| retryable(error.to_string()))?;
            let status = answer.status();
            // Read to its end, so that the connection can be used again.
            let _ = read(answer.into_body(), ANSWER_BYTES).await;
            Ok(status)
        };
        let status = tokio::time::timeout(self.timeout, exchange).await;
        let status = status.map_err(|_| retryable("it does not respond".into()))??;
        if status.is_success() {
            return Ok(());
        }
        let is_retryable = matches!(
            status,
            StatusCode::TOO_MANY_REQUESTS
                | StatusCode::BAD_GATEWAY
                | StatusCode::SERVICE_UNAVAILABLE
                | StatusCode::GATEWAY_TIMEOUT
        );
        Err(ExportFailure { reason: format!("it returned {status}"), is_retryable })
    }
}
