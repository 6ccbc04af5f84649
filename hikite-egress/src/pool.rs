//! Connection pool for plain HTTP, which is used for nearby servers where microseconds count. Idle connections are
//! reused; a request that was not sent because its connection was closed is sent over another one.
//!
//! It is ours because the general pool of `hyper-util` spends 10,500 instructions on each request, a large part of a
//! call to a nearby server. TLS connections use the general pool.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Duration;

use http::header::{HOST, HeaderValue};
use http::uri::{Authority, PathAndQuery};
use http::{Request, Response, Uri};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use tokio::net::TcpStream;
use tokio::time::Instant;
use tower::Service;

use crate::body::ResponseBody;
use crate::chain;
use crate::client::{RequestBody, SendError};
use crate::connector::{Connector, is_refused};

/// Time after which an idle connection is closed.
pub(crate) const IDLE_TIMEOUT: Duration = Duration::from_secs(90);
const HTTP_PORT: u16 = 80;

pub(crate) struct PlainPool {
    connector: Connector,
    idle: Arc<Mutex<IdleByHost>>,
}

/// Idle connections by host, most recently used last, each with the time it became idle.
type IdleByHost = HashMap<Arc<str>, Vec<(PooledConnection, Instant)>>;

/// A pooled connection in use.
pub(crate) struct PooledConnection {
    sender: SendRequest<RequestBody>,
    host: Arc<str>,
    idle: Weak<Mutex<IdleByHost>>,
}

impl PlainPool {
    pub(crate) fn new(connector: Connector) -> Self {
        Self { connector, idle: Arc::default() }
    }

    pub(crate) async fn send(&self, mut request: Request<RequestBody>) -> Result<Response<ResponseBody>, SendError> {
        let uri = std::mem::take(request.uri_mut());
        let Some(authority) = uri.authority() else {
            return Err(SendError::Connect("the address has no host".into()));
        };
        prepare(&mut request, &uri, authority)?;
        loop {
            let idle = self.take(authority.as_str());
            let reused = idle.is_some();
            let mut connection = match idle {
                Some(connection) => connection,
                // Boxed, so that it takes no space in calls that reuse a connection.
                None => Box::pin(self.open(&uri, authority)).await?,
            };
            match connection.sender.try_send_request(request).await {
                Ok(answer) => return Ok(answer.map(|incoming| ResponseBody::new(incoming, Some(connection)))),
                Err(mut error) => match error.take_message() {
                    // Nothing was sent: the server had closed the connection.
                    Some(unsent) if reused => request = unsent,
                    _ => return Err(SendError::Transfer(chain(&error.into_error()))),
                },
            }
        }
    }

    /// Takes the most recently used connection that has finished its previous exchange.
    fn take(&self, host: &str) -> Option<PooledConnection> {
        let mut idle = self.idle.lock();
        let connections = idle.get_mut(host)?;
        let ready = connections.iter().rposition(|(connection, _)| connection.sender.is_ready())?;
        Some(connections.remove(ready).0)
    }

    async fn open(&self, uri: &Uri, authority: &Authority) -> Result<PooledConnection, SendError> {
        let stream = self.connector.clone().call(uri.clone()).await.map_err(|error| {
            if is_refused(&*error) { SendError::Refused } else { SendError::Connect(chain(&*error)) }
        })?;
        let (sender, driver) = http1::handshake(stream).await.map_err(|error| SendError::Connect(chain(&error)))?;
        let host: Arc<str> = authority.as_str().into();
        let idle = Arc::downgrade(&self.idle);
        drive(driver, Arc::clone(&host), Weak::clone(&idle));
        Ok(PooledConnection { sender, host, idle })
    }
}

impl PooledConnection {
    pub(crate) fn release(self) {
        let Some(idle) = self.idle.upgrade().filter(|_| !self.sender.is_closed()) else { return };
        let mut idle = idle.lock();
        match idle.get_mut(&self.host) {
            Some(connections) => connections.push((self, Instant::now())),
            None => {
                idle.insert(Arc::clone(&self.host), vec![(self, Instant::now())]);
            }
        }
    }
}

/// Drops closed and expired connections of a host.
fn sweep(idle: &Weak<Mutex<IdleByHost>>, host: &str) {
    let Some(idle) = idle.upgrade() else { return };
    let mut idle = idle.lock();
    let Some(connections) = idle.get_mut(host) else { return };
    connections.retain(|(connection, since)| since.elapsed() < IDLE_TIMEOUT && !connection.sender.is_closed());
    if connections.is_empty() {
        idle.remove(host);
    }
}

impl fmt::Debug for PooledConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PooledConnection").field("host", &self.host).finish_non_exhaustive()
    }
}

/// Drives a connection until it ends, and sweeps the idle ones of its host meanwhile.
#[expect(clippy::disallowed_methods, reason = "a connection ends when nobody holds it any more")]
fn drive(
    mut driver: http1::Connection<TokioIo<TcpStream>, RequestBody>,
    host: Arc<str>,
    idle: Weak<Mutex<IdleByHost>>,
) {
    tokio::spawn(async move {
        while tokio::time::timeout(IDLE_TIMEOUT, &mut driver).await.is_err() {
            sweep(&idle, &host);
        }
        // The sender reports closed only after the driver is dropped.
        drop(driver);
        sweep(&idle, &host);
    });
}

/// Puts a request into origin form: the path alone, and a `Host` header.
fn prepare(request: &mut Request<RequestBody>, uri: &Uri, authority: &Authority) -> Result<(), SendError> {
    let path = uri.path_and_query().cloned().unwrap_or_else(|| PathAndQuery::from_static("/"));
    *request.uri_mut() = path.into();
    let headers = request.headers_mut();
    if headers.contains_key(HOST) {
        return Ok(());
    }
    let whole = authority.as_str();
    let named = whole.rsplit_once('@').map_or(whole, |(_, host)| host);
    let is_usual = authority.port_u16() == Some(HTTP_PORT);
    let named = if is_usual { authority.host() } else { named };
    let host = HeaderValue::from_str(named).map_err(|error| SendError::Connect(chain(&error)))?;
    headers.insert(HOST, host);
    Ok(())
}

#[cfg(test)]
mod tests;
