//! MCP resources of a module. Each URI maps to a tool call.

use hikite_core::json::Raw;
use serde_json::{Map, Value, json};

use crate::escape::decoded;
use crate::file::{LocalizedText, ResourceFile, TextLanguage};

#[derive(Debug)]
pub(crate) struct ServiceResource {
    name: String,
    uri: String,
    pieces: Vec<UriPiece>,
    title: LocalizedText,
    description: LocalizedText,
    pub(crate) mime: String,
    pub(crate) tool: String,
    arguments: Map<String, Value>,
}

#[derive(Debug)]
enum UriPiece {
    Text(String),
    Value { name: String, segments: bool },
}

impl ServiceResource {
    pub(crate) fn new(name: &str, file: &ResourceFile) -> Result<Self, String> {
        let mut pieces = Vec::new();
        let mut rest = file.uri.as_str();
        if !rest.contains("://") {
            return Err("an address starts with a scheme: `notion://page/{page_id}`".into());
        }
        while let Some((text, after)) = rest.split_once('{') {
            let (inside, after) = after.split_once('}').ok_or("a `{` is not closed")?;
            pieces.push(UriPiece::Text(text.to_owned()));
            let segments = inside.starts_with('+');
            pieces.push(UriPiece::Value { name: inside.trim_start_matches('+').to_owned(), segments });
            rest = after;
        }
        pieces.push(UriPiece::Text(rest.to_owned()));
        Ok(Self {
            name: name.to_owned(),
            uri: file.uri.clone(),
            pieces,
            title: file.title.clone(),
            description: file.description.clone(),
            mime: file.mime.clone().unwrap_or_else(|| "text/plain".to_owned()),
            tool: file.tool.clone(),
            arguments: file.arguments.clone(),
        })
    }

    /// Returns the definition, and `true` if it is a single resource rather than a template.
    pub(crate) fn definition(&self, language: TextLanguage) -> (Raw, bool) {
        let is_fixed = self.names().next().is_none();
        let mut definition = json!({
            "name": self.name,
            "title": self.title.get(language),
            "description": self.description.get(language),
            "mimeType": self.mime,
        });
        definition[if is_fixed { "uri" } else { "uriTemplate" }] = json!(self.uri);
        (Raw::of(&definition), is_fixed)
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.pieces.iter().filter_map(|piece| match piece {
            UriPiece::Text(_) => None,
            UriPiece::Value { name, .. } => Some(name.as_str()),
        })
    }

    /// Returns the tool arguments for a URI, or `None` if it does not match.
    pub(crate) fn arguments(&self, uri: &str) -> Option<Map<String, Value>> {
        let mut arguments = self.arguments.clone();
        let mut rest = uri;
        let mut pieces = self.pieces.iter().peekable();
        while let Some(piece) = pieces.next() {
            match piece {
                UriPiece::Text(text) => rest = rest.strip_prefix(text.as_str())?,
                UriPiece::Value { name, segments } => {
                    let until = match pieces.peek() {
                        Some(UriPiece::Text(text)) if !text.is_empty() => rest.find(text.as_str())?,
                        _ => rest.len(),
                    };
                    let (value, after) = rest.split_at(until);
                    if value.is_empty() || (!segments && value.contains('/')) {
                        return None;
                    }
                    arguments.insert(name.clone(), Value::from(decoded(&value.replace('+', "%2B"))));
                    rest = after;
                }
            }
        }
        rest.is_empty().then_some(arguments)
    }
}
