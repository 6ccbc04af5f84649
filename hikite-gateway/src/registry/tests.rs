//! Registered tools as seed 001 specifies them: rules, messages and persistence.

use hikite_core::caller::Caller;
use hikite_core::error::{Error, ErrorKind};
use hikite_core::json::{Object, Raw};
use hikite_core::source::CallOrigin;
use serde_json::{Value, json};

use crate::command::CallOptions;
use crate::gateway::Gateway;
use crate::surface::ToolFilter;
use crate::{fake, probe};

fn form(value: &Value) -> Object {
    Raw::of(value).object().expect("an object")
}

/// Returns the smallest valid document, extended by `more`.
fn tool(name: &str, more: &Value) -> Object {
    let mut all = json!({ "name": name, "description": "Test tool", "http": { "url": "https://api.example/" } });
    for (key, value) in more.as_object().expect("an object") {
        all[key] = value.clone();
    }
    form(&all)
}

async fn names(gateway: &Gateway, filter: ToolFilter) -> Vec<String> {
    let found = gateway.tools_page(&Caller::owner(), &filter, 0, 100).await.expect("a page");
    found.items.iter().map(|item| item.value()["name"].as_str().expect("a name").to_owned()).collect()
}

async fn call(gateway: &Gateway, name: &str, parameters: Value) -> Result<Value, Error> {
    let context = fake::context("owner");
    let answer = gateway.run_tool(name, Some(Raw::of(&parameters)), CallOptions::default(), context).await?;
    Ok(answer.value.value())
}

#[tokio::test]
async fn should_register_a_tool_successfully() {
    let gateway = probe::gateway().await;
    let shown = gateway.register(&tool("test", &json!({ "parameters": [] }))).await.expect("registered").value();
    assert_eq!(shown["key"], "registered:test");
    assert_eq!((&shown["version"], &shown["enabled"]), (&json!("1.0.0"), &json!(true)));
    assert!(shown["registeredAt"].as_str().expect("a moment").ends_with('Z'));
    assert!(gateway.tool(&Caller::owner(), "test").await.is_ok());
    assert_eq!(call(&gateway, "test", json!({ "a": 1 })).await.expect("a value")["arguments"], json!({ "a": 1 }));
}

#[tokio::test]
async fn should_throw_error_for_duplicate_tool_names() {
    let gateway = probe::gateway().await;
    gateway.register(&tool("test", &json!({}))).await.expect("the first");
    let error = gateway.register(&tool("test", &json!({}))).await.expect_err("the second");
    assert_eq!((error.kind, &*error.message), (ErrorKind::Conflict, "Tool \"test\" is already registered"));
    let again = tool("test", &json!({ "overwrite": true, "version": "2.0.0" }));
    assert_eq!(gateway.register(&again).await.expect("overwritten").value()["version"], "2.0.0");
}

#[tokio::test]
async fn what_is_wrong_with_a_form_is_told_in_the_words_of_the_specification_and_all_at_once() {
    let gateway = probe::gateway().await;
    let pattern = "Tool name must start with lowercase letter and contain only lowercase letters, numbers, and hyphens";
    let cases = [
        (json!({ "name": null }), "Tool name is required"),
        (json!({ "name": "  " }), "Tool name is required"),
        (json!({ "name": "Upper" }), pattern),
        (json!({ "name": "1st" }), pattern),
        (json!({ "name": "under_score" }), pattern),
        (json!({ "name": "-dash" }), pattern),
        (json!({ "description": "" }), "Tool description is required"),
        (json!({ "description": null }), "Tool description is required"),
        (json!({ "name": 5 }), "`name` must be a string."),
        (json!({ "tags": "a" }), "`tags` must be a list of at most 64 words."),
        (json!({ "timeout": -1 }), "`timeout` must be an integer of at least 0."),
        (json!({ "tag": ["a"] }), "Unknown member `tag`. Did you mean `tags`?"),
        (json!({ "http": null }), "`http` is required: the HTTP request of the tool."),
        (json!({ "http": {} }), "`url` is required"),
    ];
    for (change, message) in cases {
        let error = gateway.register(&tool("fine", &change)).await.expect_err(message);
        assert_eq!((error.kind, &*error.message), (ErrorKind::Validation, message), "{change}");
    }
    let error = gateway.register(&form(&json!({ "name": "X" }))).await.expect_err("two faults");
    let details = error.details.expect("details").value();
    let pointers: Vec<&str> =
        details.as_array().expect("a list").iter().filter_map(|fault| fault["pointer"].as_str()).collect();
    assert_eq!(pointers, ["/name", "/description"]);
    assert!(names(&gateway, ToolFilter::default()).await.is_empty(), "nothing was registered");
}

#[tokio::test]
async fn tools_are_filtered_found_switched_and_removed() {
    let gateway = probe::gateway().await;
    let more = json!({ "tags": ["mail", "daily"], "category": "office", "module": "post" });
    gateway.register(&tool("send", &more)).await.expect("registered");
    gateway.register(&tool("weather", &json!({ "tags": ["daily"] }))).await.expect("registered");
    let by_tag = |tags: &[&str]| ToolFilter {
        tags: tags.iter().map(|tag| (*tag).to_owned()).collect(),
        ..ToolFilter::default()
    };
    assert_eq!(names(&gateway, by_tag(&["daily"])).await, ["send", "weather"]);
    assert_eq!(names(&gateway, by_tag(&["daily", "mail"])).await, ["send"]);
    let office = ToolFilter { category: Some("office".into()), ..ToolFilter::default() };
    assert_eq!(names(&gateway, office).await, ["send"]);
    let found =
        gateway.find_tools((&Caller::owner(), &CallOrigin::default()), "weather", &ToolFilter::default(), 5).await;
    let found = found.expect("an answer");
    assert_eq!((found.total, &found.items[0].value()["relevance"]), (1, &json!(1.0)));

    assert_eq!(gateway.switch("post:send", false).await.expect("switched").value()["enabled"], false);
    let off = ToolFilter { enabled: Some(false), ..ToolFilter::default() };
    assert_eq!(names(&gateway, off).await, ["send"]);
    assert_eq!(call(&gateway, "send", json!({})).await.expect_err("off").kind, ErrorKind::ToolDisabled);
    gateway.switch("send", true).await.expect("switched");
    assert!(call(&gateway, "send", json!({})).await.is_ok());

    gateway.unregister("send").await.expect("gone");
    assert_eq!(call(&gateway, "send", json!({})).await.expect_err("gone").kind, ErrorKind::ToolNotFound);
    assert_eq!(gateway.unregister("send").await.expect_err("gone").kind, ErrorKind::ToolNotFound);
    assert_eq!(gateway.switch("send", true).await.expect_err("gone").kind, ErrorKind::ToolNotFound);
}

#[tokio::test]
async fn a_tool_whose_dependency_is_missing_or_disabled_says_so() {
    let gateway = probe::gateway().await;
    gateway.register(&tool("top", &json!({ "dependencies": ["middle"] }))).await.expect("registered");
    let error = call(&gateway, "top", json!({})).await.expect_err("middle is missing");
    assert_eq!(error.kind, ErrorKind::ToolDisabled);
    assert_eq!(&*error.message, "The tool `top` is disabled: it needs `middle`, which is not registered.");
    gateway.register(&tool("middle", &json!({ "dependencies": ["registered:base"] }))).await.expect("registered");
    gateway.register(&tool("base", &json!({}))).await.expect("registered");
    assert!(call(&gateway, "top", json!({})).await.is_ok());
    gateway.switch("base", false).await.expect("switched");
    let error = call(&gateway, "top", json!({})).await.expect_err("base is off, so middle is");
    assert_eq!(&*error.message, "The tool `top` is disabled: it needs `middle`, which is disabled.");
    let shown = gateway.tool(&Caller::owner(), "middle").await.expect("shown").value();
    assert_eq!(shown["disabledReason"], "it needs `registered:base`, which is disabled");
}

#[tokio::test]
async fn tools_that_need_each_other_run() {
    let gateway = probe::gateway().await;
    gateway.register(&tool("chicken", &json!({ "dependencies": ["egg"] }))).await.expect("registered");
    gateway.register(&tool("egg", &json!({ "dependencies": ["chicken"] }))).await.expect("registered");
    assert!(call(&gateway, "egg", json!({})).await.is_ok());
}

#[tokio::test]
async fn tools_and_switches_survive_a_restart_and_reach_other_processes() {
    let store = probe::store().await;
    let first = probe::gateway_on(store.clone()).await;
    let second = probe::gateway_on(store.clone()).await;
    first.register(&tool("kept", &json!({ "author": "me" }))).await.expect("registered");
    first.switch("kept", false).await.expect("switched");
    let shown = first.tool(&Caller::owner(), "kept").await.expect("shown");

    let later = probe::gateway_on(store.clone()).await;
    assert_eq!(later.tool(&Caller::owner(), "kept").await.expect("kept"), shown);
    assert!(second.tool(&Caller::owner(), "kept").await.is_err());
    second.catch_up_with_store().await.expect("read");
    assert_eq!(second.tool(&Caller::owner(), "kept").await.expect("kept"), shown);

    second.unregister("kept").await.expect("gone");
    first.catch_up_with_store().await.expect("read");
    assert!(first.tool(&Caller::owner(), "kept").await.is_err());
    first.register(&tool("kept", &json!({}))).await.expect("the name is free again");
    assert!(call(&first, "kept", json!({})).await.is_ok(), "and its switch is forgotten");
}

#[tokio::test]
async fn a_tool_that_two_processes_register_at_once_is_registered_by_one() {
    let store = probe::store().await;
    let (first, second) = (probe::gateway_on(store.clone()).await, probe::gateway_on(store).await);
    let form = tool("race", &json!({}));
    let (one, other) = tokio::join!(first.register(&form), second.register(&form));
    assert!(one.is_ok() != other.is_ok(), "{one:?} {other:?}");
}
