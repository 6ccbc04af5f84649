//! A server of MCP on a raw socket that behaves as it is told, also as no server should. It counts the calls that it ran.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// The tool that it has; it promises nothing, so that it must not run twice.
pub(super) const TOOL: &str = "poke";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Act {
    Well,
    /// Takes the call and never says a word.
    Hang,
    /// Says half of the answer.
    HangMidBody,
    /// Opens an event stream and says nothing in it.
    SilentStream,
    /// An answer of so many bytes.
    Large(usize),
    /// An event stream with one line that does not end.
    EndlessLine,
    /// Says on its own stream, again and again, that its tools changed.
    Flood,
    /// Resets the connection once so many bytes of the next request have come, and is well afterwards.
    ResetRequest(usize),
    /// Runs the call and resets the connection once so many bytes of the answer are sent.
    ResetAnswer(usize),
}

pub(super) struct Rogue {
    pub(super) address: SocketAddr,
    state: Arc<State>,
    _tasks: JoinSet<()>,
}

struct State {
    act: Mutex<Act>,
    runs: AtomicUsize,
    resets: AtomicUsize,
    lists: AtomicUsize,
    announced: AtomicUsize,
}

/// Announcements in one piece.
const PIECE: usize = 100;

impl Rogue {
    pub(super) async fn start() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let state = Arc::new(State {
            act: Mutex::new(Act::Well),
            runs: AtomicUsize::new(0),
            resets: AtomicUsize::new(0),
            lists: AtomicUsize::new(0),
            announced: AtomicUsize::new(0),
        });
        let mut tasks = JoinSet::new();
        let shared = Arc::clone(&state);
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let state = Arc::clone(&shared);
                connections.spawn(async move {
                    // Whoever is at the other end notices.
                    let _ = serve(stream, &state).await;
                });
                while connections.try_join_next().is_some() {}
            }
        });
        Ok(Self { address, state, _tasks: tasks })
    }

    pub(super) fn set(&self, act: Act) {
        *self.state.act.lock() = act;
    }

    /// How many calls it ran.
    pub(super) fn runs(&self) -> usize {
        self.state.runs.load(Ordering::SeqCst)
    }

    /// How many connections it reset.
    pub(super) fn resets(&self) -> usize {
        self.state.resets.load(Ordering::SeqCst)
    }

    /// How often its tools were listed.
    pub(super) fn lists(&self) -> usize {
        self.state.lists.load(Ordering::SeqCst)
    }

    /// How often somebody took in that they changed.
    pub(super) fn announced(&self) -> usize {
        self.state.announced.load(Ordering::SeqCst)
    }

    /// Its entry in the config.
    pub(super) fn server(&self, timeout: &str) -> Value {
        json!({ "url": format!("http://{}/mcp", self.address), "timeout": timeout })
    }
}

/// The requests of one connection.
async fn serve(mut stream: TcpStream, state: &State) -> Result<()> {
    stream.set_nodelay(true)?;
    let mut buffer = Vec::new();
    loop {
        let Some((head, body)) = request(&mut stream, &mut buffer, state).await? else { return Ok(()) };
        if head.starts_with("get ") && *state.act.lock() == Act::Flood {
            return flood(&mut stream, state).await;
        }
        if !head.starts_with("POST") {
            let status = if head.starts_with("DELETE") { "200 OK" } else { "405 Method Not Allowed" };
            let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n");
            stream.write_all(answer.as_bytes()).await?;
            continue;
        }
        let message: Value = serde_json::from_slice(&body)?;
        if message.get("id").is_none() {
            stream.write_all(b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n").await?;
            continue;
        }
        let result = match message["method"].as_str().unwrap_or_default() {
            "initialize" => json!({ "protocolVersion": "2025-11-25", "capabilities": { "tools": {} },
                "serverInfo": { "name": "rogue", "version": "1" } }),
            "tools/list" => {
                state.lists.fetch_add(1, Ordering::SeqCst);
                json!({ "tools": [{ "name": TOOL, "inputSchema": { "type": "object" } }] })
            }
            "tools/call" => {
                state.runs.fetch_add(1, Ordering::SeqCst);
                json!({ "content": [{ "type": "text", "text": "done" }] })
            }
            _ => json!({}),
        };
        let answer = json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }).to_string();
        if message["method"] != "tools/call" {
            stream.write_all(whole(&answer).as_bytes()).await?;
            continue;
        }
        let act = *state.act.lock();
        if !misbehave(&mut stream, act, &answer, state).await? {
            return Ok(());
        }
    }
}

/// As fast as the other side reads, but for a pause in which others run.
async fn flood(stream: &mut TcpStream, state: &State) -> Result<()> {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
    stream.write_all(head.as_bytes()).await?;
    let event = "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\n";
    let piece = event.repeat(PIECE);
    while *state.act.lock() == Act::Flood {
        stream.write_all(piece.as_bytes()).await?;
        state.announced.fetch_add(PIECE, Ordering::SeqCst);
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    Ok(())
}

/// The answer to a call; whether the connection goes on.
async fn misbehave(stream: &mut TcpStream, act: Act, answer: &str, state: &State) -> Result<bool> {
    match act {
        Act::Well | Act::Flood | Act::ResetRequest(_) => stream.write_all(whole(answer).as_bytes()).await?,
        Act::Hang => never(stream).await,
        Act::HangMidBody => {
            let answer = whole(answer);
            stream.write_all(&answer.as_bytes()[..answer.len() - 20]).await?;
            never(stream).await;
        }
        Act::SilentStream => {
            let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n: hello\n\n";
            stream.write_all(head.as_bytes()).await?;
            never(stream).await;
        }
        Act::Large(bytes) => {
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {bytes}\r\n\r\n\""
            );
            stream.write_all(head.as_bytes()).await?;
            let part = vec![b'x'; 1 << 16];
            let mut left = bytes - 1;
            while left > 0 {
                let now = left.min(part.len());
                stream.write_all(&part[..now]).await?;
                left -= now;
            }
        }
        Act::EndlessLine => {
            let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\ndata: ";
            stream.write_all(head.as_bytes()).await?;
            let part = vec![b'x'; 1 << 16];
            loop {
                stream.write_all(&part).await?;
            }
        }
        Act::ResetAnswer(bytes) => {
            let answer = whole(answer);
            if bytes < answer.len() {
                stream.write_all(&answer.as_bytes()[..bytes]).await?;
                // Let them arrive: a reset takes back what has not.
                tokio::time::sleep(Duration::from_millis(2)).await;
                reset(stream, state)?;
                return Ok(false);
            }
            stream.write_all(answer.as_bytes()).await?;
        }
    }
    Ok(true)
}

/// The next request: its head, and its body. `None` when the client has gone or was cut off.
async fn request(
    stream: &mut TcpStream,
    buffer: &mut Vec<u8>,
    state: &State,
) -> Result<Option<(String, Vec<u8>)>> {
    loop {
        if let Some(end) = buffer.windows(4).position(|four| four == b"\r\n\r\n") {
            let head = String::from_utf8(buffer[..end].to_vec())?.to_ascii_lowercase();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
            let length: usize = length.map_or(Ok(0), |length| length.trim().parse())?;
            if buffer.len() >= end + 4 + length {
                let body = buffer[end + 4..end + 4 + length].to_vec();
                buffer.drain(..end + 4 + length);
                return Ok(Some((head.replacen("post", "POST", 1).replacen("delete", "DELETE", 1), body)));
            }
        }
        // Looked at once there is something to read: an idle connection is no request that is cut.
        let mut part = [0; 4096];
        stream.peek(&mut part[..1]).await?;
        let most = match *state.act.lock() {
            Act::ResetRequest(bytes) if buffer.len() < bytes => bytes - buffer.len(),
            Act::ResetRequest(_) => 0,
            _ => part.len(),
        };
        if most == 0 {
            reset(stream, state)?;
            return Ok(None);
        }
        let read = stream.read(&mut part[..most.min(4096)]).await?;
        if read == 0 {
            return Ok(None);
        }
        buffer.extend_from_slice(&part[..read]);
    }
}

fn whole(answer: &str) -> String {
    format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{answer}",
        answer.len()
    )
}

/// Waits until the other side gives up.
async fn never(stream: &mut TcpStream) {
    let mut part = [0; 512];
    while matches!(stream.read(&mut part).await, Ok(read) if read > 0) {}
}

fn reset(stream: &TcpStream, state: &State) -> Result<()> {
    state.resets.fetch_add(1, Ordering::SeqCst);
    *state.act.lock() = Act::Well;
    // What is dropped with nothing to wait for is reset.
    stream.set_zero_linger().context("a reset")
}
