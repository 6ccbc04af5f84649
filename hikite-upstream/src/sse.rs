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
use tokio_util::task::TaskTracker;

use crate::authorized_client::{AuthorizedClient, too_large};
use crate::error::UpstreamError;
use crate::retry_after;
use crate::trace_context;
use crate::transport::TransportContext;

#[derive(Clone, Debug)]
pub(crate) struct SseSender {
    inner: Arc<SseInner>,
}

#[derive(Debug)]
struct SseInner {
    authorized_client: AuthorizedClient,
    endpoint: Uri,
    headers: HeaderMap,
    context: TransportContext,
    /// Messages in flight that nobody waits for. The stream is closed after them.
    sends: TaskTracker,
}

/// Timeout of a message that nobody waits for.
const SEND_TIMEOUT: Duration = Duration::from_secs(30);
/// Timeout of the last messages of a closed connection, mostly cancellations.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// Opens the event stream and waits for the endpoint that it names.
pub(crate) async fn connect(
    context: TransportContext,
    authorized_client: AuthorizedClient,
    url: Uri,
    headers: HeaderMap,
) -> Result<(SseSender, SseStream), UpstreamError> {
    let name = Arc::clone(&context.name);
    let failed = |what: String| Error::new(ErrorKind::UpstreamUnavailable, format!("`{name}` failed: {what}."));
    let mut request = Request::new(Full::default());
    *request.uri_mut() = url.clone();
    *request.headers_mut() = headers.clone();
    request.headers_mut().insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
    let answer = authorized_client.send(request).await?;
    if !answer.status().is_success() {
        return Err(refused(&name, &answer).into());
    }
    let mut stream = SseStream { body: answer.into_body(), parser: SseParser::new(context.answer_bytes) };
    let named = loop {
        match stream.next().await {
            Ok(Some(event)) if event.name.as_deref() == Some("endpoint") => break event.data,
            Ok(Some(_)) => {}
            _ => return Err(failed("its stream ended before it named an endpoint".into()).into()),
        }
    };
    let endpoint = resolve_same_origin(&url, &String::from_utf8_lossy(&named))
        .ok_or_else(|| failed("its endpoint is on another host".into()))?;
    let inner = SseInner { authorized_client, endpoint, headers, context, sends: TaskTracker::new() };
    Ok((SseSender { inner: Arc::new(inner) }, stream))
}

impl SseSender {
    /// Reads the stream until the connection is closed. Returns the reason if the stream ends first.
    pub(crate) async fn read_events(&self, mut stream: SseStream, receive: impl Fn(&Bytes)) -> Option<Error> {
        let TransportContext { name, closed, answer_bytes, .. } = &self.inner.context;
        let reading = async {
            loop {
                match stream.next().await {
                    Ok(Some(event)) if event.data.is_empty() => {}
                    Ok(Some(event)) => receive(&event.data),
                    Ok(None) => {
                        let reason = format!("`{name}` is gone: its event stream ended.");
                        return Error::new(ErrorKind::UpstreamUnavailable, reason);
                    }
                    Err(error) => return too_large(name, *answer_bytes).because(error.to_string()),
                }
            }
        };
        let reason = closed.run_until_cancelled(reading).await;
        if reason.is_none() {
            // The session ends with its stream, and the last messages belong to it.
            self.inner.sends.close();
            let _ = tokio::time::timeout(CLOSE_TIMEOUT, self.inner.sends.wait()).await;
        }
        reason
    }

    pub(crate) async fn post(&self, message: Bytes, origin: &CallOrigin) -> Result<(), UpstreamError> {
        let inner = &self.inner;
        let mut request = Request::new(Full::new(message));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = inner.endpoint.clone();
        *request.headers_mut() = inner.headers.clone();
        request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        trace_context::into_headers(request.headers_mut(), origin);
        let answer = inner.authorized_client.send(request).await?;
        let taken =
            if answer.status().is_success() { Ok(()) } else { Err(refused(&inner.context.name, &answer).into()) };
        let _ = read(answer.into_body(), inner.context.answer_bytes).await;
        taken
    }

    pub(crate) fn send(&self, message: Bytes) {
        drop(self.post_detached(message));
    }

    /// Posts a notification and waits, for a limited time, until the server has received it.
    pub(crate) async fn deliver(&self, message: Bytes) {
        let received = self.post_detached(message);
        self.inner.context.handshake_steps.receipt.wait(received, &self.inner.context.tasks).await;
    }

    fn post_detached(&self, message: Bytes) -> JoinHandle<()> {
        let sender = self.clone();
        let sent = self.inner.sends.track_future(async move {
            let (inner, none) = (&sender.inner, CallOrigin::default());
            let patience = async {
                inner.context.closed.run_until_cancelled(tokio::time::sleep(SEND_TIMEOUT)).await;
                tokio::time::sleep(CLOSE_TIMEOUT).await;
            };
            let posted = tokio::select! {
                posted = sender.post(message, &none) => posted,
                () = patience => return,
            };
            if let Err(error) = posted {
                tracing::debug!(module = &*inner.context.name, error = error.log_text(), "a message was not delivered");
            }
        });
        self.inner.context.tasks.spawn(sent)
    }
}

fn refused(name: &str, answer: &Response<ResponseBody>) -> Error {
    let status = answer.status();
    let error = Error::new(ErrorKind::UpstreamUnavailable, format!("`{name}` failed: it returned {status}."));
    retry_after::classify(error, status, retry_after::wait(answer.headers()))
}

#[derive(Debug)]
pub(crate) struct SseStream {
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
