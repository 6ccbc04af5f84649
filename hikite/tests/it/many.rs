//! More servers than the process limits allow: each is started once, in turn, and an idle one is stopped to make room.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use hikite_testkit::gateway::{ClientOptions, SessionClient, TestGateway, eventually};
use serde_json::{Map, Value, json};

use crate::{PROGRAMS, configured, error_of, stdio};

/// Timeout for many sequential starts on a machine that stalls at times.
const LONG: Duration = Duration::from_secs(60);

/// Returns a fixture that records its name at every start, and runs something else first.
fn written(name: &str, starts: &Path, more: &str) -> Value {
    let script = format!("echo {name} >> '{}'; {more} exec {} --stdio", starts.display(), PROGRAMS.fixture());
    json!({ "description": "d", "command": "sh", "args": ["-c", script] })
}

fn starts(file: &Path) -> Vec<String> {
    std::fs::read_to_string(file).unwrap_or_default().lines().map(str::to_owned).collect()
}

struct StartFolder {
    _directory: tempfile::TempDir,
    starts: PathBuf,
    go: PathBuf,
}

fn folder() -> StartFolder {
    let folder = tempfile::tempdir().expect("a folder");
    StartFolder { starts: folder.path().join("starts"), go: folder.path().join("go"), _directory: folder }
}

async fn with_capabilities(gateway: &TestGateway, capabilities: Value) -> SessionClient {
    gateway.client_with("direct", ClientOptions { capabilities, ..ClientOptions::silent() }).await
}

/// Waits until this many tools are listed.
async fn listed(client: &SessionClient, count: usize) {
    let listing = async {
        while client.names("tools/list").await.len() != count {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(LONG, listing).await.expect("all are listed");
}

#[tokio::test]
async fn a_server_without_a_known_list_is_started_once() {
    let folder = folder();
    let gateway = crate::gateway(json!({ "a": written("a", &folder.starts, "") })).await;
    let plain = gateway.client("direct").await;
    assert_eq!(plain.text("echo", json!({ "text": "one" })).await, "one");
    let able = with_capabilities(&gateway, json!({ "roots": {}, "elicitation": {} })).await;
    assert_eq!(able.text("echo", json!({ "text": "two" })).await, "two");
    assert_eq!(starts(&folder.starts), ["a"]);
}

#[tokio::test]
async fn a_server_is_started_once_for_a_first_caller_that_can_be_asked() {
    let folder = folder();
    let gateway = crate::gateway(json!({ "a": written("a", &folder.starts, "") })).await;
    let able = with_capabilities(&gateway, json!({ "roots": {}, "elicitation": {} })).await;
    assert_eq!(able.text("echo", json!({ "text": "one" })).await, "one");
    assert_eq!(starts(&folder.starts), ["a"]);
    // It asks, and its caller gets the question.
    let call = able.begin_call("ask", json!({ "kind": "elicitation", "marker": "sure?" }));
    let asked = able.asked().await;
    able.answer(&asked, json!({ "action": "accept", "content": { "answer": "yes" } })).await;
    let answer = call.answer().await.expect("a result");
    assert!(answer["content"][0]["text"].as_str().expect("text").contains("yes"), "{answer}");
    assert_eq!(starts(&folder.starts), ["a"]);
}

#[tokio::test]
async fn a_caller_that_cannot_be_asked_is_not() {
    let folder = folder();
    let gateway = crate::gateway(json!({ "a": written("a", &folder.starts, "") })).await;
    let (plain, able) =
        (gateway.client("direct").await, with_capabilities(&gateway, json!({ "roots": {}, "elicitation": {} })).await);
    let roots = plain.call("ask", json!({ "kind": "roots", "marker": "m" })).await;
    assert_eq!(roots["content"][0]["text"], r#"{"roots":[]}"#, "it has none");
    let refused = plain.call("ask", json!({ "kind": "elicitation", "marker": "m" })).await;
    assert_eq!(refused["isError"], true, "{refused}");
    assert!(plain.questions().is_empty() && able.questions().is_empty());
    // From then on it is known to ask, and clients that accept questions get their own process.
    let pid = async |client: &SessionClient| client.call("who", json!({})).await["structuredContent"]["pid"].clone();
    assert_ne!(pid(&plain).await, pid(&able).await);
}

#[tokio::test]
async fn as_many_start_at_a_time_as_the_limit_says_and_what_a_request_waits_for_is_next() {
    let folder = folder();
    let wait = format!("while [ ! -e '{}' ]; do sleep 0.05; done;", folder.go.display());
    let names = ["a", "b", "c", "d", "e", "f"];
    let servers: Map<String, Value> =
        names.iter().map(|name| ((*name).to_owned(), written(name, &folder.starts, &wait))).collect();
    // `initialize` does not wait for lists.
    let limits = json!({ "starting": 1, "first_list": "60s", "all_lists": "100ms" });
    let gateway =
        configured(json!({ "mcpServers": servers, "limits": limits, "server": { "surface": "direct" } })).await;
    assert!(eventually(|| starts(&folder.starts).len() == 1).await, "{}", gateway.stderr());
    let first = starts(&folder.starts).remove(0);
    let wanted = names.iter().rev().find(|name| **name != first).expect("another");
    let client = gateway.client("direct").await;
    let params = json!({ "name": format!("{wanted}__echo"), "arguments": { "text": "x" },
        "_meta": { "progressToken": "p" } });
    let call = client.begin("tools/call", params);
    // Progress reports that the request waits.
    let told = client.told("notifications/progress", 1).await;
    assert_eq!(told[0]["progressToken"], "p", "{told:?}");
    assert!(told[0]["message"].is_string(), "{told:?}");
    assert_eq!(starts(&folder.starts).len(), 1, "one at a time");
    std::fs::write(&folder.go, "").expect("a file");
    assert_eq!(call.answer().await.expect("a result")["content"][0]["text"], "x");
    assert_eq!(starts(&folder.starts)[1], **wanted);
    listed(&client, 33 * names.len()).await;
    assert_eq!(starts(&folder.starts).len(), names.len(), "each once");
}

#[tokio::test]
async fn services_that_are_listed_at_once_do_not_stand_for_a_server_that_starts_slowly() {
    let folder = folder();
    let wait = format!("while [ ! -e '{}' ]; do sleep 0.05; done;", folder.go.display());
    let gateway = configured(json!({
        "mcpServers": { "a": written("a", &folder.starts, &wait) },
        "modules": { "builtin": ["notion"] },
        "limits": { "first_list": "60s", "all_lists": "100ms" },
        "server": { "surface": "direct" },
    }))
    .await;
    let client = gateway.client("direct").await;
    let list = client.begin("tools/list", json!({}));
    assert!(eventually(|| starts(&folder.starts).len() == 1).await, "{}", gateway.stderr());
    // Long enough for an answer without the server.
    tokio::time::sleep(std::time::Duration::from_millis(500)).await;
    std::fs::write(&folder.go, "").expect("a file");
    let listed = list.answer().await.expect("a list");
    let names: Vec<&str> =
        listed["tools"].as_array().expect("tools").iter().filter_map(|t| t["name"].as_str()).collect();
    assert!(names.contains(&"echo"), "{names:?}");
}

#[tokio::test]
async fn the_time_to_start_counts_from_the_start() {
    let folder = folder();
    let names = ["a", "b", "c", "d", "e"];
    let servers: Map<String, Value> =
        names.iter().map(|name| ((*name).to_owned(), written(name, &folder.starts, "sleep 2;"))).collect();
    // Together they take longer than a single one may.
    let limits = json!({ "starting": 1, "start_timeout": "9s", "first_list": "60s" });
    let gateway =
        configured(json!({ "mcpServers": servers, "limits": limits, "server": { "surface": "direct" } })).await;
    let client = gateway.client("direct").await;
    listed(&client, 33 * names.len()).await;
    for name in names {
        assert_eq!(client.text(&format!("{name}__echo"), json!({ "text": name })).await, name);
    }
    assert_eq!(starts(&folder.starts).len(), names.len(), "none was given up");
}

/// Uses only one processor from here on, so that the number of processors does not matter.
const ONE_PROCESSOR: &str =
    r"taskset -cp $(sed -n 's/^Cpus_allowed_list:[[:space:]]*\([0-9]*\).*/\1/p' /proc/self/status) $$ >/dev/null";
/// Work of a server before it answers, about a fifth of a second.
const WORK: &str = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done;";

#[tokio::test]
async fn servers_that_are_busy_at_their_start_do_not_push_each_other_over_the_start_timeout() {
    const SERVERS: u32 = 57;
    let folder = folder();
    let server = format!("{ONE_PROCESSOR}; {WORK} exec {} --stdio", PROGRAMS.fixture());
    let begin = Instant::now();
    let run = Command::new("sh").args(["-c", &server]).stdin(Stdio::null()).stdout(Stdio::null()).status();
    assert!(run.expect("sh").success(), "a server alone");
    let alone = begin.elapsed();
    // A few at a time take a few times as long; all at once would take 57 times as long.
    let limits = json!({ "start_timeout": format!("{}ms", (alone * 15).as_millis()) });
    let servers: Map<String, Value> = (0..SERVERS)
        .map(|number| (format!("s{number:02}"), written(&number.to_string(), &folder.starts, WORK)))
        .collect();
    let config = json!({ "mcpServers": servers, "limits": limits, "server": { "surface": "direct" } });
    let gateway = TestGateway::start_after(&PROGRAMS, config, ONE_PROCESSOR).await;
    let begin = Instant::now();
    let is_listed = async || {
        let modules = gateway.send(gateway.request("GET", "/v1/modules")).await.value();
        let modules = modules["modules"].as_array().expect("modules").clone();
        modules.iter().filter(|module| module["tools"].as_u64() > Some(0)).count() == SERVERS as usize
    };
    while !is_listed().await {
        assert!(begin.elapsed() < alone * 4 * SERVERS + LONG, "not all are listed:\n{}", gateway.stderr());
        assert!(!gateway.stderr().contains(" WARN "), "{}", gateway.stderr());
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    assert_eq!(starts(&folder.starts).len(), SERVERS as usize, "each once");
}

#[tokio::test]
async fn all_of_many_servers_answer_in_turn_through_a_few_processes() {
    let names: Vec<String> = (0..12).map(|number| format!("s{number:02}")).collect();
    let servers: Map<String, Value> = names.iter().map(|name| (name.clone(), stdio(&[]))).collect();
    let limits = json!({ "stdio_processes": 3, "first_list": "60s" });
    let gateway =
        configured(json!({ "mcpServers": servers, "limits": limits, "server": { "surface": "direct" } })).await;
    let client = gateway.client("direct").await;
    for round in 0..2 {
        for name in &names {
            let text = format!("{name} {round}");
            assert_eq!(client.text(&format!("{name}__echo"), json!({ "text": text })).await, text);
            let processes = gateway.descendants();
            assert!(processes.len() <= 6, "a guard and a server each: {processes:?}");
        }
    }
    assert!(eventually(|| gateway.zombies().is_empty()).await, "{:?}", gateway.zombies());
}

#[tokio::test]
async fn the_one_that_was_used_longest_ago_makes_way_and_a_busy_one_never_does() {
    let folder = folder();
    let names = ["a", "b", "c"];
    let servers: Map<String, Value> =
        names.iter().map(|name| ((*name).to_owned(), written(name, &folder.starts, ""))).collect();
    let limits = json!({ "stdio_processes": 2, "first_list": "60s" });
    let gateway =
        configured(json!({ "mcpServers": servers, "limits": limits, "server": { "surface": "direct" } })).await;
    let client = gateway.client("direct").await;
    listed(&client, 99).await;
    let echo = async |name: &str| client.text(&format!("{name}__echo"), json!({ "text": name })).await;
    for name in ["a", "b", "a"] {
        assert_eq!(echo(name).await, name);
    }
    let before = starts(&folder.starts).len();
    assert_eq!(echo("c").await, "c");
    assert_eq!(echo("a").await, "a");
    assert_eq!(starts(&folder.starts)[before..], ["c"], "b made way, and a did not");
    // Both are busy: the third has to wait, and gets a hint.
    let held: Vec<_> = ["a__hang", "c__hang"].map(|tool| client.begin_call(tool, json!({}))).into();
    let mut refused = Value::Null;
    for _ in 0..200 {
        refused = client.call("b__echo", json!({ "text": "b" })).await;
        if refused["isError"] == true {
            break;
        }
        // The calls had not arrived yet.
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let error = error_of(&refused);
    assert_eq!(error["code"], "OVERLOADED", "{error}");
    assert_eq!(error["message"], "`b` cannot start because all 2 server processes are busy.");
    assert!(error["hint"].as_str().expect("a hint").contains("limits.stdio_processes"), "{error}");
    assert!(held.iter().all(|call| !call.is_finished()));
    for call in &held {
        client.cancel(call.id).await;
    }
    let freed = async {
        while client.call("b__echo", json!({ "text": "b" })).await["isError"] == true {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(LONG, freed).await.expect("a place is free again");
}

#[tokio::test]
async fn in_a_terminal_the_wait_for_others_does_not_count_either() {
    let folder = folder();
    let names = ["a", "b", "c", "d"];
    let servers: Map<String, Value> =
        names.iter().map(|name| ((*name).to_owned(), written(name, &folder.starts, "sleep 2;"))).collect();
    let limits = json!({ "starting": 1, "start_timeout": "6s" });
    let config = json!({ "mcpServers": servers, "limits": limits, "modules": { "builtin": false } });
    let data = tempfile::tempdir().expect("a folder");
    std::fs::write(data.path().join("hikite.json"), config.to_string()).expect("a file");
    let run = PROGRAMS.run(data.path(), &["tools", "list"]).await;
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(run.stdout.ends_with("132 tools\n"), "{}\n{}", run.stdout, run.stderr);
}
