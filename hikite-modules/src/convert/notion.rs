//! Notion blocks, as its interface of 2026-03-11 gives and takes them. Every type of block is read, and one that
//! nobody knows is shown by its type and id with the text it holds. What is written is within the limits of one
//! request: texts of 2000 characters, 100 of them in a block, two levels of blocks in blocks.

mod emoji;
mod language;
mod read;
mod rich_text;
#[cfg(test)]
mod tests;
mod write;

use serde_json::Value;

use super::markdown;

/// Takes a list of blocks, a whole answer with `results`, or one block. Their children are in `children`.
pub fn to_markdown(blocks: &Value) -> String {
    markdown::write(&read::blocks(blocks))
}

/// A list of blocks, ready to be appended.
pub fn from_markdown(text: &str) -> Value {
    Value::Array(write::blocks(&markdown::read(text)))
}
