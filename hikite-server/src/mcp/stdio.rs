//! MCP over stdin and stdout, for clients that start hikite as a child process. Nothing else is written to stdout.

use std::sync::Arc;

use bytes::Bytes;
use hikite_gateway::Surfaces;
use hikite_wire::encode;
use hikite_wire::line::{FramedLine, LineDecoder, push};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;

use crate::app::App;
use crate::mcp::pipe::DuplexClient;
use crate::request_context::{CallerProof, PIPE};

/// Serves one client until its input ends or the server stops; running requests may finish within the drain time.
pub async fn serve_stdio(
    app: Arc<App>,
    surfaces: Surfaces,
    mut input: impl AsyncRead + Unpin,
    output: impl AsyncWrite + Unpin + Send + 'static,
) {
    let (out, messages) = mpsc::channel(app.limits.outbox_messages.max(1));
    let writer = app.tasks.spawn(write(output, messages));
    let pipe = DuplexClient::new(
        Arc::clone(&app),
        (app.gateway.people().owner(), CallerProof::Unauthenticated),
        (surfaces, PIPE),
        out.clone(),
    );
    let mut lines = LineDecoder::new(app.limits.body_bytes);
    while let Some(Ok(1..)) = app.stopping.run_until_cancelled(input.read_buf(lines.buffer())).await {
        while let Some(line) = lines.next_line() {
            match line {
                FramedLine::Text(bytes) => {
                    app.stopping.run_until_cancelled(pipe.receive(&bytes)).await;
                }
                FramedLine::TooLong => {
                    let reason = format!("The message is larger than {} bytes.", app.limits.body_bytes);
                    let error_response = encode::error(None, &encode::error_object(-32600, &reason));
                    app.stopping.run_until_cancelled(out.send(error_response)).await;
                }
            }
        }
    }
    pipe.ending.cancel();
    pipe.tasks.close();
    let _ = tokio::time::timeout(app.limits.drain, pipe.tasks.wait()).await;
    pipe.gone.cancel();
    pipe.tasks.wait().await;
    app.end_all();
    drop((pipe, out));
    // The session's sender is dropped with the pipe, so the writer ends.
    let _ = tokio::time::timeout(app.limits.drain, writer).await;
}

async fn write(mut output: impl AsyncWrite + Unpin, mut messages: mpsc::Receiver<Bytes>) {
    let mut buffer = Vec::new();
    while let Some(message) = messages.recv().await {
        buffer.clear();
        push(&message, &mut buffer);
        while buffer.len() < 64 * 1024
            && let Ok(message) = messages.try_recv()
        {
            push(&message, &mut buffer);
        }
        if output.write_all(&buffer).await.is_err() || output.flush().await.is_err() {
            return;
        }
    }
}
