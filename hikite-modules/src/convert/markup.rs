//! Lenient parser for HTML and the XHTML of Confluence. It builds a small tree of limited depth from any text in one
//! pass. Nothing is fetched, executed or rejected.
//!
//! It is ours because Confluence needs CDATA, namespaces and self-closing tags, which `html5ever` does not read as
//! such. `html5ever` for HTML alone would be a second parser beside this one, without a limit on the depth of its tree.

mod entity;
mod name;
mod token;
mod tree;
mod write;

pub(super) use name::{is_block, is_known, mark};
pub(super) use token::{MarkupToken, tokens};
pub(super) use tree::{Element, Node, parse};
pub(super) use write::{attribute, inlines, marked, printable, text};
