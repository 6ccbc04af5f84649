//! Reads ADF nodes into blocks.

use serde_json::Value;

use super::super::markdown::{Callout, DEPTH_MAX, DocumentBlock, Inline, InlineStyle, Item, Marks};
use super::{inline, rows};

pub(super) fn document(document: &Value) -> Vec<DocumentBlock> {
    match document {
        Value::Array(nodes) => blocks(nodes, 0),
        Value::Object(node) if kind(document) == "doc" || !node.contains_key("type") => blocks(content(document), 0),
        Value::Object(_) => blocks(std::slice::from_ref(document), 0),
        _ => Vec::new(),
    }
}

pub(super) fn kind(node: &Value) -> &str {
    node["type"].as_str().unwrap_or_default()
}

pub(super) fn content(node: &Value) -> &[Value] {
    node["content"].as_array().map(Vec::as_slice).unwrap_or_default()
}

/// Returns a string attribute, or an empty string.
pub(super) fn attribute<'a>(node: &'a Value, name: &str) -> &'a str {
    node["attrs"][name].as_str().unwrap_or_default()
}

/// Reads block nodes. Inline nodes between them become paragraphs.
pub(super) fn blocks(nodes: &[Value], depth: usize) -> Vec<DocumentBlock> {
    let mut found = Vec::new();
    let mut line = Vec::new();
    for node in nodes {
        if inline::is_inline(node) {
            inline::push(node, depth, &mut line);
            continue;
        }
        flush(&mut line, &mut found);
        block(node, depth, &mut found);
    }
    flush(&mut line, &mut found);
    found
}

fn flush(line: &mut Vec<Inline>, found: &mut Vec<DocumentBlock>) {
    if !line.is_empty() {
        found.push(DocumentBlock::Paragraph(std::mem::take(line)));
    }
}

fn block(node: &Value, depth: usize, found: &mut Vec<DocumentBlock>) {
    if depth >= DEPTH_MAX {
        found.extend(Some(texts(node)).filter(|text| !text.is_empty()).map(DocumentBlock::words));
        return;
    }
    let inner = || blocks(content(node), depth + 1);
    let line = || inline::line(content(node), depth + 1);
    match kind(node) {
        "paragraph" => found.push(DocumentBlock::Paragraph(line())),
        "heading" => found.push(DocumentBlock::Heading { level: level(node), text: line() }),
        "codeBlock" => {
            let language = attribute(node, "language").to_owned();
            found.push(DocumentBlock::Code { language, text: code(node) });
        }
        "rule" => found.push(DocumentBlock::Rule),
        "blockquote" => found.push(DocumentBlock::Quote(inner())),
        "panel" => found.push(panel(node, inner())),
        "expand" | "nestedExpand" => {
            let summary = vec![Inline::text(attribute(node, "title"), &InlineStyle::default())];
            found.push(DocumentBlock::Details { summary, blocks: inner() });
        }
        "bulletList" | "taskList" | "decisionList" => list(node, None, depth, found),
        "orderedList" => list(node, Some(order(node)), depth, found),
        "table" => found.push(rows::table(node, depth)),
        "mediaSingle" | "mediaGroup" => media(node, depth, found),
        "blockCard" | "embedCard" => found.push(DocumentBlock::Paragraph(vec![inline::card(node)])),
        // Layout nodes: only their content matters.
        "layoutSection" | "layoutColumn" | "bodiedSyncBlock" | "doc" | "caption" => {
            found.extend(blocks(content(node), depth + 1));
        }
        _ => unknown(node, depth, found),
    }
}

/// Reads editor extensions and unknown nodes.
fn unknown(node: &Value, depth: usize, found: &mut Vec<DocumentBlock>) {
    found.push(DocumentBlock::words(inline::placeholder(node)));
    if let Some(text) = node["text"].as_str() {
        found.push(DocumentBlock::words(text));
    }
    found.extend(blocks(content(node), depth + 1));
}

fn level(node: &Value) -> u8 {
    let level = node["attrs"]["level"].as_u64().unwrap_or(1);
    u8::try_from(level.clamp(1, 6)).unwrap_or(1)
}

/// Returns the number of the first item, which some write as `1.0`.
fn order(node: &Value) -> u64 {
    let order = &node["attrs"]["order"];
    order.as_u64().or_else(|| format!("{:.0}", order.as_f64()?).parse().ok()).unwrap_or(1)
}

/// Returns the text of a code block, where line breaks may be separate nodes.
fn code(node: &Value) -> String {
    let mut text = String::new();
    for child in content(node) {
        match child["text"].as_str() {
            Some(words) => text.push_str(words),
            None if kind(child) == "hardBreak" => text.push('\n'),
            None => text.push_str(&texts(child)),
        }
    }
    text
}

fn panel(node: &Value, mut blocks: Vec<DocumentBlock>) -> DocumentBlock {
    let kind = match attribute(node, "panelType") {
        "tip" | "success" => Callout::Tip,
        "note" => Callout::Important,
        "warning" => Callout::Warning,
        "error" => Callout::Caution,
        _ => Callout::Note,
    };
    let icon = attribute(node, "panelIconText");
    if !icon.is_empty() {
        let icon = Inline::text(format!("{icon} "), &InlineStyle::default());
        match blocks.first_mut() {
            Some(DocumentBlock::Paragraph(text)) => text.insert(0, icon),
            _ => blocks.insert(0, DocumentBlock::Paragraph(vec![icon])),
        }
    }
    DocumentBlock::Callout { kind, blocks }
}

fn list(node: &Value, start: Option<u64>, depth: usize, found: &mut Vec<DocumentBlock>) {
    let mut items: Vec<Item> = Vec::new();
    for child in content(node) {
        match kind(child) {
            "listItem" => items.push(Item { checked: None, blocks: blocks(content(child), depth + 1) }),
            "taskItem" | "blockTaskItem" => {
                let checked = Some(attribute(child, "state") == "DONE");
                items.push(Item { checked, blocks: blocks(content(child), depth + 1) });
            }
            "decisionItem" => {
                let strong = InlineStyle::default().marked(Marks::STRONG);
                let mut line = vec![Inline::text("Decision:", &strong), Inline::text(" ", &InlineStyle::default())];
                line.extend(inline::line(content(child), depth + 1));
                items.push(Item { checked: None, blocks: vec![DocumentBlock::Paragraph(line)] });
            }
            // A task list directly inside a task list belongs to the previous task.
            _ => {
                let inner = blocks(std::slice::from_ref(child), depth + 1);
                match items.last_mut() {
                    Some(last) => last.blocks.extend(inner),
                    None => items.push(Item { checked: None, blocks: inner }),
                }
            }
        }
    }
    found.push(DocumentBlock::List { start, items });
}

fn media(node: &Value, depth: usize, found: &mut Vec<DocumentBlock>) {
    for child in content(node) {
        match kind(child) {
            "media" => {
                let mut line = Vec::new();
                inline::push(child, depth, &mut line);
                found.push(DocumentBlock::Paragraph(line));
            }
            _ => block(child, depth + 1, found),
        }
    }
}

/// Returns all text in a node at any depth.
pub(super) fn texts(node: &Value) -> String {
    let mut words: Vec<&str> = Vec::new();
    let mut open = vec![node];
    while let Some(node) = open.pop() {
        let attributes = ["text", "title", "shortName", "alt", "url"].map(|name| attribute(node, name));
        words.extend(node["text"].as_str());
        words.extend(attributes.into_iter().filter(|text| !text.is_empty()));
        open.extend(content(node).iter().rev());
    }
    words.join(" ")
}
