//! The least that an MCP gateway can do: it tracks sessions, reads a message's envelope, finds the upstream by the
//! prefix of the tool name, and relays the result unchanged. No identity, policy, argument checks, audit or retries: a
//! baseline to measure against, never something to use.

mod pool;

use std::borrow::Cow;
use std::collections::HashSet;
use std::convert::Infallible;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::net::TcpListener;
use tokio_util::task::TaskTracker;

use super::pipe::StdioPipe;
use pool::FloorPool;

const USAGE: &str = "usage: xtask floor --listen ADDR (--http ADDR | --stdio COMMAND…)";
const SESSION: &str = "mcp-session-id";
const INITIALIZE: &str =
    r#"{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"floor","version":"1"}}"#;
const INITIALIZE_RESULT: &str =
    r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"floor","version":"1"}}"#;
/// Prefix of the only upstream's tool names.
const PREFIX: &str = "bench_";

pub(crate) fn serve(words: &[&str]) -> Result<()> {
    let ["--listen", address, way, rest @ ..] = words else { bail!(USAGE) };
    let address: SocketAddr = address.parse()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        let upstream = match (*way, rest) {
            ("--http", [upstream]) => FloorUpstream::Http(FloorPool::new(upstream.parse()?)?),
            ("--stdio", [program, arguments @ ..]) => {
                let mut command = tokio::process::Command::new(program);
                command.args(arguments);
                FloorUpstream::Stdio(StdioPipe::start(command)?)
            }
            _ => bail!(USAGE),
        };
        let floor = MinimalRelay::open(upstream).await?;
        floor.listen(address).await
    })
}

enum FloorUpstream {
    Http(FloorPool),
    Stdio(StdioPipe),
}

impl FloorUpstream {
    /// Sends a request and returns the response with the client's id.
    async fn request(&self, id: &str, method: &str, params: &str) -> Result<Bytes> {
        match self {
            Self::Http(pool) => pool.post(envelope(id, method, params)).await,
            Self::Stdio(pipe) => pipe.request(id, method, params).await,
        }
    }
}

struct MinimalRelay {
    upstream: FloorUpstream,
    list: String,
    sessions: Mutex<HashSet<HeaderValue>>,
    last_session: AtomicU64,
    connections: TaskTracker,
}

#[derive(Deserialize)]
struct FloorMessage<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Cow<'a, str>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct FloorCallParams<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

impl MinimalRelay {
    async fn open(upstream: FloorUpstream) -> Result<Arc<Self>> {
        upstream.request("0", "initialize", INITIALIZE).await?;
        let list = upstream.request("0", "tools/list", "{}").await?;
        let mut list: Value = serde_json::from_slice(&list)?;
        let tools = list["result"]["tools"].as_array_mut().context("no tools in the answer")?;
        for tool in tools {
            let name = format!("{PREFIX}{}", tool["name"].as_str().context("a tool without a name")?);
            tool["name"] = name.into();
        }
        Ok(Arc::new(Self {
            upstream,
            list: list["result"].to_string(),
            sessions: Mutex::default(),
            last_session: AtomicU64::new(1),
            connections: TaskTracker::new(),
        }))
    }

    async fn listen(self: Arc<Self>, address: SocketAddr) -> Result<()> {
        let listener = TcpListener::bind(address).await?;
        loop {
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            let floor = Arc::clone(&self);
            self.connections.spawn(async move {
                let service = service_fn(|request| floor.respond(request));
                let connection = hyper::server::conn::http1::Builder::new();
                // A disconnecting client is not an error here.
                let _ = connection.serve_connection(TokioIo::new(stream), service).await;
            });
        }
    }

    async fn respond(&self, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
        if request.method() != Method::POST {
            return Ok(empty(StatusCode::METHOD_NOT_ALLOWED));
        }
        let known = request.headers().get(SESSION).is_some_and(|id| self.sessions.lock().contains(id));
        let Ok(body) = request.into_body().collect().await else { return Ok(empty(StatusCode::BAD_REQUEST)) };
        let body = body.to_bytes();
        let Ok(message) = serde_json::from_slice::<FloorMessage<'_>>(&body) else {
            return Ok(empty(StatusCode::BAD_REQUEST));
        };
        let is_initialize = message.method == "initialize";
        if !known && !is_initialize {
            return Ok(empty(StatusCode::NOT_FOUND));
        }
        let Some(id) = message.id.map(RawValue::get) else { return Ok(empty(StatusCode::ACCEPTED)) };
        let answer = match &*message.method {
            "initialize" => result(id, INITIALIZE_RESULT),
            "tools/list" => result(id, &self.list),
            "tools/call" => self.call(id, message.params).await,
            _ => error(id, "no such method"),
        };
        let mut response = Response::new(Full::new(answer));
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if is_initialize {
            // The session id only has to be unique; it protects nothing.
            let session = HeaderValue::from(self.last_session.fetch_add(1, Ordering::Relaxed));
            self.sessions.lock().insert(session.clone());
            headers.insert(SESSION, session);
        }
        Ok(response)
    }

    async fn call(&self, id: &str, params: Option<&RawValue>) -> Bytes {
        let call = params.and_then(|params| serde_json::from_str::<FloorCallParams<'_>>(params.get()).ok());
        let Some(call) = call else { return error(id, "no such call") };
        let Some(tool) = call.name.strip_prefix(PREFIX) else { return error(id, "no such tool") };
        let arguments = call.arguments.map_or("{}", RawValue::get);
        let mut params = String::with_capacity(tool.len() + arguments.len() + 32);
        let _ = write!(params, r#"{{"name":"{tool}","arguments":{arguments}}}"#);
        match self.upstream.request(id, "tools/call", &params).await {
            Ok(answer) => answer,
            Err(_) => error(id, "the upstream failed"),
        }
    }
}

fn envelope(id: &str, method: &str, params: &str) -> Bytes {
    let mut message = String::with_capacity(params.len() + id.len() + method.len() + 48);
    let _ = write!(message, r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#);
    message.into()
}

fn result(id: &str, result: &str) -> Bytes {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#).into()
}

fn error(id: &str, message: &str) -> Bytes {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32603,"message":"{message}"}}}}"#).into()
}

fn empty(status: StatusCode) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::default());
    *response.status_mut() = status;
    response
}
