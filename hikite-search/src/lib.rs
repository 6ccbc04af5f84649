//! Remote search: a search service, and embedding and reranking models behind OpenAI-compatible endpoints. Every
//! response is parsed strictly and within limits; any failure is a `Trouble`, and search continues without it.

mod cloud;
mod embedding;
mod post;
mod rerank;

#[cfg(test)]
mod tests;

pub use cloud::Cloud;
pub use embedding::Embedding;
pub use post::{BadPlace, Place};
pub use rerank::Rerank;
