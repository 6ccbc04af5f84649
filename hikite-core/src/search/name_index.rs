//! Finds tools that a query mentions by name, such as `create_issue` or `github:create_issue`.

use std::collections::HashMap;

use super::document::ToolDocument;
use super::query::SearchQuery;
use super::word::hash;

/// Documents by the hash of their lower-case names.
#[derive(Debug, Default)]
pub(super) struct NameIndex(HashMap<u64, Vec<u32>>);

impl NameIndex {
    pub(super) fn build(documents: &[ToolDocument]) -> Self {
        let mut names: HashMap<u64, Vec<u32>> = HashMap::with_capacity(documents.len());
        for (at, document) in (0..).zip(documents) {
            names.entry(hash(&document.name.to_lowercase())).or_default().push(at);
            if document.key.tool != document.name {
                names.entry(hash(&document.key.tool.to_lowercase())).or_default().push(at);
            }
        }
        Self(names)
    }

    /// Returns the documents that the queries mention by name, in index order.
    pub(super) fn mentioned_in(&self, question: &SearchQuery, documents: &[ToolDocument]) -> Vec<u32> {
        let texts = question.queries.iter().map(|query| query.whole.text.trim());
        let mut named: Vec<u32> = texts.flat_map(|text| self.mentioned_in_text(text, documents)).collect();
        named.sort_unstable();
        named.dedup();
        named
    }

    fn mentioned_in_text(&self, text: &str, documents: &[ToolDocument]) -> Vec<u32> {
        let whole = text.to_lowercase();
        let mut named = self.lookup(&whole, documents);
        for word in text.split(|letter: char| !is_name_character(letter)).filter(|word| is_identifier(word)) {
            named.extend(self.lookup(&word.trim_matches(['.', ':', '-']).to_lowercase(), documents));
        }
        named
    }

    /// Looks up a bare name, `module:tool` or `module__tool`.
    fn lookup(&self, name: &str, documents: &[ToolDocument]) -> Vec<u32> {
        if let Some(places) = self.0.get(&hash(name)) {
            return places.clone();
        }
        let Some((module, tool)) = name.split_once(':').or_else(|| name.split_once("__")) else {
            return Vec::new();
        };
        let places = self.0.get(&hash(tool)).map(Vec::as_slice).unwrap_or_default();
        let of_module = |at: &&u32| documents[**at as usize].module.to_lowercase() == module;
        places.iter().filter(of_module).copied().collect()
    }
}

fn is_name_character(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-' | '.' | ':')
}

/// Returns `true` if a word of a sentence looks like an identifier; `fetch` may be just a verb.
fn is_identifier(word: &str) -> bool {
    let inner = word.get(1..).unwrap_or_default();
    let mixed = word.bytes().any(|byte| byte.is_ascii_lowercase());
    inner.contains(['_', ':']) || mixed && inner.bytes().any(|byte| byte.is_ascii_uppercase()) || inner.contains('-')
}
