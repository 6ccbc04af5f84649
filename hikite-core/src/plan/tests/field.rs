//! Tests of all task fields, their aliases, and the accepted forms of a whole batch.

use super::*;

fn only(fields: Value) -> Task {
    plan(&Value::Array(vec![fields])).tasks.remove(0)
}

fn written(template: &JsonTemplate) -> Value {
    template.as_written().0.clone()
}

#[test]
fn the_fields_of_the_specifications_are_taken() {
    let all = only(json!({ "id": "a", "module": "notion", "tool": "search", "params": { "query": "設計" } }));
    assert_eq!((&*all.id, all.tool.to_string().as_str()), ("a", "notion:search"));
    assert_eq!(written(&all.params), json!({ "query": "設計" }));
    assert_eq!((all.output, all.on_error, all.after), (TaskOutput::None, OnError::Skip, Vec::new()));
    assert!(all.select.is_none() && all.condition.is_none() && all.for_each.is_none());
    assert!(all.timeout.is_none() && all.account.is_none());

    let without = only(json!({ "id": "a", "module": "notion", "tool": "search" }));
    assert_eq!(written(&without.params), json!({}));
}

#[test]
fn one_task_or_several_can_be_waited_for() {
    let batch = json!([
        task("a", json!({})),
        task("b", json!({ "after": "a" })),
        task("c", json!({ "after": ["b", "a", "b"] })),
        task("d", json!({ "after": [] })),
        task("e", json!({ "after": null })),
    ]);
    let after: Vec<Vec<usize>> = plan(&batch).tasks.into_iter().map(|task| task.after).collect();
    assert_eq!(after, [vec![], vec![0], vec![0, 1], vec![], vec![]]);
}

#[test]
fn raw_output_goes_before_output() {
    for (output, raw_output, expected) in [
        (json!(false), json!(false), TaskOutput::None),
        (json!(true), json!(false), TaskOutput::Compact),
        (json!(false), json!(true), TaskOutput::Raw),
        (json!(true), json!(true), TaskOutput::Raw),
        (json!(null), json!(null), TaskOutput::None),
    ] {
        let task = only(task("a", json!({ "output": output, "raw_output": raw_output })));
        assert_eq!(task.output, expected, "{output} {raw_output}");
    }
}

#[test]
fn our_own_fields_are_taken() {
    let task = only(task(
        "a",
        json!({ "for_each": [1, 2], "if": "1 < 2", "select": "id,title", "on_error": "continue",
                "timeout_ms": 1500, "account": "work" }),
    ));
    assert_eq!(task.for_each.as_ref().map(written), Some(json!([1, 2])));
    assert!(task.condition.is_some() && task.select.is_some());
    assert_eq!((task.on_error, task.timeout), (OnError::Continue, Some(Duration::from_millis(1500))));
    assert_eq!(task.account.as_deref(), Some("work"));
}

#[test]
fn a_task_says_itself_what_an_error_means_or_the_batch_does() {
    let batch = Raw::of(&json!([task("a", json!({})), task("b", json!({ "on_error": "skip" }))]));
    let plan = Plan::read(&batch, OnError::FailFast, 2).expect("a plan");
    assert_eq!((plan.tasks[0].on_error, plan.tasks[1].on_error), (OnError::FailFast, OnError::Skip));
}

#[test]
fn other_names_for_a_field_are_understood() {
    for fields in [
        json!({ "id": "a", "module": "github", "tool_name": "list_issues", "arguments": { "n": 1 } }),
        json!({ "id": "a", "toolKey": "github:list_issues", "args": { "n": 1 } }),
        json!({ "id": "a", "toolKey": "github:list_issues", "module": "github", "params": "{\"n\": 1}" }),
        json!({ "id": "a", "module": "github", "tool": "list_issues", "params": { "n": 1 }, "arguments": null }),
    ] {
        let task = only(fields.clone());
        assert_eq!(task.tool, ToolKey::new("github", "list_issues"), "{fields}");
        assert_eq!(written(&task.params), json!({ "n": 1 }), "{fields}");
    }
    assert_eq!(&*only(json!({ "id": "a", "toolKey": "m:a:b" })).tool.tool, "a:b");
}

#[test]
fn params_may_be_one_reference() {
    let batch = json!([task("a", json!({})), task("b", json!({ "params": "${a.request}" }))]);
    let plan = plan(&batch);
    assert_eq!(plan.tasks[1].after, [0]);
    assert_eq!(plan.tasks[1].params.as_written().1, [""]);
}

#[test]
fn ids_may_be_in_any_script() {
    let batch = json!([task("検索-1", json!({})), task("b", json!({ "params": { "x": "${検索-1.結果[0]}" } }))]);
    assert_eq!(plan(&batch).tasks[1].after, [0]);
}

/// Uses the examples of both specifications verbatim.
#[test]
fn the_examples_of_the_specifications_are_plans() {
    let registry = concat!(
        r#"{"id":"search","module":"notion","tool":"search","params":{"query":"設計"}}"#,
        "\n",
        r#"{"id":"page","module":"notion","tool":"get_page_content","params":{"page_id":"${search.results[0].id}"},"after":["search"],"output":true}"#,
    );
    let whole = concat!(
        r#"{"id":"search","module":"notion","tool":"search","params":{"query":"会議メモ"}}"#,
        "\n",
        r#"{"id":"get_page","module":"notion","tool":"get_page","params":{"page_id":"${search.results[0].id}"},"after":"search","output":true}"#,
        "\n",
    );
    for (text, query, page) in [(registry, "設計", "get_page_content"), (whole, "会議メモ", "get_page")] {
        let plan = plan(&json!(text));
        let [search, second] = plan.tasks.as_slice() else { panic!("two tasks") };
        assert_eq!(written(&search.params), json!({ "query": query }));
        assert_eq!((search.output, second.output), (TaskOutput::None, TaskOutput::Compact));
        assert_eq!(second.tool, ToolKey::new("notion", page));
        assert_eq!(plan.waves(), [[0], [1]]);
        let found = json!({ "results": [{ "id": "abc123" }] });
        let scope = ReferenceScope { result: &|place| (place == 0).then_some(&found), item: None };
        assert_eq!(second.params.resolve(&scope), Ok(json!({ "page_id": "abc123" })));
    }
}

#[test]
fn a_batch_may_come_as_a_list_as_lines_or_as_text_of_a_list() {
    let one = r#"{"id":"a","module":"m","tool":"t"}"#;
    let two = r#"{"id":"b","module":"m","tool":"t","after":"a"}"#;
    for text in [
        format!("{one}\n{two}"),
        format!("\n{one}\r\n\r\n  {two}  \r\n\n"),
        format!("\u{feff}{one}\n{two}"),
        format!("[{one},\n{two}]"),
        format!(" \n[{one}, {two}]\n"),
        format!("{}\n{}", one.replace(',', ",\n  "), two.replace(',', ",\r\n  ")),
        json!(format!("{one}\n{two}")).to_string(),
    ] {
        assert_eq!(plan(&json!(text)).waves(), [[0], [1]], "{text}");
    }
    assert_eq!(plan(&json!([one, two])).waves(), [[0], [1]]);
}

#[test]
fn a_text_in_a_task_may_hold_line_breaks() {
    let line = json!({ "id": "a", "module": "m", "tool": "t", "params": { "text": "one\ntwo\r\n" } }).to_string();
    assert_eq!(written(&plan(&json!(line)).tasks[0].params), json!({ "text": "one\ntwo\r\n" }));
}
