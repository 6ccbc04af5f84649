//! Remote search: a search service, and embedding and reranking models behind OpenAI-compatible endpoints. Every
//! response is parsed strictly and within limits; any failure is a `Trouble`, and search continues without it.

mod cloud;
mod embedding;
mod endpoint;
mod rerank;

#[cfg(test)]
mod tests;

pub use cloud::CloudSearchClient;
pub use embedding::EmbeddingClient;
pub use endpoint::{InvalidEndpoint, SearchEndpoint};
pub use rerank::RerankClient;
