//! A bare HTTP client: each request has its own connection, which is closed when the handle is dropped, so that a test
//! can disconnect midway. A client with keep-alive reuses a connection whose response was read to its end.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::{body::Incoming, client::conn::http1::SendRequest};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use tokio::{net::TcpStream, task::JoinHandle};

use super::LIMIT;

#[derive(Debug, Clone)]
pub struct HttpRequest {
    method: http::Method,
    path: String,
    headers: Vec<(String, String)>,
    body: Bytes,
    idle: IdleConnections,
}

/// Idle connections of a client with keep-alive; `None` without.
pub(crate) type IdleConnections = Option<Arc<Mutex<Vec<HttpConnection>>>>;

#[derive(Debug)]
pub(crate) struct HttpConnection {
    sender: SendRequest<Full<Bytes>>,
    _driver: ConnectionTask,
}

/// A response with its complete body.
#[derive(Debug)]
pub struct HttpReply {
    pub status: u16,
    pub headers: http::HeaderMap,
    pub body: Bytes,
}

impl HttpRequest {
    pub fn new(method: &str, path: &str) -> Self {
        let method = method.parse().expect("a method");
        Self { method, path: path.to_owned(), headers: Vec::new(), body: Bytes::new(), idle: None }
    }

    /// Sets a header, replacing one of the same name.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self = self.without(name);
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    #[must_use]
    pub fn without(mut self, name: &str) -> Self {
        self.headers.retain(|(known, _)| known != name);
        self
    }

    /// Sets a JSON body with the headers that MCP requires.
    #[must_use]
    pub fn json(mut self, body: impl Into<Bytes>) -> Self {
        self.body = body.into();
        self.header("content-type", "application/json").header("accept", "application/json, text/event-stream")
    }

    /// Sets a form body as a browser sends it; names and values must already be encoded.
    #[must_use]
    pub fn form(mut self, body: impl Into<Bytes>) -> Self {
        self.body = body.into();
        self.header("content-type", "application/x-www-form-urlencoded")
    }

    pub(crate) fn with_keep_alive(mut self, idle: &IdleConnections) -> Self {
        self.idle.clone_from(idle);
        self
    }

    pub async fn send(self, address: SocketAddr) -> HttpReply {
        let answer = async { self.open(address).await.read().await };
        tokio::time::timeout(LIMIT, answer).await.expect("an answer in time")
    }

    /// Sends the request and returns before the body is read.
    pub async fn open(self, address: SocketAddr) -> StreamingReply {
        self.try_open(address).await.expect("an answer")
    }

    pub async fn try_open(self, address: SocketAddr) -> hyper::Result<StreamingReply> {
        let idle = self.idle.as_ref().and_then(|idle| idle.lock().pop());
        let mut http_connection = match idle.filter(|http_connection| http_connection.sender.is_ready()) {
            Some(http_connection) => http_connection,
            None => HttpConnection::open(address).await?,
        };
        let idle = self.idle.clone();
        let response = http_connection.sender.send_request(self.built(address)).await?;
        let (head, body) = response.into_parts();
        Ok(StreamingReply { status: head.status.as_u16(), headers: head.headers, body, http_connection, idle })
    }

    fn built(self, address: SocketAddr) -> http::Request<Full<Bytes>> {
        let mut request = http::Request::builder().method(self.method).uri(&self.path);
        if !self.headers.iter().any(|(name, _)| name == "host") {
            request = request.header("host", address.to_string());
        }
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        request.body(Full::new(self.body)).expect("a request")
    }
}

/// Reason for an incomplete response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestFailure {
    /// The connection was refused; nothing was sent.
    Refused,
    /// The connection ended early or took too long.
    Broken,
}

impl HttpRequest {
    /// Sends a request to a server that may be absent or disappear midway, with a timeout.
    pub async fn attempt(self, address: SocketAddr, limit: Duration) -> Result<HttpReply, RequestFailure> {
        let answer = async {
            let socket = TcpStream::connect(address).await.map_err(|_| RequestFailure::Refused)?;
            let broken = |_| RequestFailure::Broken;
            let (mut sender, driver) =
                hyper::client::conn::http1::handshake(TokioIo::new(socket)).await.map_err(broken)?;
            let _driver = ConnectionTask(spawn(driver));
            let response = sender.send_request(self.built(address)).await.map_err(broken)?;
            let (head, body) = response.into_parts();
            let body = body.collect().await.map_err(broken)?.to_bytes();
            Ok(HttpReply { status: head.status.as_u16(), headers: head.headers, body })
        };
        tokio::time::timeout(limit, answer).await.unwrap_or(Err(RequestFailure::Broken))
    }
}

impl HttpConnection {
    async fn open(address: SocketAddr) -> hyper::Result<Self> {
        let socket = TcpStream::connect(address).await.expect("a connection");
        let (sender, driver) = hyper::client::conn::http1::handshake(TokioIo::new(socket)).await?;
        Ok(Self { sender, _driver: ConnectionTask(spawn(driver)) })
    }
}

/// A response whose body is still arriving. Dropping it closes the connection.
#[derive(Debug)]
pub struct StreamingReply {
    pub status: u16,
    pub headers: http::HeaderMap,
    body: Incoming,
    http_connection: HttpConnection,
    idle: IdleConnections,
}

impl StreamingReply {
    pub async fn read(self) -> HttpReply {
        let Self { status, headers, body, http_connection, idle } = self;
        let body = body.collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
        if let Some(idle) = idle {
            idle.lock().push(http_connection);
        }
        HttpReply { status, headers, body }
    }

    pub fn is_stream(&self) -> bool {
        self.headers.get("content-type").is_some_and(|kind| kind == "text/event-stream")
    }

    pub fn events(self) -> SseEvents {
        SseEvents { connection: self, buffer: Vec::new(), last_event: None }
    }
}

impl HttpReply {
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("UTF-8")
    }

    #[track_caller]
    pub fn value(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("{} {}", self.status, self.text()))
    }
}

/// Events of an event stream. Every event must have a name and one line of data.
#[derive(Debug)]
pub struct SseEvents {
    connection: StreamingReply,
    buffer: Vec<u8>,
    /// Id of the last event that had one.
    pub last_event: Option<String>,
}

impl SseEvents {
    /// Returns the name and the data of the next event; `None` at the end. Comments are skipped.
    pub async fn next(&mut self) -> Option<(String, String)> {
        loop {
            if let Some(end) = self.buffer.windows(2).position(|pair| pair == b"\n\n") {
                let event: Vec<u8> = self.buffer.drain(..end + 2).collect();
                let event = std::str::from_utf8(&event).expect("UTF-8");
                self.last_event = field(event, "id:").or(self.last_event.take());
                match parse(event) {
                    Some(event) => return Some(event),
                    None => continue,
                }
            }
            let frame = self.connection.body.frame().await?.ok()?;
            if let Some(data) = frame.data_ref() {
                self.buffer.extend_from_slice(data);
            }
        }
    }
}

fn parse(event: &str) -> Option<(String, String)> {
    Some((field(event, "event:").unwrap_or_else(|| "message".to_owned()), field(event, "data:")?))
}

fn field(event: &str, name: &str) -> Option<String> {
    event.lines().find_map(|line| line.strip_prefix(name)).map(|text| text.trim_start().to_owned())
}

#[derive(Debug)]
struct ConnectionTask(JoinHandle<()>);

impl Drop for ConnectionTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}

fn spawn(driver: impl Future<Output = hyper::Result<()>> + Send + 'static) -> JoinHandle<()> {
    super::link::spawn(async move {
        // The peer may disconnect; the reader sees it.
        let _ = driver.await;
    })
}
