//! Invalid client input: each is rejected at once at little cost. Other inputs are covered by the fuzz targets.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::check::FaultCheck;
use super::settings::FaultSettings;

const DEPTH: usize = 100_000;
const GIB: usize = 1 << 30;
/// Bound for "at once": far above the actual time, and far below that of reading everything.
const AT_ONCE_MS: f64 = 500.0;
const GROWTH_MIB: f64 = 8.0;
const TIMEOUT: Duration = Duration::from_secs(20);
const HEAD: &str = "POST /mcp HTTP/1.1\r\nhost: localhost\r\naccept: application/json, text/event-stream\r\n\
                    content-type: application/json\r\n";

pub(super) async fn run(settings: &FaultSettings) -> Result<Vec<FaultCheck>> {
    let scene = settings.open(&serde_json::json!({ "body_bytes": "4MiB" }), &[], 0).await?;
    let address = scene.gateway.target.address;
    let mut checks = Vec::new();
    let deep = |open: &str, close: &str| {
        let (open, close) = (open.repeat(DEPTH), close.repeat(DEPTH));
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"a":{open}1{close}}}}}"#).into_bytes()
    };
    let bodies: [(&str, Vec<u8>, &[&str]); 6] = [
        ("100,000 arrays in each other", deep("[", "]"), &["-32700", "-32600"]),
        ("100,000 objects in each other", deep(r#"{"a":"#, "}"), &["-32700", "-32600"]),
        ("100,000 arrays that do not end", deep("[", ""), &["-32700"]),
        (
            "duplicate keys",
            br#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping","method":"tools/list"}"#.to_vec(),
            &["-32700", "-32600"],
        ),
        ("invalid UTF-8", b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\xfe\"}".to_vec(), &["-32700"]),
        ("a gzip bomb of 158 MiB", bomb(), &["415", "-32700"]),
    ];
    for (name, body, expected) in bodies {
        let before = scene.memory()?;
        let started = Instant::now();
        let answer = post(address, &body, name.contains("gzip")).await?;
        let took = started.elapsed().as_secs_f64() * 1000.0;
        let status = answer.split(' ').nth(1).unwrap_or_default().to_owned();
        let code = answer.split("\"code\":").nth(1).and_then(|rest| rest.split([',', '}']).next()).unwrap_or("none");
        let ok = expected.iter().any(|word| *word == code || *word == status);
        let growth = scene.growth(before)?;
        let ok = ok && took <= settings.within(AT_ONCE_MS) && growth <= GROWTH_MIB;
        let bound = format!("{}, ≤ {} ms, ≤ {GROWTH_MIB} MiB", expected.join(" or "), settings.within(AT_ONCE_MS));
        checks.push(FaultCheck::that(name, bound, format!("{status} {code}, {took:.0} ms, {growth:.1} MiB"), ok));
    }
    let before = scene.memory()?;
    let (status, sent, took) = endless(address).await?;
    let growth = scene.growth(before)?;
    let seen = format!("{status} after {:.1} MiB, {took:.0} ms, {growth:.1} MiB", super::settings::mib(sent as u64));
    let ok = status == "413" && growth <= GROWTH_MIB && sent < GIB / 10;
    checks.push(FaultCheck::that("a body of 1 GiB in chunks", "413, ≤ 8 MiB", seen, ok));
    checks.push(scene.no_panic()?);
    Ok(checks)
}

/// Sends a body in one piece and returns the response as text.
async fn post(address: SocketAddr, body: &[u8], is_gzip: bool) -> Result<String> {
    let mut stream = TcpStream::connect(address).await?;
    let encoding = if is_gzip { "content-encoding: gzip\r\n" } else { "" };
    let head = format!("{HEAD}{encoding}connection: close\r\ncontent-length: {}\r\n\r\n", body.len());
    stream.write_all(head.as_bytes()).await?;
    // It may be rejected before all of it was sent.
    let _ = stream.write_all(body).await;
    let mut answer = Vec::new();
    tokio::time::timeout(TIMEOUT, stream.read_to_end(&mut answer)).await.context("no answer")??;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

/// Sends chunks until there is a response; returns the status, the bytes accepted and the milliseconds.
async fn endless(address: SocketAddr) -> Result<(String, usize, f64)> {
    let (mut reader, mut writer) = TcpStream::connect(address).await?.into_split();
    writer.write_all(format!("{HEAD}transfer-encoding: chunked\r\n\r\n").as_bytes()).await?;
    let mut chunk = b"10000\r\n".to_vec();
    chunk.resize(chunk.len() + 0x10000, b' ');
    chunk.extend_from_slice(b"\r\n");
    let started = Instant::now();
    let mut sent = 0;
    let sending = async {
        while sent < GIB && writer.write_all(&chunk).await.is_ok() {
            sent += 0x10000;
        }
        std::future::pending::<()>().await;
    };
    let mut answer = vec![0; 4096];
    let read = tokio::select! {
        read = tokio::time::timeout(TIMEOUT, reader.read(&mut answer)) => read.context("no answer")??,
        () = sending => 0,
    };
    let text = String::from_utf8_lossy(&answer[..read]).into_owned();
    let status = text.split(' ').nth(1).unwrap_or("none").to_owned();
    Ok((status, sent, started.elapsed().as_secs_f64() * 1000.0))
}

/// Returns a megabyte of deflate that expands to 258 bytes for every 13 bits: one literal, then matches of maximum
/// length.
fn bomb() -> Vec<u8> {
    let mut bytes = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3];
    let (mut word, mut bits) = (0_u32, 0_u32);
    // A last block with fixed codes; the literal 0 is 00110000; 258 is 11000101, a distance of one 00000.
    let start: &[u32] = &[1, 1, 0, 0, 0, 1, 1, 0, 0, 0, 0];
    let matched: &[u32] = &[1, 1, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0];
    for bit in start.iter().chain((0..645_000).flat_map(|_| matched)) {
        word |= bit << bits;
        bits += 1;
        if bits == 8 {
            bytes.push(u8::try_from(word).unwrap_or_default());
            (word, bits) = (0, 0);
        }
    }
    bytes
}
