//! Writes blocks as Notion blocks within the limits of one request. Content that is nested too deeply follows its
//! parent, and content that is too long continues in another block: no text is dropped.

mod pieces;

use serde_json::{Value, json};

use super::super::markdown::{
    Callout, Cell, DocumentBlock, Inline, InlineKind, InlineStyle, Item, normalize, plain, row_line,
};
use super::{emoji, language};
use pieces::{PIECES_MAX, pieces};

/// Maximum nesting levels below a block.
const LEVEL_MAX: usize = 2;
/// Maximum number of children of a block.
const CHILDREN_MAX: usize = 100;

pub(super) fn blocks(tree: &[DocumentBlock]) -> Vec<Value> {
    level(tree, 0)
}

fn level(tree: &[DocumentBlock], depth: usize) -> Vec<Value> {
    split_at_images(tree).iter().flat_map(|block| write(block, depth)).collect()
}

/// Splits paragraphs at images, which are blocks in Notion.
fn split_at_images(tree: &[DocumentBlock]) -> Vec<DocumentBlock> {
    let mut blocks = Vec::with_capacity(tree.len());
    for block in tree {
        let DocumentBlock::Paragraph(text) = block else {
            blocks.push(block.clone());
            continue;
        };
        for group in text.chunk_by(|a, b| image(a).is_none() && image(b).is_none()) {
            let line = normalize(group.to_vec());
            if !line.is_empty() {
                blocks.push(DocumentBlock::Paragraph(line));
            }
        }
    }
    blocks
}

/// Returns alternative text and URL of an image that Notion can fetch.
fn image(piece: &Inline) -> Option<(&str, &str)> {
    match &piece.kind {
        InlineKind::Image { alt, url } if pieces::is_web(url) => Some((alt, url)),
        _ => None,
    }
}

fn write(block: &DocumentBlock, depth: usize) -> Vec<Value> {
    match block {
        DocumentBlock::Paragraph(text) => paragraph(text),
        DocumentBlock::Heading { level, text } => {
            let kind = format!("heading_{}", level.clamp(&1, &4));
            write_long_text(&kind, json!({}), text)
        }
        DocumentBlock::Code { language, text } => code(language::known(language), text),
        DocumentBlock::Equation(text) if text.chars().count() > pieces::EXPRESSION_MAX => code("latex", text),
        DocumentBlock::Equation(text) => vec![new_block("equation", json!({ "expression": text }))],
        DocumentBlock::Quote(blocks) => write_with_children("quote", json!({}), &[], blocks, depth),
        DocumentBlock::Callout { kind, blocks } => callout(*kind, blocks, depth),
        DocumentBlock::Details { summary, blocks } => write_titled("toggle", json!({}), summary, blocks, depth),
        DocumentBlock::List { start, items } => items.iter().flat_map(|entry| item(*start, entry, depth)).collect(),
        DocumentBlock::Table { head, rows } if depth < LEVEL_MAX => table(head, rows),
        DocumentBlock::Table { head, rows } => {
            let rows = std::iter::once(head).chain(rows).map(|row| row_line(row));
            rows.filter(|row| !row.is_empty()).flat_map(|row| paragraph(&row)).collect()
        }
        DocumentBlock::Rule => vec![new_block("divider", json!({}))],
    }
}

fn new_block(kind: &str, body: Value) -> Value {
    let members = [("object", "block".into()), ("type", kind.into()), (kind, body)];
    Value::Object(members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}

fn paragraph(text: &[Inline]) -> Vec<Value> {
    if let [only] = text {
        if let Some((alt, url)) = image(only) {
            let caption = pieces(&normalize(vec![Inline::text(alt, &only.style)]));
            return vec![new_block(
                "image",
                json!({ "type": "external", "external": { "url": url }, "caption": caption }),
            )];
        }
        match &only.kind {
            InlineKind::Text(text) if text == "[TOC]" => {
                return vec![new_block("table_of_contents", json!({}))];
            }
            InlineKind::Text(text) if text == "[breadcrumb]" => {
                return vec![new_block("breadcrumb", json!({}))];
            }
            _ => {}
        }
    }
    write_long_text("paragraph", json!({}), text)
}

/// Writes a block, and paragraphs for the text beyond its limit.
fn write_long_text(kind: &str, mut body: Value, text: &[Inline]) -> Vec<Value> {
    let (first, rest) = split(text);
    body["rich_text"] = Value::Array(first);
    std::iter::once(new_block(kind, body)).chain(rest).collect()
}

/// Splits rich text at the limit of one block; the rest becomes paragraphs.
fn split(text: &[Inline]) -> (Vec<Value>, Vec<Value>) {
    let mut all = pieces(text).into_iter();
    let first: Vec<Value> = all.by_ref().take(PIECES_MAX).collect();
    let rest: Vec<Value> = all.collect();
    let rest = rest.chunks(PIECES_MAX).map(|more| new_block("paragraph", json!({ "rich_text": more })));
    (first, rest.collect())
}

/// Writes a block with text and children. Its first paragraph is the text.
fn write_with_children(
    kind: &str,
    body: Value,
    lead: &[DocumentBlock],
    blocks: &[DocumentBlock],
    depth: usize,
) -> Vec<Value> {
    let blocks: Vec<DocumentBlock> = split_at_images(&[lead, blocks].concat());
    match blocks.split_first() {
        Some((DocumentBlock::Paragraph(text), rest)) if !matches!(text.as_slice(), [only] if image(only).is_some()) => {
            write_titled(kind, body, text, rest, depth)
        }
        _ => write_titled(kind, body, &[], &blocks, depth),
    }
}

fn write_titled(kind: &str, mut body: Value, text: &[Inline], blocks: &[DocumentBlock], depth: usize) -> Vec<Value> {
    let (first, mut children) = split(text);
    body["rich_text"] = Value::Array(first);
    // At the maximum depth the children follow as siblings.
    if depth >= LEVEL_MAX {
        children.extend(level(blocks, depth));
        return std::iter::once(new_block(kind, body)).chain(children).collect();
    }
    children.extend(level(blocks, depth + 1));
    let rest = children.split_off(children.len().min(CHILDREN_MAX));
    if !children.is_empty() {
        body["children"] = Value::Array(children);
    }
    std::iter::once(new_block(kind, body)).chain(rest).collect()
}

fn item(start: Option<u64>, item: &Item, depth: usize) -> Vec<Value> {
    match (item.checked, start) {
        (Some(checked), _) => write_with_children("to_do", json!({ "checked": checked }), &[], &item.blocks, depth),
        (None, Some(_)) => write_with_children("numbered_list_item", json!({}), &[], &item.blocks, depth),
        (None, None) => write_with_children("bulleted_list_item", json!({}), &[], &item.blocks, depth),
    }
}

/// Writes a callout. A leading emoji becomes its icon, and its kind its colour.
fn callout(kind: Callout, blocks: &[DocumentBlock], depth: usize) -> Vec<Value> {
    let mut body = match kind {
        Callout::Note => json!({}),
        Callout::Tip => json!({ "color": "green_background" }),
        Callout::Important => json!({ "color": "purple_background" }),
        Callout::Warning => json!({ "color": "yellow_background" }),
        Callout::Caution => json!({ "color": "red_background" }),
    };
    let Some((icon, words, text, rest)) = icon(blocks) else {
        return write_with_children("callout", body, &[], blocks, depth);
    };
    body["icon"] = json!({ "type": "emoji", "emoji": icon });
    let mut line = vec![Inline::text(words, &InlineStyle::default())];
    line.extend(text.iter().cloned());
    write_with_children("callout", body, &[DocumentBlock::Paragraph(normalize(line))], rest, depth)
}

/// Returns the leading icon, the text after it, the rest of its line and the remaining blocks.
fn icon(blocks: &[DocumentBlock]) -> Option<(&str, &str, &[Inline], &[DocumentBlock])> {
    let (DocumentBlock::Paragraph(text), rest) = blocks.split_first()? else { return None };
    let (Inline { kind: InlineKind::Text(words), style }, line) = text.split_first()? else { return None };
    let (icon, after) = emoji::split(words).filter(|_| *style == InlineStyle::default())?;
    // An icon is followed by a blank: without one, it is text that begins with an emoji.
    let apart = words.len() > icon.len() || line.is_empty();
    apart.then_some((icon, after, line, rest))
}

/// Writes a code block, continued in further blocks if too long.
fn code(language: &str, text: &str) -> Vec<Value> {
    let all = pieces::texts(text);
    if all.is_empty() {
        return vec![new_block("code", json!({ "rich_text": [], "language": language }))];
    }
    let blocks = all.chunks(PIECES_MAX);
    blocks.map(|texts| new_block("code", json!({ "rich_text": texts, "language": language }))).collect()
}

/// Writes a table, continued in further tables if it has too many rows.
fn table(head: &[Cell], rows: &[Vec<Cell>]) -> Vec<Value> {
    let has_head = rows.is_empty() || head.iter().any(|cell| !plain(cell).is_empty());
    let mut rest = Vec::new();
    let width = head.len().max(1);
    let head = has_head.then_some(head);
    let rows: Vec<Value> =
        head.into_iter().chain(rows.iter().map(Vec::as_slice)).map(|cells| row(cells, width, &mut rest)).collect();
    let tables = rows.chunks(CHILDREN_MAX).enumerate().map(|(index, rows)| {
        let header = has_head && index == 0;
        let body =
            json!({ "table_width": width, "has_column_header": header, "has_row_header": false, "children": rows });
        new_block("table", body)
    });
    tables.chain(rest.clone()).collect()
}

fn row(cells: &[Cell], width: usize, rest: &mut Vec<Value>) -> Value {
    let cells: Vec<Value> = (0..width)
        .map(|index| {
            let (first, more) = split(cells.get(index).map(Vec::as_slice).unwrap_or_default());
            rest.extend(more);
            Value::Array(first)
        })
        .collect();
    new_block("table_row", json!({ "cells": cells }))
}
