//! Markup as people and programs leave it behind: HTML and the XHTML of Confluence. A lenient reader makes a small
//! tree of any text in one pass, and never one that is too deep to walk. Nothing is fetched, run or refused.

mod entity;
mod name;
mod token;
mod tree;
mod write;

pub(super) use name::{is_block, is_known, mark};
pub(super) use token::{Token, tokens};
pub(super) use tree::{Element, Node, parse};
pub(super) use write::{attribute, inlines, marked, shown, text};
