//! An encoder whose vectors were made beforehand, to measure a remote embedding model.

use std::collections::{BTreeSet, HashMap};

use anyhow::{Context, Result};
use hikite_core::search::SearchQuery;
use hikite_core::search::encoder::{Encoder, Vector};
use hikite_core::search::provider::Embedder;

use super::set::LabelledSet;
use crate::progress::StepProgress;

/// Texts per request.
const BATCH: usize = 64;

/// Vectors of all texts of a labelled set.
#[derive(Debug)]
pub struct EmbeddedTexts {
    model: String,
    vectors: HashMap<String, Vector>,
}

impl EmbeddedTexts {
    /// Lets the embedding model encode the tools and the queries of a set.
    pub async fn of(set: &LabelledSet, embedder: &dyn Embedder) -> Result<Self> {
        let mut texts: BTreeSet<String> = set.documents.iter().map(hikite_core::search::ToolDocument::text).collect();
        for labelled in &set.questions {
            let question = SearchQuery::lexical(std::slice::from_ref(&labelled.query), None);
            texts.extend(question.texts().into_iter().map(str::to_owned));
        }
        let texts: Vec<String> = texts.into_iter().collect();
        let mut steps = StepProgress::new(&format!("{}: embedding", set.name), texts.len().div_ceil(BATCH));
        let mut vectors = HashMap::with_capacity(texts.len());
        for batch in texts.chunks(BATCH) {
            let found = embedder.embed(batch).await.context("the embedding model of `search.embedding` failed")?;
            vectors.extend(batch.iter().cloned().zip(found));
            steps.step();
        }
        Ok(Self { model: embedder.model().to_owned(), vectors })
    }

    fn vector(&self, text: &str) -> Vector {
        self.vectors.get(text).cloned().unwrap_or_else(|| Vector::of(&[]))
    }
}

impl Encoder for EmbeddedTexts {
    fn model(&self) -> &str {
        &self.model
    }

    fn question(&self, text: &str) -> Vector {
        self.vector(text)
    }

    fn tool(&self, text: &str) -> Vector {
        self.vector(text)
    }
}
