//! Answers that cost a model less: the tool's own shape or columns of what is not empty, then the smaller of TOON and
//! JSON, then a budget. Pure; what was left out is always told.

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

/// In which form an answer is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Compact,
    /// As the tool gave it.
    Raw,
}

impl Format {
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

/// How a compact answer is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Toon,
    Json,
    /// Words as they are: Markdown, a file, a log.
    Text,
}

impl Form {
    pub fn name(self) -> &'static str {
        match self {
            Self::Toon => "toon",
            Self::Json => "json",
            Self::Text => "text",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compacted {
    pub text: String,
    pub form: Form,
    /// What is not in the text, in words for a model; `None` if nothing was left out.
    pub left_out: Option<String>,
}

/// `left_out` is never longer than this; whoever puts it under the text leaves so much room for it.
pub const LEFT_OUT_BYTES: usize = 200;

/// The value in as few bytes as its shape allows, `budget` at most. A text stays as it is. Of everything else nothing is
/// lost that is not told, but for what is empty (null, `""`, `[]`, `{}`) in all rows of a table, of which the names are
/// told.
pub fn compact(value: &Value, shape: Option<&Shape>, budget: usize) -> Compacted {
    let shaped = shape.and_then(|shape| Some((shape.apply(value)?, shape.hoists())));
    let (value, hoist) = shaped.as_ref().map_or((value, true), |(value, hoist)| (value, *hoist));
    match value {
        Value::String(text) => budget::cut(text, budget),
        _ => budget::fit(value, hoist, budget),
    }
}

#[cfg(test)]
mod tests;
