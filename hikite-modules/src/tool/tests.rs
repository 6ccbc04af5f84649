//! Tests of HTTP tools against a fixture service: requests, results and refusals.

use std::sync::Arc;
use std::time::Duration;

use hikite_core::caller::{Caller, ClientCapabilities, Session, SessionId};
use hikite_core::error::ErrorKind;
use hikite_core::source::{Backchannel, InputRequest};
use hikite_egress::{AllowList, AllowedAddress};
use hikite_testkit::api::{MockApi, MockResponse, RecordedRequest};
use serde_json::{Value, json};

use super::*;

struct SilentClient;

impl Backchannel for SilentClient {
    fn progress(&self, _: Object) {}
    fn log(&self, _: Raw) {}
    fn ask(&self, _: InputRequest) -> BoxFuture<'static, Result<Raw, Raw>> {
        Box::pin(async { Err(Raw::null()) })
    }
}

fn context(origin: CallOrigin) -> CallContext {
    let session =
        Session { id: SessionId(0), caller: Caller::owner(), client_capabilities: ClientCapabilities::default() };
    CallContext {
        session: Arc::new(session),
        back: Arc::new(SilentClient),
        origin,
        accepts_input_required: false,
        account: None,
    }
}

fn schema() -> Value {
    json!({ "type": "object", "properties": {
        "id": {}, "q": {}, "tags": {}, "note": {}, "user": { "properties": { "name": {} } } } })
}

fn tool_with(http: &Value, schema: &Value, client: EgressClient, limits: &Limits) -> HttpTool {
    HttpTool::read(&Raw::from(http.clone()), &Raw::from(schema.clone()), client, limits).expect("a tool")
}

async fn run(tool: &HttpTool, arguments: Value) -> Result<Value, Error> {
    let arguments = Raw::from(arguments).object().expect("an object");
    tool.run(arguments, context(CallOrigin::default())).await.map(|raw| raw.value())
}

/// Runs a tool once. `url` is the path of its URL.
async fn call(api: &MockApi, url: &str, mut form: Value, arguments: Value) -> Result<Value, Error> {
    form["url"] = api.url(url).into();
    run(&tool_with(&form, &schema(), EgressClient::new(), &Limits::default()), arguments).await
}

async fn sent(url: &str, form: Value, arguments: Value) -> RecordedRequest {
    let api = MockApi::start().await;
    call(&api, url, form, arguments).await.expect("an answer");
    api.last()
}

#[tokio::test]
async fn values_go_where_the_templates_say() {
    let form = json!({ "method": "POST", "headers": { "X-Note": "n:{note}", "Authorization": "Bearer k" },
        "query": { "n": 5, "q": "{q}", "both": "{id}-{q}", "list": ["a b", "{id}"] },
        "body": { "id": "{id}", "text": "<{id}>", "tags": ["x", "{tags}"], "who": "{user.name}", "lit": "{{id}}", "n": 1.50 } });
    let arguments = json!({ "id": 7, "q": "a&b=c", "note": "ü", "tags": [1, "2"], "user": { "name": null } });
    let seen = sent("/a/{id}/b?k=v%20w&t={tags}&flag", form, arguments).await;
    assert_eq!((seen.method.as_str(), seen.path.as_str()), ("POST", "/a/7/b"));
    let query = "k=v%20w&t=1&t=2&flag&n=5&q=a%26b%3Dc&both=7-a%26b%3Dc&list=a%20b&list=7";
    assert_eq!(seen.query, query);
    assert_eq!(seen.body, r#"{"id":7,"text":"<7>","tags":["x",[1,"2"]],"lit":"{id}","n":1.5}"#);
    assert_eq!(seen.headers["x-note"].as_bytes(), "n:ü".as_bytes());
    assert_eq!(
        (seen.header("authorization"), seen.header("content-type")),
        (Some("Bearer k"), Some("application/json"))
    );
}

#[tokio::test]
async fn what_is_absent_is_left_out() {
    let form = json!({ "method": "PATCH", "headers": { "X-Q": "{q}", "X-Id": "{id}" }, "query": { "q": "a{q}" },
        "body": { "a": "{q}", "b": { "c": "x{note}" }, "d": ["{q}", 1, "{tags}"] } });
    let seen = sent("/x?t={tags}", form, json!({ "id": "1", "q": null })).await;
    assert_eq!((seen.query.as_str(), seen.header("x-q"), seen.header("x-id")), ("", None, Some("1")));
    assert_eq!(seen.json(), json!({ "b": {}, "d": [1] }));
    let whole = sent("/x", json!({ "method": "POST", "body": "{q}" }), json!({})).await;
    assert_eq!((whole.body.len(), whole.header("content-length")), (0, Some("0")));
}

#[tokio::test]
async fn arguments_that_nothing_mentions_find_their_way() {
    let arguments = || json!({ "id": 1, "q": "x y", "tags": ["a", "b"], "note": null, "user": { "name": 1 } });
    let seen = sent("/{id}", json!({}), arguments()).await;
    assert_eq!((seen.query.as_str(), seen.body.len()), ("q=x%20y&tags=a&tags=b&user=%7B%22name%22%3A1%7D", 0));
    let seen = sent("/{id}?q=mine", json!({ "method": "DELETE" }), json!({ "id": 1, "q": "theirs" })).await;
    assert_eq!(seen.query, "q=mine", "what the form says cannot be said again");
    let seen = sent("/{id}", json!({ "method": "PUT" }), arguments()).await;
    assert_eq!(seen.json(), json!({ "q": "x y", "tags": ["a", "b"], "note": null, "user": { "name": 1 } }));
    let seen = sent("/{id}", json!({ "method": "POST" }), json!({ "id": 1 })).await;
    assert_eq!((seen.body.as_ref(), seen.header("content-type")), (b"{}".as_slice(), Some("application/json")));
    let seen = sent("/", json!({ "method": "POST", "body": {} }), arguments()).await;
    assert_eq!((seen.query.as_str(), seen.body.as_ref()), ("", b"{}".as_slice()));
    let seen = sent("/", json!({}), json!({ "admin": true })).await;
    assert_eq!(seen.query, "", "a schema that does not say so has no further arguments");
}

#[tokio::test]
async fn an_open_schema_has_further_arguments() {
    let api = MockApi::start().await;
    let schema = json!({ "properties": { "id": {} }, "additionalProperties": true });
    let form = json!({ "url": api.url("/{id}") });
    let tool = tool_with(&form, &schema, EgressClient::new(), &Limits::default());
    run(&tool, json!({ "id": 1, "more": 2 })).await.expect("an answer");
    assert_eq!((api.last().path.as_str(), api.last().query.as_str()), ("/1", "more=2"));
}

#[tokio::test]
async fn forms_and_texts_are_sent_as_such() {
    let form = json!({ "method": "POST", "headers": { "Content-Type": "application/x-www-form-urlencoded" },
        "body": { "a": "{q}", "t": "{tags}", "gone": "{note}" } });
    let seen = sent("/", form, json!({ "q": "x&y=z", "tags": ["1", "2"] })).await;
    assert_eq!(seen.body, "a=x%26y%3Dz&t=1&t=2");
    let rest = json!({ "method": "POST", "headers": { "content-type": "application/x-www-form-urlencoded" } });
    assert_eq!(sent("/", rest, json!({ "q": 1 })).await.body, "q=1");
    let text = json!({ "method": "PUT", "headers": { "Content-Type": "text/csv" }, "body": "a,{q}\n" });
    assert_eq!(sent("/", text, json!({ "q": "\"x\"" })).await.body, "a,\"x\"\n");
}

#[tokio::test]
async fn a_value_never_leaves_its_place_in_the_path() {
    let api = MockApi::start().await;
    let call = async |arguments| call(&api, "/v1/{id}/end", json!({}), arguments).await;
    call(json!({ "id": "a/b?c#d%2e" })).await.expect("an answer");
    assert_eq!(api.last().path, "/v1/a%2Fb%3Fc%23d%252e/end");
    let before = api.count();
    for id in ["..", ".", "../admin", "a/../b", "..\\x", "x/.."] {
        let error = call(json!({ "id": id })).await.expect_err(id);
        assert_eq!(
            (error.kind, &*error.message),
            (ErrorKind::Validation, "Invalid value for parameter id: no `.` or `..` in a path")
        );
        assert_eq!(error.details.expect("details").value()[0]["pointer"], "/id");
    }
    for absent in [json!({}), json!({ "id": null })] {
        let error = call(absent).await.expect_err("absent");
        assert_eq!((error.kind, &*error.message), (ErrorKind::Validation, "Required parameter missing: id"));
    }
    let empty = call(json!({ "id": "" })).await.expect_err("empty");
    assert_eq!(&*empty.message, "Invalid value for parameter id: it is empty");
    assert_eq!(api.count(), before, "nothing of it was sent");
}

#[tokio::test]
async fn two_values_do_not_make_two_dots() {
    let api = MockApi::start().await;
    let error = call(&api, "/x/{id}{q}/y", json!({}), json!({ "id": ".", "q": "." })).await.expect_err("dots");
    assert_eq!((error.kind, api.count()), (ErrorKind::Validation, 0));
    call(&api, "/x/{id}{q}/y", json!({}), json!({ "id": ".", "q": "a" })).await.expect("an answer");
}

#[tokio::test]
async fn a_value_never_adds_a_header() {
    let api = MockApi::start().await;
    let form = || json!({ "headers": { "X-A": "{id}" } });
    for id in ["a\r\nX-B: 1", "a\nb", "a\u{0}", "\u{7f}", "a\u{85}b", "\t"] {
        let error = call(&api, "/", form(), json!({ "id": id })).await.expect_err(id);
        assert_eq!(
            (error.kind, &*error.message),
            (ErrorKind::Validation, "Invalid value for parameter id: no control characters")
        );
    }
    assert_eq!(api.count(), 0);
    call(&api, "/", form(), json!({ "id": "plain, text" })).await.expect("an answer");
    assert_eq!(api.last().header("x-a"), Some("plain, text"));
}

#[tokio::test]
async fn the_result_is_what_the_path_leads_to() {
    let api = MockApi::start().await;
    api.answer("/r", MockResponse::json(&json!({ "data": { "items": [{ "a": 1 }, 2] } })));
    let pick = async |result: &str| call(&api, "/r", json!({ "result": result }), json!({})).await;
    assert_eq!(pick("data.items[1]").await.expect("found"), json!(2));
    assert_eq!(pick("/data/items/0").await.expect("found"), json!({ "a": 1 }));
    let lost = pick("data.nothing").await.expect_err("lost");
    assert_eq!(
        (lost.kind, &*lost.message),
        (ErrorKind::ToolExecution, "The response of the service has nothing at `data.nothing`.")
    );
    let whole = call(&api, "/r", json!({}), json!({})).await.expect("an answer");
    assert_eq!(whole["data"]["items"][1], 2);
    let head = call(&api, "/r", json!({ "method": "HEAD" }), json!({})).await.expect("an answer");
    assert_eq!(head, json!({ "status": 200 }));
    api.answer("/none", MockResponse::status(204));
    assert_eq!(call(&api, "/none", json!({ "method": "DELETE" }), json!({})).await.expect("an answer"), Value::Null);
}

#[tokio::test]
async fn failures_say_whose_they_are() {
    let api = MockApi::start().await;
    let failure = async |path: &str| {
        let form = json!({ "headers": { "Authorization": "Bearer s3cr3t-token" } });
        call(&api, path, form, json!({})).await.expect_err(path)
    };
    api.answer("/429", MockResponse::status(429).header("retry-after", "3"));
    let slow = failure("/429").await;
    assert_eq!((slow.kind, slow.retry_after), (ErrorKind::RateLimit, Some(Duration::from_secs(3))));
    let body = json!({ "message": format!("bad s3cr3t-token at {} on {}", api.url("/x"), api.address().ip()) });
    api.answer("/401", MockResponse::json(&body).with_status(401).header("x-inner", "s3cr3t-token"));
    let denied = failure("/401").await;
    assert_eq!(&*denied.message, "The service returned 401 Unauthorized: bad *** at … on ***");
    api.answer("/302", MockResponse::status(302).header("location", &api.url("/elsewhere")));
    let moved = failure("/302").await;
    assert_eq!((moved.kind, api.count_of("/elsewhere")), (ErrorKind::ToolExecution, 0));
    assert!(!moved.to_string().contains("elsewhere"));
    api.answer("/cut", MockResponse::text("0123456789").cut_after(3));
    api.answer("/reset", MockResponse::cut());
    for path in ["/cut", "/reset"] {
        let broken = failure(path).await;
        assert_eq!((broken.kind, api.count_of(path)), (ErrorKind::UpstreamUnavailable, 1), "{path}");
        assert!(!broken.to_string().contains("127.0.0.1"), "{broken}");
    }
    let url = api.url("/");
    api.stop().await;
    let tool = tool_with(&json!({ "url": url }), &schema(), EgressClient::new(), &Limits::default());
    let gone = run(&tool, json!({})).await.expect_err("nobody there");
    assert_eq!((gone.kind, &*gone.message), (ErrorKind::UpstreamUnavailable, "The service cannot be reached."));
}

#[tokio::test]
async fn an_answer_has_a_limit_and_is_no_picture() {
    let api = MockApi::start().await;
    api.answer("/large", MockResponse::text(&"x".repeat(101)));
    api.answer("/png", MockResponse::bytes("image/png", &b"\x89PNG\0"[..]));
    api.answer("/gzip", MockResponse::bytes("application/json", "{}").header("content-encoding", "gzip"));
    let limits = Limits { answer_bytes: 100, ..Limits::default() };
    for (path, kind) in [
        ("/large", ErrorKind::PayloadTooLarge),
        ("/png", ErrorKind::ToolExecution),
        ("/gzip", ErrorKind::ToolExecution),
    ] {
        let tool = tool_with(&json!({ "url": api.url(path) }), &schema(), EgressClient::new(), &limits);
        assert_eq!(run(&tool, json!({})).await.expect_err(path).kind, kind, "{path}");
    }
}

#[tokio::test]
async fn a_guarded_tool_stays_outside() {
    let api = MockApi::start().await;
    let port = api.address().port();
    let client = EgressClient::guarded(AllowList::default());
    for host in ["127.0.0.1", "localhost", "2130706433", "[::ffff:127.0.0.1]"] {
        let form = json!({ "url": format!("http://{host}:{port}/") });
        let error = run(&tool_with(&form, &schema(), client.clone(), &Limits::default()), json!({})).await;
        let error = error.expect_err(host);
        assert_eq!(&*error.message, "hikite is not allowed to call the address of this tool.", "{host}");
        assert!(!error.kind.definition().retry);
    }
    assert_eq!(api.connections(), 0);
    let tool = tool_with(&json!({ "url": api.url("/") }), &schema(), client.clone(), &Limits::default());
    client.allow(AllowList::of(AllowedAddress::parse("127.0.0.1")));
    run(&tool, json!({})).await.expect("it is allowed now");
    run(&tool, json!({})).await.expect("and again");
    assert_eq!(api.connections(), 1, "the connection is kept");
    client.allow(AllowList::default());
    run(&tool, json!({})).await.expect_err("not over the open connection either");
    assert_eq!(api.count(), 2);
}

#[tokio::test]
async fn the_trace_goes_on() {
    let api = MockApi::start().await;
    let tool = tool_with(&json!({ "url": api.url("/") }), &schema(), EgressClient::new(), &Limits::default());
    let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let origin =
        CallOrigin { traceparent: Some(parent.into()), tracestate: Some("a=b".into()), ..CallOrigin::default() };
    tool.run(Object::default(), context(origin)).await.expect("an answer");
    assert_eq!((api.last().header("traceparent"), api.last().header("tracestate")), (Some(parent), Some("a=b")));
    run(&tool, json!({})).await.expect("an answer");
    assert_eq!(api.last().header("traceparent"), None);
}

#[test]
fn a_tool_does_not_show_its_credentials() {
    let form = json!({ "url": "https://x/?key=s3cr3t", "headers": { "A": "s3cr3t" } });
    let tool = tool_with(&form, &schema(), EgressClient::new(), &Limits::default());
    assert_eq!(format!("{tool:?}"), "HttpTool { method: GET, .. }");
}
