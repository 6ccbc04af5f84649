//! Streamable HTTP, the client's side: every message is a POST whose answer is JSON or an event stream; a GET
//! stream carries what the server sends between calls.

use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use hikite_core::error::{Error, Kind};
use hikite_core::json::Raw;
use hikite_core::source::Origin;
use hikite_egress::{Body, SendError, read};
use hikite_wire::message::Message;
use hikite_wire::sse::{Parser, TooLarge};
use hikite_wire::stateless::supported_revisions;
use http::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use http::{Method, Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt, Full};
use parking_lot::RwLock;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::carry;
use crate::connection::Connection;
use crate::entry::Entry;
use crate::era::{self, ERA_LOST};
use crate::outbound::Outbound;
use crate::patience;
use crate::pending::Answer;

pub(crate) const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
pub(crate) const REVISION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");
const JSON: HeaderValue = HeaderValue::from_static("application/json");
const STREAM: HeaderValue = HeaderValue::from_static("text/event-stream");
const BOTH: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");
/// How often a broken stream is taken up again before the call counts as lost.
const RESUMES: u32 = 5;
const RESUME_PAUSE: Duration = Duration::from_secs(1);
const SHORTEST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// For a message that nobody waits for.
const PATIENCE: Duration = Duration::from_secs(30);
/// For the goodbye of a session that is over.
const GOODBYE: Duration = Duration::from_secs(2);
/// The status our own error wears when the server no longer knows the session.
pub(crate) const SESSION_LOST: &str = "SessionLost";
/// And when it does not speak this transport at all.
pub(crate) const REFUSED: &str = "Refused";
/// And when it does not want this request, for whatever reason.
pub(crate) const DECLINED: &str = "Declined";
/// And when there is nobody at its address.
pub(crate) const UNREACHED: &str = "Unreached";
/// And when its headers do not fit the request, which then has not been run.
pub(crate) const MISFIT: &str = "Misfit";
/// And when it took the request and answered with something else.
pub(crate) const NO_ANSWER: &str = "NoAnswer";

#[derive(Clone, Debug)]
pub(crate) struct HttpSender {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    name: Arc<str>,
    entry: Entry,
    url: Uri,
    /// What every request carries: the definition's headers, then session and revision once they are known.
    headers: RwLock<HeaderMap>,
    connection: Weak<Connection>,
    closed: CancellationToken,
    tasks: TaskTracker,
    /// Messages on their way that nobody waits for; the goodbye comes after them.
    sends: TaskTracker,
    answer_bytes: usize,
}

pub(crate) fn connect(
    connection: &Arc<Connection>,
    entry: Entry,
    url: Uri,
    headers: HeaderMap,
    answer_bytes: usize,
) {
    let sender = HttpSender {
        inner: Arc::new(Inner {
            name: Arc::clone(&connection.name),
            entry,
            url,
            headers: RwLock::new(headers),
            connection: Arc::downgrade(connection),
            closed: connection.closed.clone(),
            tasks: connection.tasks.clone(),
            sends: TaskTracker::new(),
            answer_bytes,
        }),
    };
    connection.attach(Outbound::Http(sender));
}

impl HttpSender {
    /// Posts one request and follows its answer, over several streams if need be. One with `routing` headers is
    /// stateless: it knows of no session, and its stream is never taken up again.
    pub(crate) async fn request(
        &self,
        id: u64,
        message: Bytes,
        routing: Option<HeaderMap>,
        origin: &Origin,
    ) -> Result<Answer, Error> {
        let inner = &self.inner;
        let stateless = routing.is_some();
        let answer = inner.post(message, routing, origin).await?;
        let status = answer.status();
        if let Some(session) = answer.headers().get(SESSION).filter(|_| !stateless) {
            inner.headers.write().insert(SESSION, session.clone());
        }
        // Boxed, so that they take no room in a call that is answered at once.
        if !status.is_success() {
            return Box::pin(inner.refused(status, answer, stateless)).await;
        }
        if is_stream(&answer) {
            return Box::pin(inner.follow(id, answer.into_body(), !stateless)).await;
        }
        let body =
            read(answer.into_body(), inner.answer_bytes).await.map_err(|error| inner.failed(&error))?;
        inner.answer(&body)
    }

    /// Posts a notification or an answer; nobody waits for it.
    pub(crate) fn send(&self, message: Bytes) {
        let inner = Arc::clone(&self.inner);
        let sent = self.inner.sends.track_future(async move {
            let sending = async {
                match inner.post(message, None, &Origin::default()).await {
                    Ok(answer) => {
                        // Read to the end, so that the connection can be used again.
                        let _ = read(answer.into_body(), inner.answer_bytes).await;
                    }
                    Err(error) => {
                        tracing::debug!(
                            module = &*inner.name,
                            error = error.guarded(),
                            "a message was not delivered"
                        );
                    }
                }
            };
            let patience = async {
                inner.closed.run_until_cancelled(tokio::time::sleep(PATIENCE)).await;
                // The last word of a connection is often that a call is cancelled.
                tokio::time::sleep(GOODBYE).await;
            };
            tokio::select! {
                () = sending => {}
                () = patience => {}
            }
        });
        self.inner.tasks.spawn(sent);
    }

    /// Whether the server gave us a session.
    pub(crate) fn has_session(&self) -> bool {
        self.inner.headers.read().contains_key(SESSION)
    }

    pub(crate) fn negotiated(&self, revision: &str) {
        if let Ok(value) = HeaderValue::from_str(revision) {
            self.inner.headers.write().insert(REVISION, value);
        }
        let inner = Arc::clone(&self.inner);
        self.inner.tasks.spawn(async move { inner.listen().await });
        let inner = Arc::clone(&self.inner);
        self.inner.tasks.spawn(async move { inner.say_goodbye().await });
    }
}

impl Inner {
    async fn post(
        &self,
        message: Bytes,
        routing: Option<HeaderMap>,
        origin: &Origin,
    ) -> Result<Response<Body>, Error> {
        let mut request = self.bare(Method::POST, Full::new(message));
        let headers = request.headers_mut();
        if let Some(routing) = routing {
            headers.remove(SESSION);
            headers.extend(routing);
        }
        headers.insert(CONTENT_TYPE, JSON);
        headers.insert(ACCEPT, BOTH);
        carry::into_headers(headers, origin);
        self.entry.send(request).await
    }

    fn bare(&self, method: Method, body: Full<Bytes>) -> Request<Full<Bytes>> {
        let mut request = Request::new(body);
        *request.method_mut() = method;
        *request.uri_mut() = self.url.clone();
        *request.headers_mut() = self.headers.read().clone();
        request
    }

    fn answer(&self, body: &Bytes) -> Result<Answer, Error> {
        match Message::decode(body) {
            Ok(Message::Response { body, .. }) => Ok(body),
            _ => Err(self.broken("its answer is not a JSON-RPC answer").named(NO_ANSWER)),
        }
    }

    /// A status other than success: a JSON-RPC error if the body holds one, else an error of our own.
    async fn refused(
        &self,
        status: StatusCode,
        answer: Response<Body>,
        stateless: bool,
    ) -> Result<Answer, Error> {
        let had_session = !stateless && self.headers.read().contains_key(SESSION);
        let wait = patience::wait(answer.headers());
        let body = read(answer.into_body(), self.answer_bytes).await.unwrap_or_default();
        if status == StatusCode::NOT_FOUND && had_session {
            return Err(self.broken("it no longer knows our session").named(SESSION_LOST));
        }
        let relayed = match Message::decode(&body) {
            Ok(Message::Response { body: Err(error), .. }) => Some(error),
            _ => nameless_error(&body).filter(|_| stateless),
        };
        let no_access = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
        let credentials = || format!("check the credentials in `mcpServers.{}.headers`", self.name);
        if let Some(error) = relayed.map(Error::from_upstream) {
            return Err(match status {
                _ if no_access => error.hint(credentials()),
                StatusCode::TOO_MANY_REQUESTS => patience::judged(error, status, wait),
                _ if status.is_client_error() => era::recognise(error, stateless),
                _ => patience::judged(error, status, wait),
            });
        }
        let error = patience::judged(self.broken(&format!("it answered {status}")), status, wait);
        Err(match status {
            _ if no_access => error.hint(credentials()),
            StatusCode::BAD_REQUEST if stateless && era::complains(&String::from_utf8_lossy(&body)) => {
                error.named(ERA_LOST)
            }
            StatusCode::BAD_REQUEST | StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED => {
                error.named(REFUSED).hint(format!("check `mcpServers.{}.url`", self.name))
            }
            StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS => error,
            _ if status.is_client_error() => error.named(DECLINED),
            _ => error,
        })
    }

    /// Reads the stream of one request until its answer, taking it up again where the server allows that.
    async fn follow(&self, id: u64, body: Body, resumable: bool) -> Result<Answer, Error> {
        let mut reading =
            Reading { body, parser: Parser::new(self.answer_bytes), last_event: None, pause: RESUME_PAUSE };
        let mut resumes = 0;
        loop {
            let before = reading.last_event.clone();
            if let Some(answer) = self.read_stream(&mut reading, Some(id)).await? {
                return Ok(answer);
            }
            if reading.last_event != before {
                // It got further; the call's own deadline ends what never ends.
                resumes = 0;
            }
            let Some(last) = reading.last_event.clone().filter(|_| resumable && resumes < RESUMES) else {
                return Err(self.broken("its stream ended before the answer").named(NO_ANSWER));
            };
            resumes += 1;
            tokio::time::sleep(reading.pause).await;
            let answer = self.open_stream(Some(&last)).await?;
            if !answer.status().is_success() {
                return Err(self.broken("its stream ended before the answer and cannot be taken up again"));
            }
            reading.body = answer.into_body();
            reading.parser = Parser::new(self.answer_bytes);
        }
    }

    /// Hands on the messages of a stream; `Some` is the answer to `id`, `None` the end of the stream.
    async fn read_stream(&self, reading: &mut Reading, id: Option<u64>) -> Result<Option<Answer>, Error> {
        while let Some(frame) = reading.body.frame().await {
            let Ok(frame) = frame else { return Ok(None) };
            let Some(data) = frame.data_ref() else { continue };
            reading.parser.feed(data).map_err(|error| self.senseless(&error))?;
            while let Some(event) = reading.parser.next_event().map_err(|error| self.senseless(&error))? {
                reading.last_event = event.id.or(reading.last_event.take());
                if let Some(pause) = event.retry_ms {
                    reading.pause = Duration::from_millis(pause).clamp(SHORTEST_PAUSE, LONGEST_PAUSE);
                }
                if event.data.is_empty() {
                    continue;
                }
                if let Some(answer) = answer_to(id, &event.data) {
                    return Ok(Some(answer));
                }
                if let Some(connection) = self.connection.upgrade() {
                    connection.receive(&event.data, id);
                }
            }
        }
        Ok(None)
    }

    /// The GET stream, kept open as long as the connection, where the server has one.
    async fn listen(self: Arc<Self>) {
        self.closed.run_until_cancelled(self.keep_listening()).await;
    }

    async fn keep_listening(&self) {
        let mut last = None;
        let mut pause = RESUME_PAUSE;
        loop {
            match self.open_stream(last.as_deref()).await {
                Ok(answer) if answer.status().is_success() && is_stream(&answer) => {
                    let parser = Parser::new(self.answer_bytes);
                    let mut reading = Reading { body: answer.into_body(), parser, last_event: last, pause };
                    if let Err(error) = self.read_stream(&mut reading, None).await {
                        tracing::debug!(
                            module = &*self.name,
                            error = error.guarded(),
                            "the event stream broke"
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

    async fn open_stream(&self, last_event: Option<&str>) -> Result<Response<Body>, Error> {
        let mut request = self.bare(Method::GET, Full::default());
        request.headers_mut().insert(ACCEPT, STREAM);
        if let Some(last) = last_event.and_then(|last| HeaderValue::from_str(last).ok()) {
            request.headers_mut().insert(LAST_EVENT, last);
        }
        self.entry.send(request).await
    }

    /// Ends the session at the server when the connection is closed.
    async fn say_goodbye(self: Arc<Self>) {
        self.closed.cancelled().await;
        self.sends.close();
        let _ = tokio::time::timeout(GOODBYE, self.sends.wait()).await;
        if self.headers.read().contains_key(SESSION) {
            let goodbye = self.entry.send(self.bare(Method::DELETE, Full::default()));
            let _ = tokio::time::timeout(GOODBYE, goodbye).await;
        }
    }

    fn broken(&self, what: &str) -> Error {
        Error::new(Kind::UpstreamUnavailable, format!("`{}` failed: {what}", self.name))
    }

    fn senseless(&self, error: &TooLarge) -> Error {
        self.broken("its stream makes no sense").because(error.to_string())
    }

    fn failed(&self, error: &SendError) -> Error {
        failure(&self.name, &self.url, error)
    }
}

/// Why a request could not be sent or its answer not be read. Where it went is for the log alone.
pub(crate) fn failure(name: &str, url: &Uri, error: &SendError) -> Error {
    let unavailable = |what: &str| Error::new(Kind::UpstreamUnavailable, format!("`{name}` {what}"));
    match error {
        SendError::Connect(reason) => {
            unavailable("cannot be reached").because(format!("{}: {reason}", origin(url))).named(UNREACHED)
        }
        SendError::TooLarge(limit) => {
            Error::new(Kind::PayloadTooLarge, format!("`{name}` answered with more than {limit} bytes"))
                .hint("ask for less, or raise `limits.answer_bytes`")
        }
        SendError::Certificates(_) => {
            unavailable("cannot be reached: the system's certificates cannot be read")
                .because(error.to_string())
        }
        SendError::Refused => unavailable("cannot be reached: its address is not allowed"),
        SendError::Transfer(reason) => {
            unavailable("failed: its connection broke off").because(reason.as_str())
        }
    }
}

struct Reading {
    body: Body,
    parser: Parser,
    last_event: Option<String>,
    pause: Duration,
}

fn answer_to(id: Option<u64>, data: &Bytes) -> Option<Answer> {
    match Message::decode(data) {
        Ok(Message::Response { id: answered, body }) if answered.as_number() == Some(id?) => Some(body),
        _ => None,
    }
}

/// An error about revisions may come without the id of its request.
fn nameless_error(body: &Bytes) -> Option<Raw> {
    let error = Raw::parse(body.clone()).ok()?.object()?.get("error")?.clone();
    supported_revisions(&error.object()?).map(|_| error)
}

fn is_stream(answer: &Response<Body>) -> bool {
    let kind = answer.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    kind.is_some_and(|kind| kind.starts_with("text/event-stream"))
}

/// Scheme and host: what may be logged of a URL that may carry a key in its path or query.
fn origin(url: &Uri) -> String {
    format!("{}://{}", url.scheme_str().unwrap_or("http"), url.authority().map_or("", |a| a.as_str()))
}
