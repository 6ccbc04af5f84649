//! Converts between MCP tool results and the plain JSON values that they carry.

use std::borrow::Cow;

use serde_json::value::RawValue;

use crate::json::{Object, Raw, RawMembers};

/// Member of a result's `_meta` that holds the cursor of the next page of a list.
pub const PAGE: &str = "hikite/page";
const NEXT: &str = "next_cursor";

/// Member of a result's `_meta` that marks the text as plain text, although it parses as JSON.
const TEXT: &str = "hikite/text";

/// Returns the result with the cursor of the next page in its `_meta`.
pub fn with_next_cursor(result: &Raw, cursor: &str) -> Raw {
    with_meta(result.object().unwrap_or_default(), PAGE, Object::default().with(NEXT, cursor).raw()).raw()
}

fn with_meta(result: Object, name: &str, value: Raw) -> Object {
    let meta = result.get("_meta").and_then(Raw::object).unwrap_or_default();
    result.with("_meta", meta.with(name, value))
}

/// Wraps a value in an MCP result: as text, and as `structuredContent` if it is an object.
pub fn wrap_value(value: &Raw) -> Raw {
    let text = value.text().unwrap_or_else(|| value.as_str().into_owned());
    let block = Object::default().with("type", "text").with("text", text.as_str()).raw();
    let result = Object::default().with("content", Raw::array([&block]));
    if value.text().is_some() && Raw::parse(text).is_ok() {
        return with_meta(result, TEXT, Raw::of(&true)).raw();
    }
    if value.is_object() { result.with("structuredContent", value.clone()).raw() } else { result.raw() }
}

/// The value carried by an MCP result, and its content blocks other than text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolOutput {
    /// `structuredContent`, else the text parsed as JSON, else the text itself.
    pub value: Raw,
    pub others: Vec<Raw>,
    /// `isError` of the result.
    pub failed: bool,
    /// All text blocks, joined by newlines.
    pub text: String,
    /// Cursor of the next page of a list.
    pub next: Option<String>,
}

impl ToolOutput {
    pub fn read(result: &Raw) -> Self {
        let Ok(members) = result.decode::<RawMembers<'_>>() else {
            return Self { value: result.clone(), others: Vec::new(), failed: false, text: String::new(), next: None };
        };
        let part = |value| Raw::part(result.bytes(), value);
        let (mut texts, mut others) = (Vec::new(), Vec::new());
        let content = members.get("content").and_then(|content| serde_json::from_str(content.get()).ok());
        for block in content.unwrap_or_else(Vec::<&RawValue>::new) {
            match text_of(block) {
                Some(text) => texts.push(text),
                None => others.push(part(block)),
            }
        }
        let text = texts.join("\n");
        let meta = members.get("_meta").and_then(|meta| part(meta).object()).unwrap_or_default();
        let is_text = meta.get(TEXT).is_some();
        let value = match members.get("structuredContent").filter(|value| value.get() != "null") {
            Some(value) => part(value),
            None if texts.is_empty() => Raw::null(),
            None if is_text => Raw::from(text.as_str()),
            None => Raw::parse(text.clone()).unwrap_or_else(|_| Raw::from(text.as_str())),
        };
        Self {
            value,
            others,
            failed: members.get("isError").is_some_and(|flag| flag.get() == "true"),
            text,
            next: meta.get(PAGE).and_then(|page| page.object()?.text(NEXT)),
        }
    }
}

/// Returns the text of a content block, or `None` if the block is not text.
fn text_of(block: &RawValue) -> Option<Cow<'_, str>> {
    let block: RawMembers<'_> = serde_json::from_str(block.get()).ok()?;
    block.text("type").filter(|kind| kind == "text")?;
    block.text("text")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn value_of(result: &str) -> String {
        ToolOutput::read(&Raw::parse(result.to_owned()).expect("JSON")).value.as_str().into_owned()
    }

    #[test]
    fn a_value_comes_back_from_its_result() {
        for value in [r#"{"a":1}"#, "[1,2]", r#""words""#, "7", "null", "true", r#""{\"a\": 1}""#, r#""7""#] {
            let value = Raw::parse(value.to_owned()).expect("JSON");
            assert_eq!(ToolOutput::read(&wrap_value(&value)).value, value);
        }
    }

    #[test]
    fn structured_content_goes_before_text_and_text_is_read_as_json() {
        let both = r#"{"content":[{"type":"text","text":"x"}],"structuredContent":{"b":2}}"#;
        assert_eq!(value_of(both), r#"{"b":2}"#);
        assert_eq!(value_of(r#"{"content":[{"type":"text","text":"{\"a\": 1}"}]}"#), r#"{"a": 1}"#);
        assert_eq!(value_of(r#"{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}"#), r#""a\nb""#);
        assert_eq!(value_of(r#"{"content":[]}"#), "null");
    }

    #[test]
    fn pictures_stay_beside_the_value() {
        let result = r#"{"content":[{"type":"image","data":"AA==","mimeType":"image/png"},{"type":"text","text":"seen"}],"isError":true}"#;
        let answer = ToolOutput::read(&Raw::parse(result.to_owned()).expect("JSON"));
        assert_eq!((answer.others.len(), answer.failed, answer.text.as_str()), (1, true, "seen"));
    }
}
