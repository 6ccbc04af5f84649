//! The search index of one catalog: immutable, its documents in the catalog's order.

use std::collections::HashMap;
use std::sync::Arc;

use super::document::Document;
use super::encoder::Vector;
use super::lexical::Lexical;
use super::meaning::Meaning;
use super::memory::Trace;
use super::question::Question;
use crate::mask::Mask;

#[derive(Clone, Debug)]
pub struct Index {
    documents: Arc<[Document]>,
    pub(super) lexical: Arc<Lexical>,
    pub(super) meaning: Arc<Meaning>,
}

/// One tool that was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Hit {
    /// The place of its document.
    pub at: usize,
    /// 0 to 1, never rising from one hit to the next.
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
        let lexical = Lexical::build(&documents);
        Self { documents: documents.into(), lexical: Arc::new(lexical), meaning: Arc::new(meaning) }
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

    /// The best documents that `mask` holds, best first. No other is looked at.
    pub fn search(&self, question: &Question, mask: &Mask, memory: &[Trace], limit: usize) -> Vec<Hit> {
        let _ = memory;
        let mut scores = vec![0.0_f32; self.len()];
        for word in question.queries.iter().flat_map(|query| &query.whole.words) {
            if let Some(postings) = self.lexical.postings(word.term) {
                for (document, gain) in postings.documents.iter().zip(postings.gains) {
                    scores[*document as usize] += gain;
                }
            }
        }
        let mut found: Vec<usize> = mask.iter().filter(|at| scores[*at] > 0.0).collect();
        found.sort_by(|a, b| scores[*b].total_cmp(&scores[*a]).then(a.cmp(b)));
        found.truncate(limit);
        found.into_iter().map(|at| Hit { at, relevance: 0.5, explanation: String::new() }).collect()
    }
}
