//! Tests of compaction as a whole, and its invariants.

use serde_json::{Value, json};

use super::*;

mod property;
mod recorded;
mod round_trip;

const AMPLE: usize = usize::MAX;

#[test]
fn words_stay_words() {
    for text in ["# 題名\n\n本文", "<p>x</p>", "", "12"] {
        let compacted = compact(&json!(text), None, AMPLE);
        assert_eq!((compacted.text.as_str(), compacted.form, compacted.left_out), (text, TextFormat::Text, None));
    }
}

#[test]
fn what_all_rows_share_is_told_once_and_what_none_has_is_named() {
    let row = |number, title| {
        json!({
            "number": number, "title": title, "state": "open", "milestone": null,
            "user": {"login": "aki", "type": "User", "gravatar": ""},
            "labels": [], "closed": {"at": null, "by": null},
        })
    };
    let rows = json!({"total": 2, "items": [row(1, "設計"), row(2, "実装")]});
    let json = r#"{"total":2,"items":{"in_every_row":{"state":"open","user":{"login":"aki","type":"User"}},"in_no_row":["milestone","user.gravatar","labels","closed"],"rows":[{"number":1,"title":"設計"},{"number":2,"title":"実装"}]}}"#;
    assert_eq!(render::json(&rows, true), json);
}

#[test]
fn rows_are_flat_for_toon_and_lists_are_one_cell() {
    let rows = json!([
        {"id": 1, "user": {"login": "a"}, "tags": ["x", "y"], "labels": [{"name": "bug", "color": "f00"}]},
        {"id": 2, "user": {"login": "b"}, "tags": [], "labels": [{"name": "ui", "color": "f00"}, {"name": "new", "color": "f00"}]},
        {"id": 3, "user": null, "tags": ["z"], "labels": []},
    ]);
    let expected = json!([
        {"id": 1, "user.login": "a", "tags[]": "x;y", "labels[].name": "bug", "labels[].color": "f00"},
        {"id": 2, "user.login": "b", "tags[]": null, "labels[].name": "ui;new", "labels[].color": "f00;f00"},
        {"id": 3, "user.login": null, "tags[]": "z", "labels[].name": null, "labels[].color": null},
    ]);
    assert_eq!(render::flat(&rows, false), Some(expected));
}

#[test]
fn keys_that_look_like_paths_are_told_apart() {
    let rows = json!([{"a.b": 1, "a": {"b": 2}}, {"a.b": 3, "a": {"b": 4}}]);
    let expected = json!([{"\"a.b\"": 1, "a.b": 2}, {"\"a.b\"": 3, "a.b": 4}]);
    assert_eq!(render::flat(&rows, true), Some(expected));
}

#[test]
fn a_list_that_is_long_in_its_row_is_a_table_of_its_own() {
    let issues: Vec<Value> = (0..20).map(|n| json!({"n": n, "state": "open"})).collect();
    let repos = json!([{"name": "a", "issues": issues}, {"name": "b", "issues": []}]);
    let flat = render::flat(&repos, true).expect("tables");
    assert_eq!((&flat[0]["issues"]["in_every_row"], &flat[1]["name"]), (&json!({"state": "open"}), &json!("b")));
}

#[test]
fn rows_with_nothing_in_common_are_no_table_for_toon() {
    let rows: Vec<Value> = (0..50).map(|n| json!({format!("key{n}"): n})).collect();
    assert_eq!(render::flat(&rows.into(), true), None);
}

#[test]
fn small_things_stay_as_they_are() {
    for value in [
        json!(null),
        json!(7),
        json!({}),
        json!([]),
        json!({"results": [], "more": false, "next": null}),
        json!([{"a": 1}]),
        json!([{"a": 1, "b": null}, {"a": 1, "b": null}]),
    ] {
        assert_eq!(render::json(&value, true), value.to_string());
    }
}

#[test]
fn long_texts_are_cut_before_rows_are_left_out() {
    let rows: Vec<Value> = (0..10).map(|n| json!({"n": n, "body": format!("{n}{}", "長".repeat(3000))})).collect();
    let rows = Value::from(rows);
    let compacted = compact(&rows, None, 9000);
    assert_eq!(compacted.left_out.as_deref(), Some("the ends of 10 texts longer than 200 characters"));
    assert!(compacted.text.contains("9長長"), "{}", compacted.text);
    let compacted = compact(&rows, None, 2000);
    assert_eq!(compacted.left_out.as_deref(), Some("7 of 10 rows, the ends of 3 texts longer than 200 characters"));
}

#[test]
fn as_many_rows_stay_as_there_is_room_for() {
    let rows: Vec<Value> = (1000..1200).map(|n| json!({"n": n, "name": format!("name {n}")})).collect();
    let rows = json!({"total": 200, "items": rows});
    let compacted = compact(&rows, None, 1000);
    let kept = compacted.text.matches("name 1").count();
    assert_eq!(compacted.left_out, Some(format!("{} of 200 rows", 200 - kept)));
    assert!((900..=1000).contains(&compacted.text.len()), "{}", compacted.text.len());
    assert!(compacted.text.contains("total"), "{}", compacted.text);
}

#[test]
fn where_nothing_fits_there_is_an_outline_and_at_last_a_count() {
    let deep = |n: usize| json!({"id": n, "more": {"values": vec![json!({"x": "y".repeat(70)}); 20]}});
    let members: serde_json::Map<String, Value> = (0..100).map(|n| (format!("key{n}"), deep(n))).collect();
    let value = Value::Object(members);
    let outline = compact(&value, None, 2000);
    assert!(outline.text.contains("key39") && outline.text.contains("[20 elements]"), "{}", outline.text);
    let left_out = outline.left_out.expect("much");
    assert_eq!(left_out, "60 object members, the content of 40 deeply nested values");
    let tiny = compact(&value, None, 20);
    assert_eq!((tiny.text.as_str(), tiny.left_out.as_deref()), ("{100 members}", Some("everything except its type")));
}

#[test]
fn a_text_is_cut_at_the_end_of_a_line() {
    let text = (1..=100).map(|n| format!("line {n} です\n")).collect::<Vec<_>>().concat();
    let compacted = compact(&json!(text), None, 200);
    assert!(compacted.text.len() <= 200 && compacted.text.ends_with("です"), "{}", compacted.text);
    let kept = compacted.text.lines().count();
    assert_eq!(compacted.left_out, Some(format!("{} of 100 lines", 100 - kept)));
    let compacted = compact(&json!("長".repeat(100)), None, 100);
    assert_eq!((compacted.text.chars().count(), compacted.left_out.as_deref()), (33, Some("67 of 100 characters")));
}
