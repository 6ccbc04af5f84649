//! Streamable HTTP, client side: every message is a POST answered with JSON or an event stream; a GET stream carries
//! messages that the server sends between calls.

mod stream;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hikite_core::error::{Error, ErrorKind};
use hikite_core::json::Raw;
use hikite_core::source::CallOrigin;
use hikite_egress::{ResponseBody, SendError, read};
use hikite_wire::message::{Message, MessageId, split};
use hikite_wire::stateless::supported_revisions;
use http::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use http::{Method, Request, Response, StatusCode, Uri};
use http_body_util::Full;
use parking_lot::RwLock;
use tokio::task::JoinHandle;
use tokio_util::task::TaskTracker;

use crate::authorized_client::{AuthorizedClient, failure};
use crate::error::{FailureReason, UpstreamError};
use crate::pending::UpstreamResponse;
use crate::retry_after;
use crate::revision;
use crate::trace_context;
use crate::transport::TransportContext;

pub(crate) const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
pub(crate) const REVISION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const JSON: HeaderValue = HeaderValue::from_static("application/json");
const BOTH: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");
/// Timeout of a message that nobody waits for.
const SEND_TIMEOUT: Duration = Duration::from_secs(30);
/// Timeout of the DELETE request that ends a session.
const SESSION_END_TIMEOUT: Duration = Duration::from_secs(2);

#[derive(Clone, Debug)]
pub(crate) struct HttpSender {
    inner: Arc<HttpInner>,
}

struct HttpInner {
    authorized_client: AuthorizedClient,
    url: Uri,
    /// Headers of every request: those of the definition, then session and revision once they are known.
    headers: RwLock<HeaderMap>,
    context: TransportContext,
    receive: MessageHandler,
    /// Messages in flight that nobody waits for. The session is ended after them.
    sends: TaskTracker,
}

/// Handler of messages that are no response to a request: the message, and the id of the request on whose stream it
/// came.
pub(crate) type MessageHandler = Box<dyn Fn(&Bytes, Option<u64>) + Send + Sync>;

impl std::fmt::Debug for HttpInner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpInner").field("context", &self.context).finish_non_exhaustive()
    }
}

impl HttpSender {
    pub(crate) fn new(
        context: TransportContext,
        authorized_client: AuthorizedClient,
        url: Uri,
        headers: HeaderMap,
        receive: MessageHandler,
    ) -> Self {
        let (headers, sends) = (RwLock::new(headers), TaskTracker::new());
        Self { inner: Arc::new(HttpInner { authorized_client, url, headers, context, receive, sends }) }
    }

    /// Posts one request and reads its response, resuming the stream if necessary. A request with `routing` headers is
    /// stateless: it carries no session, and its stream is never resumed.
    pub(crate) async fn request(
        &self,
        id: u64,
        message: Bytes,
        routing: Option<HeaderMap>,
        origin: &CallOrigin,
    ) -> Result<UpstreamResponse, UpstreamError> {
        let inner = &self.inner;
        let stateless = routing.is_some();
        let answer = inner.post(message, routing, origin).await?;
        let status = answer.status();
        if let Some(session) = answer.headers().get(SESSION).filter(|_| !stateless) {
            inner.headers.write().insert(SESSION, session.clone());
        }
        // Boxed to keep them out of the future of a call that is answered at once.
        if !status.is_success() {
            return Box::pin(inner.refused(id, status, answer, stateless)).await;
        }
        if is_stream(&answer) {
            return Box::pin(inner.follow(id, answer.into_body(), !stateless)).await;
        }
        let body = read(answer.into_body(), inner.context.answer_bytes).await.map_err(|error| inner.failed(&error))?;
        inner.answer(id, &body)
    }

    /// Posts a notification or a response without waiting.
    pub(crate) fn send(&self, message: Bytes) {
        drop(self.post_detached(message));
    }

    /// Posts a notification and waits, for a limited time, until the server has received it.
    pub(crate) async fn deliver(&self, message: Bytes) {
        let received = self.post_detached(message);
        self.inner.context.handshake_steps.receipt.wait(received, &self.inner.context.tasks).await;
    }

    fn post_detached(&self, message: Bytes) -> JoinHandle<()> {
        let inner = Arc::clone(&self.inner);
        let sent = self.inner.sends.track_future(async move {
            let sending = async {
                match inner.post(message, None, &CallOrigin::default()).await {
                    Ok(answer) => {
                        // Read to the end, so that the HTTP connection can be reused.
                        let _ = read(answer.into_body(), inner.context.answer_bytes).await;
                    }
                    Err(error) => {
                        tracing::debug!(
                            module = &*inner.context.name,
                            error = error.log_text(),
                            "a message was not delivered"
                        );
                    }
                }
            };
            let patience = async {
                inner.context.closed.run_until_cancelled(tokio::time::sleep(SEND_TIMEOUT)).await;
                // The last message of a connection is often a cancellation.
                tokio::time::sleep(SESSION_END_TIMEOUT).await;
            };
            tokio::select! {
                () = sending => {}
                () = patience => {}
            }
        });
        self.inner.context.tasks.spawn(sent)
    }

    /// Returns `true` if the server created a session.
    pub(crate) fn has_session(&self) -> bool {
        self.inner.headers.read().contains_key(SESSION)
    }

    /// Sets the negotiated revision for later requests, and ends the session when the connection closes.
    pub(crate) fn negotiated(&self, revision: &str) {
        if let Ok(value) = HeaderValue::from_str(revision) {
            self.inner.headers.write().insert(REVISION, value);
        }
        let inner = Arc::clone(&self.inner);
        self.inner.context.tasks.spawn(async move { inner.end_session().await });
    }
}

impl HttpInner {
    async fn post(
        &self,
        message: Bytes,
        routing: Option<HeaderMap>,
        origin: &CallOrigin,
    ) -> Result<Response<ResponseBody>, UpstreamError> {
        let mut request = self.bare(Method::POST, Full::new(message));
        let headers = request.headers_mut();
        if let Some(routing) = routing {
            headers.remove(SESSION);
            headers.extend(routing);
        }
        headers.insert(CONTENT_TYPE, JSON);
        headers.insert(ACCEPT, BOTH);
        trace_context::into_headers(headers, origin);
        self.authorized_client.send(request).await
    }

    fn bare(&self, method: Method, body: Full<Bytes>) -> Request<Full<Bytes>> {
        let mut request = Request::new(body);
        *request.method_mut() = method;
        *request.uri_mut() = self.url.clone();
        *request.headers_mut() = self.headers.read().clone();
        request
    }

    fn answer(&self, id: u64, body: &Bytes) -> Result<UpstreamResponse, UpstreamError> {
        if let Some(answer) = self.take(Some(id), body) {
            return Ok(answer);
        }
        let what = match Message::decode(body) {
            Ok(Message::Response { .. }) => "its response has the id of another request",
            _ => "its response is not a JSON-RPC response",
        };
        Err(UpstreamError::new(FailureReason::NoResponse, self.broken(what)))
    }

    /// Returns the response to `id` from a message or batch, and handles all other messages.
    fn take(&self, id: Option<u64>, data: &Bytes) -> Option<UpstreamResponse> {
        let is_own = |answered: &MessageId| id.is_some() && answered.as_number() == id;
        let mut found = None;
        // Servers of 2025-03-26 may send batches.
        for message in split(data).unwrap_or_else(|| vec![data.clone()]) {
            match Message::decode(&message) {
                Ok(Message::Response { id: answered, body }) if is_own(&answered) => found = Some(body),
                _ => (self.receive)(&message, id),
            }
        }
        found
    }

    /// Handles an error status: relays a JSON-RPC error from the body, else returns an error of our own.
    async fn refused(
        &self,
        id: u64,
        status: StatusCode,
        answer: Response<ResponseBody>,
        stateless: bool,
    ) -> Result<UpstreamResponse, UpstreamError> {
        let had_session = !stateless && self.headers.read().contains_key(SESSION);
        let wait = retry_after::wait(answer.headers());
        let body = read(answer.into_body(), self.context.answer_bytes).await.unwrap_or_default();
        if status == StatusCode::NOT_FOUND && had_session {
            return Err(UpstreamError::new(FailureReason::SessionLost, self.broken("it no longer knows the session")));
        }
        let relayed = match Message::decode(&body) {
            Ok(Message::Response { id: answered, body: Err(error) }) if may_answer(&answered, id) => Some(error),
            _ => error_without_id(&body).filter(|_| stateless),
        };
        let no_access = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
        let credentials = || format!("Check the credentials in `mcpServers.{}.headers`.", self.context.name);
        if let Some(error) = relayed.map(Error::from_upstream) {
            return Err(match status {
                _ if no_access => error.hint(credentials()).into(),
                StatusCode::TOO_MANY_REQUESTS => retry_after::classify(error, status, wait).into(),
                _ if status.is_client_error() => revision::classify_refusal(error, stateless),
                _ => retry_after::classify(error, status, wait).into(),
            });
        }
        let error = retry_after::classify(self.broken(&format!("it returned {status}")), status, wait);
        Err(match status {
            _ if no_access => error.hint(credentials()).into(),
            StatusCode::BAD_REQUEST if stateless && revision::mentions_session(&String::from_utf8_lossy(&body)) => {
                UpstreamError::new(FailureReason::RevisionChanged, error)
            }
            StatusCode::BAD_REQUEST | StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED => {
                let error = error.hint(format!("Check `mcpServers.{}.url`.", self.context.name));
                UpstreamError::new(FailureReason::TransportRefused, error)
            }
            StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS => error.into(),
            _ if status.is_client_error() => UpstreamError::new(FailureReason::RequestDeclined, error),
            _ => error.into(),
        })
    }

    /// Ends the session at the server when the connection is closed.
    async fn end_session(self: Arc<Self>) {
        self.context.closed.cancelled().await;
        self.sends.close();
        let _ = tokio::time::timeout(SESSION_END_TIMEOUT, self.sends.wait()).await;
        if self.headers.read().contains_key(SESSION) {
            let session_end = self.authorized_client.send(self.bare(Method::DELETE, Full::default()));
            let _ = tokio::time::timeout(SESSION_END_TIMEOUT, session_end).await;
        }
    }

    fn broken(&self, what: &str) -> Error {
        Error::new(ErrorKind::UpstreamUnavailable, format!("`{}` failed: {what}.", self.context.name))
    }

    fn failed(&self, error: &SendError) -> UpstreamError {
        failure(&self.context.name, &self.url, error)
    }
}

/// Returns `true` if a refusal may be about our request. A server that cannot tell sends some other id: the Python SDK
/// sends `server-error`.
fn may_answer(answered: &MessageId, id: u64) -> bool {
    answered.as_number().is_none_or(|answered| answered == id)
}

/// Returns an error about revisions that lacks the id of its request.
fn error_without_id(body: &Bytes) -> Option<Raw> {
    let error = Raw::parse(body.clone()).ok()?.object()?.get("error")?.clone();
    supported_revisions(&error.object()?).map(|_| error)
}

fn is_stream(answer: &Response<ResponseBody>) -> bool {
    let kind = answer.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    kind.is_some_and(|kind| kind.starts_with("text/event-stream"))
}
