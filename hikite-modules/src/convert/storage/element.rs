//! Elements specific to Confluence, except macros and links.

use super::super::html::MarkupWalker;
use super::super::markdown::{DocumentBlock, Inline, InlineKind, InlineStyle, Item};
use super::super::markup::{Element, Node};
use super::{link, macros};

pub(in crate::convert) fn element(walk: &mut MarkupWalker, element: &Element, style: &InlineStyle) {
    match element.name.as_str() {
        "ac:structured-macro" | "ac:macro" => macros::element(walk, element, style),
        "ac:link" => link::element(walk, element, style),
        "ac:image" => image(walk, element, style),
        "ac:emoticon" => walk.text(&emoticon(element), style),
        "ac:task-list" => tasks(walk, element, style),
        "ac:layout" | "ac:layout-section" | "ac:layout-cell" | "ac:rich-text-body" | "ac:adf-content" => {
            walk.section(element, style);
        }
        "ac:adf-extension" => extension(walk, element, style),
        // Settings of the surrounding element.
        "ac:parameter" | "ac:task-id" | "ac:task-uuid" | "ac:adf-attribute" => {}
        "ri:user" | "ri:page" | "ri:blog-post" | "ri:attachment" | "ri:url" | "ri:space" | "ri:content-entity" => {
            link::resource(walk, element, style);
        }
        _ => walk.nodes(&element.children, style),
    }
}

fn image(walk: &mut MarkupWalker, element: &Element, style: &InlineStyle) {
    let url = element.elements().find_map(link::address).unwrap_or_default();
    let alt = [element.attribute("ac:alt"), element.attribute("ac:title")];
    let alt = alt.into_iter().find(|alt| !alt.is_empty()).unwrap_or_default().to_owned();
    walk.inline(Inline::new(InlineKind::Image { alt, url }, style));
    if let Some(caption) = element.child("ac:caption") {
        walk.section(caption, style);
    }
}

/// Returns the emoji, or its name between colons.
fn emoticon(element: &Element) -> String {
    let fallback = element.attribute("ac:emoji-fallback");
    let short = element.attribute("ac:emoji-shortname");
    match (fallback, short) {
        ("", "") => format!(":{}:", element.attribute("ac:name")),
        ("", short) => short.to_owned(),
        (fallback, _) => fallback.to_owned(),
    }
}

fn tasks(walk: &mut MarkupWalker, element: &Element, style: &InlineStyle) {
    if walk.is_too_deep() {
        return walk.section(element, style);
    }
    let mut items: Vec<Item> = Vec::new();
    for node in &element.children {
        match node {
            Node::Element(child) if child.name == "ac:task" => items.push(task(walk, child, style)),
            Node::Text(text) if text.trim().is_empty() => {}
            // A task list directly inside a task list belongs to the previous task.
            other => {
                let blocks = walk.inside(std::slice::from_ref(other), style);
                match items.last_mut() {
                    Some(last) => last.blocks.extend(blocks),
                    None => items.push(Item { checked: None, blocks }),
                }
            }
        }
    }
    if !items.is_empty() {
        walk.push(DocumentBlock::List { start: None, items });
    }
}

fn task(walk: &MarkupWalker, element: &Element, style: &InlineStyle) -> Item {
    let is_done = element.child("ac:task-status").is_some_and(|status| status.text().trim() == "complete");
    let body = element.child("ac:task-body");
    let blocks = body.map(|body| walk.inside(&body.children, style)).unwrap_or_default();
    Item { checked: Some(is_done), blocks }
}

/// Reads an extension of the newer editor: its fallback for older editors, if it has one.
fn extension(walk: &mut MarkupWalker, element: &Element, style: &InlineStyle) {
    match element.child("ac:adf-fallback") {
        Some(fallback) => walk.section(fallback, style),
        None => walk.section(element, style),
    }
}

/// Returns `true` if the nodes contain any text or image.
pub(super) fn has_content(nodes: &[Node]) -> bool {
    nodes.iter().any(|node| match node {
        Node::Text(text) => !text.trim().is_empty(),
        Node::Element(element) => {
            matches!(element.name.as_str(), "img" | "ac:image" | "ac:emoticon") || has_content(&element.children)
        }
    })
}
