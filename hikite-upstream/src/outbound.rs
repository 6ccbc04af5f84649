//! Outgoing side of a transport: a queue to one writer (stdio), or one HTTP request per message (HTTP, SSE).

use bytes::Bytes;
use hikite_core::source::CallOrigin;
use http::HeaderMap;
use tokio::sync::mpsc;

use crate::error::UpstreamError;
use crate::http::HttpSender;
use crate::pending::UpstreamResponse;
use crate::sse::SseSender;

#[derive(Debug)]
pub(crate) enum Outbound {
    Stdio(mpsc::Sender<Bytes>),
    Http(HttpSender),
    Sse(SseSender),
}

impl Outbound {
    /// Sends a request. Streamable HTTP returns the response with it; the other transports deliver it on the
    /// connection's stream. `routing` holds the headers of a stateless request.
    pub(crate) async fn request(
        &self,
        id: u64,
        message: Bytes,
        routing: Option<HeaderMap>,
        origin: &CallOrigin,
    ) -> Result<Option<UpstreamResponse>, UpstreamError> {
        match self {
            Self::Stdio(queue) => {
                // A closed queue means a closed connection, which the caller notices by itself.
                let _ = queue.send(message).await;
                Ok(None)
            }
            Self::Http(sender) => sender.request(id, message, routing, origin).await.map(Some),
            Self::Sse(sender) => Box::pin(sender.post(message, origin)).await.map(|()| None),
        }
    }

    /// Sends a notification and waits until it is queued (stdio) or received.
    pub(crate) async fn deliver(&self, message: Bytes) {
        match self {
            Self::Stdio(queue) => drop(queue.send(message).await),
            Self::Http(sender) => sender.deliver(message).await,
            Self::Sse(sender) => sender.deliver(message).await,
        }
    }

    pub(crate) fn is_http(&self) -> bool {
        matches!(self, Self::Http(_))
    }

    /// Sends a notification or a response without waiting.
    pub(crate) fn send(&self, message: Bytes) {
        match self {
            Self::Stdio(queue) => {
                if queue.try_send(message).is_err() {
                    tracing::debug!("dropped a message to a server that does not read its input");
                }
            }
            Self::Http(sender) => sender.send(message),
            Self::Sse(sender) => sender.send(message),
        }
    }
}
