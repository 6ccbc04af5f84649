//! Tests of ADF to Markdown and back.

use serde_json::{Value, json};

use super::{from_markdown, to_markdown};

fn text(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

fn paragraph(words: &str) -> Value {
    json!({ "type": "paragraph", "content": [text(words)] })
}

fn doc(content: &Value) -> Value {
    json!({ "version": 1, "type": "doc", "content": content })
}

#[track_caller]
fn check(content: &Value, expected: &str) {
    assert_eq!(to_markdown(&doc(content)), expected);
}

/// Checks both directions.
#[track_caller]
fn check_both(content: &Value, expected: &str) {
    check(content, expected);
    assert_eq!(to_markdown(&from_markdown(expected)), expected);
}

#[test]
fn nothing_is_nothing_and_a_text_is_itself() {
    assert_eq!(to_markdown(&Value::Null), "");
    assert_eq!(to_markdown(&doc(&json!([]))), "");
    assert_eq!(to_markdown(&json!("h1. 題")), "h1. 題");
    assert_eq!(from_markdown(""), doc(&json!([])));
}

#[test]
fn blocks_have_their_signs() {
    check_both(&json!([paragraph("段落")]), "段落");
    check_both(&json!([{ "type": "heading", "attrs": { "level": 3 }, "content": [text("題")] }]), "### 題");
    let code = json!({ "type": "codeBlock", "attrs": { "language": "rust" }, "content": [text("a\n  b")] });
    check_both(&json!([code, { "type": "rule" }]), "```rust\na\n  b\n```\n\n---");
    check_both(&json!([{ "type": "blockquote", "content": [paragraph("引用")] }]), "> 引用");
    let panel = |kind: &str| json!([{ "type": "panel", "attrs": { "panelType": kind }, "content": [paragraph("文")] }]);
    check_both(&panel("info"), "> [!NOTE]\n> 文");
    check_both(&panel("note"), "> [!IMPORTANT]\n> 文");
    check_both(&panel("tip"), "> [!TIP]\n> 文");
    check_both(&panel("success"), "> [!TIP]\n> 文");
    check_both(&panel("warning"), "> [!WARNING]\n> 文");
    check_both(&panel("error"), "> [!CAUTION]\n> 文");
    let expand = json!([{ "type": "expand", "attrs": { "title": "題" }, "content": [paragraph("文")] }]);
    check_both(&expand, "<details>\n<summary>題</summary>\n\n文\n\n</details>");
}

#[test]
fn lists_of_all_kinds_are_lists() {
    let item = |content: Value| json!({ "type": "listItem", "content": content });
    let inner = json!({ "type": "orderedList", "attrs": { "order": 3 }, "content": [item(json!([paragraph("b")]))] });
    let list = json!([{ "type": "bulletList", "content": [item(json!([paragraph("a"), inner]))] }]);
    check_both(&list, "- a\n\n  3. b");
    let task = |state: &str, words: &str| json!({ "type": "taskItem", "attrs": { "localId": "x", "state": state }, "content": [text(words)] });
    let tasks = |content: Value| json!({ "type": "taskList", "attrs": { "localId": "x" }, "content": content });
    let list = tasks(json!([task("TODO", "a"), tasks(json!([task("DONE", "b")])), task("TODO", "c")]));
    check_both(&json!([list]), "- [ ] a\n  - [x] b\n- [ ] c");
    let decision =
        json!({ "type": "decisionItem", "attrs": { "localId": "x", "state": "DECIDED" }, "content": [text("決定")] });
    check(
        &json!([{ "type": "decisionList", "attrs": { "localId": "x" }, "content": [decision] }]),
        "- **Decision:** 決定",
    );
}

#[test]
fn tables_hold_blocks_as_lines() {
    let cell = |kind: &str, content: Value| json!({ "type": kind, "attrs": {}, "content": content });
    let row = |cells: Value| json!({ "type": "tableRow", "content": cells });
    let head =
        row(json!([cell("tableHeader", json!([paragraph("名")])), cell("tableHeader", json!([paragraph("値|")]))]));
    let body = row(json!([cell("tableCell", json!([paragraph("a"), paragraph("b")])), cell("tableCell", json!([]))]));
    check_both(
        &json!([{ "type": "table", "content": [head, body.clone()] }]),
        "| 名 | 値\\| |\n| --- | --- |\n| a<br>b |  |",
    );
    check_both(&json!([{ "type": "table", "content": [body] }]), "|  |  |\n| --- | --- |\n| a<br>b |  |");
}

#[test]
fn small_nodes_are_shown() {
    let line = |nodes: Value| json!([{ "type": "paragraph", "content": nodes }]);
    let node = |kind: &str, attributes: Value| json!({ "type": kind, "attrs": attributes });
    check_both(&line(json!([node("mention", json!({ "id": "5b:1", "text": "@山田" }))])), "[@山田](user:5b:1)");
    check_both(&line(json!([node("emoji", json!({ "shortName": ":smile:", "text": "😄" }))])), "😄");
    check_both(&line(json!([node("emoji", json!({ "shortName": ":bufo:" }))])), ":bufo:");
    check_both(&line(json!([node("date", json!({ "timestamp": "1783123200000" }))])), "2026-07-04");
    check_both(&line(json!([node("status", json!({ "text": "進行中", "color": "blue" }))])), "`進行中`");
    check_both(&line(json!([node("inlineCard", json!({ "url": "https://a.b/c_d" }))])), "<https://a.b/c_d>");
    check_both(&line(json!([text("a"), { "type": "hardBreak" }, text("b")])), "a\\\nb");
    check(&line(json!([node("placeholder", json!({ "text": "書く" }))])), "書く");
    let extension = node("inlineExtension", json!({ "extensionKey": "k", "extensionType": "t", "text": "文" }));
    check(&line(json!([extension])), "[inlineExtension k 文]");
    check(&line(json!([node("hologram", json!({ "id": "7", "text": "文" }))])), "[hologram 文 7]");
}

#[test]
fn media_and_cards_lead_where_they_led() {
    let media = |attributes: Value| json!({ "type": "media", "attrs": attributes });
    let file = media(json!({ "type": "file", "id": "i-d", "collection": "c", "alt": "図" }));
    let single =
        |content: Value| json!([{ "type": "mediaSingle", "attrs": { "layout": "center" }, "content": content }]);
    check_both(&single(json!([file])), "![図](media:i-d/c)");
    let external = media(json!({ "type": "external", "url": "https://a.b/c.png" }));
    check_both(&single(json!([external])), "![](https://a.b/c.png)");
    let caption = json!({ "type": "caption", "content": [text("説明")] });
    check(&single(json!([file, caption])), "![図](media:i-d/c)\n\n説明");
    check_both(&json!([{ "type": "mediaGroup", "content": [file, file] }]), "![図](media:i-d/c)\n\n![図](media:i-d/c)");
    check_both(&json!([{ "type": "blockCard", "attrs": { "url": "https://a.b/" } }]), "<https://a.b/>");
    check(&json!([{ "type": "embedCard", "attrs": { "url": "https://a.b/", "layout": "wide" } }]), "<https://a.b/>");
    let restored = from_markdown("![図](media:i-d/c)");
    assert_eq!(restored["content"][0]["content"][0], file);
}

#[test]
fn marks_nest_as_they_must() {
    let marked = |words: &str, marks: Value| json!({ "type": "text", "text": words, "marks": marks });
    let mark = |kind: &str| json!({ "type": kind });
    let line = json!([{ "type": "paragraph", "content": [
        marked("太い ", json!([mark("strong")])),
        marked("両方", json!([mark("strong"), mark("em")])),
        text(" "),
        marked("消す", json!([mark("strike")])),
        marked("下線", json!([mark("underline")])),
        text("H"),
        marked("2", json!([{ "type": "subsup", "attrs": { "type": "sub" } }])),
        text("O "),
        marked("色", json!([{ "type": "textColor", "attrs": { "color": "#ff0000" } }])),
        marked("x*y", json!([mark("code")])),
        marked("題", json!([{ "type": "link", "attrs": { "href": "https://a.b/" } }])),
    ] }]);
    check_both(&line, "**太い *両方*** ~~消す~~<u>下線</u>H<sub>2</sub>O 色`x*y`[題](https://a.b/)");
}

#[test]
fn arrangements_and_unknown_nodes_show_what_they_hold() {
    let column =
        |words: &str| json!({ "type": "layoutColumn", "attrs": { "width": 50 }, "content": [paragraph(words)] });
    check(&json!([{ "type": "layoutSection", "content": [column("左"), column("右")] }]), "左\n\n右");
    let extension = json!({ "type": "bodiedExtension", "attrs": { "extensionKey": "k", "extensionType": "t" }, "content": [paragraph("文")] });
    check(&json!([extension]), "[bodiedExtension k]\n\n文");
    check(&json!([{ "type": "extension", "attrs": { "extensionKey": "k", "extensionType": "t" } }]), "[extension k]");
    check(&json!([{ "type": "syncBlock", "attrs": { "resourceId": "r", "localId": "l" } }]), "[syncBlock r l]");
    check(&json!([{ "type": "bodiedSyncBlock", "attrs": {}, "content": [paragraph("文")] }]), "文");
    check(&json!([{ "type": "hologram", "attrs": { "id": "7" }, "content": [paragraph("文")] }]), "[hologram 7]\n\n文");
}

#[test]
fn what_may_not_stand_somewhere_becomes_what_may() {
    for (markdown, expected) in [
        ("> # 題\n> ---\n> | a |\n> |---|\n> | b |", "> **題**\n>\n> a\n>\n> b"),
        ("- > 引用\n- | a | b |\n  |---|---|", "- 引用\n- a ｜ b"),
        ("> > 内", "> 内"),
        ("- [ ] a\n  - b", "- [ ] a\\\n  • b"),
    ] {
        assert_eq!(to_markdown(&from_markdown(markdown)), expected);
    }
}
