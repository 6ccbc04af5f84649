//! Tests of definition hashes and diffs.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn raw(text: &str) -> Raw {
    Raw::parse(text.to_owned()).expect("valid")
}

#[track_caller]
fn check_same(one: &str, other: &str, same: bool) {
    assert_eq!(hash(&raw(one)) == hash(&raw(other)), same, "{one} and {other}");
}

const TOOL: &str =
    r#"{"name":"t","description":"d","inputSchema":{"type":"object","properties":{"n":{"maximum":10}}}}"#;

#[test]
fn spelling_order_and_what_is_not_pinned_make_no_difference() {
    for same in [
        r#"{"inputSchema":{"properties":{"n":{"maximum":1e1}},"type":"object"},"description":"\u0064", "name":"t"}"#,
        r#"{"name":"t","description":"d","inputSchema":{"type":"object","properties":{"n":{"maximum":10}}},"icons":[{"src":"x"}],"_meta":{"n":7},"execution":{"taskSupport":"optional"}}"#,
        r#"{"name":"t","title":null,"description":"d","inputSchema":{"type":"object","properties":{"n":{"maximum":10}}}}"#,
        r#"{"name":"t","description":"other","description":"d","inputSchema":{"type":"object","properties":{"n":{"maximum":10}}}}"#,
    ] {
        check_same(TOOL, same, true);
    }
}

#[test]
fn whatever_a_model_goes_by_makes_a_difference() {
    for other in [
        r#"{"name":"u","description":"d","inputSchema":{"type":"object","properties":{"n":{"maximum":10}}}}"#,
        r#"{"name":"t","description":"d.","inputSchema":{"type":"object","properties":{"n":{"maximum":10}}}}"#,
        r#"{"name":"t","title":"T","description":"d","inputSchema":{"type":"object","properties":{"n":{"maximum":10}}}}"#,
        r#"{"name":"t","description":"d","inputSchema":{"type":"object","properties":{"n":{"maximum":11}}}}"#,
        r#"{"name":"t","description":"d","inputSchema":{"type":"object","properties":{"n":{"maximum":10},"m":{}}}}"#,
        r#"{"name":"t","description":"d","annotations":{"readOnlyHint":true},"inputSchema":{"type":"object","properties":{"n":{"maximum":10}}}}"#,
        r#"{"name":"t","description":"d","outputSchema":{},"inputSchema":{"type":"object","properties":{"n":{"maximum":10}}}}"#,
    ] {
        check_same(TOOL, other, false);
    }
}

#[test]
fn a_definition_that_is_too_deep_to_read_is_still_told_from_another() {
    let deep = |word: &str| {
        let (open, close) = (r#"{"items":"#.repeat(300), "}".repeat(300));
        format!(r#"{{"name":"t","inputSchema":{open}"{word}"{close}}}"#)
    };
    check_same(&deep("a"), &deep("a"), true);
    check_same(&deep("a"), &deep("b"), false);
    let changes = diff(&raw(&deep("a")), &raw(&deep("b")));
    assert_eq!((changes.len(), changes[0].path.as_str()), (1, ""));
}

#[track_caller]
fn check_diff(before: &Value, after: &Value, expected: &Value) {
    let changes = diff(&Raw::of(before), &Raw::of(after));
    assert_eq!(serde_json::to_value(changes).expect("JSON"), *expected);
}

#[test]
fn a_difference_is_told_by_its_place() {
    let before =
        json!({ "description": "a", "inputSchema": { "properties": { "p/q": { "type": "string" }, "x": {} } } });
    let after =
        json!({ "description": "b", "inputSchema": { "properties": { "p/q": { "type": "number" }, "y": {} } } });
    check_diff(
        &before,
        &after,
        &json!([
            { "path": "/description", "before": "a", "after": "b" },
            { "path": "/inputSchema/properties/p~1q/type", "before": "string", "after": "number" },
            { "path": "/inputSchema/properties/x", "before": {} },
            { "path": "/inputSchema/properties/y", "after": {} },
        ]),
    );
    check_diff(&before, &before, &json!([]));
    let one = json!({ "anyOf": [{ "a": 1 }, { "b": 1 }], "required": ["a"] });
    let other = json!({ "anyOf": [{ "a": 1 }, { "b": 2 }], "required": ["a", "b"] });
    check_diff(
        &one,
        &other,
        &json!([
            { "path": "/anyOf/1/b", "before": 1, "after": 2 },
            { "path": "/required", "before": ["a"], "after": ["a", "b"] },
        ]),
    );
}

fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![Just(json!(null)), any::<bool>().prop_map(Value::from), "[ab]{0,2}".prop_map(Value::from)];
    leaf.prop_recursive(3, 16, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::hash_map("[a-c/~]", inner, 0..3)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn what_differs_is_found_where_it_is_said_to_be(before in values(), after in values()) {
        let changes = diff(&Raw::of(&before), &Raw::of(&after));
        prop_assert_eq!(changes.is_empty(), before == after);
        for DefinitionChange { path, before: was, after: is } in changes {
            prop_assert_ne!(&was, &is);
            prop_assert_eq!(before.pointer(&path), was.as_ref());
            prop_assert_eq!(after.pointer(&path), is.as_ref());
        }
    }
}
