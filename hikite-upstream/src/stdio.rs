//! Stdio transport: one task writes to stdin, one reads stdout, one records stderr.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hikite_core::error::{Error, ErrorKind};
use hikite_core::limits::LineLimit;
use hikite_wire::line::{FramedLine, LineDecoder, push};
use hikite_wire::message::MessageHead;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{ChildStdin, ChildStdout};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::connection::{Connection, inbound};
use crate::crash::CrashTracker;
use crate::error::{FailureReason, UpstreamError};
use crate::outbound::Outbound;
use crate::process::{ProcessLaunch, ServerProcess};
use crate::spawner::Spawner;
use crate::stderr::StderrRing;

const QUEUE: usize = 1024;
/// Time to read the remaining output of an exited process.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(50);
/// Time for a process to read the last messages of a closed connection.
const FLUSH_TIMEOUT: Duration = Duration::from_millis(250);

pub(crate) async fn connect(
    connection: &Arc<Connection>,
    launch: ProcessLaunch<'_>,
    spawner: &Spawner,
    (stderr, crashes): (&Arc<StderrRing>, &Arc<CrashTracker>),
    longest: LineLimit,
) -> Result<(), Error> {
    let name = Arc::clone(&connection.name);
    let command = launch.command.to_owned();
    let (process, pipes) = ServerProcess::start(launch, spawner, &connection.tasks).await.map_err(|error| {
        Error::new(ErrorKind::UpstreamUnavailable, format!("`{name}` cannot be started."))
            .because(format!("`{command}`: {error}"))
            .hint(format!("Check `mcpServers.{name}.command`."))
    })?;
    let (queue, messages) = mpsc::channel(QUEUE);
    connection.attach(Outbound::Stdio(queue));
    let tasks = connection.tasks.clone();
    let ring = Arc::clone(stderr);
    let drain = tasks.spawn(async move { ring.drain(&name, pipes.stderr).await });
    let writer = tasks.spawn(write(Arc::clone(connection), pipes.stdin, messages));
    let reader = tasks.spawn(read(Arc::clone(connection), pipes.stdout, longest));
    let records = (Arc::clone(stderr), Arc::clone(crashes));
    tasks.spawn(watch(Arc::clone(connection), process, PipeTasks { writer, reader, drain }, records));
    Ok(())
}

/// Tasks on the three pipes of a process.
struct PipeTasks {
    writer: JoinHandle<()>,
    reader: JoinHandle<()>,
    drain: JoinHandle<()>,
}

/// Closes the connection when its process exits, and ends the process when the connection closes.
async fn watch(
    connection: Arc<Connection>,
    process: ServerProcess,
    pumps: PipeTasks,
    (stderr, crashes): (Arc<StderrRing>, Arc<CrashTracker>),
) {
    let start = Instant::now();
    let PipeTasks { writer, mut reader, drain } = pumps;
    tokio::select! {
        () = process.ended.cancelled() => { let _ = tokio::time::timeout(DRAIN_TIMEOUT, &mut reader).await; }
        _ = &mut reader => {
            // A closed stdout ends the connection; the exit code may follow at once.
            let _ = tokio::time::timeout(DRAIN_TIMEOUT, process.ended.cancelled()).await;
        }
        () = connection.closed.cancelled() => {}
    }
    if connection.is_open() {
        crashes.ended(start, Instant::now());
        // The last stderr line often states the reason.
        await_task(&drain).await;
    }
    let reason = reason(&connection, &process, stderr.last());
    connection.close_broken(reason);
    // Cancellations are written before the process is stopped; the writer gives up soon if nobody reads.
    let _ = writer.await;
    process.stop.cancel();
    reader.abort();
    process.ended.cancelled().await;
    connection.process_exited.cancel();
    // A surviving descendant may hold stderr open; it is not waited for.
    await_task(&drain).await;
    drain.abort();
}

/// Waits briefly for a task that is about to end.
async fn await_task(task: &JoinHandle<()>) {
    let ended = async {
        while !task.is_finished() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    let _ = tokio::time::timeout(DRAIN_TIMEOUT, ended).await;
}

fn reason(connection: &Connection, process: &ServerProcess, last_line: Option<String>) -> UpstreamError {
    let handshake_done = connection.initialize_result().is_some();
    let what = if handshake_done { "is gone" } else { "did not start" };
    let reason = format!("`{}` {what}: {}.", connection.name, process.exit_description());
    let error = Error::new(ErrorKind::UpstreamUnavailable, reason);
    let error = match last_line {
        Some(line) => error.because(format!("on stderr: {line}")),
        None => error,
    };
    let hint = format!("Run `hikite doctor` to check it. It is defined in `mcpServers.{}`.", connection.name);
    let error = error.hint(hint);
    if handshake_done || process.never_ran() {
        return error.into();
    }
    UpstreamError::new(FailureReason::ExitedEarly, error)
}

/// Writes until the connection is closed, then flushes the queue if it is read at once: mostly cancellations.
async fn write(connection: Arc<Connection>, stdin: ChildStdin, messages: mpsc::Receiver<Bytes>) {
    let overdue = async {
        connection.closed.cancelled().await;
        tokio::time::sleep(FLUSH_TIMEOUT).await;
    };
    tokio::select! {
        () = write_all(&connection, stdin, messages) => {}
        () = overdue => {}
    }
}

async fn write_all(connection: &Connection, mut stdin: ChildStdin, mut messages: mpsc::Receiver<Bytes>) {
    let mut buffer = Vec::with_capacity(8192);
    loop {
        let message = tokio::select! {
            biased;
            message = messages.recv() => message,
            () = connection.closed.cancelled() => None,
        };
        let Some(message) = message else { return };
        buffer.clear();
        push(&message, &mut buffer);
        // Queued messages are combined into one write.
        while buffer.len() < 64 * 1024
            && let Ok(message) = messages.try_recv()
        {
            push(&message, &mut buffer);
        }
        if stdin.write_all(&buffer).await.is_err() {
            // The reader notices the exit and reports the reason.
            return;
        }
    }
}

async fn read(connection: Arc<Connection>, mut stdout: ChildStdout, longest: LineLimit) {
    let mut lines = LineDecoder::new(longest.bytes);
    while let Ok(1..) = stdout.read_buf(lines.buffer()).await {
        while let Some(line) = lines.next_line() {
            match line {
                FramedLine::Text(bytes) => inbound::receive(&connection, &bytes, None),
                FramedLine::TooLong => {
                    too_long(&connection, longest, MessageHead::read(lines.overlong_head()));
                }
            }
        }
    }
}

/// Handles a dropped line over the limit. Fails its request if the beginning of the line identifies it, or if only one
/// is pending.
fn too_long(connection: &Connection, longest: LineLimit, head: MessageHead) {
    let LineLimit { bytes, name } = longest;
    tracing::warn!(module = &*connection.name, limit = name, bytes, "dropped a line that exceeds the limit");
    let answered = match head {
        MessageHead::Answer(id) => Some(id),
        MessageHead::NotResponse => None,
        MessageHead::Unknown => connection.pending.sole_request(),
    };
    if let Some(id) = answered {
        let message = format!("The response of `{}` is larger than {bytes} bytes.", connection.name);
        let hint = format!("Ask for less, or raise `limits.{name}`.");
        connection.pending.fail(id, Error::new(ErrorKind::PayloadTooLarge, message).hint(hint));
    }
}
