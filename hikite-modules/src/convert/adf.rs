//! The Atlassian Document Format, in which Jira keeps descriptions and comments. Every node and mark of its published
//! schema is read, and one that is not in it is shown by its name. What is written is valid by that schema.

mod date;
mod inline;
mod read;
mod rows;
#[cfg(test)]
mod tests;
mod write;

use serde_json::Value;

use super::markdown;

/// Nothing is nothing, and a text, which older interfaces give instead of a document, stays as it is.
pub fn to_markdown(document: &Value) -> String {
    match document {
        Value::String(text) => text.clone(),
        _ => markdown::write(&read::document(document)),
    }
}

/// A whole document.
pub fn from_markdown(text: &str) -> Value {
    write::document(&markdown::read(text))
}
