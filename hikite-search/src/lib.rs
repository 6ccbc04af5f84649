//! Search with the help of others: the cloud, and models behind OpenAI-compatible addresses. Every answer is read
//! strictly and within limits; what is wrong in any way is a `Trouble`, and search goes on without it.

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
