//! Embedding client for an OpenAI-compatible `/embeddings` endpoint.

use hikite_core::json::Raw;
use hikite_core::search::encoder::Vector;
use hikite_core::search::provider::{Embedder, Trouble};
use hikite_core::source::BoxFuture;
use hikite_egress::Client;
use serde::{Deserialize, Serialize};

use crate::post::{BadPlace, Place, Post};

#[derive(Debug)]
pub struct Embedding {
    post: Post,
    wanted: String,
    dimensions: Option<usize>,
    /// Model name, including everything that changes its vectors.
    model: String,
}

/// Maximum dimension, above that of any model.
const DIMENSIONS: usize = 8192;

impl Embedding {
    pub fn new(
        client: Client,
        place: &Place,
        model: &str,
        dimensions: Option<usize>,
    ) -> Result<Self, BadPlace> {
        let post = Post::new(client, place, "the embedding model")?;
        let named = match dimensions {
            Some(dimensions) => format!("remote:{model}:{dimensions}"),
            None => format!("remote:{model}"),
        };
        Ok(Self { post, wanted: model.to_owned(), dimensions, model: named })
    }
}

impl Embedder for Embedding {
    fn model(&self) -> &str {
        &self.model
    }

    fn embed<'a>(&'a self, texts: &'a [String]) -> BoxFuture<'a, Result<Vec<Vector>, Trouble>> {
        Box::pin(async move {
            let question = Question {
                model: &self.wanted,
                input: texts,
                encoding_format: "float",
                dimensions: self.dimensions,
            };
            let body = serde_json::to_vec(&question).map_err(|_| Trouble::Unreadable)?;
            self.post.ask(body, |answer| read(&answer, texts.len())).await
        })
    }
}

#[derive(Serialize)]
struct Question<'a> {
    model: &'a str,
    input: &'a [String],
    encoding_format: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    dimensions: Option<usize>,
}

#[derive(Deserialize)]
struct Answer {
    data: Vec<Embedded>,
}

#[derive(Deserialize)]
struct Embedded {
    index: usize,
    embedding: Vec<f32>,
}

/// Parses the response: one vector per text, all of one dimension, in the order of the texts.
fn read(answer: &Raw, texts: usize) -> Option<Vec<Vector>> {
    let answer: Answer = answer.decode().ok()?;
    let mut vectors: Vec<Option<Vector>> = vec![None; texts];
    let length = answer.data.first()?.embedding.len();
    for embedded in answer.data {
        let numbers = &embedded.embedding;
        let is_right = numbers.len() == length && (1..=DIMENSIONS).contains(&length);
        if !is_right || numbers.iter().any(|number| !number.is_finite()) {
            return None;
        }
        let place = vectors.get_mut(embedded.index).filter(|place| place.is_none())?;
        *place = Some(Vector::of(numbers));
    }
    vectors.into_iter().collect()
}
