//! Line framing of stdio. Splits incoming bytes into lines and discards lines over the limit instead of buffering them.

use bytes::{Bytes, BytesMut};

/// Bytes read at once, at most.
const CHUNK_BYTES: usize = 64 * 1024;
/// Bytes kept of a line over the limit.
const HEAD_BYTES: usize = 256;
/// Length of a line whose buffer is freed afterwards.
const LONG_LINE_BYTES: usize = 1024 * 1024;

#[derive(Debug)]
pub struct LineDecoder {
    buffer: BytesMut,
    /// Offset up to which the buffer contains no line end.
    searched: usize,
    longest: usize,
    skipping: bool,
    /// Beginning of the last line over the limit.
    head: Bytes,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FramedLine {
    Text(Bytes),
    /// A line over the limit; its bytes were discarded.
    TooLong,
}

impl LineDecoder {
    pub fn new(longest: usize) -> Self {
        Self { buffer: BytesMut::new(), searched: 0, longest, skipping: false, head: Bytes::new() }
    }

    /// Returns the first bytes of the last line over the limit.
    pub fn overlong_head(&self) -> &[u8] {
        &self.head
    }

    /// Returns the buffer to read into. It doubles as it grows, but a long one is sized for the longest line at once,
    /// not twice that.
    pub fn buffer(&mut self) -> &mut BytesMut {
        let length = self.buffer.len();
        if length == self.buffer.capacity() && length > self.longest / 4 {
            let mut larger = BytesMut::with_capacity(self.longest.max(length) + CHUNK_BYTES);
            larger.extend_from_slice(&self.buffer);
            self.buffer = larger;
        }
        &mut self.buffer
    }

    /// Returns the next complete line without its end; empty lines are skipped.
    pub fn next_line(&mut self) -> Option<FramedLine> {
        loop {
            let Some(at) = memchr::memchr(b'\n', &self.buffer[self.searched..]) else {
                return self.check_incomplete();
            };
            let mut line = self.buffer.split_to(self.searched + at + 1);
            self.searched = 0;
            if line.len() > LONG_LINE_BYTES {
                // The remaining capacity would keep the whole allocation alive until the next read.
                self.buffer = BytesMut::from(&self.buffer[..]);
            }
            if std::mem::take(&mut self.skipping) {
                continue;
            }
            line.truncate(line.len() - 1);
            if line.last() == Some(&b'\r') {
                line.truncate(line.len() - 1);
            }
            if line.len() > self.longest {
                self.head = Bytes::copy_from_slice(&line[..line.len().min(HEAD_BYTES)]);
                return Some(FramedLine::TooLong);
            }
            if !line.is_empty() {
                return Some(FramedLine::Text(line.freeze()));
            }
        }
    }

    fn check_incomplete(&mut self) -> Option<FramedLine> {
        self.searched = self.buffer.len();
        // A trailing carriage return may be half of the line end.
        let length = self.buffer.len() - usize::from(self.buffer.last() == Some(&b'\r'));
        if length <= self.longest {
            return None;
        }
        let line = std::mem::take(&mut self.buffer);
        self.searched = 0;
        if std::mem::replace(&mut self.skipping, true) {
            return None;
        }
        self.head = Bytes::copy_from_slice(&line[..line.len().min(HEAD_BYTES)]);
        Some(FramedLine::TooLong)
    }
}

/// Appends a message as one line: line ends between JSON tokens become spaces.
pub fn push(message: &[u8], buffer: &mut Vec<u8>) {
    let start = buffer.len();
    buffer.extend_from_slice(message);
    for byte in &mut buffer[start..] {
        if matches!(*byte, b'\n' | b'\r') {
            *byte = b' ';
        }
    }
    buffer.push(b'\n');
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn feed(chunks: &[&[u8]], longest: usize) -> Vec<FramedLine> {
        let mut lines = LineDecoder::new(longest);
        let mut out = Vec::new();
        for chunk in chunks {
            lines.buffer().extend_from_slice(chunk);
            out.extend(std::iter::from_fn(|| lines.next_line()));
        }
        out
    }

    fn text(line: &str) -> FramedLine {
        FramedLine::Text(Bytes::from(line.to_owned()))
    }

    #[test]
    fn lines_come_whole_whatever_the_chunks() {
        assert_eq!(feed(&[b"a\nb", b"c\r\n\n", b"d"], 10), [text("a"), text("bc")]);
    }

    #[test]
    fn a_line_over_the_limit_is_reported_once_and_the_next_is_read() {
        assert_eq!(feed(&[b"12345", b"67890", b"1\nok\n"], 4), [FramedLine::TooLong, text("ok")]);
        assert_eq!(feed(&[b"123456\nok\n"], 4), [FramedLine::TooLong, text("ok")]);
        assert_eq!(feed(&[b"1234\r", b"\n"], 4), [text("1234")]);
    }

    #[test]
    fn how_a_line_over_the_limit_began_is_known() {
        let mut lines = LineDecoder::new(4);
        for chunk in [&b"12345"[..], b"678\nok\nabcdefgh\n"] {
            lines.buffer().extend_from_slice(chunk);
            while lines.next_line().is_some() {
                assert!([&b"12345"[..], b"abcdefgh"].contains(&lines.overlong_head()));
            }
        }
        assert_eq!(lines.overlong_head(), b"abcdefgh");
    }

    proptest! {
        #[test]
        fn chunking_never_changes_the_lines(data in proptest::collection::vec(any::<u8>(), 0..400), cut in 1usize..20) {
            let whole = feed(&[&data], 32);
            let chunks: Vec<&[u8]> = data.chunks(cut).collect();
            let texts = |lines: Vec<FramedLine>| -> Vec<FramedLine> {
                lines.into_iter().filter(|line| *line != FramedLine::TooLong).collect()
            };
            prop_assert_eq!(texts(whole), texts(feed(&chunks, 32)));
        }
    }
}
