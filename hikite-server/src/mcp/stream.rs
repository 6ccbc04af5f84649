//! Event streams as response bodies.

use std::time::Duration;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream::unfold;
use hikite_core::source::BoxFuture;
use hikite_wire::sse;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::mcp::journal::JournalReader;

/// Idle time after which a keep-alive comment is sent.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Builds the stream of one request: messages while it runs, then its response. Dropping the body cancels the request.
pub(crate) fn of_request(first: Bytes, messages: mpsc::Receiver<Bytes>, answer: BoxFuture<'static, Bytes>) -> Response {
    let state = RequestStream { first: Some(first), messages, answer: Some(answer), last: None };
    response(Body::from_stream(unfold(state, |mut state| async move {
        let event = state.next().await?;
        Some((Ok::<_, std::convert::Infallible>(event), state))
    })))
}

struct RequestStream {
    first: Option<Bytes>,
    messages: mpsc::Receiver<Bytes>,
    answer: Option<BoxFuture<'static, Bytes>>,
    last: Option<Bytes>,
}

impl RequestStream {
    async fn next(&mut self) -> Option<Bytes> {
        if let Some(first) = self.first.take() {
            return Some(sse::message(&first));
        }
        if let Some(answer) = &mut self.answer {
            tokio::select! {
                biased;
                Some(message) = self.messages.recv() => return Some(sse::message(&message)),
                last = answer => {
                    self.last = Some(last);
                    self.answer = None;
                }
                () = tokio::time::sleep(KEEP_ALIVE) => return Some(Bytes::from_static(sse::KEEP_ALIVE)),
            }
        }
        // Messages sent before the response are delivered before it.
        match self.messages.try_recv() {
            Ok(message) => Some(sse::message(&message)),
            Err(_) => self.last.take().map(|last| sse::message(&last)),
        }
    }
}

/// Builds a stream that lasts until its sender is dropped or the server stops; `farewell` is then sent. `held` lives as
/// long as the body.
pub(crate) fn of_messages<H: Send + 'static>(
    first: Option<Bytes>,
    messages: mpsc::Receiver<Bytes>,
    farewell: Option<Bytes>,
    stopping: CancellationToken,
    held: H,
) -> Response {
    let state = (first, messages, farewell, stopping, held);
    response(Body::from_stream(unfold(state, |(first, mut messages, mut farewell, stopping, held)| async move {
        let event = match first {
            Some(first) => first,
            None => tokio::select! {
                biased;
                message = messages.recv() => sse::message(&message?),
                () = stopping.cancelled() => sse::message(&farewell.take()?),
                () = tokio::time::sleep(KEEP_ALIVE) => Bytes::from_static(sse::KEEP_ALIVE),
            },
        };
        Some((Ok::<_, std::convert::Infallible>(event), (None, messages, farewell, stopping, held)))
    })))
}

/// Builds a stream from a journal. The id of an event is the number of the stream and of the next message, where a
/// client resumes. `held` lives as long as the body.
pub(crate) fn of_journal<H: Send + 'static>(
    number: u64,
    reader: JournalReader,
    stopping: CancellationToken,
    held: H,
) -> Response {
    let state = (reader, stopping, held);
    response(Body::from_stream(unfold(state, move |(mut reader, stopping, held)| async move {
        let event = tokio::select! {
            biased;
            message = reader.next() => {
                let (place, message) = message?;
                sse::numbered(&format!("{number}-{}", place + 1), &message)
            }
            () = stopping.cancelled() => return None,
            () = tokio::time::sleep(KEEP_ALIVE) => Bytes::from_static(sse::KEEP_ALIVE),
        };
        Some((Ok::<_, std::convert::Infallible>(event), (reader, stopping, held)))
    })))
}

fn response(body: Body) -> Response {
    let headers = [
        (CONTENT_TYPE, "text/event-stream"),
        (CACHE_CONTROL, "no-cache, no-transform"),
        (HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    (headers, body).into_response()
}
