//! Line framing, compared with a model that sees all bytes at once: no chunking changes a line.

use bytes::Bytes;
use hikite_wire::line::{FramedLine, LineDecoder, push};

/// Longest line in bytes, small enough that mutated inputs exceed it.
const LINE_BYTES_MAX: usize = 64;

pub fn assert_properties(input: &[u8], lengths: &[u8]) {
    let lines = read(super::chunks(input, lengths));
    let expected = model(input);
    // The model cannot tell that an unterminated line is already too long.
    let started = lines.len() == expected.len() + 1 && lines.last() == Some(&FramedLine::TooLong);
    let complete = if started { &lines[..expected.len()] } else { &lines };
    assert_eq!(complete, expected, "in chunks of {lengths:?}");
    one_message_is_one_line(input);
}

fn read<'a>(chunks: impl Iterator<Item = &'a [u8]>) -> Vec<FramedLine> {
    let mut lines = LineDecoder::new(LINE_BYTES_MAX);
    let mut out = Vec::new();
    for chunk in chunks {
        lines.buffer().extend_from_slice(chunk);
        out.extend(std::iter::from_fn(|| lines.next_line()));
        assert!(lines.buffer().len() <= LINE_BYTES_MAX + 1, "{} bytes are kept", lines.buffer().len());
    }
    out
}

fn model(input: &[u8]) -> Vec<FramedLine> {
    let mut lines: Vec<&[u8]> = input.split(|byte| *byte == b'\n').collect();
    lines.pop();
    let lines = lines.into_iter().map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    lines
        .filter(|line| !line.is_empty())
        .map(|line| {
            if line.len() > LINE_BYTES_MAX {
                FramedLine::TooLong
            } else {
                FramedLine::Text(Bytes::copy_from_slice(line))
            }
        })
        .collect()
}

fn one_message_is_one_line(message: &[u8]) {
    let mut written = Vec::new();
    push(message, &mut written);
    assert_eq!(written.iter().position(|byte| *byte == b'\n'), Some(message.len()));
    assert_eq!(written.len(), message.len() + 1);
}
