//! The transport of 2024-11-05, the client's side: one event stream in, and an endpoint that it names for
//! everything out.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hikite_core::error::{Error, Kind};
use hikite_core::source::Origin;
use hikite_egress::{Body, read, resolve_same_origin};
use hikite_wire::sse::Parser;
use http::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue};
use http::{Method, Request, Response, Uri};
use http_body_util::{BodyExt, Full};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::carry;
use crate::connection::Connection;
use crate::entry::Entry;
use crate::outbound::Outbound;
use crate::patience;

#[derive(Clone, Debug)]
pub(crate) struct SseSender {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    name: Arc<str>,
    entry: Entry,
    endpoint: Uri,
    headers: HeaderMap,
    closed: CancellationToken,
    tasks: TaskTracker,
    answer_bytes: usize,
}

/// For a message that nobody waits for.
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) async fn connect(
    connection: &Arc<Connection>,
    entry: Entry,
    url: Uri,
    headers: HeaderMap,
    answer_bytes: usize,
) -> Result<(), Error> {
    let name = Arc::clone(&connection.name);
    let failed = |what: String| Error::new(Kind::UpstreamUnavailable, format!("`{name}` failed: {what}"));
    let mut request = Request::new(Full::default());
    *request.uri_mut() = url.clone();
    *request.headers_mut() = headers.clone();
    request.headers_mut().insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
    let answer = entry.send(request).await?;
    if !answer.status().is_success() {
        return Err(refused(&name, &answer));
    }
    let mut stream = Stream { body: answer.into_body(), parser: Parser::new(answer_bytes) };
    let named = loop {
        match stream.next().await {
            Some(event) if event.name.as_deref() == Some("endpoint") => break event.data,
            Some(_) => {}
            None => return Err(failed("its stream ended before it named an endpoint".into())),
        }
    };
    let endpoint = resolve_same_origin(&url, &String::from_utf8_lossy(&named))
        .ok_or_else(|| failed("the endpoint it names is on another host".into()))?;
    let (closed, tasks) = (connection.closed.clone(), connection.tasks.clone());
    let inner = Inner { name: Arc::clone(&name), entry, endpoint, headers, closed, tasks, answer_bytes };
    connection.attach(Outbound::Sse(SseSender { inner: Arc::new(inner) }));
    connection.tasks.spawn(read_on(Arc::clone(connection), stream));
    Ok(())
}

async fn read_on(connection: Arc<Connection>, mut stream: Stream) {
    let closed = connection.closed.clone();
    let reading = async {
        while let Some(event) = stream.next().await {
            if !event.data.is_empty() {
                connection.receive(&event.data, None);
            }
        }
    };
    closed.run_until_cancelled(reading).await;
    let reason = format!("`{}` is gone: its event stream ended", connection.name);
    connection.broke(Error::new(Kind::UpstreamUnavailable, reason));
}

impl SseSender {
    pub(crate) async fn post(&self, message: Bytes, origin: &Origin) -> Result<(), Error> {
        let inner = &self.inner;
        let mut request = Request::new(Full::new(message));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = inner.endpoint.clone();
        *request.headers_mut() = inner.headers.clone();
        request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        carry::into_headers(request.headers_mut(), origin);
        let answer = inner.entry.send(request).await?;
        let taken = if answer.status().is_success() { Ok(()) } else { Err(refused(&inner.name, &answer)) };
        let _ = read(answer.into_body(), inner.answer_bytes).await;
        taken
    }

    pub(crate) fn send(&self, message: Bytes) {
        let sender = self.clone();
        self.inner.tasks.spawn(async move {
            let none = Origin::default();
            let posting = tokio::time::timeout(PATIENCE, sender.post(message, &none));
            if let Some(Ok(Err(error))) = sender.inner.closed.run_until_cancelled(posting).await {
                tracing::debug!(
                    module = &*sender.inner.name,
                    error = error.guarded(),
                    "a message was not delivered"
                );
            }
        });
    }
}

fn refused(name: &str, answer: &Response<Body>) -> Error {
    let status = answer.status();
    let error = Error::new(Kind::UpstreamUnavailable, format!("`{name}` failed: it answered {status}"));
    patience::judged(error, status, patience::wait(answer.headers()))
}

struct Stream {
    body: Body,
    parser: Parser,
}

impl Stream {
    /// The next event; `None` at the end, or where the stream no longer makes sense.
    async fn next(&mut self) -> Option<hikite_wire::sse::Event> {
        loop {
            if let Some(event) = self.parser.next_event().ok()? {
                return Some(event);
            }
            let frame = self.body.frame().await?.ok()?;
            if let Some(data) = frame.data_ref() {
                self.parser.feed(data).ok()?;
            }
        }
    }
}
