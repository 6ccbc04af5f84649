//! Generators of documents as services return them, each with the words that must be preserved.

use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::super::generate::text;

/// Generates text with single blanks, which every format preserves.
fn words() -> impl Strategy<Value = String> {
    text()
        .prop_map(|text| text.split_whitespace().collect::<Vec<_>>().join(" "))
        .prop_filter("words", |text| !text.is_empty())
}

fn rich_text() -> impl Strategy<Value = (Value, Vec<String>)> {
    let piece = (words(), any::<[bool; 5]>(), prop::option::weighted(0.2, Just("https://example.com/a_b")));
    vec(piece, 1..4).prop_map(|pieces| {
        let value = |(text, [bold, italic, code, strikethrough, underline], link): &(String, [bool; 5], Option<&str>)| {
            let annotations = json!({ "bold": bold, "italic": italic, "code": code, "strikethrough": strikethrough, "underline": underline, "color": "red" });
            json!({ "type": "text", "plain_text": text, "text": { "content": text }, "href": link, "annotations": annotations })
        };
        (pieces.iter().map(value).collect(), pieces.iter().map(|(text, ..)| text.clone()).collect())
    })
}

/// Block types and their members with rich text.
const BLOCKS: &[(&str, &str)] = &[
    ("paragraph", "rich_text"),
    ("heading_1", "rich_text"),
    ("heading_4", "rich_text"),
    ("bulleted_list_item", "rich_text"),
    ("numbered_list_item", "rich_text"),
    ("to_do", "rich_text"),
    ("toggle", "rich_text"),
    ("template", "rich_text"),
    ("quote", "rich_text"),
    ("callout", "rich_text"),
    ("code", "rich_text"),
    ("code", "caption"),
    ("image", "caption"),
    ("video", "caption"),
    ("bookmark", "caption"),
    ("embed", "caption"),
    ("meeting_notes", "title"),
    ("synced_block", "x"),
    ("column_list", "x"),
    ("column", "x"),
    ("tab", "x"),
    ("unheard_of", "rich_text"),
];

pub(super) fn blocks() -> impl Strategy<Value = (Value, Vec<String>)> {
    let leaf = (prop::sample::select(BLOCKS), rich_text()).prop_map(|((kind, member), (text, words))| {
        let words = if member == "x" { Vec::new() } else { words };
        (json!({ "object": "block", "id": "1-2", "type": kind, kind: { member: text } }), words)
    });
    let row = vec(rich_text(), 1..4).prop_map(|cells| {
        let (cells, words): (Vec<Value>, Vec<Vec<String>>) = cells.into_iter().unzip();
        (json!({ "type": "table_row", "table_row": { "cells": cells } }), words.concat())
    });
    let table = (any::<bool>(), vec(row, 1..4)).prop_map(|(head, rows)| {
        let (rows, words): (Vec<Value>, Vec<Vec<String>>) = rows.into_iter().unzip();
        (json!({ "type": "table", "table": { "has_column_header": head }, "children": rows }), words.concat())
    });
    let block = prop_oneof![5 => leaf, 1 => table].prop_recursive(4, 24, 4, |inner| {
        (inner.clone(), vec(inner, 1..4)).prop_map(|((mut block, mut words), children)| {
            if block["type"] == "table" || block["children"].is_array() {
                return (block, words);
            }
            let (children, more): (Vec<Value>, Vec<Vec<String>>) = children.into_iter().unzip();
            block["children"] = Value::Array(children);
            words.extend(more.concat());
            (block, words)
        })
    });
    vec(block, 1..4).prop_map(|blocks| {
        let (blocks, words): (Vec<Value>, Vec<Vec<String>>) = blocks.into_iter().unzip();
        (Value::Array(blocks), words.concat())
    })
}

fn inline_node() -> impl Strategy<Value = (Value, Vec<String>)> {
    let marks =
        vec(prop::sample::select(vec!["strong", "em", "strike", "underline", "code", "textColor", "unheardOf"]), 0..3);
    let text = (words(), marks).prop_map(|(text, marks)| {
        let marks: Vec<Value> = marks.iter().map(|mark| json!({ "type": mark })).collect();
        (json!({ "type": "text", "text": text, "marks": marks }), vec![text])
    });
    let names = vec!["mention", "status", "placeholder", "emoji", "inlineExtension", "unheardOf"];
    let small = (prop::sample::select(names), words())
        .prop_map(|(kind, text)| (json!({ "type": kind, "attrs": { "text": text, "id": "7" } }), vec![text]));
    let media = words().prop_map(|alt| {
        (json!({ "type": "mediaInline", "attrs": { "alt": alt, "id": "7", "collection": "c" } }), vec![alt])
    });
    let card = Just((
        json!({ "type": "inlineCard", "attrs": { "url": "https://example.com/x_y" } }),
        vec!["https://example.com/x_y".to_owned()],
    ));
    prop_oneof![6 => text, 2 => small, 1 => media, 1 => card, 1 => Just((json!({ "type": "hardBreak" }), Vec::new()))]
}

fn inline_nodes() -> impl Strategy<Value = (Vec<Value>, Vec<String>)> {
    vec(inline_node(), 1..4).prop_map(|nodes| {
        let (nodes, words): (Vec<Value>, Vec<Vec<String>>) = nodes.into_iter().unzip();
        (nodes, words.concat())
    })
}

pub(super) fn document() -> impl Strategy<Value = (Value, Vec<String>)> {
    let lines = vec!["paragraph", "heading", "taskItem", "decisionItem", "caption", "unheardOf"];
    let leaf = (prop::sample::select(lines), inline_nodes())
        .prop_map(|(kind, (nodes, words))| (json!({ "type": kind, "attrs": { "level": 2 }, "content": nodes }), words));
    let code = words()
        .prop_map(|text| (json!({ "type": "codeBlock", "content": [{ "type": "text", "text": text }] }), vec![text]));
    let block = prop_oneof![5 => leaf, 1 => code].prop_recursive(5, 32, 4, |inner| {
        let holders = vec![
            "blockquote",
            "panel",
            "expand",
            "nestedExpand",
            "layoutSection",
            "layoutColumn",
            "bulletList",
            "orderedList",
            "taskList",
            "listItem",
            "decisionList",
            "table",
            "tableRow",
            "tableCell",
            "tableHeader",
            "bodiedExtension",
            "bodiedSyncBlock",
            "mediaSingle",
            "unheardOf",
        ];
        (prop::sample::select(holders), words(), vec(inner, 0..4)).prop_map(|(kind, title, children)| {
            let (children, words): (Vec<Value>, Vec<Vec<String>>) = children.into_iter().unzip();
            let mut words = words.concat();
            if matches!(kind, "expand" | "nestedExpand") {
                words.push(title.clone());
            }
            (json!({ "type": kind, "attrs": { "title": title }, "content": children }), words)
        })
    });
    vec(block, 1..4).prop_map(|blocks| {
        let (blocks, words): (Vec<Value>, Vec<Vec<String>>) = blocks.into_iter().unzip();
        (json!({ "version": 1, "type": "doc", "content": blocks }), words.concat())
    })
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

const TAGS: &[&str] = &[
    "p",
    "div",
    "span",
    "b",
    "i",
    "u",
    "s",
    "code",
    "sub",
    "a",
    "ul",
    "ol",
    "li",
    "blockquote",
    "h1",
    "h6",
    "pre",
    "table",
    "tr",
    "td",
    "th",
    "tbody",
    "details",
    "summary",
    "dl",
    "dt",
    "dd",
    "q",
    "font",
    "unheard-of",
    "ac:layout",
    "ac:layout-cell",
    "ac:rich-text-body",
    "ac:link-body",
    "ac:unheard-of",
];

/// Generates well-formed markup with arbitrary nesting.
pub(super) fn markup() -> impl Strategy<Value = (String, Vec<String>)> {
    let leaf = words().prop_map(|text| (escape(&text), vec![text]));
    let code = words().prop_map(|text| {
        let body = format!("<ac:plain-text-body><![CDATA[{}]]></ac:plain-text-body>", text.replace("]]>", ""));
        (format!("<ac:structured-macro ac:name=\"code\">{body}</ac:structured-macro>"), vec![text.replace("]]>", "")])
    });
    let node = prop_oneof![6 => leaf, 1 => code].prop_recursive(5, 32, 4, |inner| {
        let macros = prop::sample::select(vec!["info", "expand", "panel", "excerpt", "unheard-of", "tip"]);
        let plain = (prop::sample::select(TAGS), vec(inner.clone(), 0..4)).prop_map(|(tag, children)| {
            let (children, words): (Vec<String>, Vec<Vec<String>>) = children.into_iter().unzip();
            (format!("<{tag}>{}</{tag}>", children.join(" ")), words.concat())
        });
        let with_body = (macros, words(), vec(inner, 0..4)).prop_map(|(name, title, children)| {
            let (children, words): (Vec<String>, Vec<Vec<String>>) = children.into_iter().unzip();
            let title_tag = format!("<ac:parameter ac:name=\"title\">{}</ac:parameter>", escape(&title));
            let body = format!("<ac:rich-text-body>{}</ac:rich-text-body>", children.join(" "));
            let mut words = words.concat();
            words.push(title);
            (format!("<ac:structured-macro ac:name=\"{name}\">{title_tag}{body}</ac:structured-macro>"), words)
        });
        prop_oneof![5 => plain, 1 => with_body]
    });
    vec(node, 1..4).prop_map(|nodes| {
        let (nodes, words): (Vec<String>, Vec<Vec<String>>) = nodes.into_iter().unzip();
        (nodes.join(" "), words.concat())
    })
}
