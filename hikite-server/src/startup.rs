//! Responses while hikite cannot start because its store is unreachable: alive, not ready and why, and 503 for all
//! other requests.

use std::net::IpAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use axum::response::Response;
use axum::routing::get;
use hikite_core::error::{Error, ErrorKind};
use hikite_core::limits::Limits;
use http::header::{CONNECTION, HeaderValue};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::connection::{Activity, ClientAddress, CountingService, TimedStream};
use crate::error_response::error_response;
use crate::health;
use crate::readiness::{self, RETRY, UnreadyReason};
use crate::request_id::RequestId;
use crate::tls::ServerTls;

/// Maximum concurrent connections; further ones wait.
const CONNECTIONS: usize = 256;
const REASON: &str = "the store cannot be reached yet";

/// Serves on this port until `work` is done, and returns its result.
pub async fn serve_until<T>(listener: &TcpListener, tls: Option<ServerTls>, work: impl Future<Output = T>) -> T {
    let (router, limits) = (router(Instant::now()), Limits::default());
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    let mut connections = JoinSet::new();
    tokio::pin!(work);
    loop {
        let next = async {
            let place = Arc::clone(&places).acquire_owned().await;
            (place, listener.accept().await)
        };
        tokio::select! {
            // Open connections are closed; clients reconnect to the full server.
            outcome = &mut work => return outcome,
            (place, accepted) = next => if let Ok((stream, peer)) = accepted {
                let (router, tls, limits) = (router.clone(), tls.clone(), limits.clone());
                connections.spawn(async move {
                    let _place = place;
                    connection((stream, peer.ip()), router, tls, &limits).await;
                });
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn connection((stream, address): (TcpStream, IpAddr), router: Router, tls: Option<ServerTls>, limits: &Limits) {
    let activity = Activity::new();
    let stream = TimedStream::new(stream, activity.clone(), limits.header_timeout, limits.idle_timeout);
    let service = CountingService::new(router, activity, ClientAddress { address, is_secure: tls.is_some() });
    match tls {
        None => serve_http(stream, service, limits).await,
        Some(tls) => {
            if let Some(stream) = tls.handshake(stream, limits.header_timeout).await {
                serve_http(stream, service, limits).await;
            }
        }
    }
}

async fn serve_http(stream: impl AsyncRead + AsyncWrite + Unpin + 'static, service: CountingService, limits: &Limits) {
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.header_timeout)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(service));
    if let Err(error) = connection.await {
        tracing::debug!(%error, "a connection ended early");
    }
}

fn router(started: Instant) -> Router {
    Router::new()
        .route("/health", get(move || async move { health::alive(started) }))
        .route("/readyz", get(|| async { readiness::answer(&[UnreadyReason::new("store_unreachable", REASON)]) }))
        .fallback(not_ready)
        .layer(from_fn(close_after))
}

async fn not_ready() -> Response {
    let error = Error::new(ErrorKind::Overloaded, format!("hikite is not ready: {REASON}."));
    error_response(error.hint("Try again in a few seconds. The log of hikite has the reason.").after(RETRY))
}

/// Closes the connection after each response, so that the next one reaches the full server.
async fn close_after(request: Request, next: Next) -> Response {
    let mut response = RequestId::random().set_header(next.run(request).await);
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response
}
