//! Embedding client for an OpenAI-compatible `/embeddings` endpoint.

use hikite_core::json::Raw;
use hikite_core::search::encoder::Vector;
use hikite_core::search::provider::{Embedder, ProviderFailure};
use hikite_core::source::BoxFuture;
use hikite_egress::EgressClient;
use serde::{Deserialize, Serialize};

use crate::endpoint::{EndpointClient, InvalidEndpoint, SearchEndpoint};

#[derive(Debug)]
pub struct EmbeddingClient {
    endpoint: EndpointClient,
    requested_model: String,
    dimensions: Option<usize>,
    /// Model name, including everything that changes its vectors.
    model: String,
}

/// Maximum dimension, above that of any model.
const DIMENSIONS_MAX: usize = 8192;

impl EmbeddingClient {
    pub fn new(
        client: EgressClient,
        place: &SearchEndpoint,
        model: &str,
        dimensions: Option<usize>,
    ) -> Result<Self, InvalidEndpoint> {
        let endpoint = EndpointClient::new(client, place, "the embedding model")?;
        let named = match dimensions {
            Some(dimensions) => format!("remote:{model}:{dimensions}"),
            None => format!("remote:{model}"),
        };
        Ok(Self { endpoint, requested_model: model.to_owned(), dimensions, model: named })
    }
}

impl Embedder for EmbeddingClient {
    fn model(&self) -> &str {
        &self.model
    }

    fn embed<'a>(&'a self, texts: &'a [String]) -> BoxFuture<'a, Result<Vec<Vector>, ProviderFailure>> {
        Box::pin(async move {
            let request = EmbeddingRequest {
                model: &self.requested_model,
                input: texts,
                encoding_format: "float",
                dimensions: self.dimensions,
            };
            let body = serde_json::to_vec(&request).map_err(|_| ProviderFailure::Unreadable)?;
            self.endpoint.post_json(body, |response| read(&response, texts.len())).await
        })
    }
}

#[derive(Serialize)]
struct EmbeddingRequest<'a> {
    model: &'a str,
    input: &'a [String],
    encoding_format: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    dimensions: Option<usize>,
}

#[derive(Deserialize)]
struct EmbeddingResponse {
    data: Vec<EmbeddingItem>,
}

#[derive(Deserialize)]
struct EmbeddingItem {
    index: usize,
    embedding: Vec<f32>,
}

/// Parses the response: one vector per text, all of one dimension, in the order of the texts.
fn read(response: &Raw, texts: usize) -> Option<Vec<Vector>> {
    let response: EmbeddingResponse = response.decode().ok()?;
    let mut vectors: Vec<Option<Vector>> = vec![None; texts];
    let length = response.data.first()?.embedding.len();
    for embedded in response.data {
        let numbers = &embedded.embedding;
        let is_right = numbers.len() == length && (1..=DIMENSIONS_MAX).contains(&length);
        if !is_right || numbers.iter().any(|number| !number.is_finite()) {
            return None;
        }
        let place = vectors.get_mut(embedded.index).filter(|place| place.is_none())?;
        *place = Some(Vector::of(numbers));
    }
    vectors.into_iter().collect()
}
