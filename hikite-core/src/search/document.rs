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

/// A shorter first sentence (`Note.`) does not describe the tool yet; more is included.
const SENTENCE_LETTERS_MIN: usize = 20;
const SENTENCE_LETTERS_MAX: usize = 300;

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

    /// Returns the encoder input: the name as words, then the first sentence of the description. The encoder was
    /// trained on such texts; examples, warnings and formats after the first sentence only add noise.
    pub fn text(&self) -> String {
        let sentence = first_sentence(&self.description);
        let about = if sentence.is_empty() { split_identifier(&self.module) } else { sentence };
        format!("{}: {about}", split_identifier(&self.name))
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

/// Returns the text up to the first end of a sentence or line, with whitespace collapsed.
fn first_sentence(text: &str) -> String {
    let mut sentence = String::new();
    let mut count = 0;
    let mut letters = text.trim().chars().peekable();
    while let Some(letter) = letters.next().filter(|_| count < SENTENCE_LETTERS_MAX) {
        let space = letter.is_whitespace();
        if !space || !sentence.ends_with(' ') {
            sentence.push(if space { ' ' } else { letter });
            count += 1;
        }
        let ends = match letter {
            '\n' | '。' | '！' | '？' => true,
            '.' | '!' | '?' => letters.peek().is_none_or(|next| next.is_whitespace()),
            _ => false,
        };
        if ends && count >= SENTENCE_LETTERS_MIN {
            break;
        }
    }
    sentence.truncate(sentence.trim_end().len());
    sentence
}

/// Splits an identifier into words.
fn split_identifier(name: &str) -> String {
    let letters: Vec<char> = name.chars().collect();
    let mut words = String::with_capacity(name.len() + 4);
    for (at, letter) in letters.iter().enumerate() {
        let before = at.checked_sub(1).map(|before| letters[before]);
        let next_is_lower = letters.get(at + 1).is_some_and(|next| next.is_lowercase());
        let begins =
            letter.is_uppercase() && before.is_some_and(|b| b.is_lowercase() || b.is_uppercase() && next_is_lower);
        if begins {
            words.push(' ');
        }
        words.push(if letter.is_alphanumeric() { *letter } else { ' ' });
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
        let document = |name: &str, description: &str| {
            ToolDocument::new(ToolKey::new("m", name), name, "", description, Vec::new())
        };
        let check = |name, description, expected| assert_eq!(document(name, description).text(), expected);
        check("getHTTPUrl_v2", "Reads\n  a URL.", "get HTTP Url v2: Reads a URL.");
        check("a", "Reads version 1.2 of a file. Then more.", "a: Reads version 1.2 of a file.");
        check("a", "Note. Reads a file from a disk. More.", "a: Note. Reads a file from a disk.");
        check("a", "Does one thing in one line\n\nArgs: x", "a: Does one thing in one line");
        check(
            "読む",
            "指定されたパスにあるファイルの内容を読み取ります。続き。",
            "読む: 指定されたパスにあるファイルの内容を読み取ります。",
        );
        check("list", " ", "list: m");
        assert_eq!(document("a", &"word ".repeat(200)).text().chars().count(), 302);
        assert_eq!(document("a", "b").content().len(), 64);
        assert_ne!(document("a", "b").content(), document("a", "c").content());
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
