//! Forwarding of one direction of a connection.

use std::io;

use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    sync::watch,
};

use super::{DirectionFault, ProxyFault};

/// Copies until the end of the input and forwards that end. An error, such as a cut, closes both directions.
pub(super) async fn pump(
    mut input: impl AsyncRead + Unpin,
    mut output: impl AsyncWrite + Unpin,
    fault: watch::Receiver<ProxyFault>,
    side: fn(&ProxyFault) -> DirectionFault,
) -> io::Result<()> {
    let direction = side(&fault.borrow());
    let mut rule = DirectionState { fault, side, direction, passed: 0 };
    let mut buffer = vec![0; 16 * 1024];
    loop {
        if rule.allowance(1) == 0 {
            return Err(cut());
        }
        let count = tokio::select! {
            biased;
            changed = rule.changed() => {
                changed?;
                continue;
            }
            count = input.read(&mut buffer), if !rule.direction.stall => count?,
        };
        if count == 0 {
            return output.shutdown().await;
        }
        tokio::time::sleep(rule.direction.delay).await;
        // The fault may have been set while the data was delayed.
        while rule.direction.stall || rule.fault.has_changed().unwrap_or(false) {
            rule.changed().await?;
        }
        let allowed = rule.allowance(count);
        output.write_all(&buffer[..allowed]).await?;
        rule.passed += allowed;
        if allowed < count {
            return Err(cut());
        }
    }
}

/// Returns `true` if the fault closed the connection.
pub(super) fn is_cut(error: &io::Error) -> bool {
    error.get_ref().and_then(|inner| inner.downcast_ref::<ConnectionCut>()).is_some()
}

#[derive(Debug)]
struct ConnectionCut;

impl std::fmt::Display for ConnectionCut {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("cut")
    }
}

impl std::error::Error for ConnectionCut {}

fn cut() -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionAborted, ConnectionCut)
}

/// Fault of one direction, and the bytes forwarded under it.
struct DirectionState {
    fault: watch::Receiver<ProxyFault>,
    side: fn(&ProxyFault) -> DirectionFault,
    direction: DirectionFault,
    passed: usize,
}

impl DirectionState {
    async fn changed(&mut self) -> io::Result<()> {
        self.fault.changed().await.map_err(io::Error::other)?;
        self.direction = (self.side)(&self.fault.borrow_and_update());
        self.passed = 0;
        Ok(())
    }

    /// Returns how many of `count` bytes may still pass.
    fn allowance(&self, count: usize) -> usize {
        self.direction.cut_after.map_or(count, |limit| limit.saturating_sub(self.passed).min(count))
    }
}
