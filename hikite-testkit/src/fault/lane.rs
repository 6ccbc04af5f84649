//! Forwarding of one direction of a connection.

use std::io;

use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    sync::watch,
};

use super::{Fault, Lane};

/// Copies until the end of the input and forwards that end. An error, such as a cut, closes both directions.
pub(super) async fn pump(
    mut input: impl AsyncRead + Unpin,
    mut output: impl AsyncWrite + Unpin,
    fault: watch::Receiver<Fault>,
    side: fn(&Fault) -> Lane,
) -> io::Result<()> {
    let lane = side(&fault.borrow());
    let mut rule = Rule { fault, side, lane, passed: 0 };
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
            count = input.read(&mut buffer), if !rule.lane.stall => count?,
        };
        if count == 0 {
            return output.shutdown().await;
        }
        tokio::time::sleep(rule.lane.delay).await;
        // The fault may have been set while the data was delayed.
        while rule.lane.stall || rule.fault.has_changed().unwrap_or(false) {
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
    error.get_ref().and_then(|inner| inner.downcast_ref::<Cut>()).is_some()
}

#[derive(Debug)]
struct Cut;

impl std::fmt::Display for Cut {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("cut")
    }
}

impl std::error::Error for Cut {}

fn cut() -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionAborted, Cut)
}

/// Fault of one direction, and the bytes forwarded under it.
struct Rule {
    fault: watch::Receiver<Fault>,
    side: fn(&Fault) -> Lane,
    lane: Lane,
    passed: usize,
}

impl Rule {
    async fn changed(&mut self) -> io::Result<()> {
        self.fault.changed().await.map_err(io::Error::other)?;
        self.lane = (self.side)(&self.fault.borrow_and_update());
        self.passed = 0;
        Ok(())
    }

    /// Returns how many of `count` bytes may still pass.
    fn allowance(&self, count: usize) -> usize {
        self.lane.cut_after.map_or(count, |limit| limit.saturating_sub(self.passed).min(count))
    }
}
