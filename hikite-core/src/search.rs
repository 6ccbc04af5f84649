//! Finds the tools that a question means: by their words (`lexical`), by their meaning (`meaning`) where an encoder has
//! read them, and by what was used before (`memory`). Only what a mask holds is ever found.

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
