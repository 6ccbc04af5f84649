//! A TOON 4.4 encoder: JSON for models, with tables for uniform objects. Writes directly into one string and detects
//! tables while writing. There is no decoder, because no model is asked to write TOON.

mod number;
mod table;
mod text;
mod writer;

#[cfg(test)]
mod tests;

use serde_json::Value;

use writer::Writer;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    pub delimiter: Delimiter,
    /// Spaces per level, at least one.
    pub indent: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { delimiter: Delimiter::Comma, indent: 2 }
    }
}

/// Separator between the cells of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delimiter {
    Comma,
    Tab,
    Pipe,
}

impl Delimiter {
    fn byte(self) -> u8 {
        match self {
            Self::Comma => b',',
            Self::Tab => b'\t',
            Self::Pipe => b'|',
        }
    }
}

pub fn encode(value: &Value) -> String {
    encode_with(value, Options::default())
}

pub fn encode_with(value: &Value, options: Options) -> String {
    let mut out = String::new();
    encode_into(value, options, &mut out);
    out
}

/// Appends the value to `out` as a separate document.
pub fn encode_into(value: &Value, options: Options, out: &mut String) {
    // Without a limit, writing cannot fail.
    let _ = Writer::new(out, options, usize::MAX).document(value);
}

/// Encodes the value; `None` as soon as the text exceeds `limit_bytes`.
pub fn encode_within(value: &Value, limit_bytes: usize) -> Option<String> {
    let mut out = String::new();
    Writer::new(&mut out, Options::default(), limit_bytes).document(value)?;
    Some(out)
}
