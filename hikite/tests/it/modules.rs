//! The `modules` surface and the four default tools, with the examples of seeds 000 and 004 verbatim.

use hikite_testkit::gateway::{StatelessEnvelope, TestGateway};
use serde_json::{Value, json};

use crate::identity::{client, token};
use crate::{configured, error_of, http_fixture, stdio, with};

/// Starts the two services of the seeds with the default surface.
async fn two() -> TestGateway {
    let notion =
        with(stdio(&["--catalog", "notion"]), "description", "Notion API - ページ・データベース・ブロック操作");
    let jira = with(stdio(&["--catalog", "jira"]), "description", "Jira API - Issue/Project操作");
    configured(json!({ "mcpServers": { "notion": notion, "jira": jira } })).await
}

#[track_caller]
fn array(result: &Value) -> Vec<Value> {
    assert!(result.get("isError").is_none(), "{result}");
    serde_json::from_str(text(result)).expect("an array")
}

#[track_caller]
fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{result}"))
}

/// Returns the result of a tool as JSON.
#[track_caller]
fn value(result: &Value) -> Value {
    assert!(result.get("isError").is_none(), "{result}");
    serde_json::from_str(text(result)).expect("JSON")
}

#[tokio::test]
async fn four_tools_with_one_line_for_each_module() {
    let gateway = two().await;
    let client = gateway.client("").await;
    let list = client.request("tools/list", json!({})).await.expect("a list");
    let tools = list["tools"].as_array().expect("tools");
    let names: Vec<&str> = tools.iter().filter_map(|tool| tool["name"].as_str()).collect();
    assert_eq!(names, ["get_module_schema", "call", "batch", "tool_discovery"]);
    let menu = tools[0]["description"].as_str().expect("text");
    assert!(
        menu.ends_with(
            "\n\nModules:\n- notion: Notion API - ページ・データベース・ブロック操作\n- jira: Jira API - Issue/Project操作"
        ),
        "{menu}"
    );
    assert!(!tools[3].to_string().contains("Jira"), "the list stands once");
    assert_eq!(tools[0]["annotations"]["readOnlyHint"], true);
    assert_eq!(
        (&tools[1]["annotations"]["destructiveHint"], &tools[2]["annotations"]["readOnlyHint"]),
        (&json!(true), &json!(false))
    );
    let words = client.welcome()["instructions"].as_str().expect("instructions").to_owned();
    assert!(words.contains("`get_module_schema`") && words.contains("`tool_discovery`"), "{words}");
    assert_eq!(gateway.client("modules").await.names("tools/list").await, ["get_module_schema", "call", "batch"]);
    let tokens = hikite_tokens(&list);
    assert!(tokens < 1000, "four tools and two lines cost about {tokens} tokens");
}

/// Returns the token cost of the list, estimated as the gateway does.
fn hikite_tokens(list: &Value) -> usize {
    let tools = list["tools"].as_array().expect("tools");
    let seen = tools.iter().map(|tool| json!([tool["name"], tool["description"], tool["inputSchema"]]).to_string());
    seen.map(|text| hikite_core::tokens::estimate(&text)).sum()
}

#[tokio::test]
async fn modules_are_opened_as_both_seeds_write_it() {
    let gateway = two().await;
    let client = gateway.client("").await;
    let both = array(&client.call("get_module_schema", json!({ "modules": ["notion", "jira"] })).await);
    let faces: Vec<(&str, &str)> = both
        .iter()
        .map(|module| (module["module"].as_str().expect("a name"), module["api_version"].as_str().expect("a version")))
        .collect();
    assert_eq!(faces, [("notion", "2022-06-28"), ("jira", "3")]);
    let notion = &both[0];
    assert_eq!(notion["description"], "Notion API - ページ・データベース・ブロック操作");
    assert_eq!(
        notion["tools"][2],
        "get_page_content(page_id: string, fetch_all?: boolean = false /* Read on until nothing is left */, \
         page_size?: integer = 100, start_cursor?: string) // Reads the blocks of one page, page by page or all at once."
    );
    assert_eq!(notion["resources"][1]["uriTemplate"], "notion://pages/{page_id}");
    assert_eq!(notion["prompts"], json!(["summarize_page(page_id, language?) // Sums up one page."]));
    assert_eq!((&both[1]["resources"], &both[1]["prompts"]), (&json!([]), &json!([])));
    let again = array(&client.call("get_module_schema", json!({ "module": "notion" })).await);
    assert_eq!((&again[0]["unchanged"], &again[0]["hash"]), (&json!(true), &notion["hash"]));
    let other = gateway.client("").await;
    let fresh = array(&other.call("get_module_schema", json!({ "module": "notion" })).await);
    assert_eq!(&fresh[0], notion, "another conversation has not seen it");

    let stateless = gateway.stateless("", StatelessEnvelope::default());
    let twice =
        async |arguments: Value| array(&stateless.call("get_module_schema", arguments).await.result()).remove(0);
    assert_eq!(&twice(json!({ "module": "notion" })).await, notion);
    assert_eq!(&twice(json!({ "module": "notion" })).await, notion, "without a conversation it is always sent");
    assert_eq!(twice(json!({ "module": "notion", "known": [notion["hash"]] })).await["unchanged"], true);
}

#[tokio::test]
async fn a_tool_is_called_as_both_seeds_write_it() {
    let gateway = two().await;
    let client = gateway.client("").await;
    let found = json!({ "module": "notion", "tool": "search", "params": { "query": "設計" } });
    let found = value(&client.call("call", found).await);
    let titles: Vec<&str> = found["results"]
        .as_array()
        .expect("results")
        .iter()
        .map(|page| {
            page["properties"]["title"]["title"][0]["plain_text"].as_str().or(page["title"][0]["plain_text"].as_str())
        })
        .map(|title| title.expect("a title"))
        .collect();
    assert_eq!(titles, ["設計ドキュメント", "API設計メモ", "DB設計"]);
    let memo = json!({ "module": "notion", "tool_name": "search", "params": { "query": "会議メモ" } });
    let memo = value(&client.call("call", memo).await);
    assert_eq!((&memo["has_more"], memo["results"].as_array().map(Vec::len)), (&json!(false), Some(1)));
    let page = memo["results"][0]["id"].as_str().expect("an id");
    let read = async |params: Value| {
        let call = json!({ "toolKey": "notion:get_page_content", "params": params });
        let blocks = value(&client.call("call", call).await);
        (blocks["results"].as_array().map_or(0, Vec::len), blocks["has_more"].clone())
    };
    assert_eq!(read(json!({ "page_id": page })).await, (100, json!(true)));
    assert_eq!(read(json!({ "page_id": page, "fetch_all": true, "page_size": 100 })).await, (250, json!(false)));
    assert_eq!(read(json!({ "page_id": page, "start_cursor": "block-200" })).await, (50, json!(false)));
}

#[tokio::test]
async fn resources_and_prompts_come_through_call() {
    let gateway = two().await;
    let client = gateway.client("").await;
    let read = client.call("call", json!({ "uri": "notion://pages/1f2e3d4c-0004-4a5b-8c6d-9876fe9876fe" })).await;
    assert!(text(&read).starts_with("# 会議メモ\n\nこれは本文です。"), "{read}");
    let none = error_of(&client.call("call", json!({ "uri": "other://x" })).await);
    assert_eq!(none["code"], "NOT_FOUND");
    let prompt = json!({ "module": "notion", "prompt": "summarize_page", "params": { "page_id": "p1" } });
    let prompt = client.call("call", prompt).await;
    assert_eq!(text(&prompt), "user: ページ p1 を日本語で要約してください。");
    let (_fixture, web) = http_fixture().await;
    let gateway = configured(json!({ "mcpServers": { "web": web } })).await;
    let client = gateway.client("").await;
    let picture = client.call("call", json!({ "uri": "test://static-binary" })).await;
    assert_eq!(picture["content"][0]["type"], "resource");
    assert_eq!(picture["content"][0]["resource"]["mimeType"], "image/png");
}

#[tokio::test]
async fn what_is_wrong_is_told_with_what_to_do() {
    let gateway = two().await;
    let client = gateway.client("").await;
    let error = async |name: &str, arguments: Value| error_of(&client.call(name, arguments).await);
    let wrong = error("get_module_schema", json!({ "module": "notoin" })).await;
    assert_eq!((&wrong["code"], &wrong["hint"]), (&json!("NOT_FOUND"), &json!("Did you mean `notion`?")));
    let some = client.call("get_module_schema", json!({ "modules": ["notoin", "jira"] })).await;
    let some = array(&some);
    assert_eq!((&some[0]["error"]["code"], some[1]["tools"].is_array()), (&json!("NOT_FOUND"), true));
    let wrong = error("call", json!({ "module": "notion", "tool": "get_pages" })).await;
    assert_eq!(wrong["code"], "TOOL_NOT_FOUND");
    assert!(wrong["hint"].as_str().is_some_and(|hint| hint.contains("`get_page`")), "{wrong}");
    let wrong = error("call", json!({ "module": "notion", "tool": "get_page", "params": { "id": 1 } })).await;
    assert_eq!((&wrong["code"], &wrong["schema"]["required"]), (&json!("VALIDATION_ERROR"), &json!(["page_id"])));
    let wrong = error("call", json!({ "modul": "notion", "tool": 1, "format": "yaml" })).await;
    for part in ["Did you mean `module`?", "`tool` must be a string.", "`format` must be"] {
        assert!(wrong["message"].as_str().is_some_and(|text| text.contains(part)), "{part}: {wrong}");
    }
    assert!(wrong["schema"]["properties"]["params"].is_object());
}

#[tokio::test]
async fn a_hidden_module_and_a_hidden_tool_look_absent() {
    let notion = stdio(&["--catalog", "notion"]);
    let jira = stdio(&["--catalog", "jira"]);
    let permissions = json!({ "allow": ["notion"], "deny": ["notion:delete_block"] });
    let gateway = configured(json!({
        "mcpServers": { "notion": notion, "jira": jira },
        "projects": { "work": { "members": ["alice"], "permissions": permissions } },
    }))
    .await;
    let made = token(&gateway, json!({ "name": "laptop", "project": "work", "subject": "alice" })).await;
    let client = client(&gateway, "/mcp", &made.secret).await;
    let list = client.request("tools/list", json!({})).await.expect("a list").to_string();
    assert!(list.contains("notion") && !list.contains("jira"), "{list}");
    let told = async |name: &str, arguments: Value, word: &str| {
        client.call(name, arguments).await.to_string().replace(word, "WORD")
    };
    assert_eq!(
        told("get_module_schema", json!({ "module": "jira" }), "jira").await,
        told("get_module_schema", json!({ "module": "qqqq" }), "qqqq").await
    );
    assert_eq!(
        told("call", json!({ "module": "jira", "tool": "search" }), "jira").await,
        told("call", json!({ "module": "qqqq", "tool": "search" }), "qqqq").await
    );
    assert_eq!(
        told("call", json!({ "module": "notion", "tool": "delete_block" }), "delete_block").await,
        told("call", json!({ "module": "notion", "tool": "zzzzzz_zzzzz" }), "zzzzzz_zzzzz").await
    );
    let opened = client.call("get_module_schema", json!({ "module": "notion", "detail": "names" })).await;
    assert_eq!(array(&opened)[0]["tools"].as_array().map(Vec::len), Some(5), "{opened}");
}

/// Lines of a seed.
const CHAIN: &str = r#"{"id":"search","module":"notion","tool":"search","params":{"query":"設計"}}
{"id":"page","module":"notion","tool":"get_page_content","params":{"page_id":"${search.results[0].id}"},"after":["search"],"output":true}"#;
const MEMO: &str = r#"{"id":"search","module":"notion","tool":"search","params":{"query":"会議メモ"}}
{"id":"get_page","module":"notion","tool":"get_page","params":{"page_id":"${search.results[0].id}"},"after":"search","output":true}"#;

#[tokio::test]
async fn both_batches_of_the_seeds_run_as_they_are_written() {
    let gateway = two().await;
    let client = gateway.client("").await;
    for (lines, last, word) in [(CHAIN, "page", "本文の第1段落"), (MEMO, "get_page", "会議メモ")] {
        let answer = value(&client.call("batch", json!({ "commands": lines })).await);
        let tasks = answer["tasks"].as_array().expect("tasks");
        let statuses: Vec<(&str, &str)> = tasks
            .iter()
            .map(|task| (task["id"].as_str().expect("an id"), task["status"].as_str().expect("a status")))
            .collect();
        assert_eq!(statuses, [("search", "ok"), (last, "ok")], "{answer}");
        assert!(tasks[0].get("result").is_none(), "nobody asked for it: {answer}");
        assert!(tasks[1]["result"].to_string().contains(word), "{answer}");
        assert_eq!(answer["summary"]["ok"], 2);
    }
}

#[tokio::test]
async fn the_four_rows_of_the_output_table() {
    let gateway = two().await;
    let client = gateway.client("").await;
    let call = json!({ "module": "notion", "tool": "search", "params": { "query": "設計" } });
    let whole = value(&client.call("call", call.clone()).await);
    for (output, raw, form) in
        [(false, false, "none"), (true, false, "compact"), (false, true, "raw"), (true, true, "raw")]
    {
        let mut task = call.clone();
        task["id"] = "a".into();
        task["output"] = output.into();
        task["raw_output"] = raw.into();
        let answer = value(&client.call("batch", json!({ "commands": [task] })).await);
        let result = answer["tasks"][0].get("result");
        match form {
            "none" => assert_eq!(result, None),
            "raw" => assert_eq!(result, Some(&whole)),
            _ => {
                let text = result.and_then(Value::as_str).unwrap_or_else(|| panic!("{answer}"));
                assert!(text.contains("設計ドキュメント"), "{text}");
                assert!(text.len() < whole.to_string().len(), "{text}");
            }
        }
    }
}

#[tokio::test]
async fn a_part_of_a_result_is_given_in_fewer_bytes() {
    let gateway = two().await;
    let client = gateway.client("").await;
    let call = async |more: Value| {
        let mut call = json!({ "module": "notion", "tool": "search", "params": { "query": "設計" } });
        call.as_object_mut().expect("an object").extend(more.as_object().cloned().unwrap_or_default());
        client.call("call", call).await
    };
    let whole = call(json!({ "format": "raw" })).await;
    let compact = call(json!({ "format": "compact" })).await;
    assert!(text(&compact).len() < text(&whole).len() && text(&compact).contains("DB設計"), "{compact}");
    assert!(compact["_meta"]["hikite/answer"]["form"].is_string(), "{compact}");
    let ids = call(json!({ "select": "id,url" })).await;
    assert!(text(&ids).contains("1f2e3d4c-0003") && !text(&ids).contains("created_time"), "{ids}");
}
