//! The indexed text of one tool: its name, module, description and parameters.

use std::sync::Arc;

use sha2::{Digest, Sha256};

use crate::catalog::{Module, Tool};
use crate::hex::hex;
use crate::json::Raw;
use crate::key::ToolKey;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolDocument {
    pub key: ToolKey,
    pub name: Arc<str>,
    pub module: Arc<str>,
    pub module_text: Arc<str>,
    pub description: String,
    /// Parameter names and descriptions.
    pub parameters: Vec<(String, String)>,
    content: String,
}

/// How much of a description the encoder reads, in characters. Longer texts made it worse.
const DESCRIPTION_CHARS: usize = 300;
/// How many parameter names the encoder reads.
const PARAMETERS_MAX: usize = 8;

impl ToolDocument {
    pub fn new(
        key: ToolKey,
        name: impl Into<Arc<str>>,
        module_text: impl Into<Arc<str>>,
        description: impl Into<String>,
        parameters: Vec<(String, String)>,
    ) -> Self {
        let module = Arc::clone(&key.module);
        let mut document = Self {
            key,
            name: name.into(),
            module,
            module_text: module_text.into(),
            description: description.into(),
            parameters,
            content: String::new(),
        };
        document.content = content(&document.text());
        document
    }

    pub fn of(module: &Module, tool: &Tool) -> Self {
        let (description, schema) = match tool.definition.object() {
            Some(definition) => {
                (definition.text("description").unwrap_or_default(), definition.get("inputSchema").cloned())
            }
            None => Default::default(),
        };
        let parameters = schema.as_ref().map(parameters).unwrap_or_default();
        Self::new(tool.key.clone(), Arc::clone(&tool.name), &*module.description, description, parameters)
    }

    /// Returns the encoder input: module and name as words, the description, and the names of the first parameters.
    /// The encoder was trained on such texts (`text` in `hikite-encoder/model/train/data.py`).
    pub fn text(&self) -> String {
        let mut text = format!("{} {}", split_identifier(&self.module), split_identifier(&self.name));
        let description = self.description.split_whitespace().collect::<Vec<_>>().join(" ");
        if !description.is_empty() || !self.parameters.is_empty() {
            text.push(':');
        }
        if !description.is_empty() {
            text.push(' ');
            text.extend(description.chars().take(DESCRIPTION_CHARS));
        }
        let names: Vec<String> =
            self.parameters.iter().take(PARAMETERS_MAX).map(|(name, _)| split_identifier(name)).collect();
        if !names.is_empty() {
            text.extend([" (", &names.join(", "), ")"]);
        }
        text
    }

    /// Returns the SHA-256 of the encoder input in hex. Documents with the same hash share a vector.
    pub fn content(&self) -> &str {
        &self.content
    }
}

/// Returns the parameter names and descriptions of a schema.
pub fn parameters(schema: &Raw) -> Vec<(String, String)> {
    let Some(properties) = schema.object().and_then(|schema| schema.get("properties")?.object()) else {
        return Vec::new();
    };
    let text = |raw: &Raw| raw.object().and_then(|property| property.text("description")).unwrap_or_default();
    properties.iter().map(|(name, property)| (name.to_owned(), text(property))).collect()
}

/// Splits an identifier into words.
fn split_identifier(name: &str) -> String {
    let letters: Vec<char> = name.chars().collect();
    let mut words = String::with_capacity(name.len() + 4);
    for (at, letter) in letters.iter().enumerate() {
        let before = at.checked_sub(1).map(|before| letters[before]);
        let next_is_lower = letters.get(at + 1).is_some_and(char::is_ascii_lowercase);
        let begins = letter.is_ascii_uppercase()
            && before.is_some_and(|b| {
                b.is_ascii_lowercase() || b.is_ascii_digit() || b.is_ascii_uppercase() && next_is_lower
            });
        if begins {
            words.push(' ');
        }
        words.push(if letter.is_ascii_alphanumeric() || !letter.is_ascii() { *letter } else { ' ' });
    }
    words.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn content(text: &str) -> String {
    hex(&Sha256::digest(text.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_is_the_name_in_words_and_what_the_tool_does() {
        let document = |name: &str, description: &str, parameters: &[&str]| {
            let parameters = parameters.iter().map(|name| ((*name).to_owned(), String::new())).collect();
            ToolDocument::new(ToolKey::new("my_server", name), name, "", description, parameters)
        };
        let check = |name, description, parameters: &[&str], expected| {
            assert_eq!(document(name, description, parameters).text(), expected);
        };
        check("getHTTPUrl_v2", "Reads\n  a URL.", &[], "my server get HTTP Url v2: Reads a URL.");
        check("s3List", "", &["bucketName", "max-keys"], "my server s3 List: (bucket Name, max keys)");
        check("list", " ", &[], "my server list");
        check("読む", "ファイルを読む。", &["パス"], "my server 読む: ファイルを読む。 (パス)");
        check("a", "b", &["a", "b", "c", "d", "e", "f", "g", "h", "i"], "my server a: b (a, b, c, d, e, f, g, h)");
        assert_eq!(document("a", &"word ".repeat(200), &[]).text().chars().count(), "my server a: ".len() + 300);
        assert_eq!(document("a", "b", &[]).content().len(), 64);
        assert_ne!(document("a", "b", &[]).content(), document("a", "c", &[]).content());
    }

    #[test]
    fn parameters_are_read_from_the_schema_whatever_it_looks_like() {
        let read = |text: &str| parameters(&Raw::parse(text.to_owned()).expect("JSON"));
        let schema = r#"{"properties":{"path":{"description":"Where"},"raw":true,"n":{"description":3}}}"#;
        let expected = [("path", "Where"), ("raw", ""), ("n", "")].map(|(a, b)| (a.to_owned(), b.to_owned()));
        assert_eq!(read(schema), expected);
        assert!(read("null").is_empty() && read(r#"{"properties":[]}"#).is_empty());
    }
}
