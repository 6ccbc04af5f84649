//! The `search` surface through the whole product: its two tools, with sessions and without.

use std::time::Duration;

use hikite_testkit::api::{MockApi, MockResponse};
use hikite_testkit::gateway::{SessionClient, StatelessEnvelope, TestGateway};
use serde_json::{Value, json};

use crate::identity::{self, as_bearer, project, token};
use crate::{configured, error_of, gateway, stdio, with};

/// Returns a recorded server.
pub(crate) fn recorded(name: &str) -> Value {
    let file = format!("{}/../hikite-testkit/fixtures/toolsets/{name}.json", env!("CARGO_MANIFEST_DIR"));
    with(stdio(&["--replay", &file]), "description", format!("Tools of {name}."))
}

const TWELVE: [&str; 12] = [
    "airtable",
    "atlassian",
    "filesystem",
    "git",
    "github",
    "google-calendar",
    "kubernetes",
    "memory",
    "notion",
    "slack",
    "sqlite",
    "supabase",
];

async fn twelve(search: Value) -> TestGateway {
    let servers: serde_json::Map<String, Value> =
        TWELVE.iter().map(|name| ((*name).to_owned(), recorded(name))).collect();
    configured(json!({ "mcpServers": servers, "server": { "surface": "search" }, "search": search })).await
}

fn results(result: &Value) -> &Vec<Value> {
    result["structuredContent"]["results"].as_array().unwrap_or_else(|| panic!("{result}"))
}

fn keys(result: &Value) -> Vec<&str> {
    results(result).iter().filter_map(|tool| tool["toolKey"].as_str()).collect()
}

fn meta(result: &Value) -> &Value {
    &result["_meta"]["hikite/search"]
}

async fn discover(client: &SessionClient, query: &str) -> Value {
    client.call("tool_discovery", json!({ "query": [query] })).await
}

/// Searches until every tool can be found by meaning. The first answer has that already on a machine that is not
/// busy; others say how many tools it lacks.
async fn encoded(client: &SessionClient, query: &str) -> Value {
    let mut found = discover(client, query).await;
    for _ in 0..60 {
        if meta(&found).get("unencoded").is_none() {
            break;
        }
        found = discover(client, query).await;
    }
    assert_eq!(meta(&found).get("unencoded"), None, "{found}");
    assert_ne!(meta(&found)["total"], 0);
    found
}

fn needs(result: &Value) -> Vec<&str> {
    let needs = result["structuredContent"]["needs"].as_array();
    needs.into_iter().flatten().filter_map(|need| need["tool"].as_str()).collect()
}

#[tokio::test]
async fn twelve_servers_are_searched_and_called_by_clients_of_both_kinds() {
    let gateway = twelve(json!({ "provider": "bm25" })).await;
    let client = gateway.client("").await;
    assert_eq!(client.names("tools/list").await, ["tool_discovery", "tool_execute"]);
    assert!(client.welcome()["instructions"].as_str().is_some_and(|text| text.contains("tool_discovery")));
    let found = discover(&client, "create an issue in a repository").await;
    assert!(
        keys(&found).contains(&"github:issue_write") || keys(&found).contains(&"github:create_issue"),
        "{:?}",
        keys(&found)
    );
    assert!(results(&found).len() <= 10);
    let told = meta(&found);
    assert_eq!((&told["provider"], told.get("fallback")), (&json!("bm25"), None), "{told}");
    assert!(told["total"].as_u64() > Some(200) && told["indexed"] == told["total"], "{told}");
    let few = json!({ "query": ["commit changes", "git commit"], "context": "I edited a file", "maxResults": 2, "detail": "schemas" });
    let found = client.call("tool_discovery", few.clone()).await;
    assert_eq!((keys(&found)[0], results(&found).len()), ("git:git_commit", 2));
    assert!(results(&found)[0]["inputSchema"]["properties"].is_object());
    let run = json!({ "toolKey": "git:git_status", "arguments": { "repo_path": "/x" } });
    let ran = client.call("tool_execute", run.clone()).await;
    let sent = &ran["structuredContent"]["result"];
    assert_eq!(sent["arguments"], json!({ "repo_path": "/x" }), "{ran}");
    let stateless = gateway.stateless("", StatelessEnvelope::default());
    let found = stateless.call("tool_discovery", few).await.result().clone();
    assert_eq!(keys(&found)[0], "git:git_commit");
    let ran = stateless.call("tool_execute", run).await.result().clone();
    assert_eq!(ran["structuredContent"]["result"]["arguments"], json!({ "repo_path": "/x" }));
}

#[tokio::test]
async fn a_japanese_question_finds_english_tools_by_their_meaning() {
    let servers = json!({ "git": recorded("git"), "slack": recorded("slack"), "time": recorded("time") });
    let gateway = configured(json!({ "mcpServers": servers, "server": { "surface": "search" } })).await;
    let client = gateway.client("").await;
    let found = encoded(&client, "チャンネルにメッセージを送る").await;
    assert_eq!(meta(&found)["indexed"], meta(&found)["total"], "{found}");
    assert_eq!((&meta(&found)["provider"], meta(&found).get("fallback")), (&json!("hybrid"), None), "{found}");
    assert!(keys(&found)[0].starts_with("slack:"), "{:?}", keys(&found));
    let again = gateway.run(&["tools", "search", "今日の時刻", "--json"]).await;
    let again: Value = serde_json::from_str(&again.stdout).expect("JSON");
    assert!(again[0]["key"].as_str().is_some_and(|key| key.starts_with("time:")), "{again}");
}

#[tokio::test]
async fn the_description_names_the_modules_and_other_lists_stay_as_they_are() {
    let gateway = gateway(json!({ "a": stdio(&[]), "git": recorded("git") })).await;
    let (search, direct) = (gateway.client("search").await, gateway.client("direct").await);
    let list = search.request("tools/list", json!({})).await.expect("a list");
    let text = list["tools"][0]["description"].as_str().expect("text");
    assert!(text.contains("\n- a: a fixture") && text.contains("\n- git: Tools of git."), "{text}");
    for method in ["resources/list", "resources/templates/list", "prompts/list"] {
        let shown = search.request(method, json!({})).await.expect("a list");
        assert_eq!(shown, direct.request(method, json!({})).await.expect("a list"), "{method}");
    }
    let both = gateway.client("search,direct").await.names("tools/list").await;
    assert!(both.len() > 20 && both[..2] == ["tool_discovery", "tool_execute"], "{both:?}");
    assert_eq!(search.text("echo", json!({ "text": "by its name" })).await, "by its name");
}

#[tokio::test]
async fn what_is_wrong_stands_in_the_result() {
    let gateway = gateway(json!({ "a": stdio(&[]) })).await;
    let client = gateway.client("search").await;
    let unknown = error_of(&client.call("tool_execute", json!({ "toolKey": "a:ecko" })).await);
    assert_eq!(unknown["code"], "TOOL_NOT_FOUND");
    assert!(unknown["hint"].as_str().is_some_and(|hint| hint.contains("echo")), "{unknown}");
    let wrong = error_of(&client.call("tool_discovery", json!({ "query": "x", "limit": 3 })).await);
    assert_eq!((&wrong["code"], &wrong["schema"]["required"]), (&json!("VALIDATION_ERROR"), &json!(["query"])));
    let arguments = json!({ "toolKey": "a:echo", "arguments": "{\"text\":\"unwrapped\"}" });
    let ran = client.call("tool_execute", arguments).await;
    assert_eq!(ran["structuredContent"], json!({ "result": "unwrapped" }));
    let found = client.call("tool_discovery", json!("{\"query\":\"echo\"}")).await;
    assert_eq!(keys(&found)[0], "a:echo");
    let picture = client.call("tool_execute", json!({ "toolKey": "a:test_image_content" })).await;
    assert_eq!(picture["content"][1]["type"], "image", "{picture}");
}

#[tokio::test]
async fn whatever_the_cloud_does_there_is_an_answer_that_says_so() {
    let cloud = MockApi::start().await;
    let search = json!({ "provider": "cloud", "cloud": { "url": cloud.url("/base"), "token": "0123456789abcdef", "timeout": "2s" } });
    let gateway = configured(json!({
        "mcpServers": { "a": with(stdio(&[]), "tools", json!({ "excludeNames": ["who"] })) },
        "server": { "surface": "search" },
        "search": search,
    }))
    .await;
    let client = gateway.client("").await;
    let path = "/base/catalog/search";
    let right = json!({ "results": [
        { "toolKey": "a:echo", "relevance": 0.7, "explanation": "because" },
        { "toolKey": "a:who", "relevance": 0.9 },
    ] });
    cloud.answer(path, MockResponse::json(&right));
    let found = discover(&client, "say it again").await;
    assert_eq!((keys(&found), &meta(&found)["provider"]), (vec!["a:echo"], &json!("cloud")));
    assert_eq!(results(&found)[0]["explanation"], "because");
    let sent = cloud.last();
    assert_eq!(sent.header("authorization"), Some("Bearer 0123456789abcdef"));
    let body = sent.json();
    assert_eq!((&body["query"], &body["maxResults"]), (&json!(["say it again"]), &json!(10)));
    assert!(body["tools"].as_array().is_some_and(|tools| tools.len() > 20));
    assert!(!String::from_utf8_lossy(&sent.body).contains("a:who"), "what is switched off is not sent");
    for (answer, word) in [
        (MockResponse::json(&right).delay(Duration::from_secs(20)), "timeout"),
        (MockResponse::status(500), "failed"),
        (MockResponse::status(401), "refused"),
        (MockResponse::text("<html>"), "unreadable"),
        (MockResponse::json(&json!({ "tools": [] })), "unreadable"),
        (MockResponse::json(&json!({ "results": [{ "toolKey": "b:x", "relevance": 1 }] })), "unreadable"),
        (MockResponse::cut(), "unreachable"),
    ] {
        cloud.answer(path, answer);
        let found = discover(&client, "echo text").await;
        assert_eq!((keys(&found)[0], &meta(&found)["fallback"]), ("a:echo", &json!(word)), "{found}");
    }
    gateway.wait_for_stderr("the cloud service is not used for searches").await;
    assert!(!gateway.stderr().contains("0123456789abcdef"));
}

#[tokio::test]
async fn one_hikite_is_the_cloud_of_another() {
    let cloud = gateway(json!({})).await;
    let search =
        json!({ "provider": "cloud", "cloud": { "url": cloud.url("").replace("/mcp", ""), "token": cloud.token() } });
    let near = configured(
        json!({ "mcpServers": { "git": recorded("git") }, "server": { "surface": "search" }, "search": search }),
    )
    .await;
    let client = near.client("").await;
    let found = discover(&client, "show the commit log").await;
    assert_eq!((keys(&found)[0], &meta(&found)["provider"]), ("git:git_log", &json!("cloud")), "{found}");
    let post = async |body: &Value| cloud.send(cloud.request("POST", "/catalog/search").json(body.to_string())).await;
    let tool =
        |key: &str, text: &str| json!({ "toolKey": key, "toolName": key, "serverName": "s", "description": text });
    let tools = json!([tool("s:a", "Reads a file"), tool("s:b", "Sends a mail"), tool("s:a", "again")]);
    let answer = post(&json!({ "query": ["send mail"], "tools": tools, "maxResults": 1 })).await;
    assert_eq!(answer.status, 200);
    let first = &answer.value()["results"][0];
    assert_eq!((&first["toolKey"], &first["description"]), (&json!("s:b"), &json!("Sends a mail")));
    for (body, pointer) in [
        (json!({ "tools": [] }), "/query"),
        (json!({ "query": [], "tools": [] }), "/query"),
        (json!({ "query": ["x"] }), "/tools"),
        (json!({ "query": ["x"], "tools": [{ "toolKey": "a:b" }] }), "/tools"),
        (json!({ "query": ["x"], "tools": [], "maxResults": 99 }), "/maxResults"),
        (json!({ "query": ["x"], "tools": [], "model": 1 }), "/model"),
    ] {
        let reply = post(&body).await;
        assert_eq!((reply.status, &reply.value()["details"][0]["pointer"]), (400, &json!(pointer)), "{body}");
    }
    let stranger = hikite_testkit::gateway::HttpRequest::new("POST", "/catalog/search");
    assert_eq!(stranger.send(cloud.address()).await.status, 401);
}

#[tokio::test]
async fn what_was_of_use_is_remembered_shown_and_erased() {
    let gateway = configured(json!({
        "mcpServers": { "a": stdio(&[]) },
        "server": { "surface": "search" },
        "search": { "provider": "bm25", "memory": { "text": true } },
    }))
    .await;
    let client = gateway.client("").await;
    let query = "structured echo sum text";
    let before = discover(&client, query).await;
    let weaker = keys(&before)[1].to_owned();
    let list = async || -> Value {
        let run = gateway.run(&["search", "memory", "list", "--json"]).await;
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        serde_json::from_str(&run.stdout).expect("JSON")
    };
    let run = json!({ "toolKey": weaker, "arguments": { "text": "x", "a": 1, "b": 2 } });
    let result = client.call("tool_execute", run).await;
    assert!(result.get("isError").is_none(), "{result}");
    let mut listed = list().await;
    for _ in 0..200 {
        if listed[0].is_object() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
        listed = list().await;
    }
    assert_eq!((&listed[0]["tool"], &listed[0]["text"]), (&json!(weaker), &json!(query)), "{listed}");
    let after = discover(&client, query).await;
    let place = |found: &Value| keys(found).iter().position(|key| *key == weaker).expect("found");
    assert!(place(&after) < place(&before), "{:?} {:?}", keys(&before), keys(&after));
    let cleared = gateway.run(&["search", "memory", "clear"]).await;
    assert_eq!(cleared.stdout, "1 pair forgotten\n");
    let mut forgotten = discover(&client, query).await;
    for _ in 0..200 {
        if keys(&forgotten) == keys(&before) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
        forgotten = discover(&client, query).await;
    }
    assert_eq!(keys(&forgotten), keys(&before), "a running hikite forgets, too");
}

#[tokio::test]
async fn what_nobody_has_connected_is_named_beside_the_results() {
    let gateway = configured(json!({
        "mcpServers": { "git": recorded("git"), "time": recorded("time") },
        "modules": { "builtin": ["notion", "google_calendar"] },
        "server": { "surface": "search" },
    }))
    .await;
    let client = gateway.client("").await;
    encoded(&client, "search").await;
    for (query, tool, config) in [
        ("search pages in Notion", "notion:search", "`providers.notion"),
        ("list the events of my calendar", "google_calendar:list_events", "`providers.google"),
        // The encoder finds the service, and not always the right one of its tools.
        ("明日の予定を確認したい", "google_calendar:", "`providers.google"),
    ] {
        let found = discover(&client, query).await;
        assert!(needs(&found).iter().any(|need| need.starts_with(tool)), "{query}: {found}");
        let how = found["structuredContent"]["needs"][0]["how"].as_str();
        assert!(how.is_some_and(|how| how.contains(config)), "{found}");
        assert!(keys(&found).iter().all(|key| key.starts_with("git:") || key.starts_with("time:")), "{found}");
        let body = json!({ "query": query });
        let rest = gateway.send(gateway.request("POST", "/v1/tools/search").json(body.to_string())).await.value();
        assert_eq!(rest["needs"], found["structuredContent"]["needs"], "{rest}");
        let callable = rest["results"].as_array().expect("results").iter();
        assert!(callable.filter_map(|tool| tool["module"].as_str()).all(|module| matches!(module, "git" | "time")));
    }
    let own = discover(&client, "show the commit log").await;
    assert_eq!((keys(&own)[0], needs(&own)), ("git:git_log", vec![]), "a callable tool fits better: {own}");
    // A project without the module does not learn that there is one.
    project(&gateway, "work", json!({ "permissions": { "deny": ["notion"] } })).await;
    let secret = token(&gateway, json!({ "name": "ci", "project": "work" })).await.secret;
    let client = identity::client(&gateway, "/mcp", &secret).await;
    let found = discover(&client, "search pages in Notion").await;
    assert!(!found.to_string().contains("notion"), "{found}");
    let body = json!({ "query": "search pages in Notion" });
    let request = as_bearer(&secret, "POST", "/v1/tools/search").json(body.to_string());
    let rest = gateway.send(request).await.value();
    assert!(!rest["needs"].to_string().contains("notion") && !rest["results"].to_string().contains("notion"), "{rest}");
}

#[tokio::test]
async fn where_nothing_fits_the_answer_says_so() {
    let servers = json!({ "git": recorded("git"), "time": recorded("time") });
    let search = json!({ "provider": "bm25" });
    let gateway =
        configured(json!({ "mcpServers": servers, "server": { "surface": "search" }, "search": search })).await;
    let client = gateway.client("").await;
    let nonsense = "how do I bake bread for ten guests with some salt and a branch of rosemary on a warm evening";
    let found = discover(&client, nonsense).await;
    let note = found["structuredContent"]["note"].as_str();
    assert!(note.is_some_and(|note| note.starts_with("Nothing fits well")), "{found}");
    assert!(results(&found).len() <= 3 && results(&found).iter().all(|tool| tool["weak"] == true), "{found}");
    let good = discover(&client, "show the commit log").await;
    assert_eq!((good["structuredContent"].get("note"), results(&good)[0].get("weak")), (None, None), "{good}");
    let body = json!({ "query": nonsense });
    let rest = gateway.send(gateway.request("POST", "/v1/tools/search").json(body.to_string())).await.value();
    assert!(rest["note"].as_str().is_some_and(|note| note.starts_with("Nothing fits well")), "{rest}");
    assert!(rest["results"].as_array().expect("results").iter().all(|tool| tool["weak"] == true), "{rest}");
}
