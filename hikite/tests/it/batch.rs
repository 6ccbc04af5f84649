//! Batches over REST and in a terminal, with real servers: both formats, failure modes, and progress.

use std::time::Duration;

use hikite_testkit::fixture::{FixtureOptions, FixtureTransport};
use hikite_testkit::gateway::{ClientOptions, HttpReply, StatelessEnvelope, TestGateway, eventually};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::rest::{is_moment, post, refused};
use crate::{PROGRAMS, configured, fixture, gateway, http_fixture, stdio, with};

fn task(id: &str, module: &str, tool: &str, params: Value) -> Value {
    let mut task = json!({ "id": id, "module": module, "tool": tool });
    task["params"] = params;
    task
}

async fn send(gateway: &TestGateway, body: Value) -> HttpReply {
    post(gateway, "/v1/batch", &body).await
}

/// Runs a batch and returns its document.
async fn run(gateway: &TestGateway, body: Value) -> Value {
    let reply = send(gateway, body).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    reply.value()["result"].clone()
}

#[track_caller]
fn statuses(document: &Value) -> Vec<String> {
    let tasks = document["tasks"].as_array().unwrap_or_else(|| panic!("{document}"));
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    tasks.iter().map(|task| format!("{} {}", text(&task["id"]), text(&task["status"]))).collect()
}

#[tokio::test]
async fn tasks_across_servers_use_what_others_gave() {
    let (_fixture, server) = http_fixture().await;
    let gateway = gateway(json!({ "a": server, "p": stdio(&[]) })).await;
    let lines = r##"{"id":"search","module":"p","tool":"echo","params":{"text":"{\"results\": [{\"id\": \"設計\"}]}"}}
{"id":"page","module":"a","tool":"echo","params":{"text":"# ${search.results[0].id}"},"after":["search"],"output":true}
{"id":"sum","module":"a","tool":"structured","params":{"a":1,"b":2},"raw_output":true}
{"id":"more","module":"p","tool":"structured","params":{"a":"${sum.sum}","b":1},"after":"sum","raw_output":true}"##;
    let reply = send(&gateway, json!({ "commands": lines })).await;
    let body = reply.value();
    assert_eq!((reply.status, &body["success"]), (200, &json!(true)), "{body}");
    assert!(body["executionTime"].as_f64().is_some_and(|ms| ms > 0.0), "{body}");
    is_moment(&body["timestamp"]);
    let document = &body["result"];
    assert_eq!(statuses(document), ["search ok", "page ok", "sum ok", "more ok"]);
    let result = |at: usize| document["tasks"][at].get("result").cloned();
    assert_eq!(result(0), None);
    assert_eq!(result(1), Some(json!("# 設計")));
    assert_eq!((result(2), result(3)), (Some(json!({ "sum": 3.0 })), Some(json!({ "sum": 4.0 }))));
    assert_eq!(document["summary"], json!({ "ok": 4, "error": 0, "skipped": 0, "timeout": 0, "cancelled": 0 }));
    let listed: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(run(&gateway, json!({ "commands": listed })).await["tasks"][3]["result"], json!({ "sum": 4.0 }));
}

#[tokio::test]
async fn a_failure_in_each_place_means_what_was_asked_for() {
    let (_fixture, server) = http_fixture().await;
    let gateway = gateway(json!({ "a": server })).await;
    let tasks = |fails: &str| -> Value {
        let places = [
            ("first", json!([])),
            ("left", json!(["first"])),
            ("right", json!(["first"])),
            ("last", json!(["left", "right"])),
        ];
        let one = |(id, after): (&str, Value)| {
            let (tool, params) =
                if id == fails { ("test_error_handling", json!({})) } else { ("echo", json!({ "text": id })) };
            with(task(id, "a", tool, params), "after", after)
        };
        places.into_iter().map(one).collect()
    };
    for (fails, on_error, expected) in [
        ("first", "skip", "first error, left skipped, right skipped, last skipped"),
        ("left", "skip", "first ok, left error, right ok, last skipped"),
        ("last", "skip", "first ok, left ok, right ok, last error"),
        ("first", "continue", "first error, left ok, right ok, last ok"),
        ("left", "continue", "first ok, left error, right ok, last ok"),
        ("first", "fail_fast", "first error, left cancelled, right cancelled, last cancelled"),
        ("last", "fail_fast", "first ok, left ok, right ok, last error"),
    ] {
        let document = run(&gateway, json!({ "commands": tasks(fails), "on_error": on_error })).await;
        assert_eq!(statuses(&document).join(", "), expected, "{on_error}");
    }
    let document = run(&gateway, json!({ "commands": tasks("left") })).await;
    assert_eq!(
        document["tasks"][1]["error"],
        json!({ "code": "TOOL_EXECUTION_ERROR", "message": "This tool intentionally returns an error for testing" })
    );
    assert_eq!(document["tasks"][3]["cause"], "left");
}

#[tokio::test]
async fn a_client_that_goes_away_cancels_everything_that_runs() {
    let (fixture, server) = fixture(FixtureTransport::Http, FixtureOptions::default()).await;
    let gateway = gateway(json!({ "a": server })).await;
    let tasks = json!([
        task("a", "a", "hang", json!({})),
        task("b", "a", "hang", json!({})),
        with(task("c", "a", "echo", json!({ "text": "x" })), "after", "a"),
    ]);
    let request = gateway.request("POST", "/v1/batch").json(json!({ "commands": tasks }).to_string());
    let answer = tokio::time::timeout(Duration::from_millis(900), request.open(gateway.address())).await;
    assert!(answer.is_err(), "it hangs until its client goes");
    assert!(eventually(|| fixture.cancelled().len() == 2).await, "the server is told of both");
    assert_eq!(fixture.calls(), 2, "and the third never came");
}

#[tokio::test]
async fn a_failure_that_ends_everything_reaches_the_server_and_a_task_has_its_own_time() {
    let (fixture, server) = fixture(FixtureTransport::Http, FixtureOptions::default()).await;
    let gateway = gateway(json!({ "a": server })).await;
    let tasks =
        json!([task("slow", "a", "hang", json!({})), with(task("bad", "a", "hang", json!({})), "timeout_ms", 300),]);
    let document = run(&gateway, json!({ "commands": tasks, "on_error": "fail_fast" })).await;
    assert_eq!(statuses(&document), ["slow cancelled", "bad timeout"]);
    assert_eq!(
        (&document["tasks"][1]["error"]["code"], &document["tasks"][0]["cause"]),
        (&json!("TIMEOUT"), &json!("bad"))
    );
    assert!(eventually(|| fixture.cancelled().len() == 2).await);
}

#[tokio::test]
async fn what_is_wrong_is_told_at_once_and_nothing_runs() {
    let off = json!({ "overrides": { "who": { "enabled": false } } });
    let (fixture, server) = http_fixture().await;
    let gateway = gateway(json!({ "a": with(server, "tools", off) })).await;
    let tasks = json!([
        task("fine", "a", "echo", json!({ "text": "x" })),
        task("typo", "a", "ecko", json!({})),
        task("off", "a", "who", json!({})),
        task("bare", "a", "echo", json!({})),
    ]);
    let reply = send(&gateway, json!({ "commands": tasks })).await;
    let message = reply.value()["error"].as_str().unwrap_or_default().to_owned();
    let body = refused(&reply, 400, "VALIDATION_ERROR", &message);
    let messages: Vec<&str> =
        body["details"].as_array().expect("details").iter().filter_map(|fault| fault["message"].as_str()).collect();
    assert_eq!(messages[0], "task `typo`: There is no tool `a:ecko`. Did you mean `echo`?");
    assert!(messages[1].starts_with("task `off`: The tool `who` is disabled."), "{messages:?}");
    assert_eq!((messages[2], messages.len()), ("task `bare`: Required parameter missing: text", 3));
    assert!(messages.iter().all(|fault| message.contains(fault)), "{message}");
    assert_eq!(fixture.calls(), 0);
    for (body, pointer) in [
        (json!({}), "/commands"),
        (json!({ "commands": 5 }), "/commands"),
        (json!({ "commands": [], "dry_run": "yes" }), "/dry_run"),
        (json!({ "commands": [], "concurrency": 0 }), "/concurrency"),
        (json!({ "commands": [], "on_error": "stop" }), "/on_error"),
        (json!({ "commands": [], "command": [] }), "/command"),
        (json!({ "commands": [] }), "/commands"),
    ] {
        let reply = send(&gateway, body.clone()).await;
        assert_eq!((reply.status, &reply.value()["details"][0]["pointer"]), (400, &json!(pointer)), "{body}");
    }
}

#[tokio::test]
async fn a_dry_run_shows_the_waves_and_calls_nobody() {
    let (fixture, server) = http_fixture().await;
    let gateway = gateway(json!({ "a": server })).await;
    let tasks = json!([
        task("first", "a", "echo", json!({ "text": "x" })),
        task("then", "a", "structured", json!({ "a": "${first.n}", "b": 1 })),
    ]);
    let document = run(&gateway, json!({ "commands": tasks, "dry_run": true })).await;
    assert_eq!(document["waves"], json!([["first"], ["then"]]));
    assert_eq!(
        document["tasks"][1],
        json!({ "id": "then", "tool": "a:structured", "wave": 1, "risk": "destructive",
            "params": { "a": "${first.n}", "b": 1 }, "after": ["first"] })
    );
    assert_eq!((document["tasks"][0]["risk"].as_str(), fixture.calls()), (Some("read"), 0));
}

#[tokio::test]
async fn a_tool_that_a_project_hides_looks_absent() {
    let (_fixture, server) = http_fixture().await;
    let projects = json!({ "p": { "permissions": { "deny": ["a:mirror"] } } });
    let gateway = configured(json!({ "mcpServers": { "a": server }, "projects": projects })).await;
    let told = async |tool: &str| {
        let body = json!({ "commands": [task("t", "a", tool, json!({}))] }).to_string();
        let request = gateway.request("POST", "/v1/batch").header("hikite-project", "p").json(body);
        let reply = gateway.send(request).await;
        (reply.status, reply.value()["error"].as_str().unwrap_or_default().to_owned())
    };
    let (hidden, absent) = (told("mirror").await, told("mirrro").await);
    assert_eq!((hidden.0, hidden.1.replace("mirror", "mirrro")), absent);
    let seen = run(&gateway, json!({ "commands": [task("t", "a", "mirror", json!({}))] })).await;
    assert_eq!(statuses(&seen), ["t ok"]);
}

#[tokio::test]
async fn every_task_is_recorded_and_so_is_the_batch() {
    let (_fixture, server) = http_fixture().await;
    let gateway = gateway(json!({ "a": server })).await;
    let tasks = json!([
        task("x", "a", "echo", json!({ "text": "x" })),
        with(task("each", "a", "echo", json!({ "text": "${item}" })), "for_each", json!(["1", "2"])),
        task("bad", "a", "test_error_handling", json!({})),
    ]);
    run(&gateway, json!({ "commands": tasks })).await;
    let page = gateway.send(gateway.request("GET", "/v1/audit")).await.value();
    let mut records: Vec<String> = page["records"]
        .as_array()
        .unwrap_or_else(|| panic!("{page}"))
        .iter()
        .map(|record| {
            let word = |name: &str| record[name].as_str().unwrap_or_default().to_owned();
            format!("{} {} {} {} {}", word("kind"), word("surface"), word("tool"), word("decision"), word("outcome"))
        })
        .collect();
    records.sort_unstable();
    assert_eq!(
        records,
        [
            "batch rest  allowed ok",
            "call rest echo allowed ok",
            "call rest echo allowed ok",
            "call rest echo allowed ok",
            "call rest test_error_handling allowed tool_error",
        ]
    );
    let own = gateway.send(gateway.request("GET", "/v1/audit?kind=batch")).await.value();
    assert_eq!(own["records"][0]["what"], "3 tasks", "{own}");
}

#[tokio::test]
async fn pictures_stand_beside_the_results() {
    let (_fixture, server) = http_fixture().await;
    let gateway = gateway(json!({ "a": server })).await;
    let tasks = json!([with(task("t", "a", "test_image_content", json!({})), "output", true)]);
    let reply = send(&gateway, json!({ "commands": tasks })).await.value();
    assert_eq!(reply["content"][0]["type"], "image", "{reply}");
}

#[tokio::test]
async fn a_client_hears_of_every_task_that_ends_and_can_be_asked_and_can_withdraw() {
    let (fixture, server) = http_fixture().await;
    let gateway = gateway(json!({ "a": server })).await;
    let client = gateway.client_with("modules", ClientOptions::answering("ada")).await;
    let tasks = json!([
        task("steps", "a", "test_tool_with_progress", json!({})),
        with(task("asks", "a", "ask", json!({ "kind": "sampling", "marker": "m" })), "after", "steps"),
        with(task("bad", "a", "test_error_handling", json!({})), "after", "asks"),
        with(task("never", "a", "echo", json!({ "text": "x" })), "after", "bad"),
    ]);
    let call = |tasks: &Value| json!({ "name": "batch", "arguments": { "commands": tasks }, "_meta": { "progressToken": "p" } });
    let result = client.request("tools/call", call(&tasks)).await.expect("a result");
    assert_eq!(
        statuses(&result["structuredContent"]),
        ["steps ok", "asks ok", "bad error", "never skipped"],
        "{result}"
    );
    assert_eq!(client.questions().len(), 1);
    let told = client.notifications("notifications/progress");
    let words: Vec<String> = told
        .iter()
        .map(|told| {
            let message = told["message"].as_str().unwrap_or_default();
            format!("{}/{} {}", told["progress"], told["total"], message.split(" (").next().unwrap_or_default())
        })
        .collect();
    assert_eq!(words, ["1/4 steps: ok", "2/4 asks: ok", "3/4 bad: error", "4/4 never: skipped"]);
    assert!(told.iter().all(|told| told["progressToken"] == "p"), "{told:?}");
    let wrong =
        client.request("tools/call", call(&json!([task("t", "a", "ecko", json!({}))]))).await.expect("a result");
    let error = crate::error_of(&wrong);
    assert_eq!(
        (&error["code"], &error["details"][0]["pointer"]),
        (&json!("VALIDATION_ERROR"), &json!("/commands/0/tool"))
    );
    let before = fixture.calls();
    let hanging = client
        .begin("tools/call", call(&json!([task("h", "a", "hang", json!({})), task("i", "a", "hang", json!({}))])));
    assert!(eventually(|| fixture.calls() == before + 2).await);
    client.cancel(hanging.id).await;
    assert!(eventually(|| fixture.cancelled().len() == 2).await, "the server is told of both");
}

#[tokio::test]
async fn a_tool_that_asks_a_client_without_a_session_must_be_called_alone() {
    let gateway = gateway(json!({ "a": stdio(&[]) })).await;
    let client = gateway.stateless("modules", StatelessEnvelope::capable());
    let tasks = json!([
        task("t", "a", "ask", json!({ "kind": "sampling", "marker": "m" })),
        task("e", "a", "echo", json!({ "text": "x" }))
    ]);
    let outcome = client.call("batch", json!({ "commands": tasks })).await;
    let result = outcome.result();
    assert_eq!(statuses(&result["structuredContent"]), ["t error", "e ok"], "{result}");
}

/// Creates a folder with a config and a batch.
fn folder(server: &Value, batch: &str) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let config = json!({ "mcpServers": { "up": server } }).to_string();
    std::fs::write(folder.path().join("hikite.json"), config).expect("a file");
    std::fs::write(folder.path().join("batch.jsonl"), batch).expect("a file");
    folder
}

/// Removes times, which vary.
fn without_times(text: &str) -> String {
    let mut out: Vec<String> = Vec::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let number = |word: &str| word.trim_start_matches('(').parse::<f64>().is_ok();
        let shown = words.iter().enumerate().map(|(at, word)| {
            let timed = words.get(at + 1).is_some_and(|next| next.starts_with("ms")) && number(word);
            if timed { word.replace(word.trim_start_matches('('), "N") } else { (*word).to_owned() }
        });
        out.push(shown.collect::<Vec<_>>().join(" "));
    }
    out.join("\n")
}

const LINES: &str = r##"{"id":"検索","module":"up","tool":"echo","params":{"text":"{\"id\": 7}"}}
{"id":"page","module":"up","tool":"echo","params":{"text":"# Page ${検索.id}\n\n本文"},"output":true}
{"id":"sum","module":"up","tool":"structured","params":{"a":"${検索.id}","b":0.5},"raw_output":true}
{"id":"bad","module":"up","tool":"test_error_handling"}
{"id":"never","module":"up","tool":"echo","params":{"text":"x"},"after":"bad"}
"##;

#[tokio::test]
async fn a_terminal_shows_every_task_and_its_exit_code_says_whether_all_went_well() {
    let (_fixture, up) = http_fixture().await;
    let folder = folder(&up, LINES);
    let run = PROGRAMS.run(folder.path(), &["batch", "batch.jsonl", "--concurrency", "1"]).await;
    assert_eq!(run.code, Some(1), "{}", run.stderr);
    insta::assert_snapshot!("batch_on_a_terminal", without_times(&run.stdout));
    insta::assert_snapshot!("batch_as_it_goes", without_times(&run.stderr));
    let whole = PROGRAMS.run(folder.path(), &["batch", "batch.jsonl", "--json", "--on-error", "continue"]).await;
    let document: Value = serde_json::from_str(&whole.stdout).unwrap_or_else(|_| panic!("{}", whole.stdout));
    assert_eq!(statuses(&document), ["検索 ok", "page ok", "sum ok", "bad error", "never ok"]);
    let well: String = LINES.lines().take(3).collect::<Vec<_>>().join("\n");
    std::fs::write(folder.path().join("batch.jsonl"), well).expect("a file");
    assert_eq!(PROGRAMS.run(folder.path(), &["batch", "batch.jsonl"]).await.code, Some(0));
}

#[tokio::test]
async fn a_terminal_shows_what_would_run_and_what_is_wrong() {
    let (fixture, up) = http_fixture().await;
    let folder = folder(&up, LINES);
    let run = PROGRAMS.run(folder.path(), &["batch", "batch.jsonl", "--dry-run"]).await;
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    insta::assert_snapshot!("batch_that_does_not_run", run.stdout);
    let wrong = r#"[{"id":"a","module":"up","tool":"ecko"},{"id":"b","module":"up","tool":"echo"}]"#;
    std::fs::write(folder.path().join("batch.jsonl"), wrong).expect("a file");
    let run = PROGRAMS.run(folder.path(), &["batch", "batch.jsonl"]).await;
    assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""));
    insta::assert_snapshot!("batch_that_is_wrong", run.stderr);
    let nothing = PROGRAMS.run(folder.path(), &["batch", "nowhere.jsonl"]).await;
    assert_eq!(nothing.code, Some(1));
    assert!(nothing.stderr.contains("cannot read `nowhere.jsonl`"), "{}", nothing.stderr);
    assert_eq!(fixture.calls(), 0);
}
