//! Notion blocks of API version 2026-03-11. Reads every block type and shows unknown ones by type and id with their
//! text. The output respects the limits of one request: 2000 characters per text, 100 texts per block, two levels of
//! nesting.
//!
//! It is ours because these limits shape the output: a general converter to blocks knows nothing of requests.

mod emoji;
mod language;
mod read;
mod rich_text;
#[cfg(test)]
mod tests;
mod write;

use serde_json::Value;

use super::markdown;

/// Converts a list of blocks, a response with `results`, or one block. Nested blocks are in `children`.
pub fn to_markdown(blocks: &Value) -> String {
    markdown::write(&read::blocks(blocks))
}

/// Returns a list of blocks, ready to be appended.
pub fn from_markdown(text: &str) -> Value {
    Value::Array(write::blocks(&markdown::read(text)))
}
