//! Clients with an idle open stream: hikite's memory per client. Kernel socket buffers are not counted.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::check::FaultCheck;
use super::settings::{FaultSettings, number};
use crate::rig::procfs;

const KB_MAX: f64 = 20.0;
const AT_ONCE: usize = 32;
const HEAD: &str = "host: localhost\r\naccept: application/json, text/event-stream\r\ncontent-type: application/json\r\n\
                    mcp-protocol-version: 2025-11-25\r\n";

pub(super) async fn run(settings: &FaultSettings) -> Result<Vec<FaultCheck>> {
    let count = settings.count(10_000, 1000);
    allow_files(u64::try_from(count)? + 500)?;
    let most = count + 200;
    let limits = json!({ "connections": most, "sessions": most, "streams": most, "caller_share": 100 });
    let scene = settings.open(&limits, &[], 0).await?;
    let address = scene.gateway.target.address;
    // One-time costs of the first clients are excluded.
    let _first = open(address, 100).await?;
    let before = procfs::memory(scene.gateway.pid())?.0;
    let streams = open(address, count).await?;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let after = procfs::memory(scene.gateway.pid())?.0;
    #[expect(clippy::cast_precision_loss, reason = "far fewer bytes than a double counts exactly")]
    let each = after.saturating_sub(before) as f64 / 1000.0 / number(streams.len());
    let mut client = scene.gateway.client().await?;
    client.echo(&scene.echo).await?;
    let mut checks = vec![FaultCheck::at_most(format!("memory of each of {count} idle streams"), each, KB_MAX, "kB")];
    drop(streams);
    checks.push(scene.no_panic()?);
    Ok(checks)
}

/// Opens sessions, each with its stream.
async fn open(address: SocketAddr, count: usize) -> Result<Vec<TcpStream>> {
    let places = Arc::new(Semaphore::new(AT_ONCE));
    let mut opening = JoinSet::new();
    for _ in 0..count {
        let places = Arc::clone(&places);
        opening.spawn(async move {
            let _place = places.acquire().await?;
            one(address).await
        });
    }
    let mut streams = Vec::with_capacity(count);
    while let Some(stream) = opening.join_next().await {
        streams.push(stream??);
    }
    Ok(streams)
}

async fn one(address: SocketAddr) -> Result<TcpStream> {
    let mut stream = TcpStream::connect(address).await?;
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "idle", "version": "1" } } });
    let head = ask(&mut stream, &post("", &hello.to_string()), "\"result\"").await?;
    let session = head.lines().find_map(|line| line.strip_prefix("mcp-session-id: ")).context("no session")?.to_owned();
    let session = format!("mcp-session-id: {}\r\n", session.trim());
    let ready = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    ask(&mut stream, &post(&session, ready), "202").await?;
    let get = format!("GET /mcp HTTP/1.1\r\n{HEAD}{session}\r\n");
    ask(&mut stream, &get, "text/event-stream").await?;
    Ok(stream)
}

fn post(session: &str, body: &str) -> String {
    format!("POST /mcp HTTP/1.1\r\n{HEAD}{session}content-length: {}\r\n\r\n{body}", body.len())
}

/// Sends a request and reads until the response contains `until`.
async fn ask(stream: &mut TcpStream, request: &str, until: &str) -> Result<String> {
    stream.write_all(request.as_bytes()).await?;
    let (mut text, mut part) = (String::new(), vec![0; 4096]);
    while !text.contains(until) {
        let read = tokio::time::timeout(Duration::from_secs(20), stream.read(&mut part)).await??;
        ensure!(read > 0, "closed instead of `{until}`: {text}");
        text.push_str(&String::from_utf8_lossy(&part[..read]));
    }
    Ok(text)
}

/// Raises the open file limit of this program and its children.
fn allow_files(count: u64) -> Result<()> {
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_some_and(|now| now < count) {
        let wanted = Rlimit { current: Some(count), maximum: limit.maximum };
        setrlimit(Resource::Nofile, wanted).context("more open files are not allowed here: `ulimit -n`")?;
    }
    Ok(())
}
