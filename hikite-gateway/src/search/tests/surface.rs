//! The two tools of the `search` surface as a client sees them.

use std::sync::Arc;

use hikite_core::caller::Caller;
use hikite_core::limits::Limits;
use hikite_core::listing::ListKind;
use hikite_core::tokens::estimate;
use serde_json::{Value, json};

use super::{TOOLS, ToolListSource, call, discover, gateway, gateway_on, keys, meta};
use crate::list::ListPage;
use crate::probe::store;
use crate::search::SearchSettings;
use crate::surface::{Surface, Surfaces};

async fn listed(gateway: &crate::gateway::Gateway) -> Value {
    let page = ListPage::default();
    gateway
        .list(&Caller::owner(), Surfaces::of([Surface::Search]), ListKind::Tools, page)
        .await
        .expect("a list")
        .value()
}

#[tokio::test]
async fn there_are_two_tools_and_the_first_tells_what_there_is() {
    let (source, empty) = (ToolListSource::of(TOOLS), ToolListSource::of(&[]));
    let gateway = gateway_on(store().await, &[("files", &source), ("nothing", &empty)]);
    let list = listed(&gateway).await;
    let names: Vec<&str> = list["tools"].as_array().expect("tools").iter().filter_map(|t| t["name"].as_str()).collect();
    assert_eq!(names, ["tool_discovery", "tool_execute"]);
    let text = list["tools"][0]["description"].as_str().expect("text");
    assert!(text.contains("\n- files: What files does. And more."), "{text}");
    assert!(!text.contains("nothing"), "{text}");
    assert_eq!(listed(&gateway).await, list);
}

#[tokio::test]
async fn many_modules_are_named_and_far_too_many_are_counted() {
    let source = ToolListSource::of(TOOLS);
    let names: Vec<String> = (0..600).map(|at| format!("module_{at:03}")).collect();
    let modules = |count: usize| names.iter().take(count).map(|name| (name.as_str(), &source)).collect::<Vec<_>>();
    for (count, lines, more) in [(30, true, false), (90, true, false), (250, false, false), (600, false, true)] {
        let gateway = gateway_on(store().await, &modules(count));
        let list = listed(&gateway).await;
        let text = list["tools"][0]["description"].as_str().expect("text").to_owned();
        let list = text.split_once("Available modules:").expect("a list").1;
        assert!(estimate(list) <= Limits::default().menu_tokens, "{list}");
        assert_eq!(
            (list.contains("What module_"), list.contains("more: `tool_discovery` finds")),
            (lines, more),
            "{list}"
        );
        assert!(text.contains("module_029"), "{text}");
    }
}

#[tokio::test]
async fn a_result_tells_as_much_as_is_asked_for() {
    let (gateway, _) = gateway(SearchSettings::default()).await;
    let first = async |detail: &str| {
        let found = call(&gateway, "tool_discovery", json!({ "query": ["create issue"], "detail": detail })).await;
        assert_eq!(found["content"][0]["text"].as_str().expect("text"), found["structuredContent"].to_string());
        found["structuredContent"]["results"][0].clone()
    };
    let names = first("names").await;
    assert_eq!(
        (&names["toolKey"], &names["toolName"], &names["serverName"]),
        (&json!("m:create_issue"), &json!("create_issue"), &json!("m"))
    );
    assert!(names["relevance"].is_number() && names.get("description").is_none());
    let signatures = first("signatures").await;
    assert_eq!(signatures["signature"], "create_issue(what?: string)");
    assert_eq!(signatures["description"], TOOLS[0].1);
    assert!(signatures.get("inputSchema").is_none());
    let schemas = first("schemas").await;
    assert_eq!(schemas["inputSchema"]["properties"]["what"]["type"], "string");
    assert!(schemas.get("signature").is_none());
}

#[tokio::test]
async fn a_module_that_is_left_alone_is_not_found() {
    let (well, ill) = (ToolListSource::of(&[("read_file", "a file")]), ToolListSource::of(&[("broken", "a file")]));
    let gateway = gateway_on(store().await, &[("well", &well), ("ill", &ill)]);
    assert_eq!(keys(&discover(&gateway, "file").await).len(), 2);
    for _ in 0..20 {
        call(&gateway, "tool_execute", json!({ "toolKey": "ill:broken" })).await;
    }
    let found = discover(&gateway, "file").await;
    assert_eq!((keys(&found), meta(&found)["total"].clone()), (vec!["well:read_file"], json!(1)));
}

#[tokio::test]
async fn errors_stand_in_the_result_and_point_to_near_names() {
    let (gateway, _) = gateway(SearchSettings::default()).await;
    let error = async |arguments: Value| {
        let result = call(&gateway, "tool_execute", arguments).await;
        assert_eq!(result["isError"], true, "{result}");
        result["structuredContent"]["error"].clone()
    };
    let near = error(json!({ "toolKey": "m:creat_issue" })).await;
    assert_eq!(
        (&near["code"], near["hint"].as_str().is_some_and(|hint| hint.contains("create_issue"))),
        (&json!("TOOL_NOT_FOUND"), true),
        "{near}"
    );
    let far = error(json!({ "toolKey": "zzzz" })).await;
    assert!(far["hint"].as_str().is_some_and(|hint| hint.contains("tool_discovery")), "{far}");
    let wrong = error(json!({ "toolKey": "m:create_issue", "arguments": { "what": [] } })).await;
    assert_eq!(
        (&wrong["code"], &wrong["schema"]["properties"]["what"]["type"]),
        (&json!("VALIDATION_ERROR"), &json!("string"))
    );
    gateway.switch("m:create_issue", false).await.expect("off");
    assert_eq!(error(json!({ "toolKey": "m:create_issue" })).await["code"], "TOOL_DISABLED");
    assert!(!keys(&discover(&gateway, "create issue").await).contains(&"m:create_issue"));
    let direct = call(&gateway, "m:read_file", json!({})).await;
    assert!(direct["content"][0]["text"].is_string(), "a known name can be called as it is");
    let _ = Arc::strong_count(&gateway);
}
