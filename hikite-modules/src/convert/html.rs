//! Converts HTML to Markdown, for descriptions of calendar events and tasks. Text without block tags keeps its line
//! breaks. Scripts, style sheets and heads are dropped.

mod table;
#[cfg(test)]
mod tests;
mod walk;

use super::markdown::{DocumentBlock, write};
use super::markup::{Node, is_block, parse};

pub(super) use walk::MarkupWalker;

pub fn to_markdown(html: &str) -> String {
    write(&blocks(html))
}

/// Converts HTML to blocks.
pub(super) fn blocks(html: &str) -> Vec<DocumentBlock> {
    let nodes = parse(html);
    let mut walk = MarkupWalker::new(0);
    walk.preserves_lines = !nodes.iter().any(makes_lines);
    walk.nodes(&nodes, &super::markdown::InlineStyle::default());
    walk.finish()
}

fn makes_lines(node: &Node) -> bool {
    match node {
        Node::Text(_) => false,
        Node::Element(element) => {
            is_block(&element.name) || element.name == "br" || element.children.iter().any(makes_lines)
        }
    }
}
