//! Event streams of streamable HTTP: the response stream of a request, resumed where the server supports that, and the
//! GET stream for messages between calls.

use std::sync::Arc;
use std::time::Duration;

use hikite_core::error::Error;
use hikite_egress::ResponseBody;
use hikite_wire::sse::{EventTooLarge, SseParser};
use http::header::{ACCEPT, HeaderName, HeaderValue};
use http::{Method, Response};
use http_body_util::{BodyExt, Full};
use tokio::sync::oneshot;

use super::{HttpInner, HttpSender, is_stream};
use crate::authorized_client::too_large;
use crate::error::{FailureReason, UpstreamError};
use crate::pending::UpstreamResponse;

const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");
const STREAM: HeaderValue = HeaderValue::from_static("text/event-stream");
/// Resumptions without progress before the call fails.
const RESUMES: u32 = 5;
const RESUME_PAUSE: Duration = Duration::from_secs(1);
const SHORTEST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

struct EventStreamReader {
    body: ResponseBody,
    parser: SseParser,
    last_event: Option<String>,
    pause: Duration,
}

impl HttpSender {
    /// Opens the GET stream for the lifetime of the connection and waits, for a limited time, until it is open or
    /// refused.
    pub(crate) async fn listen(&self) {
        let inner = Arc::clone(&self.inner);
        let (opened, opening) = oneshot::channel();
        self.inner.context.tasks.spawn(async move {
            inner.context.closed.run_until_cancelled(inner.keep_listening(opened)).await;
        });
        self.inner.context.handshake_steps.stream.wait(opening, &self.inner.context.tasks).await;
    }
}

impl HttpInner {
    /// Reads the stream of one request until its response arrives, resuming it where the server supports that.
    pub(super) async fn follow(
        &self,
        id: u64,
        body: ResponseBody,
        resumable: bool,
    ) -> Result<UpstreamResponse, UpstreamError> {
        let mut reading = EventStreamReader {
            body,
            parser: SseParser::new(self.context.answer_bytes),
            last_event: None,
            pause: RESUME_PAUSE,
        };
        let mut resumes = 0;
        loop {
            let before = reading.last_event.clone();
            if let Some(answer) = self.read_stream(&mut reading, Some(id)).await? {
                return Ok(answer);
            }
            if reading.last_event != before {
                // The stream made progress; the call's deadline bounds the total.
                resumes = 0;
            }
            let Some(last) = reading.last_event.clone().filter(|_| resumable && resumes < RESUMES) else {
                let error = self.broken("its stream ended before the response");
                return Err(UpstreamError::new(FailureReason::NoResponse, error));
            };
            resumes += 1;
            tokio::time::sleep(reading.pause).await;
            let answer = self.open_stream(Some(&last)).await?;
            if !answer.status().is_success() {
                let what = "its stream ended before the response and cannot be resumed";
                return Err(self.broken(what).into());
            }
            reading.body = answer.into_body();
            reading.parser = SseParser::new(self.context.answer_bytes);
        }
    }

    /// Handles the messages of a stream. Returns the response to `id`, or `None` at the end of the stream.
    async fn read_stream(
        &self,
        reading: &mut EventStreamReader,
        id: Option<u64>,
    ) -> Result<Option<UpstreamResponse>, UpstreamError> {
        while let Some(frame) = reading.body.frame().await {
            let Ok(frame) = frame else { return Ok(None) };
            let Some(data) = frame.data_ref() else { continue };
            reading.parser.feed(data).map_err(|error| self.too_large(&error))?;
            while let Some(event) = reading.parser.next_event().map_err(|error| self.too_large(&error))? {
                reading.last_event = event.id.or(reading.last_event.take());
                if let Some(pause) = event.retry_ms {
                    reading.pause = Duration::from_millis(pause).clamp(SHORTEST_PAUSE, LONGEST_PAUSE);
                }
                if event.data.is_empty() {
                    continue;
                }
                if let Some(answer) = self.take(id, &event.data) {
                    return Ok(Some(answer));
                }
            }
        }
        Ok(None)
    }

    /// Keeps the GET stream open if the server has one. Drops `opened` after the first attempt.
    async fn keep_listening(&self, opened: oneshot::Sender<()>) {
        let mut opened = Some(opened);
        let mut last = None;
        let mut pause = RESUME_PAUSE;
        loop {
            let answer = self.open_stream(last.as_deref()).await;
            drop(opened.take());
            match answer {
                Ok(answer) if answer.status().is_success() && is_stream(&answer) => {
                    let parser = SseParser::new(self.context.answer_bytes);
                    let mut reading = EventStreamReader { body: answer.into_body(), parser, last_event: last, pause };
                    if let Err(error) = self.read_stream(&mut reading, None).await {
                        tracing::debug!(
                            module = &*self.context.name,
                            error = error.log_text(),
                            "the event stream was interrupted"
                        );
                    }
                    (last, pause) = (reading.last_event, reading.pause);
                }
                Ok(answer) if answer.status().is_server_error() => pause = (pause * 2).min(LONGEST_PAUSE),
                // The server has no such stream, or the session is over.
                Ok(_) => return,
                Err(_) => pause = (pause * 2).min(LONGEST_PAUSE),
            }
            tokio::time::sleep(pause).await;
        }
    }

    async fn open_stream(&self, last_event: Option<&str>) -> Result<Response<ResponseBody>, UpstreamError> {
        let mut request = self.bare(Method::GET, Full::default());
        request.headers_mut().insert(ACCEPT, STREAM);
        if let Some(last) = last_event.and_then(|last| HeaderValue::from_str(last).ok()) {
            request.headers_mut().insert(LAST_EVENT, last);
        }
        self.authorized_client.send(request).await
    }

    fn too_large(&self, error: &EventTooLarge) -> Error {
        too_large(&self.context.name, self.context.answer_bytes).because(error.to_string())
    }
}
