//! Sends HTTP requests to a remote server with its access token, and retries when the token is refused and a newer one
//! is available. A request refused for its token has not run.

use std::sync::Arc;

use hikite_egress::{EgressClient, RequestBody, ResponseBody, read};
use http::{Request, Response};

use crate::error::UpstreamError;
use crate::http::failure;
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
