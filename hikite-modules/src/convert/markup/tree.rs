//! Builds a tree of tags. Missing end tags are inferred as in HTML, stray ones are ignored, and elements beyond the
//! depth limit are dropped while their text is preserved.

use std::collections::HashMap;

use super::name::{ends_before, is_void};
use super::token::{MarkupToken, Tag, find, tokens};

/// Maximum depth. Mails nest tables, but never this deep.
const DEPTH_MAX: usize = 200;

#[derive(Debug, PartialEq)]
pub(in crate::convert) enum Node {
    Text(String),
    Element(Element),
}

#[derive(Debug, PartialEq, Default)]
pub(in crate::convert) struct Element {
    pub(in crate::convert) name: String,
    attributes: Vec<(String, String)>,
    pub(in crate::convert) children: Vec<Node>,
}

impl Element {
    /// Returns an attribute, or an empty string.
    pub(in crate::convert) fn attribute(&self, name: &str) -> &str {
        find(&self.attributes, name)
    }

    pub(in crate::convert) fn has(&self, name: &str) -> bool {
        self.attributes.iter().any(|(known, _)| known == name)
    }

    pub(in crate::convert) fn elements(&self) -> impl Iterator<Item = &Element> {
        self.children.iter().filter_map(|node| match node {
            Node::Element(element) => Some(element),
            Node::Text(_) => None,
        })
    }

    /// Returns the first child with this name.
    pub(in crate::convert) fn child(&self, name: &str) -> Option<&Element> {
        self.elements().find(|element| element.name == name)
    }

    /// Returns all text inside, unchanged.
    pub(in crate::convert) fn text(&self) -> String {
        let mut text = String::new();
        push_text(self, &mut text);
        text
    }
}

fn push_text(element: &Element, out: &mut String) {
    for node in &element.children {
        match node {
            Node::Text(text) => out.push_str(text),
            Node::Element(element) if element.name == "br" => out.push('\n'),
            Node::Element(element) => push_text(element, out),
        }
    }
}

pub(in crate::convert) fn parse(text: &str) -> Vec<Node> {
    let mut tree = TreeBuilder::default();
    for token in tokens(text) {
        match token {
            MarkupToken::Text(text) => tree.push(Node::Text(text)),
            MarkupToken::Open(tag) => tree.start(tag),
            MarkupToken::Close(name) => tree.end(&name),
        }
    }
    while !tree.names.is_empty() {
        tree.pop();
    }
    tree.root.children
}

#[derive(Default)]
struct TreeBuilder {
    root: Element,
    /// Open elements, innermost last.
    open: Vec<Element>,
    /// Names of all open elements, including those beyond the depth limit.
    names: Vec<String>,
    /// Number of open elements per name, so that a stray end tag costs nothing.
    counts: HashMap<String, usize>,
}

impl TreeBuilder {
    fn push(&mut self, node: Node) {
        self.open.last_mut().unwrap_or(&mut self.root).children.push(node);
    }

    fn start(&mut self, tag: Tag) {
        while self.names.last().is_some_and(|open| ends_before(open, &tag.name)) {
            self.pop();
        }
        let Tag { name, attributes, is_closed } = tag;
        let element = Element { name, attributes, children: Vec::new() };
        if is_closed || is_void(&element.name) {
            return self.push(Node::Element(element));
        }
        *self.counts.entry(element.name.clone()).or_default() += 1;
        self.names.push(element.name.clone());
        if self.names.len() <= DEPTH_MAX {
            self.open.push(element);
        }
    }

    fn end(&mut self, name: &str) {
        if self.counts.get(name).is_none_or(|count| *count == 0) {
            return;
        }
        while self.names.last().is_some_and(|last| last != name) {
            self.pop();
        }
        self.pop();
    }

    fn pop(&mut self) {
        let is_there = self.names.len() <= DEPTH_MAX;
        let Some(name) = self.names.pop() else { return };
        if let Some(count) = self.counts.get_mut(&name) {
            *count -= 1;
        }
        if is_there && let Some(element) = self.open.pop() {
            self.push(Node::Element(element));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn show(nodes: &[Node]) -> String {
        let show_node = |node: &Node| match node {
            Node::Text(text) => text.clone(),
            Node::Element(element) => format!("{}({})", element.name, show(&element.children)),
        };
        nodes.iter().map(show_node).collect()
    }

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(show(&parse(text)), expected);
    }

    #[test]
    fn ends_are_found_where_nobody_wrote_them() {
        check("<p>a<p>b<div>c</div>", "p(a)p(b)div(c)");
        check("<ul><li>a<li>b<ul><li>c</ul><li>d</ul>", "ul(li(a)li(bul(li(c)))li(d))");
        check("<table><tr><td>a<td>b<tr><th>c</table>", "table(tr(td(a)td(b))tr(th(c)))");
        check("<b>a", "b(a)");
    }

    #[test]
    fn ends_that_end_nothing_are_passed_over() {
        check("a</p></b>c</div>", "ac");
        check("<i>a</b>c</i>d", "i(ac)d");
        check("<p><b>a</p>c</b>", "p(b(a))c");
    }

    #[test]
    fn what_is_too_deep_is_flat_and_what_follows_is_where_it_belongs() {
        let deep = 100_000;
        let text = format!("{}日本{}<b>after</b>", "<div>".repeat(deep), "</div>".repeat(deep));
        let nodes = parse(&text);
        assert_eq!(nodes.len(), 2);
        let Node::Element(first) = &nodes[0] else { panic!("an element") };
        assert_eq!(first.text(), "日本");
        assert_eq!(show(&nodes[1..]), "b(after)");
        let stray = format!("{}{}x", "<i>".repeat(deep), "</b>".repeat(deep));
        let Node::Element(first) = &parse(&stray)[0] else { panic!("an element") };
        assert_eq!(first.text(), "x");
    }
}
