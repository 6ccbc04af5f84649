//! Compacts answers to save tokens: applies the tool's shape or drops empty columns, picks the smaller of TOON and
//! JSON, then trims to a budget. Pure. Omissions are always reported.

mod budget;
mod cell;
mod column;
mod number;
mod render;
pub mod shape;
mod table;
pub mod toon;

use serde_json::Value;

pub use number::parse;
pub use shape::Shape;

/// Format in which an answer is requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerFormat {
    Compact,
    /// The answer as the tool returned it.
    Raw,
}

impl AnswerFormat {
    pub const ALL: [(&'static str, Self); 2] = [("compact", Self::Compact), ("raw", Self::Raw)];

    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|(name, _)| *name == word).map(|(_, format)| format)
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Compact => "compact",
            Self::Raw => "raw",
        }
    }
}

/// Encoding of a compact answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextFormat {
    Toon,
    Json,
    /// Plain text: Markdown, a file, a log.
    Text,
}

impl TextFormat {
    pub fn name(self) -> &'static str {
        match self {
            Self::Toon => "toon",
            Self::Json => "json",
            Self::Text => "text",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompactText {
    pub text: String,
    pub form: TextFormat,
    /// Description of the omitted parts, for a model; `None` if nothing was omitted.
    pub left_out: Option<String>,
}

/// Maximum bytes of `left_out`, which callers reserve below the text.
pub const LEFT_OUT_BYTES: usize = 200;

/// Encodes the value in at most `budget` bytes. A string stays as it is. Every omission is reported; columns that are
/// empty (null, `""`, `[]`, `{}`) in all rows of a table are only named.
pub fn compact(value: &Value, shape: Option<&Shape>, budget: usize) -> CompactText {
    let shaped = shape.and_then(|shape| Some((shape.apply(value)?, shape.hoists())));
    let (value, hoist) = shaped.as_ref().map_or((value, true), |(value, hoist)| (value, *hoist));
    match value {
        Value::String(text) => budget::cut(text, budget),
        _ => budget::fit(value, hoist, budget),
    }
}

#[cfg(test)]
mod tests;
