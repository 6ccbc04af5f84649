//! Tests that input nested deeper than any stack is flattened.

use serde_json::{Map, Value, json};

use super::super::{adf, html, notion, storage};

const DEEP: usize = 100_000;

fn from_markdown(text: &str) {
    for made in
        [notion::from_markdown(text).to_string(), adf::from_markdown(text).to_string(), storage::from_markdown(text)]
    {
        assert!(made.contains("日本語"));
    }
}

#[test]
fn deep_markup_is_read() {
    for (open, close) in [
        ("<div>", "</div>"),
        ("<ul><li>", "</li></ul>"),
        ("<blockquote>", ""),
        ("<b><i>", ""),
        ("<table><tr><td>", "</td></tr></table>"),
        ("<details><summary>", "</summary></details>"),
        ("<ac:structured-macro ac:name=\"expand\"><ac:rich-text-body>", ""),
        ("<ac:task-list><ac:task><ac:task-body>", ""),
    ] {
        let text = format!("{}日本語{}", open.repeat(DEEP), close.repeat(DEEP));
        assert!(html::to_markdown(&text).contains("日本語"), "{open}");
        assert!(storage::to_markdown(&text).contains("日本語"), "{open}");
    }
}

#[test]
fn deep_markdown_is_read() {
    from_markdown(&format!("{}日本語", "> ".repeat(10_000)));
    from_markdown(&format!("{}日本語", "- ".repeat(10_000)));
    from_markdown(&format!("{}日本語", "**".repeat(10_000)));
    from_markdown(&format!("{}日本語", "[".repeat(10_000)));
    from_markdown(&format!("{}日本語", "<details>\n\n".repeat(10_000)));
}

/// Builds a value with this many levels, without recursion.
fn nested(levels: usize, level: &Value, member: &str) -> Value {
    let text = json!({ "type": "text", "text": "日本語" });
    (0..levels).fold(Value::Null, |inner, _| {
        let mut object: Map<String, Value> = level.as_object().cloned().unwrap_or_default();
        object.insert(member.to_owned(), Value::Array(vec![text.clone(), inner]));
        Value::Object(object)
    })
}

/// Counts the text in the output. Takes the value apart first, without recursion, so that a failure does not overflow
/// the stack.
fn told(value: Value, markdown: &str) -> usize {
    let mut open = vec![value];
    while let Some(value) = open.pop() {
        match value {
            Value::Array(values) => open.extend(values),
            Value::Object(members) => open.extend(members.into_iter().map(|(_, value)| value)),
            _ => {}
        }
    }
    markdown.matches("日本語").count()
}

#[test]
fn deep_blocks_are_read() {
    for kind in ["bulleted_list_item", "toggle", "column_list", "unheard_of", "quote", "table"] {
        let level = json!({ "type": kind, kind: { "rich_text": [{ "plain_text": "日本語" }] } });
        let deep = nested(20_000, &level, "children");
        let markdown = notion::to_markdown(&deep);
        let expected = if matches!(kind, "column_list" | "table") { 1..20_001 } else { 20_000..20_001 };
        assert!(expected.contains(&told(deep, &markdown)), "{kind}");
    }
}

#[test]
fn deep_documents_are_read() {
    for kind in ["blockquote", "panel", "layoutSection", "unheardOf", "paragraph", "mediaSingle", "table", "bulletList"]
    {
        let deep = nested(20_000, &json!({ "type": kind }), "content");
        let markdown = adf::to_markdown(&deep);
        assert_eq!(told(deep, &markdown), 20_000, "{kind}");
    }
}
