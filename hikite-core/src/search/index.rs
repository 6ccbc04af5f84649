//! The search index of one catalog: immutable, its documents in the catalog's order.

use std::collections::HashMap;
use std::sync::Arc;

use super::document::Document;
use super::encoder::Vector;
use super::lexical::Lexical;
use super::meaning::Meaning;
use super::memory::Trace;
use super::named::Names;
use super::question::Question;
use super::rank;
use crate::mask::Mask;

/// Cloning counts references.
#[derive(Clone, Debug)]
pub struct Index {
    documents: Arc<[Document]>,
    /// The number of each document's module.
    modules: Arc<[u32]>,
    module_count: usize,
    pub(super) names: Arc<Names>,
    pub(super) lexical: Arc<Lexical>,
    pub(super) meaning: Arc<Meaning>,
}

/// One tool that was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Hit {
    /// The place of its document.
    pub at: usize,
    /// 0 to 1, never rising from one hit to the next; see `relevance`.
    pub relevance: f64,
    /// What matched.
    pub explanation: String,
}

impl Index {
    /// `before` lends the vectors of documents whose text is the same.
    pub fn build(documents: Vec<Document>, before: Option<&Self>) -> Self {
        let meaning = match before {
            None => Meaning::none(documents.len()),
            Some(before) => {
                let places: HashMap<&str, usize> =
                    before.documents.iter().enumerate().map(|(at, d)| (d.content(), at)).collect();
                before.meaning.moved(documents.len(), |at| places.get(documents[at].content()).copied())
            }
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
            names: Arc::new(Names::build(&documents)),
            lexical: Arc::new(Lexical::build(&documents)),
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

    pub fn document(&self, at: usize) -> &Document {
        &self.documents[at]
    }

    pub fn documents(&self) -> &[Document] {
        &self.documents
    }

    /// The documents that are still to be encoded.
    pub fn without_vector(&self) -> Vec<usize> {
        (0..self.len()).filter(|at| !self.meaning.is_known(*at)).collect()
    }

    /// A new index with more vectors; those of another model replace all that were there.
    #[must_use]
    pub fn with_vectors(&self, model: &str, vectors: Vec<(usize, Vector)>) -> Self {
        Self { meaning: Arc::new(self.meaning.with(model, vectors)), ..self.clone() }
    }

    /// The model that made the vectors, empty if there are none.
    pub fn model(&self) -> &str {
        self.meaning.model()
    }

    /// How many documents have a vector.
    pub fn encoded(&self) -> usize {
        self.meaning.count()
    }

    /// The best documents that `mask` holds, best first; of equals the one that comes first in the catalog. What the
    /// mask does not hold is neither found nor does it change the order of what is.
    pub fn search(&self, question: &Question, mask: &Mask, memory: &[Trace], limit: usize) -> Vec<Hit> {
        rank::search(self, question, mask, memory, limit)
    }

    pub(super) fn modules(&self) -> &[u32] {
        &self.modules
    }

    pub(super) fn module_count(&self) -> usize {
        self.module_count
    }
}
