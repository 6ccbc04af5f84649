//! Clients that hold connections without using them: headers byte by byte, a missing body, unread responses. All are
//! cut off in time, and well-behaved clients notice nothing. Runs slowhttptest too, if installed.

use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinSet;

use super::check::FaultCheck;
use super::settings::{FaultRun, FaultSettings, number};
use crate::rig::load::BackgroundCalls;

const HEADER_S: u64 = 3;
const BODY_S: u64 = 4;
const IDLE_S: u64 = 5;
/// Slack for timers with this many sockets.
const SLACK_S: f64 = 2.0;
const P99_MS: f64 = 50.0;
const PAUSE: Duration = Duration::from_millis(10);

#[derive(Clone, Copy)]
enum SlowPart {
    Headers,
    Body,
    Reader,
}

pub(super) async fn run(settings: &FaultSettings) -> Result<Vec<FaultCheck>> {
    let limits = json!({ "header_timeout": format!("{HEADER_S}s"), "body_timeout": format!("{BODY_S}s"),
        "idle_timeout": format!("{IDLE_S}s") });
    let scene = settings.open(&limits, &[], 0).await?;
    let mut checks = Vec::new();
    // Unread data fills kernel memory, so fewer of those are enough.
    for (kind, name, count, seconds) in [
        (SlowPart::Headers, "headers a byte at a time", settings.count(2000, 300), HEADER_S),
        (SlowPart::Body, "a body that does not come", settings.count(2000, 300), BODY_S),
        (SlowPart::Reader, "answers that are not read", settings.count(200, 50), IDLE_S),
    ] {
        let steady = BackgroundCalls::start(&scene.gateway.target, &scene.echo, PAUSE).await?;
        let (latest, cut) = attack(scene.gateway.target.address, kind, count).await?;
        let load = steady.end().await?;
        let what = format!("{count} × {name}: the last is cut after");
        #[expect(clippy::cast_precision_loss, reason = "a few seconds")]
        checks.push(FaultCheck::at_most(what, latest, seconds as f64 + settings.within(SLACK_S), "s"));
        checks.push(FaultCheck::none(format!("{name}: not cut at all"), count - cut, count));
        checks.push(FaultCheck::at_most(
            format!("{name}: p99 of {} calls meanwhile", load.calls),
            load.p99_ms,
            settings.at_worst(P99_MS),
            "ms",
        ));
    }
    if !settings.is_short {
        checks.extend(slowhttptest(&scene).await?);
    }
    checks.push(scene.no_panic()?);
    Ok(checks)
}

/// Opens all connections at once; returns the longest time until a cut in seconds, and the number cut.
async fn attack(address: SocketAddr, kind: SlowPart, count: usize) -> Result<(f64, usize)> {
    let mut all = JoinSet::new();
    for _ in 0..count {
        all.spawn(one(address, kind));
    }
    let (mut latest, mut cut) = (0.0_f64, 0);
    while let Some(done) = all.join_next().await {
        if let Some(seconds) = done?? {
            latest = latest.max(seconds);
            cut += 1;
        }
    }
    ensure!(cut > 0, "none was cut");
    Ok((latest, cut))
}

/// Opens one connection; returns the seconds until it was cut, if it was.
async fn one(address: SocketAddr, kind: SlowPart) -> Result<Option<f64>> {
    let socket = TcpSocket::new_v4()?;
    if matches!(kind, SlowPart::Reader) {
        socket.set_recv_buffer_size(4096)?;
    }
    let mut stream = socket.connect(address).await?;
    let started = Instant::now();
    let head = "POST /mcp HTTP/1.1\r\nhost: localhost\r\naccept: */*\r\ncontent-type: application/json\r\n";
    let begin = match kind {
        SlowPart::Headers => "GET /health HTTP/1.1\r\nx: ".to_owned(),
        SlowPart::Body => format!("{head}content-length: 100\r\n\r\n{{"),
        // Far more than the buffers of both sides hold.
        SlowPart::Reader => "GET /v1/openapi.json HTTP/1.1\r\nhost: localhost\r\n\r\n".repeat(60),
    };
    stream.write_all(begin.as_bytes()).await?;
    let is_cut = async {
        match kind {
            SlowPart::Headers | SlowPart::Body => {
                until_closed(&mut stream, matches!(kind, SlowPart::Headers)).await;
            }
            SlowPart::Reader => until_refused(&mut stream).await,
        }
    };
    let cut = tokio::time::timeout(Duration::from_secs(30), is_cut).await;
    Ok(cut.is_ok().then(|| started.elapsed().as_secs_f64()))
}

/// Waits until the peer closes, optionally sending a byte now and then.
async fn until_closed(stream: &mut TcpStream, trickles: bool) {
    let mut part = [0; 1024];
    loop {
        match tokio::time::timeout(Duration::from_millis(500), stream.read(&mut part)).await {
            Ok(Ok(read)) if read > 0 => {}
            Ok(_) => return,
            Err(_) if trickles && stream.write_all(b"x").await.is_err() => return,
            Err(_) => {}
        }
    }
}

/// Waits until the peer has given up, without reading what it sent.
async fn until_refused(stream: &mut TcpStream) {
    loop {
        tokio::time::sleep(Duration::from_millis(200)).await;
        if stream.take_error().is_ok_and(|error| error.is_some())
            || stream.try_write(b"G").is_err_and(|error| error.kind() != std::io::ErrorKind::WouldBlock)
        {
            return;
        }
    }
}

/// Runs slowhttptest, if installed: slow headers on 2,000 connections.
async fn slowhttptest(scene: &FaultRun) -> Result<Option<FaultCheck>> {
    let url = format!("http://{}/health", scene.gateway.target.address);
    let attack = Command::new("slowhttptest")
        .args(["-c", "2000", "-H", "-i", "1", "-r", "1000", "-l", "12", "-x", "24", "-u", &url])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let Ok(mut attack) = attack else { return Ok(None) };
    let steady = BackgroundCalls::start(&scene.gateway.target, &scene.echo, PAUSE).await?;
    while attack.try_wait()?.is_none() {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let load = steady.end().await?;
    let what = format!("slowhttptest -c 2000 -H: p99 of {} calls meanwhile", number(load.calls));
    Ok(Some(FaultCheck::at_most(what, load.p99_ms, P99_MS, "ms")))
}
