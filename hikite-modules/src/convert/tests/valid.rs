//! Tests the output against the schemas of the services and the rules of XML.

use std::sync::LazyLock;

use jsonschema::Validator;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::super::markdown::write;
use super::super::{adf, notion, storage};
use super::generate::{text, tree};

static DOCUMENT: LazyLock<Validator> = LazyLock::new(|| validator(include_str!("../../../fixtures/adf/schema.json")));
static BLOCKS: LazyLock<Validator> =
    LazyLock::new(|| validator(include_str!("../../../fixtures/notion/append-block-children.json")));

fn validator(schema: &str) -> Validator {
    let schema: Value = serde_json::from_str(schema).unwrap();
    jsonschema::validator_for(&schema).unwrap()
}

fn check(markdown: &str) -> Result<(), TestCaseError> {
    let document = adf::from_markdown(markdown);
    prop_assert!(DOCUMENT.is_valid(&document), "{}\n{}", markdown, document);
    let request = json!({ "block_id": "x", "children": notion::from_markdown(markdown) });
    prop_assert!(BLOCKS.is_valid(&request), "{}\n{}", markdown, request);
    let xhtml = storage::from_markdown(markdown);
    prop_assert_eq!(fault(&xhtml), None, "{}\n{}", markdown, xhtml);
    Ok(())
}

proptest! {
    #![proptest_config(super::cases(300))]

    #[test]
    fn what_is_made_of_a_document_is_valid(tree in tree()) {
        check(&write(&tree))?;
    }

    #[test]
    fn what_is_made_of_any_text_is_valid(lines in prop::collection::vec(text(), 0..8)) {
        check(&lines.join("\n"))?;
    }

    #[test]
    fn what_is_made_of_any_characters_is_valid(text in any::<String>()) {
        check(&text)?;
    }
}

#[test]
fn schemas_refuse_what_is_wrong() {
    assert!(!DOCUMENT.is_valid(&json!({ "version": 1, "type": "doc", "content": [{ "type": "tabel" }] })));
    let children = json!([{ "type": "paragraph", "paragraph": { "rich_text": [{ "text": 1 }] } }]);
    assert!(!BLOCKS.is_valid(&json!({ "block_id": "x", "children": children })));
    for text in ["<p>", "</p>", "<p></b>", "a & b", "<a b=c/>", "<a b=\"<\"/>", "]]>", "\u{1}", "<a b='x' />"] {
        assert!(fault(text).is_some(), "{text}");
    }
    assert_eq!(fault("<a:b c=\"&quot;\"><![CDATA[<&]]></a:b>日本 &amp; <br/>"), None);
}

/// Returns the first violation of well-formedness, found by a parser that knows only our output.
fn fault(text: &str) -> Option<String> {
    let mut open: Vec<&str> = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let at = rest.find('<').unwrap_or(rest.len());
        let (words, tag) = rest.split_at(at);
        if let Some(wrong) = wrong_text(words) {
            return Some(wrong);
        }
        if tag.is_empty() {
            break;
        }
        if let Some(data) = tag.strip_prefix("<![CDATA[") {
            let Some((data, after)) = data.split_once("]]>") else { return Some("open data".into()) };
            if data.chars().any(is_forbidden) {
                return Some("a character in data".into());
            }
            rest = after;
            continue;
        }
        let Some((inner, after)) = tag[1..].split_once('>') else { return Some("open tag".into()) };
        rest = after;
        if let Some(name) = inner.strip_prefix('/') {
            if open.pop() != Some(name) {
                return Some(format!("</{name}>"));
            }
            continue;
        }
        let (inner, is_closed) = inner.strip_suffix('/').map_or((inner, false), |inner| (inner, true));
        let (name, attributes) = inner.split_once(' ').unwrap_or((inner, ""));
        let mut quoted = attributes.split('"');
        while let Some(before) = quoted.next().filter(|before| !before.is_empty()) {
            let is_name = before.strip_suffix('=').is_some_and(|name| !name.trim().is_empty() && !name.contains('='));
            let value = quoted.next();
            if !is_name || value.is_none_or(|value| value.contains('<') || wrong_text(value).is_some()) {
                return Some(format!("an attribute of {name}"));
            }
        }
        if !is_closed {
            open.push(name);
        }
    }
    open.pop().map(|name| format!("<{name}>"))
}

fn is_forbidden(c: char) -> bool {
    (c < ' ' && !matches!(c, '\t' | '\n' | '\r')) || matches!(c, '\u{fffe}' | '\u{ffff}')
}

fn wrong_text(text: &str) -> Option<String> {
    let entities = text.split('&').skip(1);
    let is_known = |rest: &str| ["amp;", "lt;", "gt;", "quot;"].iter().any(|name| rest.starts_with(name));
    let is_wrong = !entities.into_iter().all(is_known) || text.contains("]]>") || text.chars().any(is_forbidden);
    is_wrong.then(|| text.to_owned())
}
