//! Tests that no word is lost in either direction.

mod source;

use proptest::prelude::*;
use serde_json::Value;

use super::super::markdown::{read, write};
use super::super::markup::{Element, Node, parse};
use super::super::{adf, html, notion, storage};
use super::generate::tree;
use super::{missing, said, texts};

/// Returns all strings in a value.
fn strings(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(values) => values.iter().map(strings).collect(),
        Value::Object(members) => members.values().map(strings).collect(),
        _ => String::new(),
    }
}

/// Returns all texts in markup, including alternative texts.
fn markup_strings(nodes: &[Node]) -> String {
    let element = |element: &Element| {
        let said = element.attribute("ac:alt").to_owned();
        said + &markup_strings(&element.children)
    };
    let node = |node: &Node| match node {
        Node::Text(text) => text.clone(),
        Node::Element(found) => element(found),
    };
    nodes.iter().map(node).collect()
}

proptest! {
    #![proptest_config(super::cases(500))]

    #[test]
    fn no_word_of_markdown_is_lost(tree in tree()) {
        let text = write(&tree);
        let words = texts(&read(&text));
        let none = Vec::<String>::new();
        prop_assert_eq!(missing(&words, &strings(&notion::from_markdown(&text))), none.clone(), "blocks of {}", text);
        prop_assert_eq!(missing(&words, &strings(&adf::from_markdown(&text))), none.clone(), "document of {}", text);
        let xhtml = storage::from_markdown(&text);
        prop_assert_eq!(missing(&words, &markup_strings(&parse(&xhtml))), none, "storage of {}", text);
    }

    #[test]
    fn no_word_of_blocks_is_lost((blocks, words) in source::blocks()) {
        let markdown = notion::to_markdown(&blocks);
        prop_assert_eq!(missing(&words, &said(&markdown)), Vec::<String>::new(), "{}\n{}", blocks, markdown);
    }

    #[test]
    fn no_word_of_a_document_is_lost((document, words) in source::document()) {
        let markdown = adf::to_markdown(&document);
        prop_assert_eq!(missing(&words, &said(&markdown)), Vec::<String>::new(), "{}\n{}", document, markdown);
    }

    #[test]
    fn no_word_of_markup_is_lost((markup, words) in source::markup()) {
        for markdown in [html::to_markdown(&markup), storage::to_markdown(&markup)] {
            prop_assert_eq!(missing(&words, &said(&markdown)), Vec::<String>::new(), "{}\n{}", markup, markdown);
        }
    }
}
