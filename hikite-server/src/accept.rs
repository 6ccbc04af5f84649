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
use crate::connection::{ConnectionPlace, Counted, Peer, Timed};
use crate::mcp::Sessions;
use crate::router::router;
use crate::{departure, staleness};

/// Pause after an accept that failed for lack of file descriptors.
const BREATH: Duration = Duration::from_millis(50);

/// Minimum interval between two log messages about missing file descriptors.
const TELL_EVERY: Duration = Duration::from_secs(10);

/// Response to a connection over the limit.
const FULL: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";

/// Serves until `stopping` fires, then until the last request is done or the drain time is over.
pub async fn serve(listener: TcpListener, app: Arc<App>) {
    let router = router(Arc::clone(&app));
    app.tasks.spawn(Sessions::expire(Arc::clone(&app)));
    app.tasks.spawn(departure::follow(Arc::clone(&app)));
    app.tasks.spawn(staleness::follow(Arc::clone(&app)));
    let mut reserve = Reserve::new();
    while let Some(accepted) = app.stopping.run_until_cancelled(listener.accept()).await {
        match accepted {
            Ok((stream, peer)) => {
                let is_proxy = app.settings.load().proxies.believes(peer.ip());
                match app.connections.take(peer.ip(), is_proxy) {
                    Ok(place) => {
                        let peer = Peer { address: peer.ip(), is_secure: false };
                        app.tasks.spawn(connection((stream, peer), router.clone(), Arc::clone(&app), place));
                    }
                    Err(error) => turn_away(&stream, &app, &error),
                }
            }
            Err(error) if is_out_of_files(&error) => reserve.refuse(&listener, &app).await,
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(BREATH).await;
            }
        }
    }
    drop(listener);
    app.let_go();
    app.tasks.close();
    if tokio::time::timeout(app.limits.drain, app.tasks.wait()).await.is_err() {
        tracing::warn!("some requests were still running at the end");
    }
}

/// Refuses a connection over the limit. Nothing is read and nothing is awaited: bytes that do not fit into the socket
/// buffer are dropped, and a TLS client gets no response because no handshake has taken place.
fn turn_away(stream: &TcpStream, app: &App, error: &Error) {
    tracing::warn!("a connection was refused: {}; {}", error.message, app.connections.what_to_raise());
    say_full(stream, app);
}

fn say_full(stream: &TcpStream, app: &App) {
    if app.settings.load().tls.is_none() {
        let _ = stream.try_write(FULL);
    }
}

/// A spare file descriptor. It is closed to accept and refuse one connection when no descriptors are left; otherwise
/// clients would hang until another file is closed.
struct Reserve {
    file: Option<File>,
    told: Option<Instant>,
}

impl Reserve {
    fn new() -> Self {
        Self { file: File::open("/dev/null").ok(), told: None }
    }

    async fn refuse(&mut self, listener: &TcpListener, app: &App) {
        if self.told.is_none_or(|told| told.elapsed() > TELL_EVERY) {
            self.told = Some(Instant::now());
            tracing::error!(
                "no more files can be opened, so new connections are refused; raise the limit of open files \
                 (`ulimit -n`, `LimitNOFILE=`), or lower `limits.connections`"
            );
        }
        self.file = None;
        match tokio::time::timeout(BREATH, listener.accept()).await {
            Ok(Ok((stream, _))) => say_full(&stream, app),
            // Another task took the freed descriptor.
            Ok(Err(_)) => tokio::time::sleep(BREATH).await,
            Err(_) => {}
        }
        self.file = File::open("/dev/null").ok();
    }
}

fn is_out_of_files(error: &std::io::Error) -> bool {
    let number = error.raw_os_error();
    [Errno::MFILE, Errno::NFILE].into_iter().any(|errno| number == Some(errno.raw_os_error()))
}

async fn connection(
    (stream, peer): (TcpStream, Peer),
    router: axum::Router,
    app: Arc<App>,
    place: ConnectionPlace,
) {
    let _ = stream.set_nodelay(true);
    let activity = place.activity.clone();
    let (header_timeout, idle_timeout) = (app.limits.header_timeout, app.limits.idle_timeout);
    let stream = Timed::new(stream, activity.clone(), header_timeout, idle_timeout);
    let tls = app.settings.load().tls.clone();
    let Some(tls) = tls else {
        return talk(stream, Counted::new(router, activity, peer), &app, &place).await;
    };
    // Both futures are boxed so that plaintext connections do not carry the size of the TLS handshake, nor established
    // ones.
    let greeting = place.ending.run_until_cancelled(tls.greet(stream, header_timeout));
    let greeting = Box::pin(app.stopping.run_until_cancelled(greeting)).await;
    let Some(stream) = greeting.flatten().flatten() else { return };
    let service = Counted::new(router, activity, Peer { is_secure: true, ..peer });
    Box::pin(talk(stream, service, &app, &place)).await;
}

async fn talk(
    stream: impl AsyncRead + AsyncWrite + Unpin + 'static,
    service: Counted,
    app: &App,
    place: &ConnectionPlace,
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
            if place.activity.may_give_way() {
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
