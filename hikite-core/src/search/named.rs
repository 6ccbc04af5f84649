//! Finds tools that a query mentions by name, such as `create_issue` or `github:create_issue`.

use std::collections::HashMap;

use super::document::Document;
use super::question::Question;
use super::word::hash;

/// Documents by the hash of their lower-case names.
#[derive(Debug, Default)]
pub(super) struct Names(HashMap<u64, Vec<u32>>);

impl Names {
    pub(super) fn build(documents: &[Document]) -> Self {
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
    pub(super) fn in_question(&self, question: &Question, documents: &[Document]) -> Vec<u32> {
        let texts = question.queries.iter().map(|query| query.whole.text.trim());
        let mut named: Vec<u32> = texts.flat_map(|text| self.in_text(text, documents)).collect();
        named.sort_unstable();
        named.dedup();
        named
    }

    fn in_text(&self, text: &str, documents: &[Document]) -> Vec<u32> {
        let whole = text.to_lowercase();
        let mut named = self.called(&whole, documents);
        for word in text.split(|letter: char| !is_of_name(letter)).filter(|word| is_identifier(word)) {
            named.extend(self.called(&word.trim_matches(['.', ':', '-']).to_lowercase(), documents));
        }
        named
    }

    /// Looks up a bare name, `module:tool` or `module__tool`.
    fn called(&self, name: &str, documents: &[Document]) -> Vec<u32> {
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

fn is_of_name(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-' | '.' | ':')
}

/// Returns `true` if a word of a sentence looks like an identifier; `fetch` may be just a verb.
fn is_identifier(word: &str) -> bool {
    let inner = word.get(1..).unwrap_or_default();
    let mixed = word.bytes().any(|byte| byte.is_ascii_lowercase());
    inner.contains(['_', ':'])
        || mixed && inner.bytes().any(|byte| byte.is_ascii_uppercase())
        || inner.contains('-')
}
