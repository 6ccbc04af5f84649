//! Batches that are refused as a whole, and the error messages.

use hikite_core::caller::Scopes;
use hikite_core::error::ErrorKind;
use hikite_core::json::Object;
use hikite_core::limits::Limits;
use serde_json::{Value, json};

use super::fixture::{BatchFixture, batch, task, with};
use crate::command::Batch;
use crate::fake::raw;
use hikite_identity::Project;

fn messages(error: &hikite_core::error::Error) -> Vec<String> {
    let details = error.details.as_ref().expect("details").value();
    details
        .as_array()
        .expect("a list")
        .iter()
        .map(|fault| fault["message"].as_str().expect("text").to_owned())
        .collect()
}

#[tokio::test(start_paused = true)]
async fn everything_that_is_wrong_is_told_before_anything_runs() {
    let scene = BatchFixture::open();
    let tasks = json!([
        task("right", "search", json!({ "query": "x" })),
        task("typo", "serach", json!({ "query": "x" })),
        task("elsewhere", "search", json!({})),
        with(task("no_module", "search", json!({})), json!({ "module": "notoin" })),
        task("filled", "search", json!({ "query": "${right.results[0].id}" })),
        task("number", "search", json!({ "query": { "a": "${right}" } })),
    ]);
    let error = scene.refused(batch(&tasks)).await;
    assert_eq!(error.kind, ErrorKind::Validation);
    let told = messages(&error);
    assert_eq!(told.len(), 4, "{told:#?}");
    assert_eq!(told[0], "task `typo`: There is no tool `notion:serach`. Did you mean `search`?");
    assert!(told[1].starts_with("task `elsewhere`: ") && told[1].contains("query"), "{}", told[1]);
    assert_eq!(told[2], "task `no_module`: There is no tool `notoin:search`. Did you mean `notion:search`?");
    assert!(told[3].starts_with("task `number`: ") && told[3].contains("query"), "{}", told[3]);
    for message in &told {
        assert!(error.message.contains(message.as_str()), "{}", error.message);
    }
    let pointers: Vec<Value> = error.details.expect("details").value().as_array().expect("a list").clone();
    assert_eq!(pointers[0]["pointer"], "/commands/1/tool");
}

#[tokio::test(start_paused = true)]
async fn a_plan_that_is_none_runs_nothing() {
    let scene = BatchFixture::with(Limits { batch_tasks: 2, ..Limits::default() });
    let one = |id: &str| task(id, "echo", json!({}));
    for tasks in [
        json!([]),
        json!(""),
        json!("{\"id\":"),
        json!([one("a"), one("a")]),
        json!([one("a"), one("b"), one("c")]),
        json!([with(one("a"), json!({ "after": "b" })), with(one("b"), json!({ "after": "a" }))]),
        json!([with(one("a"), json!({ "after": "nobody" }))]),
    ] {
        assert_eq!(scene.refused(batch(&tasks)).await.kind, ErrorKind::Validation, "{tasks}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_hidden_tool_looks_absent_and_a_dry_run_tells_nothing_of_it() {
    let mut scene = BatchFixture::open();
    let form = Object::default().with("permissions", raw(r#"{"deny":["notion:echo"]}"#));
    scene.gateway.catalogs().set_projects(vec![std::sync::Arc::new(Project::read("p", &form).expect("a project"))]);
    scene.caller = scene.caller.within("p".into());
    for dry_run in [false, true] {
        let hidden = scene.refused(Batch { dry_run, ..batch(&json!([task("t", "echo", json!({}))])) }).await;
        let absent = scene.refused(Batch { dry_run, ..batch(&json!([task("t", "ekho", json!({}))])) }).await;
        assert_eq!(hidden.message.replace("echo", "ekho"), *absent.message);
        assert!(!absent.message.contains("echo"), "{}", absent.message);
    }
}

#[tokio::test(start_paused = true)]
async fn who_may_use_but_not_look_is_not_told_what_there_is() {
    let mut scene = BatchFixture::open();
    scene.caller.scopes = Scopes::CALL;
    let tasks = json!([task("t", "serach", json!({}))]);
    let error = scene.refused(batch(&tasks)).await;
    assert_eq!(&*error.message, "task `t`: There is no tool `notion:serach`.");
    scene.caller.scopes = Scopes::READ;
    let tasks = json!([task("t", "search", json!({ "query": "x" }))]);
    assert_eq!(scene.refused(batch(&tasks)).await.kind, ErrorKind::Authorization);
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_says_what_would_run_and_runs_nothing() {
    let scene = BatchFixture::open();
    let tasks = json!([
        task("search", "search", json!({ "query": "設計" })),
        task("page", "get_page", json!({ "page_id": "${search.results[0].id}" })),
        with(task("note", "echo", json!({})), json!({ "after": "page" })),
        task("gone", "fail", json!({})),
    ]);
    let result = scene.send(Batch { dry_run: true, ..batch(&tasks) }).await.expect("a right plan");
    let one = |id: &str, tool: &str, wave: u32, risk: &str, params: Value, after: &[&str]| json!({ "id": id, "tool": tool, "wave": wave, "risk": risk, "params": params, "after": after });
    assert_eq!(
        result["structuredContent"],
        json!({
            "waves": [["search", "gone"], ["page"], ["note"]],
            "tasks": [
                one("search", "notion:search", 0, "read", json!({ "query": "設計" }), &[]),
                one("page", "notion:get_page", 1, "read", json!({ "page_id": "${search.results[0].id}" }), &["search"]),
                one("note", "notion:echo", 2, "write", json!({}), &["page"]),
                one("gone", "notion:fail", 0, "destructive", json!({}), &[]),
            ],
        })
    );
    assert_eq!(result.get("isError"), None);
    assert_eq!(scene.stage.calls(), [""; 0]);
}
