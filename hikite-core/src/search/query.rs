//! A parsed search query: the terms of every query text and of its clauses, with vectors if there is an encoder.

use super::clause::clauses;
use super::encoder::{Encoder, Vector};
use super::synonym::add_synonyms;
use super::value::without_values;
use super::word::{QueryTerm, TermStemmer, WordReader};

/// One or several queries for the same thing, with optional context.
#[derive(Clone, Debug, Default)]
pub struct SearchQuery {
    pub(super) queries: Vec<QueryParts>,
    pub(super) context: Option<QueryText>,
}

#[derive(Clone, Debug)]
pub(super) struct QueryParts {
    pub(super) whole: QueryText,
    pub(super) clauses: Vec<QueryText>,
}

/// A text to search for.
#[derive(Clone, Debug)]
pub(super) struct QueryText {
    pub(super) text: String,
    pub(super) words: Vec<QueryTerm>,
    pub(super) vector: Option<Vector>,
}

impl SearchQuery {
    /// Parses a query for lexical search.
    pub fn lexical(queries: &[String], context: Option<&str>) -> Self {
        let queries = queries.iter().filter(|query| !query.trim().is_empty()).map(|query| QueryParts {
            whole: QueryText::read(query),
            clauses: clauses(query).into_iter().map(QueryText::read).collect(),
        });
        let context = context.filter(|context| !context.trim().is_empty()).map(QueryText::read);
        Self { queries: queries.collect(), context }
    }

    /// Parses a query for lexical and vector search.
    pub fn hybrid(queries: &[String], context: Option<&str>, encoder: &dyn Encoder) -> Self {
        let question = Self::lexical(queries, context);
        let vectors = question.texts().into_iter().map(|text| encoder.question(text)).collect();
        question.with_vectors(vectors)
    }

    /// Drops the terms, so that the vectors alone decide.
    #[must_use]
    pub fn without_words(mut self) -> Self {
        let queries =
            self.queries.iter_mut().flat_map(|query| std::iter::once(&mut query.whole).chain(&mut query.clauses));
        queries.chain(&mut self.context).for_each(|part| part.words.clear());
        self
    }

    /// Returns the texts to encode, in the order that `with_vectors` expects.
    pub fn texts(&self) -> Vec<&str> {
        self.parts().map(|part| part.text.as_str()).collect()
    }

    /// Attaches vectors to the texts. If there are too few, the last texts stay without one.
    #[must_use]
    pub fn with_vectors(mut self, vectors: Vec<Vector>) -> Self {
        let mut vectors = vectors.into_iter();
        for query in &mut self.queries {
            query.whole.vector = vectors.next();
            for clause in &mut query.clauses {
                clause.vector = vectors.next();
            }
        }
        if let Some(context) = &mut self.context {
            context.vector = vectors.next();
        }
        self
    }

    /// Returns the term hashes of all queries, sorted and unique. Synonyms are not among them.
    pub fn terms(&self) -> Vec<u64> {
        let words = self.queries.iter().flat_map(|query| &query.whole.words);
        let mut terms: Vec<u64> = words.filter(|word| word.is_own()).map(|word| word.term).collect();
        terms.sort_unstable();
        terms.dedup();
        terms
    }

    /// Returns the vector of the first query.
    pub fn vector(&self) -> Option<&Vector> {
        self.queries.first()?.whole.vector.as_ref()
    }

    /// Returns `true` if there is nothing to search for.
    pub fn is_empty(&self) -> bool {
        self.queries.is_empty() && self.context.is_none()
    }

    fn parts(&self) -> impl Iterator<Item = &QueryText> {
        let queries = self.queries.iter();
        queries.flat_map(|query| std::iter::once(&query.whole).chain(&query.clauses)).chain(&self.context)
    }
}

impl QueryText {
    /// Parses a text. Values, then stop words, are dropped unless there is nothing else.
    fn read(text: &str) -> Self {
        let (mut words, _) = terms(&without_values(text));
        if words.is_empty() {
            let (all, stop) = terms(text);
            words = if all.is_empty() { stop } else { all };
        }
        add_synonyms(&mut words);
        Self { text: text.to_owned(), words, vector: None }
    }
}

/// Returns the terms of a text, and its stop words.
fn terms(text: &str) -> (Vec<QueryTerm>, Vec<QueryTerm>) {
    let stems = TermStemmer::new();
    let (mut words, mut stop): (Vec<QueryTerm>, Vec<QueryTerm>) = Default::default();
    WordReader::default().words(text, |word| {
        let words = if word.is_stop() { &mut stop } else { &mut words };
        let term = stems.term(word);
        if words.iter().all(|known| known.term != term) {
            words.push(QueryTerm { term, text: word.text.to_owned(), weight: 1.0 });
        }
    });
    (words, stop)
}
