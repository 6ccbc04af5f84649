//! A fixed, fast MCP server: streamable HTTP with JSON answers and no sessions, or stdio. It does as little as
//! it can, so that what is measured is the way to it. `--silent` takes requests and never answers, `--tools N`
//! gives it so many tools, `--crash` ends it with the first call, `--delay MS` makes each request take so long.

use std::borrow::Cow;
use std::convert::Infallible;
use std::io::{BufRead, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, bail};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::task::TaskTracker;

pub(crate) fn serve(words: &[&str]) -> Result<()> {
    match words {
        ["--stdio"] => Server::new(super::TOOLS).stdio(false),
        ["--stdio", "--crash"] => Server::new(super::TOOLS).stdio(true),
        ["--http", address, rest @ ..] => {
            let silent = rest == ["--silent"];
            let delay = if let ["--delay", ms] = rest { ms.parse()? } else { 0 };
            let delay = Duration::from_millis(delay);
            let tools = if let ["--tools", count] = rest { count.parse()? } else { super::TOOLS };
            let server = Arc::new(Server { delay, ..Server::new(tools) });
            let runtime =
                tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
            runtime.block_on(server.http(address.parse()?, silent))
        }
        _ => {
            bail!("usage: xtask upstream --stdio [--crash] | --http ADDR [--silent | --tools N | --delay MS]")
        }
    }
}

struct Server {
    tools: String,
    delay: Duration,
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Cow<'a, str>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Call<'a> {
    #[serde(borrow)]
    arguments: Text<'a>,
}

#[derive(Deserialize)]
struct Text<'a> {
    #[serde(borrow)]
    text: &'a RawValue,
}

impl Server {
    fn new(tools: usize) -> Self {
        let tools: Vec<Value> = (0..tools).map(tool).collect();
        Self { tools: json!({ "tools": tools }).to_string(), delay: Duration::ZERO }
    }

    /// The answer; `None` for a notification.
    fn answer(&self, body: &[u8]) -> Option<String> {
        let Ok(message) = serde_json::from_slice::<Message<'_>>(body) else {
            return Some(r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"no"}}"#.into());
        };
        let id = message.id?.get();
        let result: Cow<'_, str> = match &*message.method {
            "initialize" => r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"bench","version":"1"}}"#.into(),
            "tools/list" => self.tools.as_str().into(),
            "tools/call" => {
                let call: Option<Call<'_>> = message.params.and_then(|params| serde_json::from_str(params.get()).ok());
                let text = call.map_or("\"\"", |call| call.arguments.text.get());
                format!(r#"{{"content":[{{"type":"text","text":{text}}}]}}"#).into()
            }
            "ping" => "{}".into(),
            _ => {
                return Some(format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32601,"message":"no"}}}}"#));
            }
        };
        Some(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#))
    }

    fn stdio(&self, crash: bool) -> Result<()> {
        let mut out = std::io::stdout().lock();
        for line in std::io::stdin().lock().lines() {
            let line = line?;
            if crash && line.contains("tools/call") {
                bail!("a call came");
            }
            if let Some(answer) = self.answer(line.as_bytes()) {
                writeln!(out, "{answer}")?;
                out.flush()?;
            }
        }
        Ok(())
    }

    async fn http(self: Arc<Self>, address: SocketAddr, silent: bool) -> Result<()> {
        let listener = TcpListener::bind(address).await?;
        crate::print(&listener.local_addr()?.to_string());
        let connections = TaskTracker::new();
        loop {
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            let server = Arc::clone(&self);
            connections.spawn(async move {
                let service = service_fn(|request| server.respond(request, silent));
                let connection = hyper::server::conn::http1::Builder::new();
                // A client that goes away is no event here.
                let _ = connection.serve_connection(TokioIo::new(stream), service).await;
            });
        }
    }

    async fn respond(
        &self,
        request: Request<Incoming>,
        silent: bool,
    ) -> Result<Response<Full<Bytes>>, Infallible> {
        if silent {
            std::future::pending::<()>().await;
        }
        let empty = |status| {
            let mut response = Response::new(Full::default());
            *response.status_mut() = status;
            Ok(response)
        };
        match *request.method() {
            Method::POST => {}
            Method::DELETE => return empty(StatusCode::OK),
            _ => return empty(StatusCode::METHOD_NOT_ALLOWED),
        }
        let Ok(body) = request.into_body().collect().await else { return empty(StatusCode::BAD_REQUEST) };
        if !self.delay.is_zero() {
            tokio::time::sleep(self.delay).await;
        }
        let Some(answer) = self.answer(&body.to_bytes()) else { return empty(StatusCode::ACCEPTED) };
        let mut response = Response::new(Full::from(answer));
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        Ok(response)
    }
}

/// `echo` first; the others are there to give the lists a real size.
fn tool(index: usize) -> Value {
    let name = if index == 0 { "echo".to_owned() } else { format!("issue_update_field_{index}") };
    json!({
        "name": name,
        "description": "Updates one field of an issue in the tracker. The field must exist in the project's screen, and the caller must be allowed to edit the issue. Returns the issue as it is afterwards.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "text": { "type": "string", "description": "The new value of the field, as plain text." },
                "issue": { "type": "string", "description": "The key of the issue, such as PROJ-123." },
                "notify": { "type": "boolean", "default": false, "description": "Whether watchers are told." }
            }
        }
    })
}
