//! Tests of shapes with recorded responses: their size, and that essential words are included.

use hikite_core::compact::{Shape, compact as compacted, parse};
use serde_json::Map;

use super::*;

fn shown(module: &str, tool: &str, arguments: Value, answer: &str) -> (usize, String) {
    let file = crate::BUILTIN.into_iter().find(|(name, _)| *name == module).expect("a module").1;
    let service = Service::read(file, &settings()).expect("a service");
    let value = parse(&Raw::parse(answer.trim().to_owned()).expect("JSON"));
    let arguments: Map<String, Value> = serde_json::from_value(arguments).expect("an object");
    let made = service.project(tool, arguments, &value).expect("its shape");
    let text = compacted(&value, Some(&Shape::Prepared(Arc::new(made))), usize::MAX).text;
    (value.to_string().len(), text)
}

/// Checks that at most this percentage of the response is shown, including these words.
#[track_caller]
fn check(tool: (&str, &str), arguments: Value, answer: &str, percent: usize, words: &[&str]) {
    let (before, text) = shown(tool.0, tool.1, arguments, answer);
    assert!(text.len() * 100 <= before * percent, "{tool:?}: {before} → {}\n{text}", text.len());
    for word in words {
        assert!(text.contains(word), "{tool:?}: no {word} in\n{text}");
    }
}

#[test]
fn answers_are_as_short_as_those_of_the_best() {
    let answer = |name: &str| {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../hikite-testkit/fixtures/answers");
        std::fs::read_to_string(format!("{folder}/{name}.json")).expect("a recorded answer")
    };
    let issues = answer("github-issues");
    check(("github", "list_issues"), json!({}), &issues, 4, &["number", "title", "Test issue 1", "open"]);
    check(("github", "get_repo"), json!({}), &answer("github-repository"), 6, &["octokit-fixture-org", "master"]);
    check(("github", "search_issues"), json!({}), &answer("github-search-issues"), 12, &["open"]);
    check(("notion", "search"), json!({}), &answer("notion-search"), 14, &["page"]);
    let blocks = answer("notion-blocks");
    check(("notion", "get_page_content"), json!({ "format": "blocks" }), &blocks, 14, &["paragraph"]);
    let query: Value = serde_json::from_str(&answer("notion-query")).expect("JSON");
    check(("notion", "get_page"), json!({}), &query["results"][0].to_string(), 20, &["# "]);
    check(("notion", "list_users"), json!({}), &answer("notion-users"), 40, &["bot"]);
}
