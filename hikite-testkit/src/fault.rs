//! A TCP proxy that breaks connections on command: refuse, delay, stall, or cut after a number of bytes. It does not
//! inspect what it forwards. Faults can be changed while it runs and also apply to open connections.

mod direction;
#[cfg(test)]
mod tests;

use std::{
    io,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// Faults in effect; none by default.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ProxyFault {
    /// Makes the operating system refuse new connections; open ones stay.
    pub refuse: bool,
    /// Clears the fault at the first cut, so that later connections work.
    pub once: bool,
    /// Faults from client to server.
    pub to_server: DirectionFault,
    /// Faults from server to client.
    pub to_client: DirectionFault,
}

/// Faults of one direction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DirectionFault {
    /// Delay of every chunk of data.
    pub delay: Duration,
    /// Holds back all data and keeps the connection open.
    pub stall: bool,
    /// Closes the connection in both directions after this many bytes since the fault was set.
    pub cut_after: Option<usize>,
}

impl ProxyFault {
    pub fn refuse() -> Self {
        Self { refuse: true, ..Self::default() }
    }

    /// Delays both directions.
    pub fn delay(delay: Duration) -> Self {
        let lane = DirectionFault { delay, ..DirectionFault::default() };
        Self { to_server: lane, to_client: lane, ..Self::default() }
    }

    /// Forwards requests and holds back responses.
    pub fn stall() -> Self {
        Self { to_client: DirectionFault { stall: true, ..DirectionFault::default() }, ..Self::default() }
    }

    pub fn cut_request_after(bytes: usize) -> Self {
        Self { to_server: DirectionFault { cut_after: Some(bytes), ..DirectionFault::default() }, ..Self::default() }
    }

    pub fn cut_answer_after(bytes: usize) -> Self {
        Self { to_client: DirectionFault { cut_after: Some(bytes), ..DirectionFault::default() }, ..Self::default() }
    }

    #[must_use]
    pub fn once(self) -> Self {
        Self { once: true, ..self }
    }
}

/// A running proxy. Dropping it closes everything.
#[derive(Debug)]
pub struct FaultProxy {
    address: SocketAddr,
    fault: watch::Sender<ProxyFault>,
    listening: watch::Receiver<bool>,
    shared: Arc<FaultProxyState>,
}

#[derive(Debug)]
struct FaultProxyState {
    target: parking_lot::Mutex<SocketAddr>,
    accepted: AtomicUsize,
    open: AtomicUsize,
    /// Replaced at every cut, so that later connections stay open.
    cut: parking_lot::Mutex<CancellationToken>,
    /// Replaced at every freeze.
    frozen: parking_lot::Mutex<CancellationToken>,
    shutdown: CancellationToken,
    tasks: TaskTracker,
}

impl FaultProxy {
    /// Listens on a free loopback port and forwards to `target`.
    pub async fn start(target: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let fault = watch::Sender::new(ProxyFault::default());
        let (report, listening) = watch::channel(true);
        let shutdown = CancellationToken::new();
        let shared = Arc::new(FaultProxyState {
            target: parking_lot::Mutex::new(target),
            accepted: AtomicUsize::new(0),
            open: AtomicUsize::new(0),
            cut: parking_lot::Mutex::new(shutdown.child_token()),
            frozen: parking_lot::Mutex::default(),
            shutdown,
            tasks: TaskTracker::new(),
        });
        shared.tasks.spawn(accept(Arc::clone(&shared), listener, address, fault.clone(), report));
        Ok(Self { address, fault, listening, shared })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Sets the faults; returns once new connections are subject to them.
    pub async fn set(&self, fault: ProxyFault) {
        self.fault.send_replace(fault);
        let mut listening = self.listening.clone();
        // Fails only when the proxy has stopped, and then nothing connects.
        let _ = listening.wait_for(|listening| *listening != fault.refuse).await;
    }

    /// Returns the faults in effect.
    pub fn fault(&self) -> ProxyFault {
        *self.fault.borrow()
    }

    /// Directs new connections to another target and closes the open ones.
    pub fn redirect(&self, target: SocketAddr) {
        *self.shared.target.lock() = target;
        self.cut();
    }

    /// Closes every open connection.
    pub fn cut(&self) {
        let next = self.shared.shutdown.child_token();
        std::mem::replace(&mut *self.shared.cut.lock(), next).cancel();
    }

    /// Stops forwarding on open connections without closing them; later connections work. A client sees the same when a
    /// server vanishes and another takes over its address.
    pub fn freeze(&self) {
        std::mem::take(&mut *self.shared.frozen.lock()).cancel();
    }

    /// Returns the number of connections accepted so far.
    pub fn accepted(&self) -> usize {
        self.shared.accepted.load(Ordering::Relaxed)
    }

    /// Returns the number of open connections.
    pub fn open(&self) -> usize {
        self.shared.open.load(Ordering::Relaxed)
    }

    /// Closes everything and waits until all tasks have ended.
    pub async fn stop(self) {
        self.shared.shutdown.cancel();
        self.shared.tasks.close();
        self.shared.tasks.wait().await;
    }
}

impl Drop for FaultProxy {
    fn drop(&mut self) {
        self.shared.shutdown.cancel();
    }
}

/// Releases the port while connections are to be refused: to a client, accepting and closing is not the same.
async fn accept(
    shared: Arc<FaultProxyState>,
    listener: TcpListener,
    address: SocketAddr,
    faults: watch::Sender<ProxyFault>,
    report: watch::Sender<bool>,
) {
    let mut listener = Some(listener);
    let mut fault = faults.subscribe();
    loop {
        let refuse = fault.borrow_and_update().refuse;
        if refuse {
            listener = None;
        } else if listener.is_none() {
            listener = Some(TcpListener::bind(address).await.expect("the port was ours a moment ago"));
        }
        report.send_replace(listener.is_some());
        tokio::select! {
            accepted = next(listener.as_ref()) => if let Ok((client, _)) = accepted {
                shared.accepted.fetch_add(1, Ordering::Relaxed);
                shared.tasks.spawn(connection(Arc::clone(&shared), client, faults.clone()));
            },
            changed = fault.changed() => if changed.is_err() { return },
            () = shared.shutdown.cancelled() => return,
        }
    }
}

async fn next(listener: Option<&TcpListener>) -> io::Result<(TcpStream, SocketAddr)> {
    match listener {
        Some(listener) => listener.accept().await,
        None => std::future::pending().await,
    }
}

async fn connection(shared: Arc<FaultProxyState>, client: TcpStream, faults: watch::Sender<ProxyFault>) {
    let cut = shared.cut.lock().clone();
    let frozen = shared.frozen.lock().clone();
    shared.open.fetch_add(1, Ordering::Relaxed);
    let mut forward = std::pin::pin!(forward(&shared, client, faults.subscribe()));
    tokio::select! {
        // Either side may disconnect at any time; the other then sees the end of its connection.
        end = &mut forward => if end.is_err_and(|error| direction::is_cut(&error)) {
            faults.send_if_modified(|fault| fault.once && std::mem::take(fault) != ProxyFault::default());
        },
        () = cut.cancelled() => {}
        // The sockets stay open and unread.
        () = frozen.cancelled() => cut.cancelled().await,
    }
    shared.open.fetch_sub(1, Ordering::Relaxed);
}

async fn forward(shared: &FaultProxyState, client: TcpStream, fault: watch::Receiver<ProxyFault>) -> io::Result<()> {
    let server = {
        let target = *shared.target.lock();
        TcpStream::connect(target).await?
    };
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    tokio::try_join!(
        direction::pump(from_client, to_server, fault.clone(), |fault| fault.to_server),
        direction::pump(from_server, to_client, fault, |fault| fault.to_client),
    )?;
    Ok(())
}
