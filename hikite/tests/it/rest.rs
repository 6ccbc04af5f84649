//! Read endpoints of the REST API: health, pages of tools, one tool, search, modules and categories, and the errors of
//! invalid requests.

use hikite_testkit::gateway::{HttpReply, HttpRequest, TestGateway};
use serde_json::{Value, json};

use crate::{configured, gateway, http_fixture, stdio, with};

/// Sends JSON with the token.
pub(crate) async fn post(gateway: &TestGateway, path: &str, body: &Value) -> HttpReply {
    gateway.send(gateway.request("POST", path).json(body.to_string())).await
}

pub(crate) async fn get(gateway: &TestGateway, path: &str) -> HttpReply {
    gateway.send(gateway.request("GET", path)).await
}

/// Asserts the complete error format.
#[track_caller]
pub(crate) fn refused(reply: &HttpReply, status: u16, code: &str, message: &str) -> Value {
    let body = reply.value();
    assert_eq!((reply.status, &body["code"], &body["error"]), (status, &json!(code), &json!(message)), "{body}");
    assert_eq!(body["success"], false);
    assert_eq!(reply.headers["content-type"], "application/json");
    assert_eq!(body["requestId"], reply.headers["x-request-id"].to_str().expect("text"));
    is_moment(&body["timestamp"]);
    let known = ["success", "error", "code", "hint", "details", "schema", "requestId", "executionTime", "timestamp"];
    for name in body.as_object().expect("an object").keys() {
        assert!(known.contains(&name.as_str()), "{name}: {body}");
    }
    body
}

/// Asserts a timestamp such as `2026-11-15T08:30:00.000Z`.
#[track_caller]
pub(crate) fn is_moment(value: &Value) {
    let text = value.as_str().unwrap_or_else(|| panic!("{value}"));
    let shape: String = text.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    assert_eq!(shape, "0000-00-00T00:00:00.000Z", "{text}");
}

fn keys(page: &Value) -> Vec<&str> {
    page["tools"].as_array().expect("tools").iter().filter_map(|tool| tool["key"].as_str()).collect()
}

#[tokio::test]
async fn health_is_told_to_everybody_in_the_words_of_the_specification() {
    let gateway = gateway(json!({})).await;
    for path in ["/", "/health", "/health?probe=1"] {
        let reply = gateway.send(HttpRequest::new("GET", path)).await;
        let body = reply.value();
        assert_eq!(
            (reply.status, &body["status"], &body["message"]),
            (200, &json!("ok"), &json!("MCP Server is running"))
        );
        assert_eq!((&body["name"], body["version"].is_string()), (&json!("hikite"), true));
        assert!(body["uptime"].as_f64().is_some_and(|seconds| seconds > 0.0 && seconds < 60.0), "{body}");
        is_moment(&body["timestamp"]);
    }
}

#[tokio::test]
async fn tools_come_in_pages() {
    let gateway = gateway(json!({ "a": stdio(&[]) })).await;
    let whole = get(&gateway, "/v1/tools?limit=100").await;
    assert_eq!(whole.status, 200);
    let whole = whole.value();
    let total = keys(&whole).len();
    assert_eq!(whole["pagination"], json!({ "page": 1, "limit": 100, "total": total, "totalPages": 1 }));
    assert_eq!(get(&gateway, "/v1/tools").await.value()["pagination"]["limit"], 50);
    let mut gathered = Vec::new();
    let pages = total.div_ceil(10);
    for page in 1..=pages {
        let answer = get(&gateway, &format!("/v1/tools?limit=10&page={page}")).await.value();
        assert_eq!(answer["pagination"], json!({ "page": page, "limit": 10, "total": total, "totalPages": pages }));
        gathered.extend(keys(&answer).into_iter().map(ToOwned::to_owned));
    }
    assert_eq!(gathered, keys(&whole));
    let beyond = get(&gateway, &format!("/v1/tools?page={}", pages + 1)).await;
    assert_eq!((beyond.status, keys(&beyond.value()).len()), (200, 0));
}

#[tokio::test]
async fn a_tool_is_shown_by_its_key_or_its_only_name() {
    let gateway = gateway(json!({ "a": stdio(&[]), "b c": stdio(&[]) })).await;
    let reply = get(&gateway, "/v1/tools/a:echo").await;
    let tool = reply.value();
    assert_eq!(reply.status, 200);
    assert_eq!((&tool["key"], &tool["name"], &tool["module"]), (&json!("a:echo"), &json!("echo"), &json!("a")));
    assert_eq!((&tool["enabled"], &tool["tags"]), (&json!(true), &json!([])));
    assert_eq!(tool["inputSchema"]["required"], json!(["text"]));
    assert_eq!(tool["annotations"]["readOnlyHint"], true);
    assert!(tool["version"].is_string() && tool["description"].is_string(), "{tool}");
    is_moment(&tool["registeredAt"]);
    assert_eq!(get(&gateway, "/v1/tools/b%20c%3Aecho").await.value()["key"], "b c:echo");
    let twice = refused(&get(&gateway, "/v1/tools/echo").await, 404, "TOOL_NOT_FOUND", "Tool not found: echo");
    assert!(twice["hint"].as_str().is_some_and(|hint| hint.contains("a:echo") && hint.contains("b c:echo")));
    for (path, name) in [
        ("/v1/tools/nothing", "nothing"),
        ("/v1/tools/a:nothing", "a:nothing"),
        ("/v1/tools/nothing:echo", "nothing:echo"),
        ("/v1/tools/..%2F..%2Fetc%2Fpasswd", "../../etc/passwd"),
        ("/v1/tools/%3Cscript%3E", "<script>"),
    ] {
        refused(&get(&gateway, path).await, 404, "TOOL_NOT_FOUND", &format!("Tool not found: {name}"));
    }
    let near = get(&gateway, "/v1/tools/a:ehco").await.value();
    assert!(near["hint"].as_str().is_none_or(|hint| hint.starts_with("Did you mean")), "{near}");
    refused(&get(&gateway, "/v1/tools/%FF").await, 400, "VALIDATION_ERROR", "The key in the address is not UTF-8.");
}

#[tokio::test]
async fn a_list_is_narrowed_by_module_category_and_switch() {
    let off = json!({ "overrides": { "hang": { "enabled": false } } });
    let (_fixture, server) = http_fixture().await;
    let categories = json!({ "probes": { "description": "d", "server": "b",
        "tools": { "includeNames": ["echo", "who"] } } });
    let servers = json!({ "a": with(server, "tools", off), "b": stdio(&[]) });
    let gateway = configured(json!({ "mcpServers": servers, "categories": categories })).await;
    let list = async |query: &str| get(&gateway, &format!("/v1/tools?limit=100&{query}")).await.value();
    assert!(keys(&list("module=b").await).iter().all(|key| key.starts_with("b:")));
    assert_eq!(keys(&list("category=probes").await), ["b:who", "b:echo"]);
    assert_eq!(keys(&list("enabled=false").await), ["a:hang"]);
    let on = list("enabled=true&module=a").await;
    assert!(!keys(&on).contains(&"a:hang") && keys(&on).contains(&"a:echo"));
    assert_eq!(
        list("module=nobody").await["pagination"],
        json!({ "page": 1, "limit": 100, "total": 0, "totalPages": 0 })
    );
    assert!(keys(&list("tag=none").await).is_empty());
    let hang = get(&gateway, "/v1/tools/a:hang").await.value();
    assert_eq!((&hang["enabled"], hang["disabledReason"].is_string()), (&json!(false), true));
    let modules = get(&gateway, "/v1/modules").await.value()["modules"].clone();
    assert_eq!((&modules[0]["name"], &modules[1]["name"]), (&json!("a"), &json!("b")));
    assert!(modules[0]["state"].is_string() && modules[0]["tools"].as_u64() > Some(10), "{modules}");
    let categories = get(&gateway, "/v1/categories").await.value()["categories"].clone();
    assert_eq!((&categories[0]["name"], &categories[0]["modules"]), (&json!("probes"), &json!(["b"])));
}

#[tokio::test]
async fn a_query_that_is_not_right_is_refused_with_every_fault() {
    let gateway = gateway(json!({})).await;
    for (query, pointer, message) in [
        ("page=0", "/page", "`page` must be an integer from 1 to 1000000."),
        ("page=-1", "/page", "`page` must be an integer from 1 to 1000000."),
        ("page=1.5", "/page", "`page` must be an integer from 1 to 1000000."),
        ("page=x", "/page", "`page` must be an integer from 1 to 1000000."),
        ("page=", "/page", "`page` must be an integer from 1 to 1000000."),
        ("page=99999999999999999999", "/page", "`page` must be an integer from 1 to 1000000."),
        ("limit=0", "/limit", "`limit` must be an integer from 1 to 100."),
        ("limit=101", "/limit", "`limit` must be an integer from 1 to 100."),
        ("enabled=yes", "/enabled", "`enabled` must be `true` or `false`."),
        ("limit=1&limit=2", "/limit", "`limit` must not be given more than once."),
        ("limits=1", "/limits", "Unknown parameter `limits`. Did you mean `limit`?"),
        ("tags=x", "/tags", "Unknown parameter `tags`. Did you mean `tag`?"),
    ] {
        let reply = get(&gateway, &format!("/v1/tools?{query}")).await;
        let body = refused(&reply, 400, "VALIDATION_ERROR", "Validation failed");
        assert_eq!(body["details"], json!([{ "pointer": pointer, "message": message }]), "{query}");
    }
    let several = get(&gateway, "/v1/tools?page=0&limit=0&enabled=2").await.value();
    assert_eq!(several["details"].as_array().map(Vec::len), Some(3), "{several}");
    for path in ["/v1/tools/x?a=1", "/v1/modules?a=1", "/v1/categories?a=1"] {
        refused(&get(&gateway, path).await, 400, "VALIDATION_ERROR", "Validation failed");
    }
}

#[tokio::test]
async fn tools_are_found_by_what_they_do() {
    let servers = json!({ "a": stdio(&[]), "b": stdio(&[]) });
    let gateway = configured(json!({ "mcpServers": servers, "search": { "provider": "bm25" } })).await;
    let body = json!({ "query": "echo text", "filters": { "module": "a" }, "limit": 3 });
    let reply = post(&gateway, "/v1/tools/search", &body).await;
    let found = reply.value();
    assert_eq!((reply.status, &found["query"]), (200, &json!("echo text")));
    let results = found["results"].as_array().expect("results");
    assert_eq!(results[0]["key"], "a:echo", "{found}");
    assert!(results.len() <= 3 && found["total"].as_u64() >= Some(results.len() as u64), "{found}");
    let relevance: Vec<f64> = results.iter().filter_map(|tool| tool["relevance"].as_f64()).collect();
    assert!(relevance.len() == results.len() && relevance.is_sorted_by(|a, b| a >= b), "{relevance:?}");
    assert!(relevance.iter().all(|relevance| (0.0..=1.0).contains(relevance)));
    assert!(results.iter().all(|tool| tool["module"] == "a"));
    let nothing = post(&gateway, "/v1/tools/search", &json!({ "query": "qqqqqq" })).await.value();
    assert_eq!((&nothing["results"], &nothing["total"]), (&json!([]), &json!(0)));
}

#[tokio::test]
async fn a_search_without_a_query_is_refused_in_the_words_of_the_specification() {
    let gateway = gateway(json!({})).await;
    for body in [json!({}), json!({ "query": "" }), json!({ "query": "  \t\n" }), json!({ "query": null })] {
        let reply = post(&gateway, "/v1/tools/search", &body).await;
        refused(&reply, 400, "VALIDATION_ERROR", "Query is required");
    }
    for (body, pointer) in [
        (json!({ "query": 7 }), "/query"),
        (json!({ "query": "x".repeat(1001) }), "/query"),
        (json!({ "query": "x", "limit": 0 }), "/limit"),
        (json!({ "query": "x", "limit": 101 }), "/limit"),
        (json!({ "query": "x", "limit": "5" }), "/limit"),
        (json!({ "query": "x", "filter": {} }), "/filter"),
        (json!({ "query": "x", "filters": [] }), "/filters"),
        (json!({ "query": "x", "filters": { "tags": "a" } }), "/filters/tags"),
        (json!({ "query": "x", "filters": { "tags": [1] } }), "/filters/tags"),
        (json!({ "query": "x", "filters": { "category": 1 } }), "/filters/category"),
        (json!({ "query": "x", "filters": { "modul": "a" } }), "/filters/modul"),
    ] {
        let reply = post(&gateway, "/v1/tools/search", &body).await;
        let refusal = refused(&reply, 400, "VALIDATION_ERROR", "Validation failed");
        assert_eq!(refusal["details"][0]["pointer"], pointer, "{body}");
    }
}

#[tokio::test]
async fn a_body_that_cannot_be_read_is_told_where() {
    let gateway = configured(json!({ "limits": { "body_bytes": 4096 } })).await;
    for path in ["/v1/tools/call", "/v1/tools/search", "/v1/tools"] {
        let send = async |body: String, kind: &str| {
            gateway.send(gateway.request("POST", path).json(body).header("content-type", kind)).await
        };
        let json = "application/json";
        for (body, message) in [
            ("", "The body is empty."),
            ("{\n  \"name\": }", "The body is not valid JSON: line 2, column 11."),
            ("{\"name\":", "The body ends too early: line 1, column 8."),
            ("{} x", "The body is not valid JSON: line 1, column 4."),
            ("[]", "The body must be a JSON object."),
            ("\"text\"", "The body must be a JSON object."),
            ("null", "The body must be a JSON object."),
        ] {
            refused(&send(body.into(), json).await, 400, "VALIDATION_ERROR", message);
        }
        for kind in ["text/plain", "application/x-www-form-urlencoded", "application/jsonx", ""] {
            let reply = send("{}".into(), kind).await;
            refused(&reply, 415, "UNSUPPORTED_MEDIA_TYPE", "The body must be application/json.");
        }
        assert_ne!(send("{}".into(), "Application/JSON; charset=utf-8").await.status, 415);
        let large = format!("{{\"name\":\"{}\"}}", "x".repeat(5000));
        refused(&send(large, json).await, 413, "PAYLOAD_TOO_LARGE", "The body is larger than 4096 bytes.");
    }
}
