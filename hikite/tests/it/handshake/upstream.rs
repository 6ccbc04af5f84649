//! An HTTP upstream on raw sockets: it records the order of messages and of its own responses, and delays or falsifies
//! responses as a test demands.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::tcp::OwnedWriteHalf;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::task::TaskTracker;

/// Delay of an acknowledgement or of a stream's headers, long enough to be overtaken by a request that does not wait.
const SLOW: Duration = Duration::from_millis(200);

/// Behavior of the GET stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GetStream {
    /// Late headers.
    Slow,
    /// No headers.
    Withheld,
    /// No stream.
    Refused,
    /// The transport of 2024-11-05: the stream comes first and carries every response.
    Legacy,
}

/// Response to `tools/call`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallResponse {
    Own,
    /// A body with the id of another request.
    Foreign,
    /// A stream with the id of another request first, then with its own.
    ForeignFirst,
    /// A stream with the id of another request only.
    ForeignOnly,
    /// Status 400 and an error with the id of another request.
    ForeignRefusal,
    /// A JSON-RPC batch, as in 2025-03-26.
    Together,
}

pub(super) struct ScriptedUpstream {
    address: SocketAddr,
    kind: &'static str,
    shared: Arc<UpstreamState>,
    serving: JoinHandle<()>,
}

struct UpstreamState {
    stream: GetStream,
    answer: Mutex<CallResponse>,
    /// Events of each session, by its number.
    seen: Mutex<Vec<Vec<String>>>,
    legacy: Mutex<HashMap<usize, mpsc::UnboundedSender<String>>>,
}

impl Drop for ScriptedUpstream {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl ScriptedUpstream {
    pub(super) async fn start(stream: GetStream) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let shared = Arc::new(UpstreamState {
            stream,
            answer: Mutex::new(CallResponse::Own),
            seen: Mutex::default(),
            legacy: Mutex::default(),
        });
        let serve = Arc::clone(&shared);
        let tasks = TaskTracker::new();
        let connections = tasks.clone();
        let serving = tasks.spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                connections.spawn(Arc::clone(&serve).serve(socket));
            }
        });
        let kind = if stream == GetStream::Legacy { "sse" } else { "http" };
        Self { address, kind, shared, serving }
    }

    pub(super) fn definition(&self) -> Value {
        json!({ "description": "d", "type": self.kind, "url": format!("http://{}/mcp", self.address) })
    }

    pub(super) fn answers(&self, answer: CallResponse) {
        *self.shared.answer.lock() = answer;
    }

    /// Returns the events of each session with a tool call.
    pub(super) fn sessions_with_calls(&self) -> Vec<Vec<String>> {
        let seen = self.shared.seen.lock();
        seen.iter().filter(|seen| seen.iter().any(|what| what == "tools/call")).cloned().collect()
    }
}

struct ParsedRequest {
    is_get: bool,
    session: Option<usize>,
    body: Value,
}

impl UpstreamState {
    async fn serve(self: Arc<Self>, socket: TcpStream) {
        let (reading, writing) = socket.into_split();
        let Some(arrived) = read(BufReader::new(reading)).await else { return };
        if arrived.is_get {
            self.serve_stream(arrived.session, writing).await;
        } else {
            self.serve_message(&arrived, writing).await;
        }
    }

    fn note(&self, session: usize, what: &str) {
        self.seen.lock()[session].push(what.to_owned());
    }

    fn open(&self) -> usize {
        let mut seen = self.seen.lock();
        seen.push(Vec::new());
        seen.len() - 1
    }

    async fn serve_stream(&self, session: Option<usize>, mut out: OwnedWriteHalf) {
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
        match (self.stream, session) {
            (GetStream::Legacy, None) => {
                let (sender, mut events) = mpsc::unbounded_channel();
                let session = self.open();
                self.legacy.lock().insert(session, sender);
                let first = format!("{head}event: endpoint\ndata: /mcp?session={session}\n\n");
                let _ = out.write_all(first.as_bytes()).await;
                while let Some(data) = events.recv().await {
                    let _ = out.write_all(format!("event: message\ndata: {data}\n\n").as_bytes()).await;
                }
            }
            (GetStream::Slow, Some(session)) => {
                tokio::time::sleep(SLOW).await;
                self.note(session, "stream");
                let _ = out.write_all(head.as_bytes()).await;
                std::future::pending::<()>().await;
            }
            (GetStream::Withheld, Some(session)) => {
                self.note(session, "stream");
                std::future::pending::<()>().await;
            }
            _ => {
                if let Some(session) = session {
                    self.note(session, "refusal");
                }
                let refusal = "HTTP/1.1 405 Method Not Allowed\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
                let _ = out.write_all(refusal.as_bytes()).await;
            }
        }
    }

    async fn serve_message(&self, arrived: &ParsedRequest, mut out: OwnedWriteHalf) {
        let ParsedRequest { body, session, .. } = arrived;
        let method = body["method"].as_str().unwrap_or_default();
        let session = match (method, session) {
            ("server/discover", _) if self.stream != GetStream::Legacy => {
                let refused = json!({ "jsonrpc": "2.0", "id": body["id"],
                    "error": { "code": -32601, "message": "Method not found" } });
                return reply(&mut out, 200, None, Some(refused.to_string())).await;
            }
            ("initialize", None) => self.open(),
            (_, Some(session)) => *session,
            (_, None) => return reply(&mut out, 400, None, None).await,
        };
        if method == "notifications/initialized" {
            tokio::time::sleep(SLOW).await;
        }
        self.note(session, method);
        let answer = result(method, &body["id"]);
        match answer {
            None => reply(&mut out, 202, Some(session), None).await,
            Some(answer) if self.stream == GetStream::Legacy => {
                reply(&mut out, 202, None, None).await;
                if let Some(events) = self.legacy.lock().get(&session) {
                    let _ = events.send(answer.to_string());
                }
            }
            Some(answer) if method == "tools/call" => self.answer_call(&answer, session, out).await,
            Some(answer) => reply(&mut out, 200, Some(session), Some(answer.to_string())).await,
        }
    }

    async fn answer_call(&self, answer: &Value, session: usize, mut out: OwnedWriteHalf) {
        let mut foreign = answer.clone();
        foreign["id"] = json!(answer["id"].as_u64().unwrap_or_default() + 1000);
        foreign["result"]["content"][0]["text"] = "for somebody else".into();
        let how = *self.answer.lock();
        let events = |answers: &[&Value]| {
            let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
            answers.iter().fold(head.to_owned(), |all, answer| format!("{all}data: {answer}\n\n"))
        };
        let stream = match how {
            CallResponse::Own => return reply(&mut out, 200, Some(session), Some(answer.to_string())).await,
            CallResponse::Foreign => {
                return reply(&mut out, 200, Some(session), Some(foreign.to_string())).await;
            }
            CallResponse::ForeignRefusal => {
                let error = json!({ "jsonrpc": "2.0", "id": foreign["id"],
                    "error": { "code": -32602, "message": "for somebody else" } });
                return reply(&mut out, 400, Some(session), Some(error.to_string())).await;
            }
            CallResponse::Together => {
                let log = json!({ "jsonrpc": "2.0", "method": "notifications/message",
                    "params": { "level": "info", "data": "d" } });
                return reply(&mut out, 200, Some(session), Some(json!([log, answer]).to_string())).await;
            }
            CallResponse::ForeignFirst => events(&[&foreign, answer]),
            CallResponse::ForeignOnly => events(&[&foreign]),
        };
        let _ = out.write_all(stream.as_bytes()).await;
    }
}

fn result(method: &str, id: &Value) -> Option<Value> {
    let result = match method {
        "initialize" => {
            json!({ "protocolVersion": "2025-06-18", "capabilities": { "tools": {}, "logging": {} },
            "serverInfo": { "name": "raw", "version": "1" } })
        }
        "tools/list" => json!({ "tools": [{ "name": "t", "inputSchema": { "type": "object" } }] }),
        "tools/call" => json!({ "content": [{ "type": "text", "text": "done" }] }),
        _ if id.is_null() => return None,
        _ => json!({}),
    };
    Some(json!({ "jsonrpc": "2.0", "id": id, "result": result }))
}

async fn reply(out: &mut OwnedWriteHalf, status: u16, session: Option<usize>, body: Option<String>) {
    let session = session.map(|session| format!("mcp-session-id: {session}\r\n")).unwrap_or_default();
    let body = body.unwrap_or_default();
    let head = format!(
        "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\nconnection: close\r\n{session}content-length: {}\r\n\r\n",
        body.len()
    );
    let _ = out.write_all((head + &body).as_bytes()).await;
}

async fn read(mut input: BufReader<impl tokio::io::AsyncRead + Unpin>) -> Option<ParsedRequest> {
    let mut first = String::new();
    input.read_line(&mut first).await.ok()?;
    let mut session = first.split_once("session=").and_then(|(_, rest)| rest.split(' ').next()?.parse().ok());
    let mut length = 0;
    loop {
        let mut line = String::new();
        input.read_line(&mut line).await.ok()?;
        let Some((name, value)) = line.trim().split_once(": ") else { break };
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.parse().ok()?,
            "mcp-session-id" => session = value.parse().ok(),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    input.read_exact(&mut body).await.ok()?;
    let is_get = first.starts_with("GET");
    Some(ParsedRequest { is_get, session, body: serde_json::from_slice(&body).unwrap_or_default() })
}
