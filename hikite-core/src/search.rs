//! Tool search: lexical, by embedding vectors where an encoder is available, and by usage memory. Only tools in the
//! given set are ever returned.

mod clause;
pub mod document;
pub mod encoder;
mod explain;
mod fold;
pub mod index;
mod lexical;
mod meaning;
pub mod measure;
pub mod memory;
mod named;
pub mod provider;
pub mod question;
mod rank;
mod relevance;
mod score;
#[cfg(test)]
mod tests;
mod word;

pub use document::Document;
pub use index::{Hit, Index};
pub use memory::Trace;
pub use question::Question;
