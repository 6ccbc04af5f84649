//! An MCP server on a raw socket that misbehaves as told. It counts the calls that it ran.

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

/// Its only tool. It declares no hints, so it must not run twice.
pub(super) const TOOL: &str = "poke";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RogueBehavior {
    Healthy,
    /// Accepts the call and never answers.
    Hang,
    /// Sends half of the response.
    HangMidBody,
    /// Opens an event stream and sends nothing.
    SilentStream,
    /// A response of this many bytes.
    Large(usize),
    /// An event stream with one endless line.
    EndlessLine,
    /// Announces changed tools on its GET stream without end.
    Flood,
    /// Resets the connection after this many bytes of the next request, then behaves.
    ResetRequest(usize),
    /// Runs the call and resets the connection after this many bytes of the response.
    ResetAnswer(usize),
}

pub(super) struct RogueServer {
    pub(super) address: SocketAddr,
    state: Arc<RogueState>,
    _tasks: JoinSet<()>,
}

struct RogueState {
    behavior: Mutex<RogueBehavior>,
    runs: AtomicUsize,
    resets: AtomicUsize,
    lists: AtomicUsize,
    announced: AtomicUsize,
}

/// Announcements per write.
const PIECE: usize = 100;

impl RogueServer {
    pub(super) async fn start() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let state = Arc::new(RogueState {
            behavior: Mutex::new(RogueBehavior::Healthy),
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
                    // The peer notices.
                    let _ = serve(stream, &state).await;
                });
                while connections.try_join_next().is_some() {}
            }
        });
        Ok(Self { address, state, _tasks: tasks })
    }

    pub(super) fn set(&self, behavior: RogueBehavior) {
        *self.state.behavior.lock() = behavior;
    }

    /// Returns the number of calls it ran.
    pub(super) fn runs(&self) -> usize {
        self.state.runs.load(Ordering::SeqCst)
    }

    /// Returns the number of connections it reset.
    pub(super) fn resets(&self) -> usize {
        self.state.resets.load(Ordering::SeqCst)
    }

    /// Returns the number of times its tools were listed.
    pub(super) fn lists(&self) -> usize {
        self.state.lists.load(Ordering::SeqCst)
    }

    /// Returns the number of announcements that were read.
    pub(super) fn announced(&self) -> usize {
        self.state.announced.load(Ordering::SeqCst)
    }

    /// Returns its config entry.
    pub(super) fn server(&self, timeout: &str) -> Value {
        json!({ "url": format!("http://{}/mcp", self.address), "timeout": timeout })
    }
}

/// Serves the requests of one connection.
async fn serve(mut stream: TcpStream, state: &RogueState) -> Result<()> {
    stream.set_nodelay(true)?;
    let mut buffer = Vec::new();
    loop {
        let Some((head, body)) = request(&mut stream, &mut buffer, state).await? else { return Ok(()) };
        if head.starts_with("get ") && *state.behavior.lock() == RogueBehavior::Flood {
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
        let behavior = *state.behavior.lock();
        if !misbehave(&mut stream, behavior, &answer, state).await? {
            return Ok(());
        }
    }
}

/// Writes as fast as the peer reads, with pauses for other tasks.
async fn flood(stream: &mut TcpStream, state: &RogueState) -> Result<()> {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
    stream.write_all(head.as_bytes()).await?;
    let event = "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\n";
    let piece = event.repeat(PIECE);
    while *state.behavior.lock() == RogueBehavior::Flood {
        stream.write_all(piece.as_bytes()).await?;
        state.announced.fetch_add(PIECE, Ordering::SeqCst);
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    Ok(())
}

/// Answers a call; returns whether the connection continues.
async fn misbehave(stream: &mut TcpStream, behavior: RogueBehavior, answer: &str, state: &RogueState) -> Result<bool> {
    match behavior {
        RogueBehavior::Healthy | RogueBehavior::Flood | RogueBehavior::ResetRequest(_) => {
            stream.write_all(whole(answer).as_bytes()).await?;
        }
        RogueBehavior::Hang => never(stream).await,
        RogueBehavior::HangMidBody => {
            let answer = whole(answer);
            stream.write_all(&answer.as_bytes()[..answer.len() - 20]).await?;
            never(stream).await;
        }
        RogueBehavior::SilentStream => {
            let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n: hello\n\n";
            stream.write_all(head.as_bytes()).await?;
            never(stream).await;
        }
        RogueBehavior::Large(bytes) => {
            let head =
                format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {bytes}\r\n\r\n\"");
            stream.write_all(head.as_bytes()).await?;
            let part = vec![b'x'; 1 << 16];
            let mut left = bytes - 1;
            while left > 0 {
                let now = left.min(part.len());
                stream.write_all(&part[..now]).await?;
                left -= now;
            }
        }
        RogueBehavior::EndlessLine => {
            let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\ndata: ";
            stream.write_all(head.as_bytes()).await?;
            let part = vec![b'x'; 1 << 16];
            loop {
                stream.write_all(&part).await?;
            }
        }
        RogueBehavior::ResetAnswer(bytes) => {
            let answer = whole(answer);
            if bytes < answer.len() {
                stream.write_all(&answer.as_bytes()[..bytes]).await?;
                // Lets them arrive, since a reset discards undelivered bytes.
                tokio::time::sleep(Duration::from_millis(2)).await;
                reset(stream, state)?;
                return Ok(false);
            }
            stream.write_all(answer.as_bytes()).await?;
        }
    }
    Ok(true)
}

/// Reads the next request's head and body; `None` if the client disconnected or was cut off.
async fn request(
    stream: &mut TcpStream,
    buffer: &mut Vec<u8>,
    state: &RogueState,
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
        // Checked once there is data: an idle connection is not a request to cut.
        let mut part = [0; 4096];
        stream.peek(&mut part[..1]).await?;
        let most = match *state.behavior.lock() {
            RogueBehavior::ResetRequest(bytes) if buffer.len() < bytes => bytes - buffer.len(),
            RogueBehavior::ResetRequest(_) => 0,
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
    format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{answer}", answer.len())
}

/// Waits until the peer gives up.
async fn never(stream: &mut TcpStream) {
    let mut part = [0; 512];
    while matches!(stream.read(&mut part).await, Ok(read) if read > 0) {}
}

fn reset(stream: &TcpStream, state: &RogueState) -> Result<()> {
    state.resets.fetch_add(1, Ordering::SeqCst);
    *state.behavior.lock() = RogueBehavior::Healthy;
    // A socket with zero linger is reset on drop.
    stream.set_zero_linger().context("a reset")
}
