//! HTTP connection pool of an upstream: one request at a time per connection, as many connections as needed.

use std::net::SocketAddr;

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{ACCEPT, CONTENT_TYPE, HOST, HeaderValue};
use hyper_util::rt::TokioIo;
use memchr::memmem;
use parking_lot::Mutex;
use tokio::net::TcpStream;
use tokio_util::task::TaskTracker;

pub(super) struct FloorPool {
    address: SocketAddr,
    host: HeaderValue,
    idle: Mutex<Vec<SendRequest<Full<Bytes>>>>,
    connections: TaskTracker,
}

impl FloorPool {
    pub(super) fn new(address: SocketAddr) -> Result<Self> {
        let host = HeaderValue::try_from(address.to_string())?;
        Ok(Self { address, host, idle: Mutex::default(), connections: TaskTracker::new() })
    }

    pub(super) async fn post(&self, body: Bytes) -> Result<Bytes> {
        let idle = self.idle.lock().pop();
        let mut sender = match idle {
            Some(sender) if !sender.is_closed() => sender,
            _ => self.connect().await?,
        };
        sender.ready().await?;
        let request = Request::post("/mcp")
            .header(HOST, &self.host)
            .header(CONTENT_TYPE, HeaderValue::from_static("application/json"))
            .header(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"))
            .header("mcp-protocol-version", HeaderValue::from_static("2025-11-25"))
            .body(Full::new(body))?;
        let response = sender.send_request(request).await?;
        ensure!(response.status().is_success(), "the upstream said {}", response.status());
        let kind = response.headers().get(CONTENT_TYPE);
        let is_stream = kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"));
        let body = response.into_body().collect().await?.to_bytes();
        self.idle.lock().push(sender);
        if is_stream { data(&body) } else { Ok(body) }
    }

    async fn connect(&self) -> Result<SendRequest<Full<Bytes>>> {
        let stream = TcpStream::connect(self.address).await?;
        stream.set_nodelay(true)?;
        let (sender, connection) = handshake(TokioIo::new(stream)).await?;
        self.connections.spawn(async {
            // The pending request reports the failure.
            let _ = connection.await;
        });
        Ok(sender)
    }
}

/// Returns the data of a stream's only event.
fn data(stream: &Bytes) -> Result<Bytes> {
    let start = memmem::find(stream, b"data: ").context("no data in the stream")? + 6;
    let length = memchr::memchr(b'\n', &stream[start..]).context("no end of the data")?;
    Ok(stream.slice(start..start + length))
}
