//! The search index of one catalog: immutable, with documents in catalog order.

use std::collections::HashMap;
use std::sync::Arc;

use super::document::ToolDocument;
use super::encoder::Vector;
use super::lexical::LexicalIndex;
use super::name_index::NameIndex;
use super::vector_index::VectorIndex;

/// A search index. Cloning is cheap: all parts are reference-counted.
#[derive(Clone, Debug)]
pub struct SearchIndex {
    documents: Arc<[ToolDocument]>,
    /// Module number of each document.
    modules: Arc<[u32]>,
    module_count: usize,
    pub(super) names: Arc<NameIndex>,
    pub(super) lexical: Arc<LexicalIndex>,
    pub(super) meaning: Arc<VectorIndex>,
}

/// A search hit.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchHit {
    /// Index of the document.
    pub at: usize,
    /// Relevance from 0 to 1, never increasing from one hit to the next; see `relevance`.
    pub relevance: f64,
    /// Short text on what matched.
    pub explanation: String,
}

impl SearchIndex {
    /// Builds an index. Vectors of documents with unchanged text are taken over from `before`.
    pub fn build(documents: Vec<ToolDocument>, before: Option<&Self>) -> Self {
        let meaning = match before {
            None => VectorIndex::none(documents.len()),
            Some(before) => before.vectors_of(&documents),
        };
        let mut numbers: HashMap<&str, u32> = HashMap::new();
        let mut modules = Vec::with_capacity(documents.len());
        for document in &documents {
            let next = u32::try_from(numbers.len()).unwrap_or(u32::MAX);
            modules.push(*numbers.entry(&document.module).or_insert(next));
        }
        Self {
            modules: modules.into(),
            module_count: numbers.len(),
            names: Arc::new(NameIndex::build(&documents)),
            lexical: Arc::new(LexicalIndex::build(&documents)),
            meaning: Arc::new(meaning),
            documents: documents.into(),
        }
    }

    pub fn len(&self) -> usize {
        self.documents.len()
    }

    pub fn is_empty(&self) -> bool {
        self.documents.is_empty()
    }

    pub fn document(&self, at: usize) -> &ToolDocument {
        &self.documents[at]
    }

    pub fn documents(&self) -> &[ToolDocument] {
        &self.documents
    }

    /// Returns the documents that have no vector yet.
    pub fn without_vector(&self) -> Vec<usize> {
        (0..self.len()).filter(|at| !self.meaning.is_known(*at)).collect()
    }

    /// Returns an index with further vectors. Vectors of another model replace all existing ones.
    #[must_use]
    pub fn with_vectors(&self, model: &str, vectors: Vec<(usize, Vector)>) -> Self {
        Self { meaning: Arc::new(self.meaning.with(model, vectors)), ..self.clone() }
    }

    /// Returns an index with the vectors that `other` has for the same texts, instead of its own.
    #[must_use]
    pub fn with_vectors_of(&self, other: &Self) -> Self {
        Self { meaning: Arc::new(other.vectors_of(&self.documents)), ..self.clone() }
    }

    fn vectors_of(&self, documents: &[ToolDocument]) -> VectorIndex {
        let places: HashMap<&str, usize> = self.documents.iter().enumerate().map(|(at, d)| (d.content(), at)).collect();
        self.meaning.remapped(documents.len(), |at| places.get(documents[at].content()).copied())
    }

    /// Returns the model of the vectors; empty if there are none.
    pub fn model(&self) -> &str {
        self.meaning.model()
    }

    /// Returns the number of documents with a vector.
    pub fn encoded(&self) -> usize {
        self.meaning.count()
    }

    pub(super) fn modules(&self) -> &[u32] {
        &self.modules
    }

    pub(super) fn module_count(&self) -> usize {
        self.module_count
    }
}
