//! The accept loop. It limits the number of connections and how long they may be idle or slow, terminates TLS if the
//! config has a certificate, and shuts down gracefully: running requests finish first.

use std::fs::File;
use std::sync::Arc;
use std::time::Duration;

use hikite_core::error::Error;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use rustix::io::Errno;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Instant;

use crate::app::App;
use crate::connection::{ClientAddress, ConnectionSlot, CountingService, TimedStream};
use crate::mcp::SessionTable;
use crate::router::router;
use crate::{revocation, staleness};

/// Pause after an accept that failed for lack of file descriptors.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(50);

/// Minimum interval between two log messages about missing file descriptors.
const LOG_INTERVAL: Duration = Duration::from_secs(10);

/// Response to a connection over the limit.
const SERVICE_UNAVAILABLE: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";

/// Serves until `stopping` fires, then until the last request is done or the drain time is over.
pub async fn serve(listener: TcpListener, app: Arc<App>) {
    let router = router(Arc::clone(&app));
    app.tasks.spawn(SessionTable::expire(Arc::clone(&app)));
    app.tasks.spawn(revocation::follow(Arc::clone(&app)));
    app.tasks.spawn(staleness::follow(Arc::clone(&app)));
    let mut reserve = SpareDescriptors::new();
    while let Some(accepted) = app.stopping.run_until_cancelled(listener.accept()).await {
        match accepted {
            Ok((stream, peer)) => {
                let is_proxy = app.settings.load().proxies.trusts(peer.ip());
                match app.connections.take(peer.ip(), is_proxy) {
                    Ok(place) => {
                        let peer = ClientAddress { address: peer.ip(), is_secure: false };
                        app.tasks.spawn(connection((stream, peer), router.clone(), Arc::clone(&app), place));
                    }
                    Err(error) => reject(&stream, &app, &error),
                }
            }
            Err(error) if is_descriptor_limit(&error) => reserve.refuse(&listener, &app).await,
            Err(error) => {
                tracing::warn!(%error, "failed to accept a connection");
                tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
            }
        }
    }
    drop(listener);
    app.end_all();
    app.tasks.close();
    if tokio::time::timeout(app.limits.drain, app.tasks.wait()).await.is_err() {
        tracing::warn!("some requests were still running when hikite stopped");
    }
}

/// Refuses a connection over the limit. Nothing is read and nothing is awaited: bytes that do not fit into the socket
/// buffer are dropped, and a TLS client gets no response because no handshake has taken place.
fn reject(stream: &TcpStream, app: &App, error: &Error) {
    tracing::warn!(
        "a connection was rejected: {}; {}",
        error.message.trim_end_matches('.'),
        app.connections.limit_hint()
    );
    send_unavailable(stream, app);
}

fn send_unavailable(stream: &TcpStream, app: &App) {
    if app.settings.load().tls.is_none() {
        let _ = stream.try_write(SERVICE_UNAVAILABLE);
    }
}

/// Spare file descriptors. One is closed to accept and refuse a connection when no descriptors are left; otherwise
/// clients would hang until another file is closed. Another task may take the freed descriptor first, so there are
/// several.
struct SpareDescriptors {
    files: Vec<File>,
    logged_at: Option<Instant>,
}

impl SpareDescriptors {
    const COUNT: usize = 8;

    fn new() -> Self {
        let mut spare = Self { files: Vec::with_capacity(Self::COUNT), logged_at: None };
        spare.refill();
        spare
    }

    async fn refuse(&mut self, listener: &TcpListener, app: &App) {
        if self.logged_at.is_none_or(|logged_at| logged_at.elapsed() > LOG_INTERVAL) {
            self.logged_at = Some(Instant::now());
            tracing::error!(
                "the limit of open files is reached, so new connections are rejected; raise it (`ulimit -n`, \
                 `LimitNOFILE=`), or lower `limits.connections`"
            );
        }
        loop {
            let is_freed = self.files.pop().is_some();
            match tokio::time::timeout(ACCEPT_RETRY_DELAY, listener.accept()).await {
                Ok(Ok((stream, _))) => break send_unavailable(&stream, app),
                // Another task took the freed descriptor.
                Ok(Err(_)) if is_freed => {}
                Ok(Err(_)) => break tokio::time::sleep(ACCEPT_RETRY_DELAY).await,
                Err(_) => break,
            }
        }
        self.refill();
    }

    fn refill(&mut self) {
        while self.files.len() < Self::COUNT
            && let Ok(file) = File::open("/dev/null")
        {
            self.files.push(file);
        }
    }
}

fn is_descriptor_limit(error: &std::io::Error) -> bool {
    let number = error.raw_os_error();
    [Errno::MFILE, Errno::NFILE].into_iter().any(|errno| number == Some(errno.raw_os_error()))
}

async fn connection(
    (stream, peer): (TcpStream, ClientAddress),
    router: axum::Router,
    app: Arc<App>,
    place: ConnectionSlot,
) {
    let _ = stream.set_nodelay(true);
    let activity = place.activity.clone();
    let (header_timeout, idle_timeout) = (app.limits.header_timeout, app.limits.idle_timeout);
    let stream = TimedStream::new(stream, activity.clone(), header_timeout, idle_timeout);
    let tls = app.settings.load().tls.clone();
    let Some(tls) = tls else {
        return serve_http(stream, CountingService::new(router, activity, peer), &app, &place).await;
    };
    // Both futures are boxed so that plaintext connections do not carry the size of the TLS handshake, nor established
    // ones.
    let handshake = place.ending.run_until_cancelled(tls.handshake(stream, header_timeout));
    let handshake = Box::pin(app.stopping.run_until_cancelled(handshake)).await;
    let Some(stream) = handshake.flatten().flatten() else { return };
    let service = CountingService::new(router, activity, ClientAddress { is_secure: true, ..peer });
    Box::pin(serve_http(stream, service, &app, &place)).await;
}

async fn serve_http(
    stream: impl AsyncRead + AsyncWrite + Unpin + 'static,
    service: CountingService,
    app: &App,
    place: &ConnectionSlot,
) {
    let (io, service) = (TokioIo::new(stream), TowerToHyperService::new(service));
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        // Applies between requests; within the headers of a request the header timeout is stricter.
        .header_read_timeout(app.limits.idle_timeout)
        .serve_connection(io, service);
    tokio::pin!(connection);
    let ended = tokio::select! {
        ended = &mut connection => ended,
        () = app.stopping.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
        () = place.ending.cancelled() => {
            // The connection is evicted because it was idle or unauthenticated. A request that was authenticated in the
            // meantime still gets its response.
            if place.activity.is_evictable() {
                return;
            }
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended early");
    }
}
