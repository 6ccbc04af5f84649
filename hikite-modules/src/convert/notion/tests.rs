//! Tests of every block type, of round trips of recorded blocks, and of the request limits.

use serde_json::{Value, json};

use super::super::markdown::read;
use super::super::tests::{missing, said, texts};
use super::{from_markdown, to_markdown};

fn rich(text: &str) -> Value {
    json!([{ "type": "text", "plain_text": text, "text": { "content": text, "link": null }, "annotations": {} }])
}

/// Builds a block with members beside its text.
fn block(kind: &str, text: &str, mut body: Value) -> Value {
    if !text.is_empty() {
        body["rich_text"] = rich(text);
    }
    json!({ "object": "block", "id": "0a-1b", "type": kind, "has_children": false, kind: body })
}

fn with(mut block: Value, children: Value) -> Value {
    block["children"] = children;
    block
}

#[track_caller]
fn check(blocks: &Value, expected: &str) {
    assert_eq!(to_markdown(blocks), expected);
}

/// Checks both directions.
#[track_caller]
fn check_both(block: &Value, expected: &str) {
    check(block, expected);
    check(&from_markdown(expected), expected);
}

#[test]
fn texts_have_their_signs() {
    check_both(&block("paragraph", "段落です", json!({})), "段落です");
    check_both(&block("heading_1", "一", json!({})), "# 一");
    check_both(&block("heading_4", "四", json!({ "is_toggleable": true })), "#### 四");
    check_both(&block("quote", "引用", json!({})), "> 引用");
    check_both(&block("to_do", "済み", json!({ "checked": true })), "- [x] 済み");
    check_both(&block("equation", "", json!({ "expression": "x^2" })), "$$x^2$$");
    check_both(&block("divider", "", json!({})), "---");
    check_both(&block("table_of_contents", "", json!({})), "[TOC]");
    check_both(&block("breadcrumb", "", json!({})), "[breadcrumb]");
    let inner = json!([block("paragraph", "中身", json!({}))]);
    let toggle = "<details>\n<summary>見出し &lt;b&gt;</summary>\n\n中身\n\n</details>";
    check_both(&with(block("toggle", "見出し <b>", json!({})), inner.clone()), toggle);
    check(&with(block("template", "型", json!({})), inner), "<details>\n<summary>型</summary>\n\n中身\n\n</details>");
}

#[test]
fn lists_are_made_of_items() {
    let bullet = |text: &str| block("bulleted_list_item", text, json!({}));
    let number = |text: &str| block("numbered_list_item", text, json!({}));
    let inner = with(bullet("b"), json!([bullet("c"), block("paragraph", "段落", json!({}))]));
    let list = json!([with(bullet("a"), json!([inner])), block("to_do", "d", json!({})), number("e"), number("f")]);
    check_both(&list, "- a\n  - b\n    - c\n\n    段落\n- [ ] d\n\n1. e\n2. f");
    let answer = json!({ "object": "list", "results": [number("三")], "has_more": false });
    check(&answer, "1. 三");
    let started = block("numbered_list_item", "x", json!({ "list_start_index": 7 }));
    check(&json!([started, number("y")]), "7. x\n8. y");
}

#[test]
fn callouts_have_their_icons_and_kinds() {
    let icon = json!({ "type": "emoji", "emoji": "💡" });
    let inner = json!([block("bulleted_list_item", "項目", json!({}))]);
    check_both(
        &with(block("callout", "考え", json!({ "icon": icon, "color": "gray_background" })), inner),
        "> [!NOTE]\n> 💡 考え\n>\n> - 項目",
    );
    check_both(&block("callout", "注意", json!({ "color": "red_background" })), "> [!CAUTION]\n> 注意");
}

#[test]
fn code_keeps_every_character() {
    let text = "  fn main() {\n\n\t`x` ``` }";
    check_both(&block("code", text, json!({ "language": "rust" })), &format!("````rust\n{text}\n````"));
    check(&block("code", "a", json!({ "language": "plain text", "caption": rich("説明") })), "```\na\n```\n\n説明");
    assert_eq!(from_markdown("```brainfuck\n+\n```")[0]["code"]["language"], "plain text");
    assert_eq!(from_markdown("```ts\n+\n```")[0]["code"]["language"], "typescript");
}

#[test]
fn files_and_links_lead_where_they_led() {
    let external = |kind: &str, more: Value| {
        let mut body =
            json!({ "type": "external", "external": { "url": "https://example.com/a" }, "caption": rich("題") });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        block(kind, "", body)
    };
    check_both(&external("image", json!({})), "![題](https://example.com/a)");
    check_both(&external("video", json!({})), "[video](https://example.com/a) 題");
    check_both(&external("file", json!({ "name": "a.txt" })), "[file a.txt](https://example.com/a) 題");
    let stored =
        json!({ "type": "file", "file": { "url": "https://example.com/b", "expiry_time": "x" }, "caption": [] });
    check_both(&block("pdf", "", stored.clone()), "[pdf](https://example.com/b)");
    check_both(&block("audio", "", stored.clone()), "[audio](https://example.com/b)");
    check_both(&block("image", "", stored), "![](https://example.com/b)");
    let link = json!({ "url": "https://example.com/", "caption": rich("題") });
    check_both(&block("bookmark", "", link.clone()), "<https://example.com/> 題");
    check_both(&block("embed", "", link), "<https://example.com/> 題");
    check_both(&block("link_preview", "", json!({ "url": "https://example.com/" })), "<https://example.com/>");
    let page = json!({ "type": "page_id", "page_id": "1-2" });
    check_both(&block("link_to_page", "", page), "[link_to_page 1-2](https://www.notion.so/12)");
    check_both(&block("child_page", "", json!({ "title": "頁" })), "[📄 頁](https://www.notion.so/0a1b)");
    check_both(&block("child_database", "", json!({ "title": "表" })), "[🗃️ 表](https://www.notion.so/0a1b)");
}

#[test]
fn tables_have_heads_or_none() {
    let row = |a: &str, b: &str| json!({ "type": "table_row", "table_row": { "cells": [rich(a), rich(b)] } });
    let rows = json!([row("名前", "a|b"), row("", "two\nlines")]);
    let table = block("table", "", json!({ "table_width": 2, "has_column_header": true }));
    let expected = "| 名前 | a\\|b |\n| --- | --- |\n|  | two<br>lines |";
    check_both(&with(table, rows.clone()), expected);
    let headless = block("table", "", json!({ "table_width": 2, "has_column_header": false }));
    check_both(&with(headless, rows), "|  |  |\n| --- | --- |\n| 名前 | a\\|b |\n|  | two<br>lines |");
}

#[test]
fn arrangements_are_told_one_after_the_other() {
    let text = |text: &str| block("paragraph", text, json!({}));
    let column = |inner: Value| with(block("column", "", json!({})), json!([inner]));
    let columns = with(block("column_list", "", json!({})), json!([column(text("左")), column(text("右"))]));
    check_both(&columns, "左\n\n右");
    let synced = block("synced_block", "", json!({ "synced_from": { "block_id": "9-9" } }));
    check(&synced, "[synced_block 9-9]");
    check(&with(synced, json!([text("写し")])), "写し");
    check(&with(block("tab", "", json!({})), json!([text("札")])), "札");
    check(&with(text("親"), json!([text("子")])), "親\n\n子");
    check(&with(block("heading_2", "親", json!({ "is_toggleable": true })), json!([text("子")])), "## 親\n\n子");
}

#[test]
fn what_nobody_knows_is_shown() {
    check(&block("unsupported", "", json!({ "block_type": "button" })), "[unsupported button 0a-1b]");
    let new = block("hologram", "文", json!({ "caption": rich("説明") }));
    check(&with(new, json!([block("paragraph", "子", json!({}))])), "[hologram 0a-1b]\n\n文\n\n説明\n\n子");
    let notes = json!({ "title": rich("会議"), "status": "notes_ready" });
    check(&block("meeting_notes", "", notes.clone()), "**会議**\n\n[meeting_notes notes_ready]");
    check(&block("transcription", "", notes), "**会議**\n\n[transcription notes_ready]");
    check(&Value::Null, "");
    check(&json!([]), "");
}

#[test]
fn rich_text_keeps_its_marks_and_what_it_mentions() {
    let piece =
        |text: &str, annotations: Value| json!({ "type": "text", "plain_text": text, "annotations": annotations });
    let mention = |text: &str, mention: Value| json!({ "type": "mention", "plain_text": text, "mention": mention });
    let paragraph = |pieces: Value| json!({ "type": "paragraph", "paragraph": { "rich_text": pieces } });
    let marked = json!([
        piece("太字", json!({ "bold": true })),
        piece("と", json!({})),
        piece("斜体", json!({ "italic": true, "color": "red" })),
        piece("、", json!({})),
        piece("取消", json!({ "strikethrough": true })),
        piece(" ", json!({})),
        piece("下線", json!({ "underline": true })),
        piece(" ", json!({})),
        piece("a`b", json!({ "code": true })),
        piece(" 「全部」", json!({ "bold": true, "italic": true })),
        json!({ "type": "text", "plain_text": "頁", "href": "/0a1b", "annotations": {} }),
    ]);
    check_both(
        &paragraph(marked),
        "**太字**と*斜体*、~~取消~~ <u>下線</u> ``a`b`` ***「全部」***[頁](https://www.notion.so/0a1b)",
    );
    let user = "11111111-2222-3333-4444-555555555555";
    let mentions = json!([
        mention("@山田", json!({ "type": "user", "user": { "id": user } })),
        mention("頁", json!({ "type": "page", "page": { "id": "1-2" } })),
        mention("2026-07-04", json!({ "type": "date", "date": { "start": "2026-07-04" } })),
        mention("", json!({ "type": "date", "date": { "start": "2026-07-04", "end": "2026-07-05" } })),
        mention("https://a.b/", json!({ "type": "link_preview", "link_preview": { "url": "https://a.b/" } })),
        mention("", json!({ "type": "link_mention", "link_mention": { "href": "https://c.d/", "title": "題" } })),
        mention("", json!({ "type": "custom_emoji", "custom_emoji": { "name": "bufo" } })),
        mention("@Today", json!({ "type": "template_mention", "template_mention": {} })),
        json!({ "type": "equation", "plain_text": "x^2", "equation": { "expression": "x^2" } }),
    ]);
    let expected = format!(
        "[@山田](user:{user})[頁](https://www.notion.so/12)2026-07-042026-07-04 → 2026-07-05<https://a.b/>\
         [題](https://c.d/):bufo:@Today$$x^2$$"
    );
    check(&paragraph(mentions), &expected);
    let back = from_markdown(&format!("[@山田](user:{user}) です"));
    let person = json!({ "type": "mention", "mention": { "type": "user", "user": { "id": user } } });
    assert_eq!(back[0]["paragraph"]["rich_text"][0], person);
}

#[test]
fn an_address_that_notion_refuses_is_told_in_the_text() {
    let text = |markdown: &str| said(&to_markdown(&from_markdown(markdown)));
    assert_eq!(text("[題](./a.md) ![図](b.png)"), "題 (./a.md) 図 (b.png)");
    assert_eq!(from_markdown("[題](./a.md)")[0]["paragraph"]["rich_text"][0]["text"]["link"], Value::Null);
}

#[test]
fn recorded_blocks_come_back_as_the_same_markdown() {
    let recorded = include_str!("../../../fixtures/notion/blocks.jsonl");
    let blocks: Vec<Value> = recorded.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(blocks.len(), 83);
    for block in blocks.iter().cloned().chain([Value::Array(blocks.clone())]) {
        let first = to_markdown(&block);
        let second = to_markdown(&from_markdown(&first));
        assert_eq!(second, first, "{block}");
        let mut words = Vec::new();
        plain_texts(&block, &mut words);
        assert!(!words.is_empty() || first.is_empty(), "{block}");
        assert_eq!(missing(&words, &said(&first)), Vec::<String>::new(), "{block}");
    }
}

fn plain_texts(value: &Value, words: &mut Vec<String>) {
    match value {
        Value::Array(values) => values.iter().for_each(|value| plain_texts(value, words)),
        Value::Object(members) => {
            for (name, value) in members {
                match value {
                    Value::String(text) if matches!(name.as_str(), "plain_text" | "title") => {
                        words.push(text.clone());
                    }
                    other => plain_texts(other, words),
                }
            }
        }
        _ => {}
    }
}

/// Measures the text lengths, counted as Notion does, and the largest number of pieces and children of any block.
fn measure(value: &Value, depth: usize, most: &mut (usize, usize, usize, usize)) {
    match value {
        Value::Array(values) => values.iter().for_each(|value| measure(value, depth, most)),
        Value::Object(members) => {
            for (name, value) in members {
                match (name.as_str(), value) {
                    ("content", Value::String(text)) => most.0 = most.0.max(text.encode_utf16().count()),
                    ("rich_text", Value::Array(pieces)) => most.1 = most.1.max(pieces.len()),
                    ("cells", Value::Array(cells)) => {
                        for cell in cells {
                            most.1 = most.1.max(cell.as_array().map_or(0, Vec::len));
                        }
                    }
                    ("children", Value::Array(children)) => {
                        most.2 = most.2.max(children.len());
                        most.3 = most.3.max(depth + 1);
                        measure(value, depth + 1, most);
                        continue;
                    }
                    _ => {}
                }
                measure(value, depth, most);
            }
        }
        _ => {}
    }
}

#[track_caller]
fn check_limits(markdown: &str) {
    let blocks = from_markdown(markdown);
    let mut most = (0, 0, 0, 0);
    measure(&blocks, 0, &mut most);
    assert!(most.0 <= 2000 && most.1 <= 100 && most.2 <= 100 && most.3 <= 2, "{most:?}");
    let words = texts(&read(markdown)).concat();
    let found = texts(&read(&to_markdown(&blocks))).concat();
    let letters = |text: &str| text.chars().filter(|c| c.is_alphanumeric()).count();
    assert_eq!(letters(&found), letters(&words));
}

#[test]
fn a_request_is_within_its_limits() {
    check_limits(&"長い文🎌".repeat(5_000));
    check_limits(&format!("# {}", "*a* b ".repeat(300)));
    check_limits(&format!("- {}\n  - {}", "*a* b ".repeat(300), "*c* d ".repeat(300)));
    check_limits(&format!("```\n{}\n```", "code\n".repeat(60_000)));
    check_limits(&format!("| a |\n| - |\n{}", "| b |\n".repeat(250)));
    check_limits(&format!("| {} |\n| - |", "*a* b ".repeat(300)));
    check_limits(&format!("- 親\n{}", "  - 子\n".repeat(250)));
    let deep: Vec<String> = (0..12).map(|level| format!("{}- 段{level}", "  ".repeat(level))).collect();
    check_limits(&deep.join("\n"));
    check_limits("- a\n  - b\n    - c\n\n      | d | e |\n      |---|---|\n      | f | g |\n\n      > h");
}

#[test]
fn deep_headings_are_the_deepest_there_are() {
    for (markdown, kind) in [("# a", "heading_1"), ("#### a", "heading_4"), ("###### a", "heading_4")] {
        assert_eq!(from_markdown(markdown)[0]["type"], kind);
    }
}
