//! Last stderr lines of a server, for diagnosing failures.

use std::collections::VecDeque;

use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncReadExt};

/// Longer lines are truncated, to bound memory.
const LINE_BYTES: usize = 2048;

#[derive(Debug)]
pub(crate) struct StderrRing {
    lines: Mutex<VecDeque<String>>,
    capacity: usize,
}

impl StderrRing {
    pub(crate) fn new(capacity: usize) -> Self {
        Self { lines: Mutex::default(), capacity }
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.lines.lock().iter().cloned().collect()
    }

    /// Returns the last line that is not blank.
    pub(crate) fn last(&self) -> Option<String> {
        self.lines.lock().iter().rev().find(|line| !line.trim().is_empty()).cloned()
    }

    pub(crate) async fn drain(&self, name: &str, mut stderr: impl AsyncRead + Unpin) {
        let mut buffer = vec![0; 8192];
        let mut line = Vec::new();
        while let Ok(count @ 1..) = stderr.read(&mut buffer).await {
            for byte in &buffer[..count] {
                match byte {
                    b'\n' => self.push(name, &mut line),
                    b'\r' => {}
                    _ if line.len() < LINE_BYTES => line.push(*byte),
                    _ => {}
                }
            }
        }
        self.push(name, &mut line);
    }

    fn push(&self, name: &str, line: &mut Vec<u8>) {
        if line.is_empty() {
            return;
        }
        let text = String::from_utf8_lossy(line).into_owned();
        line.clear();
        tracing::debug!(target: "hikite::stderr", module = name, "{text}");
        let mut lines = self.lines.lock();
        if lines.len() >= self.capacity {
            lines.pop_front();
        }
        lines.push_back(text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_the_last_lines_are_kept_and_long_ones_are_cut() {
        let ring = StderrRing::new(2);
        let text = format!("one\ntwo\r\n{}\n", "x".repeat(5000));
        ring.drain("m", text.as_bytes()).await;
        let lines = ring.lines();
        assert_eq!((lines.len(), lines[0].as_str(), lines[1].len()), (2, "two", LINE_BYTES));
    }
}
