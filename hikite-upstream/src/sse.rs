//! Legacy SSE transport of 2024-11-05, client side: one event stream for incoming messages, which names the endpoint
//! for outgoing ones.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hikite_core::error::{Error, ErrorKind};
use hikite_core::source::CallOrigin;
use hikite_egress::{ResponseBody, read, resolve_same_origin};
use hikite_wire::sse::{EventTooLarge, SseParser};
use http::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue};
use http::{Method, Request, Response, Uri};
use http_body_util::{BodyExt, Full};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::authorized_client::AuthorizedClient;
use crate::connection::Connection;
use crate::error::UpstreamError;
use crate::handshake_steps::HandshakeSteps;
use crate::http::too_large;
use crate::outbound::Outbound;
use crate::retry_after;
use crate::trace_context;

#[derive(Clone, Debug)]
pub(crate) struct SseSender {
    inner: Arc<SseInner>,
}

#[derive(Debug)]
struct SseInner {
    name: Arc<str>,
    authorized_client: AuthorizedClient,
    endpoint: Uri,
    headers: HeaderMap,
    closed: CancellationToken,
    tasks: TaskTracker,
    /// Messages in flight that nobody waits for. The stream is closed after them.
    sends: TaskTracker,
    handshake_steps: HandshakeSteps,
    answer_bytes: usize,
}

/// Timeout of a message that nobody waits for.
const SEND_TIMEOUT: Duration = Duration::from_secs(30);
/// Timeout of the last messages of a closed connection, mostly cancellations.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

pub(crate) async fn connect(
    connection: &Arc<Connection>,
    authorized_client: AuthorizedClient,
    url: Uri,
    headers: HeaderMap,
    handshake_steps: HandshakeSteps,
    answer_bytes: usize,
) -> Result<(), UpstreamError> {
    let name = Arc::clone(&connection.name);
    let failed = |what: String| Error::new(ErrorKind::UpstreamUnavailable, format!("`{name}` failed: {what}."));
    let mut request = Request::new(Full::default());
    *request.uri_mut() = url.clone();
    *request.headers_mut() = headers.clone();
    request.headers_mut().insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
    let answer = authorized_client.send(request).await?;
    if !answer.status().is_success() {
        return Err(refused(&name, &answer).into());
    }
    let mut stream = SseStream { body: answer.into_body(), parser: SseParser::new(answer_bytes) };
    let named = loop {
        match stream.next().await {
            Ok(Some(event)) if event.name.as_deref() == Some("endpoint") => break event.data,
            Ok(Some(_)) => {}
            _ => return Err(failed("its stream ended before it named an endpoint".into()).into()),
        }
    };
    let endpoint = resolve_same_origin(&url, &String::from_utf8_lossy(&named))
        .ok_or_else(|| failed("its endpoint is on another host".into()))?;
    let (closed, tasks) = (connection.closed.clone(), connection.tasks.clone());
    let (name, sends) = (Arc::clone(&name), TaskTracker::new());
    let inner =
        SseInner { name, authorized_client, endpoint, headers, closed, tasks, sends, handshake_steps, answer_bytes };
    let sender = SseSender { inner: Arc::new(inner) };
    connection.attach(Outbound::Sse(sender.clone()));
    connection.tasks.spawn(read_events(Arc::clone(connection), sender, stream));
    Ok(())
}

async fn read_events(connection: Arc<Connection>, sender: SseSender, mut stream: SseStream) {
    let closed = connection.closed.clone();
    let reading = async {
        loop {
            match stream.next().await {
                Ok(Some(event)) if event.data.is_empty() => {}
                Ok(Some(event)) => connection.receive(&event.data, None),
                Ok(None) => {
                    let reason = format!("`{}` is gone: its event stream ended.", connection.name);
                    return Error::new(ErrorKind::UpstreamUnavailable, reason);
                }
                Err(error) => {
                    return too_large(&connection.name, sender.inner.answer_bytes).because(error.to_string());
                }
            }
        }
    };
    match closed.run_until_cancelled(reading).await {
        Some(reason) => connection.close_broken(reason),
        None => {
            // The session ends with its stream, and the last messages belong to it.
            sender.inner.sends.close();
            let _ = tokio::time::timeout(CLOSE_TIMEOUT, sender.inner.sends.wait()).await;
        }
    }
}

impl SseSender {
    pub(crate) async fn post(&self, message: Bytes, origin: &CallOrigin) -> Result<(), UpstreamError> {
        let inner = &self.inner;
        let mut request = Request::new(Full::new(message));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = inner.endpoint.clone();
        *request.headers_mut() = inner.headers.clone();
        request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        trace_context::into_headers(request.headers_mut(), origin);
        let answer = inner.authorized_client.send(request).await?;
        let taken = if answer.status().is_success() { Ok(()) } else { Err(refused(&inner.name, &answer).into()) };
        let _ = read(answer.into_body(), inner.answer_bytes).await;
        taken
    }

    pub(crate) fn send(&self, message: Bytes) {
        drop(self.post_detached(message));
    }

    /// Posts a notification and waits, for a limited time, until the server has received it.
    pub(crate) async fn deliver(&self, message: Bytes) {
        let received = self.post_detached(message);
        self.inner.handshake_steps.receipt.wait(received, &self.inner.tasks).await;
    }

    fn post_detached(&self, message: Bytes) -> JoinHandle<()> {
        let sender = self.clone();
        let sent = self.inner.sends.track_future(async move {
            let (inner, none) = (&sender.inner, CallOrigin::default());
            let patience = async {
                inner.closed.run_until_cancelled(tokio::time::sleep(SEND_TIMEOUT)).await;
                tokio::time::sleep(CLOSE_TIMEOUT).await;
            };
            let posted = tokio::select! {
                posted = sender.post(message, &none) => posted,
                () = patience => return,
            };
            if let Err(error) = posted {
                tracing::debug!(module = &*inner.name, error = error.log_text(), "a message was not delivered");
            }
        });
        self.inner.tasks.spawn(sent)
    }
}

fn refused(name: &str, answer: &Response<ResponseBody>) -> Error {
    let status = answer.status();
    let error = Error::new(ErrorKind::UpstreamUnavailable, format!("`{name}` failed: it returned {status}."));
    retry_after::classify(error, status, retry_after::wait(answer.headers()))
}

struct SseStream {
    body: ResponseBody,
    parser: SseParser,
}

impl SseStream {
    /// Returns the next event, or `None` at the end of the stream.
    async fn next(&mut self) -> Result<Option<hikite_wire::sse::SseEvent>, EventTooLarge> {
        loop {
            if let Some(event) = self.parser.next_event()? {
                return Ok(Some(event));
            }
            let Some(Ok(frame)) = self.body.frame().await else { return Ok(None) };
            if let Some(data) = frame.data_ref() {
                self.parser.feed(data)?;
            }
        }
    }
}
