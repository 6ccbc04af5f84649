//! The `categories` surface, as specified by seed 002.

use std::time::{Duration, Instant};

use hikite_testkit::fixture::{FixtureOptions, FixtureTransport};
use hikite_testkit::gateway::TestGateway;
use serde_json::{Value, json};

use crate::{configured, error_of, fixture, http_fixture, stdio};

/// Returns a server at an address where nothing listens.
fn dead() -> Value {
    json!({ "description": "down", "type": "http", "url": "http://127.0.0.1:9/mcp" })
}

#[expect(clippy::needless_pass_by_value, reason = "reads like the JSON it makes")]
fn category(server: impl Into<Value>, tools: Value) -> Value {
    json!({ "description": "Some tools.", "server": server.into(), "tools": tools })
}

async fn describe(gateway: &TestGateway, arguments: Value) -> Value {
    gateway.client("categories").await.call("get-category-tools", arguments).await
}

/// Returns the document of a `get-category-tools` result, equal as text and as structured content.
#[track_caller]
fn document(result: &Value) -> Value {
    let text = result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{result}"));
    assert_eq!(serde_json::from_str::<Value>(text).expect("JSON"), result["structuredContent"]);
    assert!(result.get("isError").is_none(), "{result}");
    result["structuredContent"].clone()
}

#[track_caller]
fn names(document: &Value) -> Vec<&str> {
    document["tools"].as_object().expect("tools").keys().map(String::as_str).collect()
}

/// Asserts the code, name, message and hint of an error.
#[track_caller]
fn check(result: &Value, code: &str, name: &str, message: &str, hint: Option<&str>) {
    let error = error_of(result);
    let face = |key: &str| error[key].as_str();
    assert_eq!(
        (face("code"), face("name"), face("message"), face("hint")),
        (Some(code), Some(name), Some(message), hint)
    );
    let text = result["content"][0]["text"].as_str().expect("text");
    assert!(text.starts_with(&format!("{name}: {message}")), "{text}");
}

#[tokio::test]
async fn every_error_has_its_name_its_message_and_a_hint() {
    let (_fixture, server) = http_fixture().await;
    let tools = json!({ "includeNames": ["echo", "rich"],
                        "overrides": { "rich": { "enabled": false } } });
    let config = json!({ "mcpServers": { "up": server, "down": dead() },
        "categories": { "text": category("up", tools),
                        "gone": category("down", json!({ "includeNames": ["anything"] })) } });
    let gateway = configured(config).await;
    let client = gateway.client("").await;
    let get = async |category: &str| client.call("get-category-tools", json!({ "category": category })).await;

    let unknown = get("texts").await;
    check(&unknown, "TOOL_NOT_FOUND", "UnknownCategory", "There is no category `texts`.", Some("Did you mean `text`?"));
    let unknown = get("zzz").await;
    check(
        &unknown,
        "TOOL_NOT_FOUND",
        "UnknownCategory",
        "There is no category `zzz`.",
        Some("Available categories: text, gone."),
    );
    let unknown = client.call_in("zzz", "echo", json!({})).await;
    check(
        &unknown,
        "TOOL_NOT_FOUND",
        "UnknownCategory",
        "There is no category `zzz`.",
        Some("Available categories: text, gone."),
    );
    check(
        &get("gone").await,
        "UPSTREAM_UNAVAILABLE",
        "UpstreamUnavailable",
        "No server of the category `gone` has returned its tool list: down. `down` cannot be reached.",
        Some("Try again in a moment, or use another category. `hikite doctor` shows the reason."),
    );
    check(
        &client.call_in("text", "rich", json!({})).await,
        "TOOL_DISABLED",
        "ToolDisabled",
        "The tool `rich` is disabled.",
        Some("It is disabled in the config. Use another tool."),
    );
    let unknown = client.call_in("text", "ecko", json!({})).await;
    check(&unknown, "TOOL_NOT_FOUND", "UnknownTool", "There is no tool `ecko`.", Some("Did you mean `echo`?"));
}

#[tokio::test]
async fn what_a_category_does_not_have_and_what_its_server_refuses_are_told_apart() {
    let (_fixture, server) = http_fixture().await;
    let tools = json!({ "includeNames": ["echo", "test_error_handling", "structured", "renamed_away"] });
    let config = json!({ "mcpServers": { "up": server, "down": dead() },
        "categories": { "text": category("up", tools),
                        "gone": category("down", json!({ "includeNames": ["anything"] })) } });
    let gateway = configured(config).await;
    let client = gateway.client("").await;
    let hint = Some("`get-category-tools` with `text` lists its tools.");
    let unknown = client.call_in("text", "renamed_away", json!({})).await;
    check(&unknown, "TOOL_NOT_FOUND", "UnknownTool", "There is no tool `renamed_away`.", hint);
    let outside = client.call_in("text", "big_line", json!({})).await;
    check(&outside, "TOOL_NOT_FOUND", "UnknownTool", "There is no tool `big_line`.", hint);
    let failed = client.call_in("text", "structured", json!({ "a": 1e9, "b": 1 })).await;
    check(&failed, "VALIDATION_ERROR", "UpstreamCallError", "`a` is too large", None);
    let failed = client.call_in("gone", "anything", json!({})).await;
    let error = error_of(&failed);
    assert_eq!((&error["code"], &error["name"]), (&json!("UPSTREAM_UNAVAILABLE"), &json!("UpstreamCallError")));
    assert_eq!(error["message"], "`down` cannot be reached.");
    // A tool's own failure is a result, not an error of ours.
    let own = client.call_in("text", "test_error_handling", json!({})).await;
    assert_eq!(
        own,
        json!({ "content": [{ "type": "text", "text": "This tool intentionally returns an error for testing" }], "isError": true })
    );
}

#[tokio::test]
async fn wrong_arguments_of_the_meta_tools_come_back_with_the_schema() {
    let config = json!({ "mcpServers": { "a": dead() }, "categories": { "c": category("a", json!({})) } });
    let gateway = configured(config).await;
    let client = gateway.client("").await;
    for (tool, arguments, message) in [
        ("get-category-tools", json!({}), "`category` must be a string."),
        ("get-category-tools", json!({ "category": 7 }), "`category` must be a string."),
        (
            "get-category-tools",
            json!({ "category": "c", "toolNames": "x" }),
            "`toolNames` must be an array of strings.",
        ),
        ("call-category-tool", json!({ "category": "c" }), "`name` must be a string."),
        ("call-category-tool", json!({ "category": "c", "name": "t", "args": [1] }), "`args` must be a JSON object."),
        ("call-category-tool", json!([]), "The arguments must be a JSON object."),
    ] {
        let error = error_of(&client.call(tool, arguments).await);
        assert_eq!((&error["code"], &error["message"]), (&json!("VALIDATION_ERROR"), &json!(message)));
        assert_eq!(error["schema"]["properties"]["category"], json!({ "type": "string" }), "{error}");
    }
}

#[tokio::test]
async fn a_category_shows_its_enabled_tools_with_their_schemas_and_nothing_else() {
    let (_fixture, server) = http_fixture().await;
    let tools = json!({ "includeNames": ["structured", "echo", "rich", "no_such_tool"],
                        "overrides": { "rich": { "enabled": false }, "neither_this": { "description": "x" } } });
    let gateway =
        configured(json!({ "mcpServers": { "up": server }, "categories": { "text": category("up", tools) } })).await;
    let direct = gateway.client("direct").await.request("tools/list", json!({})).await.expect("a list");
    let original =
        |name: &str| direct["tools"].as_array().expect("tools").iter().find(|tool| tool["name"] == name).cloned();
    let shown = document(&describe(&gateway, json!({ "category": "text" })).await);
    assert_eq!(names(&shown), ["echo", "structured"]);
    assert_eq!(Some(shown["tools"]["structured"].clone()), original("structured"));
    assert_eq!(
        shown["meta"],
        json!({ "category": "text", "sourceServer": "up", "unavailableTools": ["no_such_tool", "neither_this"] })
    );
}

#[tokio::test]
async fn a_part_of_a_category_can_be_asked_for() {
    let (_fixture, server) = http_fixture().await;
    let tools = json!({ "includeNames": ["echo", "who", "rich"], "overrides": { "rich": { "enabled": false } } });
    let gateway =
        configured(json!({ "mcpServers": { "up": server }, "categories": { "c": category("up", tools) } })).await;
    for spelling in ["echo", "up:echo", "mcp__up__echo"] {
        let shown = document(&describe(&gateway, json!({ "category": "c", "toolNames": [spelling] })).await);
        assert_eq!((names(&shown), &shown["meta"]["unavailableTools"]), (vec!["echo"], &Value::Null), "{spelling}");
    }
    let asked = json!({ "category": "c", "toolNames": ["who", "nonsense", "rich", "count"] });
    let shown = document(&describe(&gateway, asked).await);
    assert_eq!(names(&shown), ["who"]);
    assert_eq!(shown["meta"]["unavailableTools"], json!(["nonsense", "count"]), "what is disabled is not missing");
    let none = document(&describe(&gateway, json!({ "category": "c", "toolNames": [] })).await);
    assert_eq!(names(&none), [""; 0]);
    let all = document(&describe(&gateway, json!({ "category": "c", "toolNames": null })).await);
    assert_eq!(names(&all), ["who", "echo"]);
}

#[tokio::test]
async fn a_category_may_span_servers_and_namesakes_are_told_apart() {
    let (first, one) = http_fixture().await;
    let (second, two) = http_fixture().await;
    second.remove_tool("who");
    let tools = json!({ "includeNames": ["echo", "who", "two:count"] });
    let config = json!({ "mcpServers": { "one": one, "two": two },
        "categories": { "both": category(json!(["one", "two"]), tools), "single": category(json!(["one"]), json!({ "includeNames": ["echo"] })) } });
    let gateway = configured(config).await;
    let client = gateway.client("").await;
    let shown = document(&describe(&gateway, json!({ "category": "both" })).await);
    assert_eq!(names(&shown), ["who", "one:echo", "count", "two:echo"]);
    assert_eq!(shown["meta"], json!({ "category": "both", "sourceServer": ["one", "two"] }));
    let single = document(&describe(&gateway, json!({ "category": "single" })).await);
    assert_eq!(single["meta"]["sourceServer"], "one");
    for (name, calls) in
        [("two:echo", [0, 1]), ("one:echo", [1, 1]), ("mcp__two__echo", [1, 2]), ("who", [2, 2]), ("count", [2, 3])]
    {
        let result = client.call_in("both", name, json!({ "text": "x" })).await;
        assert!(result.get("isError").is_none(), "{name}: {result}");
        assert_eq!([first.calls(), second.calls()], calls, "{name}");
    }
}

#[tokio::test]
async fn a_category_with_one_server_down_answers_with_what_there_is() {
    let (_fixture, up) = http_fixture().await;
    let tools = json!({ "includeNames": ["echo", "down:fetch"] });
    let config = json!({ "mcpServers": { "up": up, "down": dead() }, "categories": { "c": category(json!(["up", "down"]), tools) } });
    let gateway = configured(config).await;
    let shown = document(&describe(&gateway, json!({ "category": "c" })).await);
    assert_eq!(names(&shown), ["echo"]);
    assert_eq!(
        shown["meta"],
        json!({ "category": "c", "sourceServer": ["up", "down"], "unavailableTools": ["fetch"] })
    );
}

#[tokio::test]
async fn names_and_patterns_include_and_exclude() {
    let (_fixture, server) = http_fixture().await;
    let categories = json!({
        "glob": category("up", json!({ "includePatterns": ["test_{image,audio}_*", "who"] })),
        "regex": category("up", json!({ "includePatterns": ["/^(add|remove)_tool$/"] })),
        "without": category("up", json!({ "includePatterns": ["test_*"], "excludePatterns": ["/elicitation/", "*content*"], "excludeNames": ["test_sampling", "up:test_reconnection"] })),
        "server": category("up", json!({ "includePatterns": ["up:e*"] })),
        "prefixed": category("up", json!({ "includeNames": ["mcp__up__echo", "up:who"], "overrides": { "mcp__up__who": { "enabled": false } } })),
        "all": category("up", json!({})),
    });
    let gateway = configured(json!({ "mcpServers": { "up": server }, "categories": categories })).await;
    for (category, expected) in [
        ("glob", vec!["test_image_content", "test_audio_content", "who"]),
        ("regex", vec!["add_tool", "remove_tool"]),
        (
            "without",
            vec![
                "test_simple_text",
                "test_embedded_resource",
                "test_tool_with_logging",
                "test_error_handling",
                "test_tool_with_progress",
            ],
        ),
        ("server", vec!["echo", "env"]),
        ("prefixed", vec!["echo"]),
    ] {
        let shown = document(&describe(&gateway, json!({ "category": category })).await);
        assert_eq!(names(&shown), expected, "{category}");
    }
    assert_eq!(names(&document(&describe(&gateway, json!({ "category": "all" })).await)).len(), 33);
    let client = gateway.client("").await;
    for spelling in ["echo", "up:echo", "mcp__up__echo"] {
        let said = client.call_in("prefixed", spelling, json!({ "text": spelling })).await;
        assert_eq!(said["content"][0]["text"], spelling);
    }
    for spelling in ["who", "up:who", "mcp__up__who"] {
        assert_eq!(
            error_of(&client.call_in("prefixed", spelling, json!({})).await)["name"],
            "ToolDisabled",
            "{spelling}"
        );
    }
}

#[tokio::test]
async fn overrides_change_what_is_shown_and_what_is_sent() {
    let (_fixture, server) = http_fixture().await;
    let overrides = json!({
        "mirror": { "name": "reflect", "description": "Shows what arrived.",
            "arguments": { "secret": { "default": "from-config", "hidden": true }, "depth": { "default": 2, "description": "How deep." } } },
        "structured": { "arguments": { "b": { "default": 40, "hidden": true } } },
    });
    let tools = json!({ "includeNames": ["mirror", "structured"], "overrides": overrides });
    let config = json!({ "mcpServers": { "up": server }, "categories": { "c": { "description": "d", "server": "up", "tools": tools, "skill": "Look before you leap." } } });
    let gateway = configured(config).await;
    let client = gateway.client("").await;
    let shown = document(&describe(&gateway, json!({ "category": "c" })).await);
    assert_eq!(names(&shown), ["reflect", "structured"]);
    let reflect = &shown["tools"]["reflect"];
    assert_eq!((&reflect["name"], &reflect["description"]), (&json!("reflect"), &json!("Shows what arrived.")));
    assert_eq!(reflect["inputSchema"]["properties"]["depth"], json!({ "default": 2, "description": "How deep." }));
    assert!(reflect["inputSchema"]["properties"].get("secret").is_none());
    assert_eq!(shown["tools"]["structured"]["inputSchema"]["required"], json!(["a"]));
    assert_eq!(shown["meta"]["skill"], "Look before you leap.");

    for name in ["reflect", "mirror"] {
        let seen = client.call_in("c", name, json!({ "secret": "mine", "x": 1 })).await;
        let seen: Value = serde_json::from_str(seen["content"][0]["text"].as_str().expect("text")).expect("JSON");
        assert_eq!(
            (&seen["name"], &seen["arguments"]),
            (&json!("mirror"), &json!({ "x": 1, "secret": "from-config", "depth": 2 })),
            "{name}"
        );
    }
    let seen = client.call_in("c", "reflect", json!({ "depth": 9 })).await;
    assert!(seen["content"][0]["text"].as_str().expect("text").contains(r#""depth":9"#), "{seen}");
    assert_eq!(client.call_in("c", "structured", json!({ "a": 2 })).await["structuredContent"], json!({ "sum": 42.0 }));
}

#[tokio::test]
async fn arguments_may_come_as_a_string_that_holds_an_object() {
    let (_fixture, server) = http_fixture().await;
    let gateway =
        configured(json!({ "mcpServers": { "up": server }, "categories": { "c": category("up", json!({})) } })).await;
    let client = gateway.client("").await;
    let inside = json!({ "category": "c", "name": "echo", "args": r#"{"text":"unwrapped"}"# });
    assert_eq!(client.text("call-category-tool", inside).await, "unwrapped");
    let outside = json!(r#"{"category":"c","name":"echo","args":{"text":"too"}}"#);
    assert_eq!(client.text("call-category-tool", outside).await, "too");
    for none in [json!({ "category": "c", "name": "count" }), json!({ "category": "c", "name": "count", "args": null })]
    {
        client.call("call-category-tool", none).await;
    }
}

#[tokio::test]
async fn a_call_before_the_list_is_known_waits_for_it() {
    let delay = std::time::Duration::from_millis(600);
    let (fixture, server) =
        fixture(FixtureTransport::Http, FixtureOptions { list_delay: delay, ..FixtureOptions::default() }).await;
    let categories =
        json!({ "named": category("up", json!({ "includeNames": ["echo"] })), "all": category("up", json!({})) });
    let gateway = configured(json!({ "mcpServers": { "up": server }, "categories": categories })).await;
    let client = gateway.client("").await;
    let calls = ["named", "all"].map(|category| {
        client.begin_call(
            "call-category-tool",
            json!({ "category": category, "name": "echo", "args": { "text": category } }),
        )
    });
    for (call, category) in calls.into_iter().zip(["named", "all"]) {
        assert_eq!(call.answer().await.expect("a result")["content"][0]["text"], category);
    }
    assert_eq!(fixture.calls(), 2);
}

#[tokio::test]
async fn the_categories_are_told_with_every_server_down() {
    let nowhere = json!({ "description": "d", "command": "/no/such/program" });
    let long = format!("{} end", "word ".repeat(60));
    let config = json!({ "mcpServers": { "a": dead(), "b": nowhere, "c": stdio(&["--never-start"]) },
        "categories": { "fs": { "description": "ファイル/ディレクトリの\n読み書きと検索。", "server": "a" },
                        "code": { "description": long, "server": ["b", "c"] } } });
    let gateway = configured(config).await;
    let client = gateway.client("").await;
    let begin = std::time::Instant::now();
    let list = client.request("tools/list", json!({})).await.expect("a list");
    assert!(begin.elapsed() < std::time::Duration::from_secs(2), "it waits for nobody");
    let description = list["tools"][0]["description"].as_str().expect("text");
    assert!(
        description.contains("\n- fs: ファイル/ディレクトリの 読み書きと検索。\n- code: word word "),
        "{description}"
    );
    assert!(description.ends_with('…') && !description.contains("end"), "{description}");
    for tool in list["tools"].as_array().expect("tools") {
        assert_eq!(tool["inputSchema"]["properties"]["category"]["enum"], json!(["fs", "code"]));
    }
}

#[tokio::test]
async fn there_are_exactly_two_tools_and_their_bytes_do_not_change() {
    let (_fixture, server) = http_fixture().await;
    let config = json!({ "mcpServers": { "up": server }, "categories": { "c": category("up", json!({ "includeNames": ["echo"] })) } });
    let first = configured(config.clone()).await;
    let client = first.client("").await;
    let list = client.raw_result("tools/list", json!({})).await;
    assert_eq!(client.names("tools/list").await, ["get-category-tools", "call-category-tool"]);
    client.call("get-category-tools", json!({ "category": "c" })).await;
    assert_eq!(client.raw_result("tools/list", json!({})).await, list);
    let direct = first.client("direct").await.raw_result("tools/list", json!({})).await;
    let second = first.restart(config).await;
    assert_eq!(second.client("").await.raw_result("tools/list", json!({})).await, list);
    assert_eq!(second.client("direct").await.raw_result("tools/list", json!({})).await, direct);
    insta::assert_json_snapshot!(serde_json::from_str::<Value>(&list).expect("JSON"));
}

#[tokio::test]
async fn a_tool_that_a_category_disables_and_none_enables_is_disabled_everywhere() {
    let (fixture, server) = http_fixture().await;
    let off = |name: &str| json!({ "includeNames": ["echo"], "overrides": { name: { "enabled": false } } });
    let config = json!({ "mcpServers": { "up": server },
        "categories": { "a": category("up", off("who")), "b": category("up", off("count")), "c": category("up", json!({ "includeNames": ["count"] })) } });
    let gateway = configured(config).await;
    let client = gateway.client("direct,categories").await;
    let shown = client.names("tools/list").await;
    assert!(!shown.contains(&"who".to_owned()) && shown.contains(&"count".to_owned()), "{shown:?}");
    for spelling in ["who", "up:who", "up__who"] {
        let error = error_of(&client.call(spelling, json!({})).await);
        assert_eq!(error["code"], "TOOL_DISABLED", "{spelling}");
    }
    assert_eq!(error_of(&client.call_in("a", "who", json!({})).await)["name"], "ToolDisabled");
    assert_eq!(error_of(&client.call_in("b", "count", json!({})).await)["name"], "ToolDisabled");
    assert_eq!(fixture.calls(), 0);
    client.call_in("c", "count", json!({})).await;
    client.call("count", json!({})).await;
}

#[tokio::test]
async fn a_tool_that_its_server_excludes_is_in_no_category() {
    let (fixture, server) = http_fixture().await;
    let server = crate::with(
        server,
        "tools",
        json!({ "excludeNames": ["who"], "overrides": { "count": { "enabled": false }, "echo": { "name": "say" } } }),
    );
    let config = json!({ "mcpServers": { "up": server }, "categories": { "c": category("up", json!({ "includeNames": ["who", "count", "echo"] })) } });
    let gateway = configured(config).await;
    let client = gateway.client("direct,categories").await;
    let shown = document(&describe(&gateway, json!({ "category": "c" })).await);
    assert_eq!(names(&shown), ["say"]);
    for tool in ["who", "count"] {
        assert_eq!(error_of(&client.call_in("c", tool, json!({})).await)["name"], "ToolDisabled", "{tool}");
        assert_eq!(error_of(&client.call(tool, json!({})).await)["code"], "TOOL_DISABLED", "{tool}");
    }
    assert_eq!(fixture.calls(), 0);
    assert_eq!(client.call_in("c", "say", json!({ "text": "x" })).await["content"][0]["text"], "x");
}

#[tokio::test]
async fn a_real_tool_is_not_callable_by_name_through_the_categories_surface_unless_it_is_enabled() {
    let (_fixture, server) = http_fixture().await;
    let gateway = configured(json!({ "mcpServers": { "up": server }, "categories": { "c": category("up", json!({ "includeNames": ["echo"] })) } })).await;
    let client = gateway.client("categories").await;
    let unknown =
        client.request("tools/call", json!({ "name": "nonsense", "arguments": {} })).await.expect_err("unknown");
    assert_eq!((&unknown["code"], &unknown["message"]), (&json!(-32602), &json!("There is no tool `nonsense`.")));
}

#[tokio::test]
async fn a_call_to_a_live_server_is_not_held_up_by_a_dead_one_of_its_category() {
    let (_fixture, live) = http_fixture().await;
    let config = json!({ "mcpServers": { "live": live, "never": stdio(&["--never-start"]) },
        "categories": { "c": category(json!(["live", "never"]), json!({})) } });
    let gateway = configured(config).await;
    let client = gateway.client("").await;
    for round in ["first", "second"] {
        let begin = Instant::now();
        let said = client.call_in("c", "echo", json!({ "text": round })).await;
        assert_eq!(said["content"][0]["text"], round, "{said}");
        assert!(begin.elapsed() < Duration::from_secs(5), "{round}: {:?}", begin.elapsed());
    }
    let begin = Instant::now();
    let shown = document(&describe(&gateway, json!({ "category": "c", "toolNames": ["echo"] })).await);
    assert_eq!(names(&shown), ["echo"]);
    assert!(begin.elapsed() < Duration::from_secs(8), "{:?}", begin.elapsed());
}

#[tokio::test]
async fn what_a_category_hides_is_hidden_under_every_name_of_the_tool() {
    let (fixture, server) = http_fixture().await;
    let hidden = json!({ "echo": { "arguments": { "text": { "default": "from-config", "hidden": true } } } });
    let tools = json!({ "includeNames": ["echo"], "overrides": hidden });
    let gateway =
        configured(json!({ "mcpServers": { "fx": server }, "categories": { "c": category("fx", tools) } })).await;
    for surface in ["categories", "direct,categories"] {
        let client = gateway.client(surface).await;
        assert_eq!(client.call_in("c", "echo", json!({ "text": "mine" })).await["content"][0]["text"], "from-config");
        for name in ["echo", "fx:echo", "fx__echo"] {
            assert_eq!(client.text(name, json!({ "text": "mine" })).await, "from-config", "{surface} {name}");
        }
    }
    assert_eq!(fixture.calls(), 8);
}

#[tokio::test]
async fn a_server_whose_list_makes_no_sense_is_told_apart_from_one_that_is_down() {
    const SERVER: &str = r#"
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    if message.get("method") == "initialize":
        result = {"protocolVersion": message["params"]["protocolVersion"], "capabilities": {"tools": {}},
                  "serverInfo": {"name": "odd", "version": "1"}}
    else:
        result = {"tools": "seven of them"}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"#;
    let odd = json!({ "description": "d", "command": "python3", "args": ["-c", SERVER] });
    let config = json!({ "mcpServers": { "odd": odd, "down": dead() },
        "categories": { "odd": category("odd", json!({})), "down": category("down", json!({})) } });
    let gateway = configured(config).await;
    let error = error_of(&describe(&gateway, json!({ "category": "odd" })).await);
    assert_eq!(error["name"], "SchemaFetchError", "{error}");
    assert!(error["message"].as_str().expect("text").contains("`odd`"), "{error}");
    let error = error_of(&describe(&gateway, json!({ "category": "down" })).await);
    assert_eq!(error["name"], "UpstreamUnavailable", "{error}");
}
