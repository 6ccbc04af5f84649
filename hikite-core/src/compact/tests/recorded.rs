//! Size reductions measured on recorded answers.

use serde_json::Value;

use super::super::render::length;
use super::super::shape::{ShapeColumn, TableShape};
use super::*;
use crate::json::Raw;
use crate::selector::ValuePath;

fn answer(name: &str) -> Value {
    let file = format!("{}/../hikite-testkit/fixtures/answers/{name}.json", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{file}: {error}"));
    parse(&Raw::parse(text).expect("JSON"))
}

/// Builds a table shape. A column is `name: path`, or `name: path+` for all matches joined into one text.
fn table(name: &str, rows: &str, columns: &[(&str, &str)]) -> Shape {
    let path = |text: &str| ValuePath::parse(text).expect("a path");
    let column = |(name, text): &(&str, &str)| match text.strip_suffix('+') {
        Some(text) => ShapeColumn::new(*name, path(text)).joined(""),
        None => ShapeColumn::new(*name, path(text)),
    };
    let columns = columns.iter().map(column).collect();
    Shape::Table(TableShape { name: name.into(), rows: path(rows), columns, leading: Vec::new() })
}

/// Returns by how many percent the text is smaller than compact JSON.
fn saved(value: &Value, shape: Option<&Shape>) -> usize {
    let compacted = compact(value, shape, AMPLE);
    assert_eq!(compacted.left_out, None);
    100 - compacted.text.len() * 100 / length(value)
}

#[test]
fn lists_in_their_shape_are_a_tenth_of_their_json() {
    let issue = [
        ("number", ".number"),
        ("title", ".title"),
        ("state", ".state"),
        ("author", ".user.login"),
        ("labels", ".labels[].name"),
        ("comments", ".comments"),
        ("updated", ".updated_at"),
    ];
    let page = [("id", ".id"), ("title", ".properties[].title[].plain_text+"), ("type", ".object")];
    let block = [("id", ".id"), ("type", ".type"), ("text", ".[].rich_text[].plain_text+")];
    for (name, shape, least) in [
        ("github-issues", table("issues", ".[]", &issue), 95),
        ("github-search-issues", table("issues", ".items[]", &issue), 95),
        ("notion-search", table("pages", ".results[]", &page), 90),
        ("notion-query", table("rows", ".results[]", &page), 90),
        ("notion-blocks", table("blocks", ".results[]", &block), 90),
    ] {
        let saved = saved(&answer(name), Some(&shape));
        assert!(saved >= least, "{name}: only {saved} % smaller");
    }
}

#[test]
fn lists_of_an_unknown_server_are_smaller_without_a_loss() {
    for (name, least) in [
        ("github-issues", 65),
        ("github-search-issues", 15),
        ("notion-search", 55),
        ("notion-query", 60),
        ("notion-blocks", 60),
        ("notion-file-uploads", 45),
        ("notion-users", 0),
        ("github-repository", 0),
    ] {
        let saved = saved(&answer(name), None);
        assert!(saved >= least, "{name}: only {saved} % smaller");
    }
}
