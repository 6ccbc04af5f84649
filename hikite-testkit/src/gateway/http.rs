//! HTTP as bare as a test needs it: a request has its connection to itself, which ends when its handle is dropped.
//! So going away in the middle is as easy as staying. Where a client keeps connections, one that has been read to
//! its end serves the next request.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::{body::Incoming, client::conn::http1::SendRequest};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use tokio::{net::TcpStream, task::JoinHandle};

use super::LIMIT;

#[derive(Debug, Clone)]
pub struct Request {
    method: http::Method,
    path: String,
    headers: Vec<(String, String)>,
    body: Bytes,
    kept: Kept,
}

/// Connections that a client keeps; none are kept without.
pub(crate) type Kept = Option<Arc<Mutex<Vec<Lane>>>>;

#[derive(Debug)]
pub(crate) struct Lane {
    sender: SendRequest<Full<Bytes>>,
    _driver: Driver,
}

/// An answer read to its end.
#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    pub headers: http::HeaderMap,
    pub body: Bytes,
}

impl Request {
    pub fn new(method: &str, path: &str) -> Self {
        let method = method.parse().expect("a method");
        Self { method, path: path.to_owned(), headers: Vec::new(), body: Bytes::new(), kept: None }
    }

    /// Adds a header, or takes the place of the one of that name.
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

    /// A body with what MCP wants said about it.
    #[must_use]
    pub fn json(mut self, body: impl Into<Bytes>) -> Self {
        self.body = body.into();
        self.header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
    }

    /// A form, as a browser sends it; the names and values are encoded already.
    #[must_use]
    pub fn form(mut self, body: impl Into<Bytes>) -> Self {
        self.body = body.into();
        self.header("content-type", "application/x-www-form-urlencoded")
    }

    pub(crate) fn keeping(mut self, kept: &Kept) -> Self {
        self.kept.clone_from(kept);
        self
    }

    pub async fn send(self, address: SocketAddr) -> Reply {
        let answer = async { self.open(address).await.read().await };
        tokio::time::timeout(LIMIT, answer).await.expect("an answer in time")
    }

    /// Sends, and leaves the body of the answer to be read.
    pub async fn open(self, address: SocketAddr) -> Connection {
        self.try_open(address).await.expect("an answer")
    }

    pub async fn try_open(self, address: SocketAddr) -> hyper::Result<Connection> {
        let kept = self.kept.as_ref().and_then(|kept| kept.lock().pop());
        let mut lane = match kept.filter(|lane| lane.sender.is_ready()) {
            Some(lane) => lane,
            None => Lane::open(address).await?,
        };
        let kept = self.kept.clone();
        let response = lane.sender.send_request(self.built(address)).await?;
        let (head, body) = response.into_parts();
        Ok(Connection { status: head.status.as_u16(), headers: head.headers, body, lane, kept })
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

/// Why there was no whole answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failed {
    /// Nobody took the connection: nothing was sent.
    Refused,
    /// It ended before the answer did, or took too long.
    Broken,
}

impl Request {
    /// Sends where nobody may be, or may be gone in the middle, and waits for so long.
    pub async fn attempt(self, address: SocketAddr, limit: Duration) -> Result<Reply, Failed> {
        let answer = async {
            let socket = TcpStream::connect(address).await.map_err(|_| Failed::Refused)?;
            let broken = |_| Failed::Broken;
            let (mut sender, driver) =
                hyper::client::conn::http1::handshake(TokioIo::new(socket)).await.map_err(broken)?;
            let _driver = Driver(spawn(driver));
            let response = sender.send_request(self.built(address)).await.map_err(broken)?;
            let (head, body) = response.into_parts();
            let body = body.collect().await.map_err(broken)?.to_bytes();
            Ok(Reply { status: head.status.as_u16(), headers: head.headers, body })
        };
        tokio::time::timeout(limit, answer).await.unwrap_or(Err(Failed::Broken))
    }
}

impl Lane {
    async fn open(address: SocketAddr) -> hyper::Result<Self> {
        let socket = TcpStream::connect(address).await.expect("a connection");
        let (sender, driver) = hyper::client::conn::http1::handshake(TokioIo::new(socket)).await?;
        Ok(Self { sender, _driver: Driver(spawn(driver)) })
    }
}

/// An answer whose body is still coming. Dropping it closes the connection.
#[derive(Debug)]
pub struct Connection {
    pub status: u16,
    pub headers: http::HeaderMap,
    body: Incoming,
    lane: Lane,
    kept: Kept,
}

impl Connection {
    pub async fn read(self) -> Reply {
        let Self { status, headers, body, lane, kept } = self;
        let body = body.collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
        if let Some(kept) = kept {
            kept.lock().push(lane);
        }
        Reply { status, headers, body }
    }

    pub fn is_stream(&self) -> bool {
        self.headers.get("content-type").is_some_and(|kind| kind == "text/event-stream")
    }

    pub fn events(self) -> Stream {
        Stream { connection: self, buffer: Vec::new(), last_event: None }
    }
}

impl Reply {
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("UTF-8")
    }

    #[track_caller]
    pub fn value(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("{} {}", self.status, self.text()))
    }
}

/// The events of an event stream. Every event must be whole: a name and one line of data.
#[derive(Debug)]
pub struct Stream {
    connection: Connection,
    buffer: Vec<u8>,
    /// The id of the last event that had one.
    pub last_event: Option<String>,
}

impl Stream {
    /// The name and the data of the next event; nothing at the end. Comments are passed over.
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
struct Driver(JoinHandle<()>);

impl Drop for Driver {
    fn drop(&mut self) {
        self.0.abort();
    }
}

fn spawn(driver: impl Future<Output = hyper::Result<()>> + Send + 'static) -> JoinHandle<()> {
    super::link::spawn(async move {
        // The other side may leave as it likes; whoever reads sees it.
        let _ = driver.await;
    })
}
