//! A fixed, fast MCP server: streamable HTTP with JSON responses (or SSE with `--sse`) and no sessions (unless
//! `--sessions`), or stdio. It does as little as possible, so that measurements show the path to it. `--silent` accepts
//! requests and never answers, `--tools N` sets the number of tools, `--delay MS` delays each request, `--crash` exits
//! at the first call. Its tool `echo` returns the text and `size` more bytes.

use std::borrow::Cow;
use std::convert::Infallible;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use memchr::memmem;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::task::TaskTracker;

const USAGE: &str = "usage: xtask upstream --stdio | --http ADDR, with [--silent] [--crash] [--sse] [--sessions] \
                     [--tools N] [--delay MS] [--threads N]";
/// Maximum of `size`.
const FILLER: usize = 1 << 20;

pub(crate) fn serve(words: &[&str]) -> Result<()> {
    let options = UpstreamOptions::parse(words)?;
    let server = EchoServer::new(&options);
    let Some(address) = options.address else { return server.stdio(options.fault == UpstreamFault::Crash) };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(options.threads).enable_all().build()?;
    runtime.block_on(Arc::new(server).http(address))
}

/// Injected fault.
#[derive(Clone, Copy, PartialEq, Eq)]
enum UpstreamFault {
    None,
    Silent,
    Crash,
}

/// Command line options; without an address it uses stdio.
struct UpstreamOptions {
    address: Option<SocketAddr>,
    fault: UpstreamFault,
    is_sse: bool,
    has_sessions: bool,
    tools: usize,
    delay: Duration,
    threads: usize,
}

impl UpstreamOptions {
    fn parse(words: &[&str]) -> Result<Self> {
        let mut options = Self {
            address: None,
            fault: UpstreamFault::None,
            is_sse: false,
            has_sessions: false,
            tools: super::TOOLS,
            delay: Duration::ZERO,
            threads: 1,
        };
        let mut words = words.iter();
        let mut is_stdio = false;
        while let Some(word) = words.next() {
            let mut value = || words.next().context(USAGE);
            match *word {
                "--stdio" => is_stdio = true,
                "--http" => options.address = Some(value()?.parse()?),
                "--silent" => options.fault = UpstreamFault::Silent,
                "--crash" => options.fault = UpstreamFault::Crash,
                "--sse" => options.is_sse = true,
                "--sessions" => options.has_sessions = true,
                "--tools" => options.tools = value()?.parse()?,
                "--delay" => options.delay = Duration::from_millis(value()?.parse()?),
                "--threads" => options.threads = value()?.parse::<usize>()?.max(1),
                _ => bail!(USAGE),
            }
        }
        ensure!(is_stdio != options.address.is_some(), USAGE);
        Ok(options)
    }
}

struct EchoServer {
    tools: String,
    filler: String,
    delay: Duration,
    is_silent: bool,
    is_sse: bool,
    /// Number of the last session, if it has sessions.
    sessions: Option<AtomicU64>,
}

#[derive(Deserialize)]
struct UpstreamMessage<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Cow<'a, str>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct EchoParams<'a> {
    #[serde(borrow)]
    arguments: EchoArguments<'a>,
}

#[derive(Deserialize)]
struct EchoArguments<'a> {
    #[serde(borrow)]
    text: &'a RawValue,
    /// Additional bytes in the response.
    #[serde(default)]
    size: usize,
}

impl EchoServer {
    fn new(options: &UpstreamOptions) -> Self {
        let tools: Vec<Value> = (0..options.tools).map(tool).collect();
        Self {
            tools: json!({ "tools": tools }).to_string(),
            filler: "A line of an answer, as long as most. ".repeat(FILLER / 38 + 1),
            delay: options.delay,
            is_silent: options.fault == UpstreamFault::Silent,
            is_sse: options.is_sse,
            sessions: options.has_sessions.then(AtomicU64::default),
        }
    }

    /// Returns the response; `None` for a notification.
    fn answer(&self, body: &[u8]) -> Option<String> {
        let Ok(message) = serde_json::from_slice::<UpstreamMessage<'_>>(body) else {
            return Some(r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"no"}}"#.into());
        };
        let id = message.id?.get();
        let result: Cow<'_, str> = match &*message.method {
            "initialize" => r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"bench","version":"1"}}"#.into(),
            "tools/list" => self.tools.as_str().into(),
            "tools/call" => {
                let call: Option<EchoParams<'_>> = message.params.and_then(|params| serde_json::from_str(params.get()).ok());
                return Some(self.echo(id, call.as_ref().map(|call| &call.arguments)));
            }
            "ping" => "{}".into(),
            _ => {
                return Some(format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32601,"message":"no"}}}}"#));
            }
        };
        Some(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#))
    }

    /// Returns the text unchanged, plus the requested filler.
    fn echo(&self, id: &str, arguments: Option<&EchoArguments<'_>>) -> String {
        let text = arguments.map_or("\"\"", |arguments| arguments.text.get());
        let more = arguments.map_or(0, |arguments| arguments.size.min(FILLER));
        let open = text.strip_suffix('"').unwrap_or(text);
        let mut answer = String::with_capacity(id.len() + text.len() + more + 80);
        answer.push_str(r#"{"jsonrpc":"2.0","id":"#);
        answer.push_str(id);
        answer.push_str(r#","result":{"content":[{"type":"text","text":"#);
        answer.push_str(open);
        answer.push_str(&self.filler[..more]);
        answer.push_str(if open.len() < text.len() { r#""}]}}"# } else { "}]}}" });
        answer
    }

    /// Serves stdio; responses are flushed when no more input is waiting.
    fn stdio(&self, crashes: bool) -> Result<()> {
        let mut input = BufReader::with_capacity(256 << 10, std::io::stdin().lock());
        let mut out = BufWriter::with_capacity(256 << 10, std::io::stdout().lock());
        let mut line = Vec::new();
        while input.read_until(b'\n', &mut line)? > 0 {
            if crashes && memmem::find(&line, b"tools/call").is_some() {
                bail!("a call came");
            }
            if let Some(answer) = self.answer(&line) {
                out.write_all(answer.as_bytes())?;
                out.write_all(b"\n")?;
            }
            if input.buffer().is_empty() {
                out.flush()?;
            }
            line.clear();
        }
        Ok(())
    }

    async fn http(self: Arc<Self>, address: SocketAddr) -> Result<()> {
        let listener = TcpListener::bind(address).await?;
        crate::print(&listener.local_addr()?.to_string());
        let connections = TaskTracker::new();
        loop {
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            let server = Arc::clone(&self);
            connections.spawn(async move {
                let service = service_fn(|request| server.respond(request));
                let connection = hyper::server::conn::http1::Builder::new();
                // A disconnecting client is not an error here.
                let _ = connection.serve_connection(TokioIo::new(stream), service).await;
            });
        }
    }

    async fn respond(&self, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
        if self.is_silent {
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
        let body = body.to_bytes();
        let Some(answer) = self.answer(&body) else { return empty(StatusCode::ACCEPTED) };
        let (kind, answer) = if self.is_sse {
            ("text/event-stream", format!("event: message\ndata: {answer}\n\n"))
        } else {
            ("application/json", answer)
        };
        let mut response = Response::new(Full::from(answer));
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
        if let Some(last) = self.sessions.as_ref().filter(|_| memmem::find(&body, b"\"initialize\"").is_some()) {
            let session = HeaderValue::from(last.fetch_add(1, Ordering::Relaxed));
            response.headers_mut().insert("mcp-session-id", session);
        }
        Ok(response)
    }
}

/// Returns a tool: `echo` first; the others give lists a realistic size and a search something to find.
fn tool(index: usize) -> Value {
    let pick = |words: &[&'static str], step: usize| words[(index / step) % words.len()];
    let (verb, thing) = (pick(VERBS, 1), pick(THINGS, VERBS.len()));
    let name = if index == 0 { "echo".to_owned() } else { format!("{verb}_{thing}_{index}") };
    json!({
        "name": name,
        "description": format!("Does {verb} one {thing} of the tracker. The {thing} must exist in the project's screen, and the caller must be allowed to {verb} it. Returns the {thing} as it is afterwards."),
        "inputSchema": {
            "type": "object",
            "properties": {
                "text": { "type": "string", "description": format!("The new value of the {thing}, as plain text.") },
                "issue": { "type": "string", "description": "The key of the issue, such as PROJ-123." },
                "size": { "type": "integer", "description": "How many bytes more are wanted." },
                "notify": { "type": "boolean", "default": false, "description": "Whether watchers are told." }
            }
        }
    })
}

const VERBS: &[&str] =
    &["update", "create", "list", "delete", "search", "export", "archive", "share", "rename", "count"];
const THINGS: &[&str] = &[
    "issue", "invoice", "event", "branch", "page", "message", "channel", "customer", "order", "ticket", "file",
    "report", "alert", "job", "label", "sprint", "webhook", "bucket", "table", "secret",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_echo_is_as_long_as_asked() {
        let server = EchoServer::new(&UpstreamOptions::parse(&["--stdio"]).expect("options"));
        let body = br#"{"id":7,"method":"tools/call","params":{"arguments":{"text":"hi","size":1000}}}"#;
        let answer: Value = serde_json::from_str(&server.answer(body).expect("an answer")).expect("JSON");
        let text = answer["result"]["content"][0]["text"].as_str().expect("a text");
        assert!(text.starts_with("hi") && text.len() == 1002 && answer["id"] == 7);
    }

    #[test]
    fn it_speaks_over_one_way_alone() {
        assert!(UpstreamOptions::parse(&["--stdio", "--http", "127.0.0.1:1"]).is_err());
        assert!(UpstreamOptions::parse(&["--sse"]).is_err() && UpstreamOptions::parse(&["--tools"]).is_err());
        let options = UpstreamOptions::parse(&["--http", "127.0.0.1:1", "--sse", "--tools", "5"]).expect("options");
        assert!(options.is_sse && options.tools == 5 && options.address.is_some());
    }
}
