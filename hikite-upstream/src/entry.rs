//! How a request gets into a remote server: with what the server wants to see, and once more where that was refused and
//! there is something newer to show. What is refused for want of a login has not run.

use std::sync::Arc;

use hikite_core::error::Error;
use hikite_egress::{Body, Client, Content, SendError, read};
use http::{Request, Response};

use crate::http::failure;
use crate::oauth::Authorization;

/// A request is refused so often before it is given up.
const ATTEMPTS: usize = 3;
/// The rest of a refusal is read up to here, so that its connection can be used again.
const REFUSAL_BYTES: usize = 64 * 1024;

#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) name: Arc<str>,
    pub(crate) client: Client,
    /// Nothing where the credentials stand in the headers.
    pub(crate) authorization: Option<Arc<Authorization>>,
}

impl Entry {
    pub(crate) async fn send(&self, request: Request<Content>) -> Result<Response<Body>, Error> {
        let url = request.uri().clone();
        let failed = |error: SendError| failure(&self.name, &url, &error);
        let Some(authorization) = &self.authorization else {
            return self.client.send(request).await.map_err(failed);
        };
        for _ in 0..ATTEMPTS {
            let mut attempt = request.clone();
            let shown = authorization.show(&mut attempt).await?;
            let answer = self.client.send(attempt).await.map_err(failed)?;
            if !Authorization::is_refusal(answer.status(), answer.headers()) {
                return Ok(answer);
            }
            let (status, headers) = (answer.status(), answer.headers().clone());
            let _ = read(answer.into_body(), REFUSAL_BYTES).await;
            // Boxed, so that it takes no room in a call that is let in.
            let seen_to = Box::pin(authorization.refused(status, &headers, shown)).await;
            seen_to.map_err(|error| Error { unsent: true, ..error })?;
        }
        Err(authorization.useless())
    }
}
