//! Timeouts of one client connection: headers must be complete in time once they have begun, and a client that does not
//! read its response is disconnected. Counts the running requests of a connection.

mod table;

use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http::header::{CONNECTION, HeaderValue};
use http_body::{Frame, SizeHint};
use hyper::body::Incoming;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep, sleep, sleep_until};

pub(crate) use table::{ConnectionSlot, Connections};

/// The number of running requests of a connection, including responses being sent, and of all requests so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Activity(Arc<ActivityCounts>);

#[derive(Debug, Default)]
struct ActivityCounts {
    running: AtomicUsize,
    begun: AtomicUsize,
    /// Start of the last request, in milliseconds since the connection was accepted.
    last: AtomicU64,
    /// Set once an authenticated request has arrived on the connection.
    authenticated: AtomicBool,
}

impl Activity {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Returns when the last request began, as a time since the connection was accepted; `None` while an authenticated
    /// request runs.
    pub(crate) fn idle_after(&self) -> Option<Duration> {
        self.is_evictable().then(|| Duration::from_millis(self.0.last.load(Ordering::Relaxed)))
    }

    fn begins_after(&self, accepted: Duration) {
        let last = u64::try_from(accepted.as_millis()).unwrap_or(u64::MAX);
        self.0.last.store(last, Ordering::Relaxed);
    }

    /// Returns `true` if the connection may be evicted: it is idle, or unauthenticated. A stranger who sends a body
    /// slowly cannot occupy a connection.
    pub(crate) fn is_evictable(&self) -> bool {
        self.is_idle() || !self.is_authenticated()
    }

    /// Marks the connection as authenticated.
    pub(crate) fn mark_authenticated(&self) {
        self.0.authenticated.store(true, Ordering::Relaxed);
    }

    fn is_authenticated(&self) -> bool {
        self.0.authenticated.load(Ordering::Relaxed)
    }

    fn begin(&self) -> RunningRequest {
        self.0.running.fetch_add(1, Ordering::Relaxed);
        self.0.begun.fetch_add(1, Ordering::Relaxed);
        RunningRequest(self.clone())
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.0.running.load(Ordering::Relaxed) == 0
    }

    fn begun(&self) -> usize {
        self.0.begun.load(Ordering::Relaxed)
    }
}

#[derive(Debug)]
struct RunningRequest(Activity);

impl Drop for RunningRequest {
    fn drop(&mut self) {
        self.0.0.running.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A TCP stream with a header timeout and a write timeout.
#[derive(Debug)]
pub(crate) struct TimedStream {
    stream: TcpStream,
    accepted: Instant,
    activity: Activity,
    header_timeout: Duration,
    write_timeout: Duration,
    head: Option<HeaderTimer>,
    /// Runs while the client does not read.
    stalled: Option<Pin<Box<Sleep>>>,
}

/// The state from the first byte of a request's headers until the request begins.
#[derive(Debug)]
struct HeaderTimer {
    since: Instant,
    /// Number of requests that had begun by then.
    begun: usize,
    /// Created only if the headers do not arrive at once, which is rare.
    clock: Option<Pin<Box<Sleep>>>,
}

impl HeaderTimer {
    fn is_late(&mut self, cx: &mut Context<'_>, limit: Duration, is_waiting: bool) -> bool {
        if !is_waiting {
            return self.since.elapsed() > limit;
        }
        let clock = self.clock.get_or_insert_with(|| Box::pin(sleep_until(self.since + limit)));
        clock.as_mut().poll(cx).is_ready()
    }
}

impl TimedStream {
    pub(crate) fn new(
        stream: TcpStream,
        activity: Activity,
        header_timeout: Duration,
        write_timeout: Duration,
    ) -> Self {
        let accepted = Instant::now();
        Self { stream, accepted, activity, header_timeout, write_timeout, head: None, stalled: None }
    }

    /// Resets the header timeout: the bytes so far were no request (a TLS handshake).
    pub(crate) fn reset_header_timer(&mut self) {
        self.head = None;
    }

    fn written<T>(&mut self, cx: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.stalled = None;
            return written;
        }
        let limit = self.write_timeout;
        let clock = self.stalled.get_or_insert_with(|| Box::pin(sleep(limit)));
        ready!(clock.as_mut().poll(cx));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client does not read its response")))
    }
}

impl AsyncRead for TimedStream {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buffer);
        let begun = self.activity.begun();
        // The headers are complete and became a request.
        if !self.activity.is_idle() || self.head.as_ref().is_some_and(|head| head.begun != begun) {
            self.head = None;
        }
        let got = buffer.filled().len() > before;
        let limit = self.header_timeout;
        if got && self.head.is_none() && self.activity.is_idle() {
            let since = Instant::now();
            self.activity.begins_after(since.duration_since(self.accepted));
            self.head = Some(HeaderTimer { since, begun, clock: None });
        } else if let Some(head) = &mut self.head
            && head.is_late(cx, limit, read.is_pending())
        {
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the headers did not arrive in time")));
        }
        read
    }
}

impl AsyncWrite for TimedStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, data);
        self.written(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, data);
        self.written(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// The client address of a request, stored in its extensions. Behind a trusted proxy it is the forwarded address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ClientAddress {
    pub(crate) address: IpAddr,
    /// `true` if the connection is encrypted.
    pub(crate) is_secure: bool,
}

/// A service that counts running requests until the last byte of their response.
#[derive(Clone, Debug)]
pub(crate) struct CountingService {
    router: axum::Router,
    activity: Activity,
    peer: ClientAddress,
}

impl CountingService {
    pub(crate) fn new(router: axum::Router, activity: Activity, peer: ClientAddress) -> Self {
        Self { router, activity, peer }
    }
}

impl tower::Service<http::Request<Incoming>> for CountingService {
    type Response = http::Response<CountingBody>;
    type Error = std::convert::Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: http::Request<Incoming>) -> Self::Future {
        let running = self.activity.begin();
        request.extensions_mut().insert(self.peer);
        if !self.activity.is_authenticated() {
            request.extensions_mut().insert(self.activity.clone());
        }
        let answer = tower::Service::call(&mut self.router, request.map(Body::new));
        Box::pin(async move {
            let answer = answer.await?;
            Ok(answer.map(|body| CountingBody { body, _running: running }))
        })
    }
}

#[derive(Debug)]
pub(crate) struct CountingBody {
    body: Body,
    _running: RunningRequest,
}

impl http_body::Body for CountingBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Closes the connection after a response that was sent before the body was read, so that the rest is not read.
pub(crate) fn close_refused(mut response: Response) -> Response {
    if matches!(response.status().as_u16(), 408 | 413) {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response
}
