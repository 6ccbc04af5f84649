//! Atlassian Document Format, used by Jira for descriptions and comments. Reads every node and mark of the published
//! schema and shows unknown ones by name. The output is valid by that schema.
//!
//! It is ours because no text may be lost in either direction, also in nodes that the schema adds later.

mod date;
mod inline;
mod read;
mod rows;
#[cfg(test)]
mod tests;
mod write;

use serde_json::Value;

use super::markdown;

/// Converts a document. Null becomes an empty string; a string, which older APIs return instead of a document, is
/// returned unchanged.
pub fn to_markdown(document: &Value) -> String {
    match document {
        Value::String(text) => text.clone(),
        _ => markdown::write(&read::document(document)),
    }
}

/// Returns a whole document.
pub fn from_markdown(text: &str) -> Value {
    write::document(&markdown::read(text))
}
