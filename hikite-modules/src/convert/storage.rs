//! The storage format of Confluence: XHTML with elements of its own for macros, links, images and tasks. Macros that
//! nobody here knows are shown by their names, with all they hold. Reading never fails; what is written is
//! well-formed XML.

mod element;
mod link;
mod macros;
#[cfg(test)]
mod tests;
mod write;

use super::html::Walk;
use super::markdown::{self, Style};
use super::markup::parse;

pub(super) use element::element;

pub fn to_markdown(xhtml: &str) -> String {
    let mut walk = Walk::new(0);
    walk.nodes(&parse(xhtml), &Style::default());
    markdown::write(&walk.finish())
}

pub fn from_markdown(text: &str) -> String {
    write::blocks(&markdown::read(text))
}
