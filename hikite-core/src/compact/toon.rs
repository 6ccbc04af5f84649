//! A TOON 4.4 encoder: JSON for models, with tables for uniform objects. Writes directly into one string and detects
//! tables while writing. There is no decoder, because no model is asked to write TOON.
//!
//! It is ours because results have a limit in bytes, at which the writer stops. `toon-format` has none; the tests read
//! our output with it.

mod number;
mod table;
mod text;
mod writer;

#[cfg(test)]
mod tests;

use serde_json::Value;

use writer::ToonWriter;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToonOptions {
    pub delimiter: Delimiter,
    /// Spaces per level, at least one.
    pub indent: usize,
}

impl Default for ToonOptions {
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
    encode_with(value, ToonOptions::default())
}

pub fn encode_with(value: &Value, options: ToonOptions) -> String {
    let mut out = String::new();
    encode_into(value, options, &mut out);
    out
}

/// Appends the value to `out` as a separate document.
pub fn encode_into(value: &Value, options: ToonOptions, out: &mut String) {
    // Without a limit, writing cannot fail.
    let _ = ToonWriter::new(out, options, usize::MAX).document(value);
}

/// Encodes the value; `None` as soon as the text exceeds `limit_bytes`.
pub fn encode_within(value: &Value, limit_bytes: usize) -> Option<String> {
    let mut out = String::new();
    ToonWriter::new(&mut out, ToonOptions::default(), limit_bytes).document(value)?;
    Some(out)
}
