//! Confluence storage format: XHTML with elements for macros, links, images and tasks. Unknown macros are shown by name
//! with their content. Reading never fails; the output is well-formed XML.

mod element;
mod link;
mod macros;
#[cfg(test)]
mod tests;
mod write;

use super::html::MarkupWalker;
use super::markdown::{self, InlineStyle};
use super::markup::parse;

pub(super) use element::element;

pub fn to_markdown(xhtml: &str) -> String {
    let mut walk = MarkupWalker::new(0);
    walk.nodes(&parse(xhtml), &InlineStyle::default());
    markdown::write(&walk.finish())
}

pub fn from_markdown(text: &str) -> String {
    write::blocks(&markdown::read(text))
}
