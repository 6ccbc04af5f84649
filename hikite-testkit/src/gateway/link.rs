//! Transports of a client: one POST per message, or lines to `hikite stdio`.

use std::{net::SocketAddr, path::Path, process::Stdio, sync::Arc};

use parking_lot::Mutex;
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    process::{Child, ChildStdin},
    sync::mpsc,
    task::JoinHandle,
};

use super::{HttpRequest, TestPrograms, http::IdleConnections};

#[derive(Debug)]
pub(crate) enum ClientLink {
    Http(HttpLink),
    Stdio(StdioLink),
}

#[derive(Debug)]
pub(crate) struct HttpLink {
    pub(crate) address: SocketAddr,
    path: String,
    token: Option<String>,
    pub(crate) session: Mutex<Option<String>>,
    pub(crate) revision: Mutex<Option<String>>,
    idle: IdleConnections,
}

impl HttpLink {
    pub(crate) fn new(address: SocketAddr, path: &str, token: Option<&str>) -> Self {
        let token = token.map(ToOwned::to_owned);
        Self {
            address,
            path: path.to_owned(),
            token,
            session: Mutex::default(),
            revision: Mutex::default(),
            idle: Some(Arc::default()),
        }
    }

    /// Creates a request with all headers of this session.
    pub(crate) fn request(&self, method: &str) -> HttpRequest {
        let mut request = HttpRequest::new(method, &self.path).header("accept", "text/event-stream");
        request = request.with_keep_alive(&self.idle);
        if let Some(token) = &self.token {
            request = request.header("authorization", &format!("Bearer {token}"));
        }
        if let Some(session) = self.session.lock().as_deref() {
            request = request.header("mcp-session-id", session);
        }
        if let Some(revision) = self.revision.lock().as_deref() {
            request = request.header("mcp-protocol-version", revision);
        }
        request
    }
}

/// A running `hikite stdio`.
#[derive(Debug)]
pub(crate) struct StdioLink {
    pub(crate) child: tokio::sync::Mutex<Child>,
    pub(crate) pid: u32,
    queue: Mutex<Option<mpsc::UnboundedSender<Vec<u8>>>>,
}

impl StdioLink {
    /// Starts the program; the receiver yields its lines.
    pub(crate) fn start(
        programs: &TestPrograms,
        folder: &Path,
        arguments: &[&str],
    ) -> (Self, mpsc::UnboundedReceiver<String>) {
        let mut command = tokio::process::Command::from(programs.hikite(folder));
        command.arg("stdio").args(arguments).kill_on_drop(true);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("hikite");
        let (queue, messages) = mpsc::unbounded_channel();
        spawn(write(child.stdin.take().expect("piped"), messages));
        let mut output = BufReader::new(child.stdout.take().expect("piped")).lines();
        let (sender, lines) = mpsc::unbounded_channel();
        spawn(async move {
            while let Ok(Some(line)) = output.next_line().await {
                let _ = sender.send(line);
            }
        });
        let pid = child.id().expect("it runs");
        (Self { child: tokio::sync::Mutex::new(child), pid, queue: Mutex::new(Some(queue)) }, lines)
    }

    pub(crate) fn send(&self, message: &str) {
        if let Some(queue) = &*self.queue.lock() {
            let _ = queue.send(format!("{message}\n").into_bytes());
        }
    }

    /// Closes its input.
    pub(crate) fn close(&self) {
        self.queue.lock().take();
    }
}

async fn write(mut stdin: ChildStdin, mut messages: mpsc::UnboundedReceiver<Vec<u8>>) {
    while let Some(message) = messages.recv().await {
        if stdin.write_all(&message).await.is_err() {
            return;
        }
    }
}

/// Spawns a client's task, which ends with its connection or with the test's runtime.
#[expect(clippy::disallowed_methods, reason = "a test's runtime ends with the test, and all tasks with it")]
pub(crate) fn spawn<T: Send + 'static>(task: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
    tokio::spawn(task)
}
