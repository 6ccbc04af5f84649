//! Batches in both notations, and every possible end of a task.

mod end;
mod fixture;
mod refuse;

use hikite_core::limits::Limits;
use hikite_core::plan::OnError;
use serde_json::{Value, json};

use super::Batch;
use fixture::{BatchFixture, batch, statuses, task, with};

#[tokio::test(start_paused = true)]
async fn the_example_of_the_specification_runs_as_it_is_written() {
    let scene = BatchFixture::open();
    let lines = r#"{"id":"search","module":"notion","tool":"search","params":{"query":"設計"}}
{"id":"page","module":"notion","tool":"get_page","params":{"page_id":"${search.results[0].id}"},"after":["search"],"output":true}"#;
    let result = scene.result(&json!(lines)).await;
    let document = json!({
        "tasks": [
            { "id": "search", "status": "ok", "ms": 0 },
            { "id": "page", "status": "ok", "result": result["structuredContent"]["tasks"][1]["result"], "ms": 0 },
        ],
        "summary": { "ok": 2, "error": 0, "skipped": 0, "timeout": 0, "cancelled": 0 },
    });
    assert_eq!(result["structuredContent"], document);
    assert_eq!(result["content"], json!([{ "type": "text", "text": document.to_string() }]));
    assert_eq!(result.get("isError"), None);
    let page = document["tasks"][1]["result"].as_str().expect("compact results are text");
    assert!(page.contains("# p1") && page.contains("本文"), "{page}");
    let calls = scene.stage.calls.lock().clone();
    assert_eq!(calls[1], ("get_page".into(), json!({ "page_id": "p1" })));
}

#[tokio::test(start_paused = true)]
async fn the_example_of_the_other_specification_runs_too() {
    let scene = BatchFixture::open();
    let tasks = json!([
        task("search", "search", json!({ "query": "会議メモ" })),
        with(
            task("get_page", "get_page", json!({ "page_id": "${search.results[0].id}" })),
            json!({ "after": "search", "output": true })
        ),
    ]);
    assert_eq!(statuses(&scene.run(&tasks).await), ["search ok", "get_page ok"]);
}

#[tokio::test(start_paused = true)]
async fn output_says_whether_and_in_which_form_a_result_is_given() {
    let scene = BatchFixture::open();
    let mut tasks = Vec::new();
    for (number, flags) in [
        json!({}),
        json!({ "output": true }),
        json!({ "raw_output": true }),
        json!({ "output": true, "raw_output": true }),
    ]
    .into_iter()
    .enumerate()
    {
        tasks.push(with(task(&format!("t{number}"), "echo", json!({ "n": [1, 2] })), flags));
    }
    let document = scene.run(&json!(tasks)).await;
    let result = |at: usize| document["tasks"][at].get("result").cloned();
    assert_eq!(result(0), None);
    assert!(result(1).is_some_and(|result| result.is_string()), "{document}");
    assert_eq!((result(2), result(3)), (Some(json!({ "n": [1, 2] })), Some(json!({ "n": [1, 2] }))));
}

#[tokio::test(start_paused = true)]
async fn pictures_of_tasks_whose_result_is_wanted_stand_beside_the_document() {
    let scene = BatchFixture::open();
    let tasks = json!([
        task("unseen", "picture", json!({})),
        with(task("seen", "picture", json!({})), json!({ "output": true })),
    ]);
    let result = scene.result(&tasks).await;
    let kinds: Vec<&Value> = result["content"].as_array().expect("blocks").iter().map(|block| &block["type"]).collect();
    assert_eq!(kinds, ["text", "image"]);
}

#[tokio::test(start_paused = true)]
async fn what_is_ready_runs_side_by_side_and_never_more_than_may() {
    let many =
        |count: usize| -> Value { (0..count).map(|n| task(&format!("t{n}"), "sleep", json!({ "ms": 100 }))).collect() };
    for (limit, asked, most) in [(16, None, 16), (16, Some(3), 3), (4, Some(100), 4), (1, None, 1)] {
        let scene = BatchFixture::with(Limits { batch_concurrency: limit, ..Limits::default() });
        let begin = tokio::time::Instant::now();
        let document = scene.send(Batch { concurrency: asked, ..batch(&many(32)) }).await.expect("a plan that runs");
        assert_eq!(document["structuredContent"]["summary"]["ok"], 32);
        assert_eq!(scene.stage.most(), most, "limit {limit}, asked for {asked:?}");
        let rounds = u32::try_from(32_usize.div_ceil(most)).expect("few");
        assert_eq!(begin.elapsed(), std::time::Duration::from_millis(100) * rounds);
    }
}

#[tokio::test(start_paused = true)]
async fn elements_of_a_list_count_like_tasks() {
    let scene = BatchFixture::with(Limits { batch_concurrency: 4, ..Limits::default() });
    let element = json!({ "ms": 100, "n": "${item}", "at": "${index}" });
    let tasks = json!([
        with(
            task("each", "sleep", element),
            json!({ "for_each": ["a", "b", "c", "d", "e", "f", "g"], "raw_output": true })
        ),
        task("beside", "sleep", json!({ "ms": 100 })),
        task("also", "sleep", json!({ "ms": 100 })),
    ]);
    let document = scene.run(&tasks).await;
    assert_eq!(statuses(&document), ["each ok", "beside ok", "also ok"]);
    assert_eq!(scene.stage.most(), 4);
    let given: Vec<Value> = ["a", "b", "c", "d", "e", "f", "g"]
        .iter()
        .enumerate()
        .map(|(at, n)| json!({ "ms": 100, "n": n, "at": at }))
        .collect();
    assert_eq!(document["tasks"][0]["result"], json!(given), "in the order of the list");
}

#[tokio::test(start_paused = true)]
async fn a_failed_element_fails_its_task_unless_it_may_go_on() {
    let scene = BatchFixture::open();
    let tasks = |on_error: &str| {
        json!([
            task("list", "echo", json!({ "ids": ["p1", { "no": "id" }, "p3"] })),
            with(
                task("each", "get_page", json!({ "page_id": "${item}" })),
                json!({ "for_each": "${list.ids}", "on_error": on_error, "raw_output": true })
            ),
            with(task("after", "echo", json!({ "n": "${each[2]?}" })), json!({ "raw_output": true })),
        ])
    };
    let failed = scene.run(&tasks("skip")).await;
    assert_eq!(statuses(&failed), ["list ok", "each error", "after skipped"]);
    let message = failed["tasks"][1]["error"]["message"].as_str().expect("a message");
    assert!(message.starts_with("element 1: "), "{message}");
    let went_on = scene.run(&tasks("continue")).await;
    assert_eq!(statuses(&went_on), ["list ok", "each ok", "after ok"]);
    assert_eq!(went_on["tasks"][1]["result"], json!(["# p1\n\n本文", null, "# p3\n\n本文"]));
    assert_eq!(went_on["tasks"][2]["result"], json!({ "n": "# p3\n\n本文" }));
}

#[tokio::test(start_paused = true)]
async fn a_list_must_be_one_and_not_too_long() {
    let scene = BatchFixture::with(Limits { batch_tasks: 3, ..Limits::default() });
    for (list, status, said) in [
        (json!([]), "each ok", None),
        (json!([1, 2, 3]), "each ok", None),
        (json!([1, 2, 3, 4]), "each error", Some("`for_each` has 4 elements; the limit is 3.")),
        (json!({ "a": 1 }), "each error", Some("`for_each` must be a list.")),
    ] {
        let tasks = json!([
            task("list", "echo", json!({ "it": list })),
            with(task("each", "echo", json!({})), json!({ "for_each": "${list.it}" })),
        ]);
        let document = scene.run(&tasks).await;
        assert_eq!(statuses(&document)[1], status, "{list}");
        assert_eq!(document["tasks"][1]["error"]["message"].as_str(), said, "{list}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_condition_that_does_not_hold_skips_the_task_and_what_waits_for_it() {
    let scene = BatchFixture::open();
    let tasks = json!([
        task("look", "echo", json!({ "count": 0 })),
        with(task("write", "echo", json!({})), json!({ "if": "${look.count} > 0" })),
        with(task("then", "echo", json!({})), json!({ "after": "write" })),
        with(task("other", "echo", json!({})), json!({ "if": "${look.count} == 0" })),
    ]);
    let document = scene.run(&tasks).await;
    assert_eq!(statuses(&document), ["look ok", "write skipped", "then skipped", "other ok"]);
    assert_eq!((&document["tasks"][1]["cause"], &document["tasks"][2]["cause"]), (&json!("if"), &json!("write")));
}

#[tokio::test(start_paused = true)]
async fn a_reference_that_leads_nowhere_says_what_there_is() {
    let scene = BatchFixture::open();
    let tasks = json!([
        task("a", "echo", json!({ "id": 1 })),
        task("b", "echo", json!({ "n": "${a.uid}" })),
        with(task("c", "echo", json!({ "n": "${a.uid?}" })), json!({ "raw_output": true })),
    ]);
    let document = scene.run(&tasks).await;
    assert_eq!(statuses(&document), ["a ok", "b error", "c ok"]);
    let error = &document["tasks"][1]["error"];
    assert_eq!(error["code"], "VALIDATION_ERROR");
    assert!(error["message"].as_str().is_some_and(|message| message.contains("${a.uid}")), "{error}");
    assert_eq!(document["tasks"][2]["result"], json!({ "n": null }));
}

#[tokio::test(start_paused = true)]
async fn what_is_filled_in_is_held_against_the_schema_like_any_call() {
    let scene = BatchFixture::open();
    let tasks = json!([
        task("a", "echo", json!({ "id": { "deep": true } })),
        task("b", "get_page", json!({ "page_id": "${a.id}" })),
    ]);
    let document = scene.run(&tasks).await;
    assert_eq!(statuses(&document), ["a ok", "b error"]);
    let error = &document["tasks"][1]["error"];
    assert_eq!(
        (&error["code"], &error["hint"]),
        (&json!("VALIDATION_ERROR"), &json!("Correct the params of this task."))
    );
    assert_eq!(scene.stage.calls(), ["echo"]);
}

#[tokio::test(start_paused = true)]
async fn one_failure_in_each_place_of_a_diamond_means_what_was_asked_for() {
    // Runs a, then b and c concurrently, then d.
    let tasks = |fails: &str| -> Value {
        let after = [("a", &[][..]), ("b", &["a"]), ("c", &["a"]), ("d", &["b", "c"])];
        let one = |(id, after): (&str, &[&str])| {
            let tool = if id == fails { "fail" } else { "sleep" };
            let ms = if id == "c" { 50 } else { 10 };
            with(task(id, tool, json!({ "ms": ms, "text": "no" })), json!({ "after": after }))
        };
        after.into_iter().map(one).collect()
    };
    for (fails, on_error, expected) in [
        ("a", OnError::Skip, "a error, b skipped, c skipped, d skipped"),
        ("b", OnError::Skip, "a ok, b error, c ok, d skipped"),
        ("c", OnError::Skip, "a ok, b ok, c error, d skipped"),
        ("d", OnError::Skip, "a ok, b ok, c ok, d error"),
        ("a", OnError::Continue, "a error, b ok, c ok, d ok"),
        ("b", OnError::Continue, "a ok, b error, c ok, d ok"),
        ("d", OnError::Continue, "a ok, b ok, c ok, d error"),
        ("a", OnError::FailFast, "a error, b cancelled, c cancelled, d cancelled"),
        ("b", OnError::FailFast, "a ok, b error, c cancelled, d cancelled"),
        ("d", OnError::FailFast, "a ok, b ok, c ok, d error"),
    ] {
        let scene = BatchFixture::open();
        let result = scene.send(Batch { on_error, ..batch(&tasks(fails)) }).await.expect("a plan that runs");
        let document = &result["structuredContent"];
        assert_eq!(statuses(document).join(", "), expected, "{on_error:?}");
        for task in document["tasks"].as_array().expect("tasks") {
            let caused = matches!(task["status"].as_str(), Some("skipped" | "cancelled"));
            assert_eq!(task.get("cause").is_some(), caused, "{task}");
        }
        let none_ok = !expected.contains("ok");
        assert_eq!(result.get("isError").is_some(), none_ok, "{result}");
        assert_eq!(scene.stage.running(), 0);
    }
}
