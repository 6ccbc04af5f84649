//! Client of a stdio server: many concurrent requests on one pair of pipes, matched by our own ids. Unsolicited
//! messages are ignored.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, Result};
use bytes::Bytes;
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::{mpsc, oneshot};
use tokio_util::task::TaskTracker;

type PipeWaiters = Arc<Mutex<HashMap<u64, oneshot::Sender<Vec<u8>>>>>;

pub(super) struct StdioPipe {
    requests: mpsc::UnboundedSender<String>,
    waiting: PipeWaiters,
    last_id: AtomicU64,
    child: Child,
}

#[derive(Deserialize)]
struct PipeResponse<'a> {
    id: u64,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

impl StdioPipe {
    pub(super) fn start(mut command: Command) -> Result<Self> {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true).spawn()?;
        let (input, output) = (child.stdin.take().context("piped")?, child.stdout.take().context("piped")?);
        let (requests, queue) = mpsc::unbounded_channel();
        let waiting = PipeWaiters::default();
        let tasks = TaskTracker::new();
        tasks.spawn(write(input, queue));
        tasks.spawn(read(output, Arc::clone(&waiting)));
        Ok(Self { requests, waiting, last_id: AtomicU64::new(0), child })
    }

    /// Returns `true` if the server has ended.
    pub(super) fn is_over(&self) -> bool {
        self.requests.is_closed()
    }

    pub(super) fn id(&self) -> Option<u32> {
        self.child.id()
    }

    /// Sends a notification.
    pub(super) fn tell(&self, method: &str) -> Result<()> {
        Ok(self.requests.send(format!("{{\"jsonrpc\":\"2.0\",\"method\":\"{method}\"}}\n"))?)
    }

    /// Sends a request and returns the response with the caller's id.
    pub(super) async fn request(&self, id: &str, method: &str, params: &str) -> Result<Bytes> {
        let own = self.last_id.fetch_add(1, Ordering::Relaxed) + 1;
        let (answered, answer) = oneshot::channel();
        self.waiting.lock().insert(own, answered);
        let mut request = String::with_capacity(params.len() + method.len() + 64);
        let _ = writeln!(request, r#"{{"jsonrpc":"2.0","id":{own},"method":"{method}","params":{params}}}"#);
        self.requests.send(request)?;
        let answer = answer.await?;
        let answer: PipeResponse<'_> = serde_json::from_slice(&answer)?;
        let (member, value) = match (answer.result, answer.error) {
            (Some(result), _) => ("result", result.get()),
            (None, error) => ("error", error.map_or("null", RawValue::get)),
        };
        let mut text = String::with_capacity(value.len() + id.len() + 40);
        let _ = write!(text, r#"{{"jsonrpc":"2.0","id":{id},"{member}":{value}}}"#);
        Ok(text.into())
    }
}

/// Writes all queued lines at once.
async fn write(mut input: ChildStdin, mut queue: mpsc::UnboundedReceiver<String>) {
    while let Some(mut text) = queue.recv().await {
        while let Ok(next) = queue.try_recv() {
            text.push_str(&next);
        }
        if input.write_all(text.as_bytes()).await.is_err() {
            return;
        }
    }
}

async fn read(output: ChildStdout, waiting: PipeWaiters) {
    let mut output = BufReader::with_capacity(256 << 10, output);
    let mut line = Vec::new();
    while output.read_until(b'\n', &mut line).await.is_ok_and(|count| count > 0) {
        let answer = serde_json::from_slice::<PipeResponse<'_>>(&line).ok();
        let answer = answer.filter(|answer| answer.result.is_some() || answer.error.is_some());
        let waits = answer.and_then(|answer| waiting.lock().remove(&answer.id));
        if let Some(waits) = waits {
            // The caller may be gone.
            let _ = waits.send(std::mem::take(&mut line));
        }
        line.clear();
    }
    // The server ended, so pending requests fail.
    waiting.lock().clear();
}
