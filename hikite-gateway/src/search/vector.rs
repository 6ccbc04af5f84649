//! Vectors for tools that have none: first the precomputed and the stored ones of all tools, by content, then new ones
//! in small batches.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use hikite_core::search::SearchIndex;
use hikite_core::search::encoder::{Encoder, Vector};
use hikite_core::search::provider::Embedder;
use tokio::time::Instant;

use super::Search;
use super::catalog_index::CatalogIndex;
use hikite_store::clock::now_ms;

/// Maximum number of contents per lookup.
const LOOKUP_MAX: usize = 200;
/// Maximum number of texts encoded per step, and the time after which a step ends early. A catalog change and a search
/// wait for no more than these.
const ENCODE_BATCH: usize = 32;
const ENCODE_TIME: Duration = Duration::from_millis(250);
/// Pause after a failure of the model.
const MODEL_PAUSE: Duration = Duration::from_secs(30);

/// Contents without a vector, each with its positions in the index.
struct MissingVectors<'a> {
    index: &'a SearchIndex,
    contents: Vec<&'a str>,
    places: HashMap<&'a str, Vec<usize>>,
}

impl<'a> MissingVectors<'a> {
    /// Returns the contents that this model has not encoded.
    fn of(index: &'a SearchIndex, model: &str) -> Self {
        let other = index.encoded() > 0 && index.model() != model;
        let without = if other { (0..index.len()).collect() } else { index.without_vector() };
        let mut missing = Self { index, contents: Vec::new(), places: HashMap::new() };
        for at in without {
            let content = index.document(at).content();
            let places = missing.places.entry(content).or_default();
            if places.is_empty() {
                missing.contents.push(content);
            }
            places.push(at);
        }
        missing
    }

    fn texts(&self) -> Vec<String> {
        let first = self.contents.iter().take(ENCODE_BATCH);
        first.map(|content| self.index.document(self.places[content][0]).text()).collect()
    }

    /// Returns the index with the known vectors added.
    fn filled(&self, model: &str, known: &HashMap<String, Vector>) -> SearchIndex {
        let vectors = known.iter().flat_map(|(content, vector)| {
            let places = self.places.get(content.as_str()).into_iter().flatten();
            places.map(move |at| (*at, vector.clone()))
        });
        self.index.with_vectors(model, vectors.collect())
    }
}

impl Search {
    /// Adds some of the missing vectors. Returns `false` if none are missing, or none can be computed now.
    pub(super) async fn add_vectors(&self, ready: &Arc<CatalogIndex>) -> bool {
        let settings = self.settings();
        if let Some(encoder) = &settings.encoder {
            let missing = MissingVectors::of(&ready.local, encoder.model());
            if missing.contents.is_empty() {
                self.index_worker.forget_absent(encoder.model());
            } else {
                let known = self.encode_locally(encoder, &missing).await;
                if known.is_empty() {
                    return false;
                }
                self.index_worker.note_known(encoder.model(), known.keys());
                self.index_worker.publish(ready.with_local(missing.filled(encoder.model(), &known)));
                return true;
            }
        }
        if let Some(encoder) = settings.encoder.as_ref().filter(|_| self.index_worker.take_cold()) {
            // Unpack the encoder's tables now; otherwise the first query would wait for them.
            let encoder = Arc::clone(encoder);
            let _ = self.tasks.spawn_blocking(move || encoder.question("first")).await;
        }
        let Some(embedder) = settings.embedder.as_ref().filter(|_| self.index_worker.is_model_available()) else {
            return false;
        };
        let missing = MissingVectors::of(ready.remote.as_ref().unwrap_or(&ready.local), embedder.model());
        if missing.contents.is_empty() {
            self.index_worker.forget_absent(embedder.model());
            return false;
        }
        let known = self.embed_remotely(embedder, &missing).await;
        if known.is_empty() {
            return false;
        }
        self.index_worker.note_known(embedder.model(), known.keys());
        self.index_worker.publish(ready.with_remote(missing.filled(embedder.model(), &known)));
        true
    }

    async fn encode_locally(
        &self,
        encoder: &Arc<dyn Encoder>,
        missing: &MissingVectors<'_>,
    ) -> HashMap<String, Vector> {
        let known = self.lookup_missing(Some(encoder), encoder.model(), missing).await;
        if !known.is_empty() {
            return known;
        }
        let (reader, texts) = (Arc::clone(encoder), missing.texts());
        let read = move || {
            let end = Instant::now() + ENCODE_TIME;
            let mut vectors: Vec<Vector> = Vec::with_capacity(texts.len());
            for text in texts {
                vectors.push(reader.tool(&text));
                if Instant::now() >= end {
                    break;
                }
            }
            vectors
        };
        match self.tasks.spawn_blocking(read).await {
            Ok(vectors) => self.store_vectors(encoder.model(), &missing.contents, vectors).await,
            Err(error) => {
                tracing::error!("the encoder failed: {error}");
                HashMap::new()
            }
        }
    }

    async fn embed_remotely(
        &self,
        embedder: &Arc<dyn Embedder>,
        missing: &MissingVectors<'_>,
    ) -> HashMap<String, Vector> {
        let known = self.lookup_missing(None, embedder.model(), missing).await;
        if !known.is_empty() {
            return known;
        }
        match embedder.embed(&missing.texts()).await {
            Ok(vectors) => self.store_vectors(embedder.model(), &missing.contents, vectors).await,
            Err(_) => {
                self.index_worker.rest(MODEL_PAUSE);
                HashMap::new()
            }
        }
    }

    /// Looks up missing vectors until some are found. Each content is looked up once.
    async fn lookup_missing(
        &self,
        encoder: Option<&Arc<dyn Encoder>>,
        model: &str,
        missing: &MissingVectors<'_>,
    ) -> HashMap<String, Vector> {
        let contents = self.index_worker.not_absent(model, &missing.contents);
        for contents in contents.chunks(LOOKUP_MAX) {
            let known = self.lookup_vectors(encoder, model, contents).await;
            let absent = contents.iter().filter(|content| !known.contains_key(**content));
            self.index_worker.note_absent(model, absent.copied());
            if !known.is_empty() {
                return known;
            }
        }
        HashMap::new()
    }

    /// Looks up precomputed and stored vectors.
    pub(super) async fn lookup_vectors(
        &self,
        encoder: Option<&Arc<dyn Encoder>>,
        model: &str,
        contents: &[&str],
    ) -> HashMap<String, Vector> {
        let ready = |content: &&str| Some(((*content).to_owned(), encoder?.ready(content)?));
        let mut known: HashMap<String, Vector> = contents.iter().filter_map(ready).collect();
        let rest: Vec<&str> = contents.iter().copied().filter(|content| !known.contains_key(*content)).collect();
        match self.store.search().vectors(model, &rest, now_ms()).await {
            Ok(found) => known.extend(found),
            Err(error) => tracing::debug!(%error, "failed to read cached vectors; they are computed again"),
        }
        known
    }

    /// Stores new vectors and returns them by content.
    pub(super) async fn store_vectors(
        &self,
        model: &str,
        contents: &[&str],
        vectors: Vec<Vector>,
    ) -> HashMap<String, Vector> {
        let made: Vec<(String, Vector)> = contents.iter().map(|content| (*content).to_owned()).zip(vectors).collect();
        if let Err(error) = self.store.search().put_vectors(model, &made, now_ms()).await {
            tracing::debug!(%error, "failed to cache vectors; they are computed again after the next start");
        }
        made.into_iter().collect()
    }
}
