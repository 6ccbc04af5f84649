//! Tool search: lexical, by embedding vectors where an encoder is available, and by usage memory. Only tools in the
//! given set are ever returned.

mod clause;
pub mod document;
pub mod encoder;
mod explanation;
mod fold;
pub mod index;
mod lexical;
pub mod memory;
mod name_index;
pub mod provider;
pub mod quality;
pub mod query;
mod ranking;
mod relevance;
mod score;
mod synonym;
#[cfg(test)]
mod tests;
mod value;
mod vector_index;
mod word;

pub use document::ToolDocument;
pub use index::{SearchHit, SearchIndex};
pub use memory::UsageTrace;
pub use query::SearchQuery;
pub use relevance::{RELEVANCE_MIN, fitting};
