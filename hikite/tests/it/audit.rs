//! The audit: one record for every request on any interface. It is tamper-evident and contains no arguments or results.

use std::time::{Duration, Instant};

use hikite_testkit::gateway::{ClientOptions, LIMIT, SessionClient, StatelessEnvelope, TestGateway, eventually};
use hikite_testkit::postgres::database;
use serde_json::{Value, json};
use sqlx::{AnyConnection, Connection, Executor};

use crate::rest::{get, post, refused};
use crate::{PROGRAMS, configured, http_fixture};

/// Sent as an argument and as a query, and never recorded.
const CANARY: &str = "canary-7f3a";

pub(crate) async fn records(gateway: &TestGateway, query: &str) -> Vec<Value> {
    let reply = get(gateway, &format!("/v1/audit?limit=1000&{query}")).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    assert!(!reply.text().contains(CANARY), "{}", reply.text());
    reply.value()["records"].as_array().expect("records").clone()
}

/// Waits for the next new record and returns it.
async fn next(gateway: &TestGateway, seen: &mut u64) -> Value {
    let begin = Instant::now();
    loop {
        let records = records(gateway, "").await;
        let new: Vec<&Value> = records.iter().filter(|record| record["seq"].as_u64() > Some(*seen)).collect();
        if let [one] = new[..] {
            *seen += 1;
            return one.clone();
        }
        assert!(new.is_empty() && begin.elapsed() < LIMIT, "not one: {new:#?}\n{}", gateway.stderr());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[track_caller]
fn is(record: &Value, members: &Value) {
    for (name, value) in members.as_object().expect("members") {
        assert_eq!(&record[name], value, "{name} of {record:#}");
    }
}

pub(crate) fn file(gateway: &TestGateway) -> String {
    format!("sqlite:{}", gateway.folder().path().join("data/hikite.db").display())
}

pub(crate) async fn connect(url: &str) -> AnyConnection {
    sqlx::any::install_default_drivers();
    AnyConnection::connect(url).await.expect("a connection")
}

#[tokio::test]
async fn whichever_way_a_call_comes_in_it_leaves_one_record() {
    let (_fixture, server) = http_fixture().await;
    let config = json!({ "mcpServers": { "a": server },
        "categories": { "c": { "description": "d", "server": "a" } } });
    let gateway = configured(config).await;
    let (mut seen, arguments) = (0, json!({ "text": CANARY }));
    let common = json!({ "kind": "call", "decision": "allowed", "outcome": "ok", "subject": "owner", "module": "a",
        "tool": "echo", "attempts": 1, "bytesIn": 22 });
    let mut same = async |gateway: &TestGateway, members: Value| {
        let record = next(gateway, &mut seen).await;
        is(&record, &common);
        is(&record, &members);
        record
    };
    gateway.client("direct").await.text("echo", arguments.clone()).await;
    let first = same(&gateway, json!({ "surface": "direct", "what": "a:echo", "method": "tools/call" })).await;
    assert!(first["client"].as_str().is_some_and(|client| client.contains('/')), "{first}");
    assert_eq!(first["argumentsHash"].as_str().map(str::len), Some(64));
    gateway.client("categories").await.call_in("c", "echo", arguments.clone()).await;
    same(&gateway, json!({ "surface": "categories", "what": "c/echo", "argumentsHash": first["argumentsHash"] })).await;
    let envelope = StatelessEnvelope::default()
        .header("x-request-id", "mine-1")
        .client_info(json!({ "name": "agent", "version": "9" }));
    gateway.stateless("direct", envelope).text("echo", arguments.clone()).await;
    same(&gateway, json!({ "surface": "direct", "requestId": "mine-1", "client": "agent/9" })).await;
    let reply = post(&gateway, "/v1/tools/call", &json!({ "name": "echo", "parameters": arguments })).await;
    let id = reply.headers["x-request-id"].to_str().expect("text").to_owned();
    same(&gateway, json!({ "surface": "rest", "requestId": id })).await;
    let over_lines = SessionClient::over_stdio(
        &PROGRAMS,
        gateway.folder().path(),
        &["--surface", "direct"],
        ClientOptions::default(),
    )
    .await;
    over_lines.text("echo", arguments.clone()).await;
    same(&gateway, json!({ "surface": "direct" })).await;
    assert!(over_lines.close().await.success());
    let run = gateway.run(&["call", "a:echo", "--param", &format!("text={CANARY}")]).await;
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    same(&gateway, json!({ "session": 0 })).await;
    let verdict = get(&gateway, "/v1/audit/verify").await.value();
    is(&verdict, &json!({ "intact": true, "records": 6, "first": 0, "last": 6 }));
}

#[tokio::test]
async fn what_is_refused_withdrawn_read_or_changed_leaves_one_record() {
    let (fixture, server) = http_fixture().await;
    let gateway = configured(json!({ "mcpServers": { "a": server } })).await;
    let client = gateway.client("direct").await;
    let mut seen = 0;
    let mut look = async |members: Value| is(&next(&gateway, &mut seen).await, &members);
    client
        .request("tools/call", json!({ "name": "nothing", "arguments": { "k": CANARY } }))
        .await
        .expect_err("unknown");
    look(json!({ "decision": "refused", "outcome": "TOOL_NOT_FOUND", "tool": "nothing", "surface": "direct" })).await;
    client.call("echo", json!({ "wrong": CANARY })).await;
    look(json!({ "decision": "refused", "outcome": "VALIDATION_ERROR", "module": "a", "tool": "echo" })).await;
    post(&gateway, "/v1/tools/call", &json!({ "name": "no:such", "parameters": { "k": CANARY } })).await;
    look(json!({ "decision": "refused", "outcome": "TOOL_NOT_FOUND", "surface": "rest", "tool": "no:such" })).await;
    let read = |uri: String| client.request("resources/read", json!({ "uri": uri }));
    read("test://static-text".into()).await.expect("a resource");
    look(json!({ "kind": "read", "outcome": "ok", "what": "resources/read test://static-text", "module": "a" })).await;
    read(format!("no://such?key={CANARY}")).await.expect_err("unknown");
    look(json!({ "kind": "read", "decision": "refused", "outcome": "NOT_FOUND", "what": "no://such" })).await;
    client.request("prompts/get", json!({ "name": "test_simple_prompt" })).await.expect("a prompt");
    look(json!({ "kind": "prompt", "outcome": "ok", "method": "prompts/get" })).await;
    client.call("test_error_handling", json!({})).await;
    look(json!({ "decision": "allowed", "outcome": "tool_error" })).await;
    let before = fixture.calls();
    let hanging = client.begin_call("hang", json!({}));
    assert!(eventually(|| fixture.calls() > before).await, "the call does not run");
    client.cancel(hanging.id).await;
    look(json!({ "decision": "allowed", "outcome": "cancelled", "tool": "hang" })).await;
    post(&gateway, "/v1/tools/a:echo/disable", &json!({})).await;
    look(json!({ "kind": "admin", "method": "tool.disable", "what": "a:echo", "outcome": "ok", "subject": "owner" }))
        .await;
    client.call("echo", json!({ "text": CANARY })).await;
    look(json!({ "decision": "refused", "outcome": "TOOL_DISABLED" })).await;
    post(&gateway, "/v1/tools", &json!({ "name": "x" })).await;
    look(json!({ "kind": "admin", "method": "tool.register", "what": "x", "outcome": "VALIDATION_ERROR" })).await;
    let run = gateway.run(&["tools", "enable", "a:echo"]).await;
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    look(json!({ "kind": "admin", "method": "tool.enable", "client": "hikite tools" })).await;
    let gone = gateway.client("direct").await;
    let before = fixture.calls();
    let _unanswered = gone.begin_call("hang", json!({}));
    assert!(eventually(|| fixture.calls() > before).await, "the call does not run");
    gone.delete().await;
    look(json!({ "outcome": "cancelled", "tool": "hang" })).await;
}

#[tokio::test]
async fn records_are_found_page_by_page() {
    let (_fixture, server) = http_fixture().await;
    let gateway = configured(json!({ "mcpServers": { "a": server } })).await;
    let client = gateway.client("direct").await;
    for n in 0..7 {
        let tool = if n % 2 == 0 { "echo" } else { "structured" };
        client.call(tool, json!({ "text": "x", "a": 1, "b": 2 })).await;
    }
    let page = async |query: &str| {
        let page = get(&gateway, &format!("/v1/audit?{query}")).await.value();
        let seqs = page["records"].as_array().expect("records").iter().map(|record| record["seq"].as_u64());
        (seqs.flatten().collect::<Vec<u64>>(), page["next"].as_u64())
    };
    assert_eq!(page("limit=3").await, (vec![7, 6, 5], Some(5)));
    assert_eq!(page("limit=3&before=5").await, (vec![4, 3, 2], Some(2)));
    assert_eq!(page("limit=3&before=2").await, (vec![1], None));
    assert_eq!(page("tool=structured&module=a&kind=call&outcome=ok&decision=allowed").await.0, [6, 4, 2]);
    assert_eq!(page("subject=nobody").await.0, [0; 0]);
    assert_eq!(page("until=2020-01-01T00:00:00Z").await.0, [0; 0]);
    assert_eq!(page("since=2020-01-01T00:00:00Z&subject=owner&project=").await.0.len(), 7);
    let id = records(&gateway, "").await[3]["requestId"].as_str().expect("an id").to_owned();
    assert_eq!(page(&format!("requestId={id}")).await.0, [4]);
    assert_eq!(page("actor=owner&text=A:STRUCT").await.0, [6, 4, 2]);
    assert_eq!(page("text=argumentsHash").await.0, [0; 0], "what members are called is no text of a record");
    assert_eq!(page("actor=nobody").await.0, [0; 0]);
    let long = format!("text={}", "x".repeat(201));
    assert_eq!(get(&gateway, &format!("/v1/audit?{long}")).await.status, 400);
    for wrong in ["limit=0", "limit=1001", "before=x", "since=yesterday", "subjekt=owner", "kind=a&kind=b"] {
        let reply = get(&gateway, &format!("/v1/audit?{wrong}")).await;
        assert_eq!((reply.status, &reply.value()["code"]), (400, &json!("VALIDATION_ERROR")), "{wrong}");
    }
    let reply = gateway.send(gateway.request("GET", "/v1/audit").without("authorization")).await;
    assert_eq!(reply.status, 401);
    let list = gateway.run(&["audit", "list", "--tool", "structured", "--limit", "2", "--json"]).await;
    let lines: Vec<Value> = list.stdout.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!((lines.len(), &lines[0]["seq"]), (2, &json!(6)), "{}", list.stdout);
    let list = gateway.run(&["audit", "list", "--since", "2020-01-01T00:00:00Z"]).await;
    assert!(list.stdout.contains("a:echo") && list.stdout.ends_with("7 records\n"), "{}", list.stdout);
    assert_eq!(gateway.run(&["audit", "list", "--since", "soon"]).await.code, Some(2));
}

#[tokio::test]
async fn a_record_that_was_changed_behind_our_back_is_named() {
    for postgres in [false, true] {
        let (_fixture, server) = http_fixture().await;
        let mut config = json!({ "mcpServers": { "a": server } });
        let url = postgres.then(database);
        if let Some(url) = &url {
            config["store"] = json!({ "url": url });
        }
        let gateway = configured(config).await;
        let client = gateway.client("direct").await;
        for _ in 0..5 {
            client.text("echo", json!({ "text": CANARY })).await;
        }
        assert_eq!(records(&gateway, "").await.len(), 5);
        let verify = gateway.run(&["audit", "verify"]).await;
        assert_eq!(verify.code, Some(0), "{}", verify.stderr);
        assert!(verify.stdout.starts_with("5 records, 1 to 5, are intact\nthe last is 5:"), "{}", verify.stdout);
        let anchor = verify.stdout.trim().rsplit(' ').next().expect("a hash").to_owned();
        assert_eq!(gateway.run(&["audit", "verify", "--anchor", &anchor]).await.code, Some(0));
        let other = format!("5:{}", "0".repeat(64));
        let wrong = gateway.run(&["audit", "verify", "--anchor", &other]).await;
        assert_eq!((wrong.code, wrong.stdout.starts_with("record 5: ")), (Some(1), true), "{}", wrong.stdout);
        let mut behind = connect(&url.unwrap_or_else(|| file(&gateway))).await;
        behind
            .execute("UPDATE audit SET record = replace(record, 'owner', 'ownes') WHERE seq = 3")
            .await
            .expect("changed");
        let verify = gateway.run(&["audit", "verify", "--json"]).await;
        let said: Value = serde_json::from_str(&verify.stdout).expect("JSON");
        assert_eq!((verify.code, &said["broken"]["seq"], &said["last"]), (Some(1), &json!(3), &json!(2)));
        let verdict = get(&gateway, "/v1/audit/verify").await.value();
        is(&verdict, &json!({ "intact": false, "records": 2 }));
        assert_eq!(verdict["broken"]["seq"], 3);
        let check = gateway.run(&["store", "check"]).await;
        assert!(check.code == Some(1) && check.stdout.contains("record 3 of the audit"), "{}", check.stdout);
        client.text("echo", json!({ "text": CANARY })).await;
        assert_eq!(records(&gateway, "").await.len(), 6, "it goes on");
    }
}

#[tokio::test]
async fn an_export_can_be_verified_elsewhere() {
    let (_fixture, server) = http_fixture().await;
    let gateway = configured(json!({ "mcpServers": { "a": server } })).await;
    let client = gateway.client("direct").await;
    for _ in 0..4 {
        client.text("echo", json!({ "text": CANARY })).await;
    }
    let _ = client.request("tools/call", json!({ "name": "=1+1,\"x\"" })).await;
    records(&gateway, "").await;
    let path = gateway.folder().path().join("export.jsonl");
    let name = path.to_str().expect("UTF-8");
    let run = gateway.run(&["audit", "export", "--out", name]).await;
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), ""), "{}", run.stderr);
    let export = std::fs::read_to_string(&path).expect("a file");
    assert_eq!(gateway.run(&["audit", "export"]).await.stdout, export);
    assert!(export.lines().count() == 5 && !export.contains(CANARY), "{export}");
    let verify = gateway.run(&["audit", "verify", "--file", name]).await;
    assert_eq!((verify.code, verify.stdout.starts_with("5 records, 1 to 5")), (Some(0), true), "{}", verify.stdout);
    std::fs::write(&path, export.replacen("\"outcome\":\"ok\"", "\"outcome\":\"no\"", 2)).expect("written");
    let verify = gateway.run(&["audit", "verify", "--file", name]).await;
    assert_eq!((verify.code, verify.stdout.starts_with("record 1: ")), (Some(1), true), "{}", verify.stdout);
    let again = gateway.run(&["audit", "export", "--out", name]).await;
    assert!(again.code == Some(1) && again.stderr.contains("hint: Choose a file"), "{}", again.stderr);
    let table = gateway.run(&["audit", "export", "--format", "csv"]).await.stdout;
    assert!(table.starts_with("seq,at,kind,decision,outcome,") && table.lines().count() == 6, "{table}");
    assert!(table.contains("\"'=1+1,\"\"x\"\"\"") && !table.contains(CANARY), "{table}");
}

#[tokio::test]
async fn records_are_kept_as_long_as_the_file_says_and_not_at_all_where_it_says_so() {
    let (_fixture, server) = http_fixture().await;
    let config = json!({ "mcpServers": { "a": server }, "audit": { "retention": "2s" } });
    let gateway = configured(config).await;
    let client = gateway.client("direct").await;
    client.text("echo", json!({ "text": "x" })).await;
    assert_eq!(records(&gateway, "").await.len(), 1);
    let begin = Instant::now();
    while !records(&gateway, "kind=call").await.is_empty() {
        assert!(begin.elapsed() < LIMIT, "it stays");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let trim = records(&gateway, "").await;
    is(&trim[0], &json!({ "seq": 2, "kind": "trim", "trimmed": 1, "trimmedTo": 1 }));
    client.text("echo", json!({ "text": "x" })).await;
    assert_eq!(records(&gateway, "kind=call").await[0]["seq"], 3, "the numbers go on");
    is(
        &get(&gateway, "/v1/audit/verify").await.value(),
        &json!({ "intact": true, "first": 1, "last": 3, "trimmed": { "to": 1, "record": 2 } }),
    );
    let verify = gateway.run(&["audit", "verify"]).await;
    assert!(verify.stdout.contains("the records up to 1 were trimmed, as record 2 says"), "{}", verify.stdout);
    let gateway = configured(json!({ "mcpServers": { "a": server }, "audit": { "enabled": false } })).await;
    gateway.client("direct").await.text("echo", json!({ "text": "x" })).await;
    assert_eq!(records(&gateway, "").await, [json!(null); 0]);
}

async fn until(what: &str, gateway: &TestGateway, mut holds: impl AsyncFnMut() -> bool) {
    let begin = Instant::now();
    while !holds().await {
        assert!(begin.elapsed() < LIMIT * 4, "{what}: {}", gateway.stderr());
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// The store has a clock mark from a year ago, so that the current clock appears to have jumped.
#[tokio::test]
async fn a_clock_that_jumps_removes_nothing_until_somebody_confirms_it() {
    let (_fixture, server) = http_fixture().await;
    let config = json!({ "mcpServers": { "a": server }, "audit": { "retention": "30s" } });
    let gateway = configured(config).await;
    let client = gateway.client("direct").await;
    let metric = async |value: &str| {
        let metrics = get(&gateway, "/metrics").await.text().to_owned();
        metrics.contains(&format!("hikite_audit_trim_paused {value}\n"))
    };
    for confirm in ["rest", "cli"] {
        client.text("echo", json!({ "text": "x" })).await;
        assert!(!records(&gateway, "kind=call").await.is_empty());
        let mut behind = connect(&file(&gateway)).await;
        until("the clock is known", &gateway, async || {
            let jump = "UPDATE clock_seen SET at = at - 31536000000";
            behind.execute(jump).await.expect("changed").rows_affected() == 1
        })
        .await;
        until("it pauses", &gateway, async || metric("1").await).await;
        let status = get(&gateway, "/v1/status").await.value();
        assert_eq!(status["attention"][0]["kind"], "audit", "{status:#}");
        let doctor = gateway.run(&["doctor", "--wait", "120"]).await.stdout;
        assert!(doctor.contains("warning audit: the clock of this machine jumped"), "{doctor}");
        assert!(gateway.stderr().contains("no records are deleted by age"), "{}", gateway.stderr());
        // Every record is a year old by this clock.
        behind.execute("UPDATE audit_mark SET at = at - 31536000000").await.expect("older");
        let before = records(&gateway, "kind=call").await.len();
        tokio::time::sleep(Duration::from_secs(3)).await;
        assert_eq!(records(&gateway, "kind=call").await.len(), before, "nothing went");
        if confirm == "rest" {
            assert_eq!(post(&gateway, "/v1/audit/resume-trim", &json!({})).await.status, 204);
        } else {
            let run = gateway.run(&["audit", "resume-trim"]).await;
            assert!(run.code == Some(0) && run.stdout.starts_with("The clock is confirmed"), "{}", run.stderr);
        }
        let admin = records(&gateway, "kind=admin").await;
        is(&admin[0], &json!({ "method": "audit.resume-trim", "outcome": "ok" }));
        until("it goes on", &gateway, async || metric("0").await).await;
        until("it is trimmed", &gateway, async || records(&gateway, "kind=call").await.is_empty()).await;
        is(&get(&gateway, "/v1/audit/verify").await.value(), &json!({ "intact": true }));
    }
    assert_eq!(gateway.run(&["audit", "resume-trim"]).await.stdout, "Nothing is paused.\n");
}

/// Deleting the oldest records behind hikite's back is detected by `verify`.
#[tokio::test]
async fn a_head_that_went_without_a_trim_record_is_damage() {
    for postgres in [false, true] {
        let (_fixture, server) = http_fixture().await;
        let mut config = json!({ "mcpServers": { "a": server } });
        let url = postgres.then(database);
        if let Some(url) = &url {
            config["store"] = json!({ "url": url });
        }
        let gateway = configured(config).await;
        let nothing = gateway.run(&["audit", "verify"]).await.stdout;
        assert_eq!(nothing, "there are no records, and there never were any\n");
        let client = gateway.client("direct").await;
        for _ in 0..5 {
            client.text("echo", json!({ "text": "x" })).await;
        }
        assert_eq!(records(&gateway, "").await.len(), 5);
        let mut behind = connect(&url.unwrap_or_else(|| file(&gateway))).await;
        behind.execute("DELETE FROM audit WHERE seq <= 3").await.expect_err("the database refuses");
        for text in [
            "UPDATE audit_end SET seq = 3 WHERE name = 'trimmed'",
            "UPDATE audit_end SET seq = 3, hash = (SELECT hash FROM audit WHERE seq = 3) WHERE name = 'first'",
            "DELETE FROM audit WHERE seq <= 3",
        ] {
            behind.execute(text).await.expect("changed");
        }
        let verify = gateway.run(&["audit", "verify"]).await;
        let said = "record 3: the records up to 3 were removed, but no trim record says so\n";
        assert_eq!((verify.code, verify.stdout.as_str()), (Some(1), said));
    }
}

/// Locks the store from outside: returns what was rejected, what ran, and what is recorded after the lock is gone.
async fn locked(when_full: &str) -> (TestGateway, Vec<Value>, String) {
    let (fixture, server) = http_fixture().await;
    let config = json!({ "mcpServers": { "a": server }, "audit": { "when_full": when_full },
        "limits": { "audit_queue": 3, "call_timeout": "1s" } });
    let gateway = configured(config).await;
    let client = gateway.client("direct").await;
    client.text("echo", json!({ "text": "x" })).await;
    assert_eq!(records(&gateway, "").await.len(), 1);
    let mut behind = connect(&file(&gateway)).await;
    behind.execute("BEGIN IMMEDIATE").await.expect("locked");
    let mut answers = Vec::new();
    for _ in 0..6 {
        answers.push(client.call("echo", json!({ "text": "x" })).await);
    }
    let metrics = get(&gateway, "/metrics").await.text().to_owned();
    behind.execute("ROLLBACK").await.expect("free");
    behind.close().await.expect("closed");
    let begin = Instant::now();
    while records(&gateway, "kind=call").await.len() < 4 {
        assert!(begin.elapsed() < LIMIT * 2, "{}", gateway.stderr());
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    client.text("echo", json!({ "text": "x" })).await;
    drop(fixture);
    (gateway, answers, metrics)
}

#[tokio::test]
async fn while_nothing_can_be_recorded_nothing_runs() {
    let (mut gateway, answers, metrics) = locked("block").await;
    let refused = |answer: &&Value| answer["structuredContent"]["error"]["code"] == "OVERLOADED";
    assert_eq!(answers.iter().filter(refused).count(), 3, "{answers:#?}");
    assert!(metrics.contains("hikite_audit_waiting 3\n"), "{metrics}");
    assert!(metrics.contains("hikite_audit_dropped_total 3\n"), "{metrics}");
    let lost: u64 = records(&gateway, "kind=lost").await.iter().filter_map(|record| record["lost"].as_u64()).sum();
    assert_eq!((lost, records(&gateway, "kind=call").await.len()), (3, 5), "what was refused is counted");
    assert!(gateway.stop().await.success());
    assert_eq!(gateway.run(&["audit", "verify"]).await.code, Some(0));
}

#[tokio::test]
async fn where_records_may_be_lost_everything_runs_and_the_loss_is_recorded() {
    let (gateway, answers, metrics) = locked("drop-and-count").await;
    assert!(answers.iter().all(|answer| answer.get("isError").is_none()), "{answers:#?}");
    assert!(metrics.contains("hikite_audit_dropped_total 3\n"), "{metrics}");
    let lost: u64 = records(&gateway, "kind=lost").await.iter().filter_map(|record| record["lost"].as_u64()).sum();
    assert_eq!((lost, records(&gateway, "kind=call").await.len()), (3, 5));
    is(&get(&gateway, "/v1/audit/verify").await.value(), &json!({ "intact": true }));
}

#[tokio::test]
async fn the_audit_is_not_for_whoever_asks_with_a_wrong_method() {
    let gateway = configured(json!({})).await;
    let reply = post(&gateway, "/v1/audit", &json!({})).await;
    assert_eq!(reply.status, 405);
    let reply = get(&gateway, "/v1/audit/verify?deep=1").await;
    refused(&reply, 400, "VALIDATION_ERROR", "Validation failed");
}
