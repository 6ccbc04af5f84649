//! Inline nodes: text with marks, and the small nodes between. Users become links to `user:ID` and files images at
//! `media:ID/COLLECTION`, both of which convert back.

use serde_json::Value;

use super::super::markdown::{DEPTH_MAX, Inline, InlineKind, InlineStyle, Marks};
use super::date;
use super::read::{attribute, blocks, content, kind, texts};

pub(super) fn is_inline(node: &Value) -> bool {
    matches!(
        kind(node),
        "text"
            | "hardBreak"
            | "mention"
            | "emoji"
            | "date"
            | "status"
            | "inlineCard"
            | "placeholder"
            | "inlineExtension"
            | "mediaInline"
            | "media"
    )
}

pub(super) fn line(nodes: &[Value], depth: usize) -> Vec<Inline> {
    let mut line = Vec::new();
    for node in nodes {
        push(node, depth, &mut line);
    }
    line
}

pub(super) fn push(node: &Value, depth: usize, line: &mut Vec<Inline>) {
    let plain = InlineStyle::default();
    match kind(node) {
        "text" => line.push(Inline::text(node["text"].as_str().unwrap_or_default(), &style(node))),
        "hardBreak" => line.push(Inline::line_break()),
        "mention" => line.push(mention(node)),
        "emoji" => {
            let names = [attribute(node, "text"), attribute(node, "shortName")];
            let name = names.into_iter().find(|name| !name.is_empty()).unwrap_or_default();
            line.push(Inline::text(name, &plain));
        }
        "date" => line.push(Inline::text(date::day(attribute(node, "timestamp")), &plain)),
        "status" => line.push(Inline::text(attribute(node, "text"), &plain.marked(Marks::CODE))),
        "inlineCard" => line.push(card(node)),
        "placeholder" => line.push(Inline::text(attribute(node, "text"), &plain)),
        "media" | "mediaInline" => line.push(media(node)),
        _ => unknown(node, depth, line),
    }
}

/// Returns a placeholder for an unknown node: its type and its identifying attributes.
pub(super) fn placeholder(node: &Value) -> String {
    let names = ["extensionKey", "text", "title", "id", "resourceId", "localId", "url"];
    let said = names.iter().map(|name| attribute(node, name)).filter(|value| !value.is_empty());
    let said: Vec<&str> = std::iter::once(kind(node)).chain(said).filter(|said| !said.is_empty()).collect();
    format!("[{}]", said.join(" "))
}

/// Converts a smart link.
pub(super) fn card(node: &Value) -> Inline {
    let data = &node["attrs"]["data"];
    let url = [attribute(node, "url"), data["url"].as_str().unwrap_or_default()];
    let url = url.into_iter().find(|url| !url.is_empty()).unwrap_or_default();
    match data["name"].as_str().unwrap_or(url) {
        "" => Inline::text(placeholder(node), &InlineStyle::default()),
        name => Inline::link(name, url),
    }
}

fn unknown(node: &Value, depth: usize, line: &mut Vec<Inline>) {
    let plain = InlineStyle::default();
    if depth >= DEPTH_MAX {
        return line.push(Inline::text(texts(node), &plain));
    }
    let text = node["text"].as_str().unwrap_or_default();
    line.push(Inline::text(format!("{} {text}", placeholder(node)).trim_end(), &plain));
    for block in blocks(content(node), depth + 1) {
        line.push(Inline::text(" ", &plain));
        line.extend(super::super::markdown::flatten(&[block]));
    }
}

fn mention(node: &Value) -> Inline {
    let id = attribute(node, "id");
    let text = attribute(node, "text").trim_start_matches('@');
    let text = format!("@{}", if text.is_empty() { id } else { text });
    let url = if id.is_empty() { String::new() } else { format!("user:{id}") };
    Inline::link(text, &url)
}

fn media(node: &Value) -> Inline {
    let alt = attribute(node, "alt").to_owned();
    let url = match (attribute(node, "url"), attribute(node, "id")) {
        ("", id) => format!("media:{id}/{}", attribute(node, "collection")),
        (url, _) => url.to_owned(),
    };
    Inline::new(InlineKind::Image { alt, url }, &style(node))
}

fn style(node: &Value) -> InlineStyle {
    let marks = node["marks"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut style = InlineStyle::default();
    for mark in marks {
        style = match kind(mark) {
            "strong" => style.marked(Marks::STRONG),
            "em" => style.marked(Marks::EMPHASIS),
            "strike" => style.marked(Marks::STRIKE),
            "underline" => style.marked(Marks::UNDERLINE),
            "code" => style.marked(Marks::CODE),
            "subsup" if attribute(mark, "type") == "sub" => style.marked(Marks::SUBSCRIPT),
            "subsup" => style.marked(Marks::SUPERSCRIPT),
            "link" => style.to(attribute(mark, "href")),
            // Colours, sizes, comments and alignment.
            _ => style,
        };
    }
    style
}
