//! Reads rich text. Users become links to `user:ID`, pages and databases links to Notion; colours are dropped.

use serde_json::Value;

use super::super::markdown::{Inline, InlineKind, InlineStyle, Marks, plain};

/// Converts a rich text list to a line.
pub(super) fn line(pieces: &Value) -> Vec<Inline> {
    pieces.as_array().into_iter().flatten().map(piece).collect()
}

/// Returns the plain text of a rich text list or a string.
pub(super) fn words(pieces: &Value) -> String {
    match pieces {
        Value::String(text) => text.clone(),
        _ => plain(&line(pieces)),
    }
}

/// Returns the text unchanged, for code.
pub(super) fn raw(pieces: &Value) -> String {
    pieces.as_array().into_iter().flatten().map(text_of).collect()
}

/// Returns the Notion URL of an id.
pub(super) fn address(id: &str) -> String {
    format!("https://www.notion.so/{}", id.replace('-', ""))
}

fn piece(piece: &Value) -> Inline {
    let style = style(piece);
    match piece["type"].as_str().unwrap_or_default() {
        "equation" => {
            let expression = piece["equation"]["expression"].as_str().unwrap_or(text_of(piece));
            Inline::new(InlineKind::Math(expression.to_owned()), &InlineStyle { link: None, ..style })
        }
        "mention" => mention(piece, &style),
        _ => Inline::text(text_of(piece), &style),
    }
}

fn text_of(piece: &Value) -> &str {
    piece["plain_text"].as_str().or_else(|| piece["text"]["content"].as_str()).unwrap_or_default()
}

fn mention(piece: &Value, style: &InlineStyle) -> Inline {
    let mention = &piece["mention"];
    let kind = mention["type"].as_str().unwrap_or_default();
    let about = &mention[kind];
    let id = about["id"].as_str().unwrap_or_default();
    let said = text_of(piece);
    let or = |other: &str| if said.is_empty() { other.to_owned() } else { said.to_owned() };
    match kind {
        "user" => {
            let name = or(about["name"].as_str().unwrap_or(id));
            let at = if name.starts_with('@') { "" } else { "@" };
            Inline::text(format!("{at}{name}"), &style.to(&format!("user:{id}")))
        }
        "page" | "database" | "data_source" => Inline::text(or(id), &style.to(&address(id))),
        "date" => {
            let end = about["end"].as_str().map(|end| format!(" → {end}")).unwrap_or_default();
            Inline::text(or(&format!("{}{end}", about["start"].as_str().unwrap_or_default())), style)
        }
        "link_preview" => {
            let url = about["url"].as_str().unwrap_or_default();
            Inline::text(or(url), &style.to(url))
        }
        "link_mention" => {
            let url = about["href"].as_str().unwrap_or_default();
            let title = about["title"].as_str().unwrap_or(url);
            Inline::text(if said.is_empty() || said == url { title } else { said }, &style.to(url))
        }
        "custom_emoji" => Inline::text(or(&format!(":{}:", about["name"].as_str().unwrap_or(id))), style),
        _ => Inline::text(or(&format!("[{kind}]")), style),
    }
}

/// Notion's names of the marks.
pub(super) const ANNOTATIONS: [(&str, Marks); 5] = [
    ("bold", Marks::STRONG),
    ("italic", Marks::EMPHASIS),
    ("strikethrough", Marks::STRIKE),
    ("underline", Marks::UNDERLINE),
    ("code", Marks::CODE),
];

fn style(piece: &Value) -> InlineStyle {
    let annotations = &piece["annotations"];
    let mut style = InlineStyle::default();
    for (name, mark) in ANNOTATIONS {
        if annotations[name] == true {
            style = style.marked(mark);
        }
    }
    let url = piece["text"]["link"]["url"].as_str().or_else(|| piece["href"].as_str()).unwrap_or_default();
    // Links within the workspace have no host.
    if url.starts_with('/') { style.to(&format!("https://www.notion.so{url}")) } else { style.to(url) }
}
