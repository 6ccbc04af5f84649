//! Sends HTTP requests to a remote server with its access token, and retries when the token is refused and a newer one
//! is available. A request refused for its token has not run.

use std::sync::Arc;

use hikite_core::error::{Error, ErrorKind};
use hikite_egress::{EgressClient, RequestBody, ResponseBody, SendError, read};
use http::{Request, Response, Uri};

use crate::error::{FailureReason, UpstreamError};
use crate::oauth::{Authorization, SentTokens};

/// Attempts per request.
const ATTEMPTS: usize = 3;
/// Bytes read from a refusal, so that its HTTP connection can be reused.
const REFUSAL_BYTES: usize = 64 * 1024;

#[derive(Clone, Debug)]
pub(crate) struct AuthorizedClient {
    pub(crate) name: Arc<str>,
    pub(crate) client: EgressClient,
    /// `None` if the credentials are in the configured headers.
    pub(crate) authorization: Option<Arc<Authorization>>,
}

impl AuthorizedClient {
    pub(crate) async fn send(&self, request: Request<RequestBody>) -> Result<Response<ResponseBody>, UpstreamError> {
        let Some(authorization) = &self.authorization else {
            let url = request.uri().clone();
            return self.client.send(request).await.map_err(|error| failure(&self.name, &url, &error));
        };
        for _ in 0..ATTEMPTS {
            let mut attempt = request.clone();
            let sent_tokens = authorization.attach_token(&mut attempt).await?;
            let failed = |error| failure(&self.name, request.uri(), &error);
            let answer = self.client.send(attempt).await.map_err(failed)?;
            if !Authorization::is_refusal(answer.status(), answer.headers()) {
                return Ok(answer);
            }
            // Boxed to keep it out of the future of an authorized call.
            Box::pin(renew_token(authorization, answer, sent_tokens)).await?;
        }
        Err(authorization.refused_repeatedly().into())
    }
}

/// Obtains a newer token after a refusal.
async fn renew_token(
    authorization: &Authorization,
    refusal: Response<ResponseBody>,
    sent_tokens: SentTokens,
) -> Result<(), UpstreamError> {
    let (status, headers) = (refusal.status(), refusal.headers().clone());
    let _ = read(refusal.into_body(), REFUSAL_BYTES).await;
    authorization.refused(status, &headers, sent_tokens).await.map_err(UpstreamError::unsent)
}

/// Returns the error for a response over `limits.answer_bytes`.
pub(crate) fn too_large(name: &str, limit: usize) -> Error {
    Error::new(ErrorKind::PayloadTooLarge, format!("The response of `{name}` is larger than {limit} bytes."))
        .hint("Ask for less, or raise `limits.answer_bytes`.")
}

/// Converts a transport error. The URL goes only to the log.
pub(crate) fn failure(name: &str, url: &Uri, error: &SendError) -> UpstreamError {
    let unavailable = |what: &str| Error::new(ErrorKind::UpstreamUnavailable, format!("`{name}` {what}."));
    let error = match error {
        SendError::Connect(reason) => {
            let error = unavailable("cannot be reached").because(format!("{}: {reason}", origin(url)));
            return UpstreamError::new(FailureReason::Unreachable, error);
        }
        SendError::TooLarge(limit) => too_large(name, *limit),
        SendError::Certificates(_) => {
            unavailable("cannot be reached: the system's certificates cannot be read").because(error.to_string())
        }
        SendError::Refused => unavailable("cannot be reached: its address is not allowed"),
        SendError::Transfer(reason) => unavailable("failed: the connection was lost").because(reason.as_str()),
    };
    error.into()
}

/// Returns scheme and host: the loggable part of a URL, whose path or query may contain a key.
fn origin(url: &Uri) -> String {
    format!("{}://{}", url.scheme_str().unwrap_or("http"), url.authority().map_or("", |a| a.as_str()))
}
