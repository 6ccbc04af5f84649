//! TOON, version 4.4 of its specification: JSON for models, with tables for what is alike. Writes straight into one
//! text; the tables are found while they are written. There is no decoder: no model is ever asked to write TOON.

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
    /// Blanks for each level, one at least.
    pub indent: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { delimiter: Delimiter::Comma, indent: 2 }
    }
}

/// What stands between the cells of a row.
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

/// Writes behind what is there already, as a document of its own.
pub fn encode_into(value: &Value, options: Options, out: &mut String) {
    // Without a limit nothing is too long.
    let _ = Writer::new(out, options, usize::MAX).document(value);
}

/// `None` as soon as it is longer than that: for those who would rather have something else then.
pub fn encode_within(value: &Value, limit_bytes: usize) -> Option<String> {
    let mut out = String::new();
    Writer::new(&mut out, Options::default(), limit_bytes).document(value)?;
    Some(out)
}
