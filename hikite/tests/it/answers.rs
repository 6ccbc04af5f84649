//! Result options with the real program: selection by fields and by jq, hostile jq programs, and long results that are
//! read in parts.

use std::time::{Duration, Instant};

use hikite_testkit::gateway::{TestGateway, eventually};
use serde_json::{Value, json};

use crate::rest::post;
use crate::{PROGRAMS, configured, gateway, stdio, with};

/// Calls `echo` with a text, and returns the whole response.
async fn ask(gateway: &TestGateway, text: &str, options: Value) -> (u16, Value) {
    let body = json!({ "name": "a:echo", "parameters": { "text": text }, "options": options });
    let reply = post(gateway, "/v1/tools/call", &body).await;
    (reply.status, reply.value())
}

async fn part(gateway: &TestGateway, text: &str, select: &str) -> (u16, Value) {
    ask(gateway, text, json!({ "select": select })).await
}

#[track_caller]
fn result_of((status, body): &(u16, Value)) -> &Value {
    assert_eq!(*status, 200, "{body}");
    &body["result"]
}

#[track_caller]
fn refused((status, body): &(u16, Value), words: &str) {
    assert_eq!((*status, &body["code"]), (400, &json!("VALIDATION_ERROR")), "{body}");
    assert!(body["error"].as_str().is_some_and(|error| error.contains(words)), "{words}: {body}");
    assert!(body["hint"].as_str().is_some_and(|hint| !hint.is_empty()), "{body}");
}

/// Counts the gateway's jq processes.
fn jq_processes(gateway: &TestGateway) -> usize {
    let is_jq_process = |pid: u32| {
        let read = |what: &str| std::fs::read_to_string(format!("/proc/{pid}/{what}")).unwrap_or_default();
        let is_child = read("status").lines().any(|line| line == format!("PPid:\t{}", gateway.pid()));
        is_child && read("cmdline").contains("__jq")
    };
    let table = std::fs::read_dir("/proc").expect("a process table");
    table.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).filter(|pid| is_jq_process(*pid)).count()
}

const ISSUES: &str = r#"{"total":3,"items":[
    {"number":1,"title":"設計を直す","user":{"login":"alice"},"labels":[{"name":"bug"},{"name":"急"}]},
    {"number":2,"title":"second","user":{"login":"bob"},"labels":[]},
    {"number":12345678901234567890123,"title":"third","user":null,"labels":[{"name":"bug"}]}]}"#;

#[tokio::test]
async fn a_part_is_taken_by_fields_by_a_path_and_by_jq() {
    let gateway = gateway(json!({ "a": stdio(&[]) })).await;
    for (select, expected) in [
        (".items[0].title", json!("設計を直す")),
        (".items | length", json!(3)),
        ("[.items[] | select(.labels | map(.name) | index(\"bug\")) | .title]", json!(["設計を直す", "third"])),
        (".items[] | .title | select(startswith(\"設\"))", json!("設計を直す")),
        (".items[] | .user.login", json!(["alice", "bob", null])),
        (".nothing | empty", json!(null)),
        ("[.items[].labels[].name] | unique", json!(["bug", "急"])),
        ("{n: .total, by: [.items[].user.login // \"nobody\"]}", json!({ "n": 3, "by": ["alice", "bob"] })),
    ] {
        let answer = part(&gateway, ISSUES, select).await;
        assert_eq!(result_of(&answer), &expected, "{select}");
    }
    let fields = part(&gateway, ISSUES, "title,user.login").await;
    assert_eq!(result_of(&fields)["items"][0], json!({ "title": "設計を直す", "user": { "login": "alice" } }));
    let number =
        json!({ "name": "a:echo", "parameters": { "text": ISSUES }, "options": { "select": "[.items[].number]" } });
    let exact = post(&gateway, "/v1/tools/call", &number).await;
    assert!(exact.text().contains("12345678901234567890123"), "numbers keep their digits");
    assert_eq!(result_of(&part(&gateway, "plain 文 text", "ascii_downcase | split(\" \") | last").await), "text");
}

#[tokio::test]
async fn a_program_that_is_wrong_is_told_where_and_what_there_is() {
    let gateway = gateway(json!({ "a": stdio(&[]) })).await;
    for (select, words) in [
        (".items[", "jq: the program is not valid: line 1, column 8: expected closing bracket"),
        ("map(.title", "expected closing parenthesis"),
        (".items | lenght", "unknown filter `lenght`"),
        (".items.title", "title"),
        ("error(\"見つからない\")", "jq: 見つからない"),
        (". | input", "there is no further input"),
        ("import \"a\" as a; .", "`import` and `include` are not supported"),
        ("include \"/etc/passwd\"; .", "`import` and `include` are not supported"),
        ("a\u{0}b | .", "it must not contain a NUL character"),
        ("nothing,at.all", "no field"),
    ] {
        let answer = part(&gateway, ISSUES, select).await;
        refused(&answer, words);
        let hint = answer.1["hint"].as_str().unwrap_or_default();
        assert!(hint.contains("The tool has run") && hint.contains("result://"), "{select}: {hint}");
    }
    let hint = part(&gateway, ISSUES, ".[] | .x").await.1["hint"].clone();
    assert!(hint.as_str().is_some_and(|hint| hint.contains("The result has `total`, `items`.")), "{hint}");
}

#[tokio::test]
async fn a_program_sees_nothing_of_where_it_runs() {
    let variables = [("HIKITE_TEST_SECRET", "do not tell")];
    let gateway = TestGateway::start_with(&PROGRAMS, json!({ "mcpServers": { "a": stdio(&[]) } }), &variables).await;
    for select in [". | env", ". | $ENV", "[env, $ENV] | add"] {
        assert_eq!(result_of(&part(&gateway, "[]", select).await), &json!({}), "{select}");
    }
    assert_eq!(result_of(&part(&gateway, "[]", ". | $ENV.HIKITE_TEST_SECRET").await), &json!(null));
    assert_eq!(result_of(&part(&gateway, "[]", "[inputs]").await), &json!([]));
    refused(&part(&gateway, "[]", ". | input_line_number").await, "unknown filter");
    refused(&part(&gateway, "[]", ". | halt").await, "`halt` stops nothing here");
}

#[tokio::test]
async fn what_a_program_takes_is_bounded_and_hikite_goes_on() {
    let limits = json!({ "jq_timeout": "3s", "jq_bytes": "128MiB", "answer_bytes": "1MiB", "jq_processes": 2 });
    let gateway = configured(json!({ "mcpServers": { "a": stdio(&[]) }, "limits": limits })).await;
    let (time, memory, depth, output) = (
        "did not finish within 3 s",
        "needs more memory than its 128 MiB",
        "is too deep",
        "is larger than 1048576 bytes",
    );
    for (select, words) in [
        ("def f: f; f", &[time][..]),
        ("[limit(1000000000; repeat(1))] | length", &[time, memory]),
        ("[range(1e12)]", &[time, memory]),
        ("\"x\" * 1000000000000", &[memory]),
        ("\"x\" * 200000000 | length", &[memory]),
        ("def f: 1 + f; f", &[depth, memory]),
        ("def f: [f]; f", &[depth, memory]),
        ("reduce range(1000000) as $i (0; [.])", &[depth, memory, time]),
        ("[range(200000)] | map(\"0123456789\")", &[output]),
        ("range(10000000)", &[output]),
        ("\"x\" * 2000000", &[output]),
        ("[range(3000)] | map(tostring) | combinations(4)", &[time, memory, output]),
    ] {
        let begin = Instant::now();
        let (status, body) = part(&gateway, "[]", select).await;
        assert_eq!(status, 400, "{select}: {body}");
        let error = body["error"].as_str().expect("words").to_owned();
        assert!(words.iter().any(|words| error.contains(words)), "{select}: {body}");
        assert!(begin.elapsed() < Duration::from_secs(20), "{select}: {:?}", begin.elapsed());
        assert_eq!(result_of(&part(&gateway, "[1,2]", "add * 2").await), &json!(6), "after {select}");
    }
    let patient = part(&gateway, "[]", "\"a\" * 50000 | test(\"(a*)*(a*)*(a*)*b\")").await;
    assert_eq!(result_of(&patient), &json!(false), "no pattern takes more than its time");
    // Some of many concurrent programs queue, and those that queue too long get an error.
    let endless = (0..6).map(|_| part(&gateway, "[]", "def f: f; f"));
    let outcomes = futures_util::future::join_all(endless).await;
    for (status, body) in &outcomes {
        assert!(matches!(status, 400 | 503), "{body}");
    }
    assert!(outcomes.iter().any(|(status, body)| *status == 503 && body["code"] == "OVERLOADED"), "{outcomes:?}");
    assert!(eventually(|| jq_processes(&gateway) == 0).await, "no process is left");
    assert!(eventually(|| gateway.zombies().is_empty()).await, "{:?}", gateway.zombies());
}

#[tokio::test]
async fn whoever_hangs_up_takes_the_process_along() {
    let limits = json!({ "jq_timeout": "30s" });
    let gateway = configured(json!({ "mcpServers": { "a": stdio(&[]) }, "limits": limits })).await;
    let body = json!({ "name": "a:echo", "parameters": { "text": "[]" }, "options": { "select": "def f: f; f" } });
    let request = gateway.request("POST", "/v1/tools/call").json(body.to_string());
    let running = tokio::time::timeout(Duration::from_secs(20), gateway.send(request));
    tokio::select! {
        _ = running => panic!("it does not end"),
        begun = eventually(|| jq_processes(&gateway) == 1) => assert!(begun, "it runs"),
    }
    assert!(eventually(|| jq_processes(&gateway) == 0).await, "it is gone");
}

fn many_issues(count: usize) -> String {
    let issue = |n: usize| json!({ "number": n, "title": format!("題名 {n}"), "state": "open", "body": "x".repeat(40), "user": { "login": "alice" } });
    Value::from((0..count).map(issue).collect::<Vec<_>>()).to_string()
}

#[tokio::test]
async fn a_long_answer_is_read_on_in_pages_by_jq_and_by_a_text() {
    let limits = json!({ "compact_bytes": "8KiB" });
    let gateway = configured(json!({ "mcpServers": { "a": stdio(&[]) }, "limits": limits })).await;
    let text = many_issues(2000);
    let (status, body) = ask(&gateway, &text, json!({ "format": "compact" })).await;
    assert_eq!(status, 200, "{body}");
    let shown = body["result"].as_str().expect("a text");
    assert!(shown.len() <= 8192, "{}", shown.len());
    assert_eq!(body["answer"]["bytes"], json!([text.len(), shown.len()]));
    let handle = body["answer"]["handle"].as_str().expect("a handle");
    assert!(shown.ends_with("(or \"jq\", \"search\")]") && shown.contains(handle), "{shown}");
    let on = async |parameters: Value| {
        post(&gateway, "/v1/tools/call", &json!({ "name": handle, "parameters": parameters })).await.value()
    };
    let pages = on(json!({})).await["answer"]["pages"].as_u64().expect("a number");
    let mut all = String::new();
    for page in 1..=pages {
        let body = on(json!({ "page": page })).await;
        let text = body["result"].as_str().expect("a text");
        assert!(text.ends_with(&format!("[page {page} of {pages}]")), "{text}");
        all.push_str(text);
    }
    for n in 0..2000 {
        assert!(all.contains(&format!("題名 {n}")), "{n}");
    }
    let counted = on(json!({ "jq": "map(select(.number >= 1990)) | length" })).await;
    assert_eq!(counted["result"], "10");
    let found = on(json!({ "search": "題名 1999" })).await;
    assert!(found["result"].as_str().is_some_and(|text| text.starts_with("1 of ")), "{found}");
    let wrong = on(json!({ "pages": 1 })).await;
    assert_eq!(wrong["code"], "VALIDATION_ERROR");
    // The result is also a resource, readable by its owner through any transport.
    let client = gateway.client("direct").await;
    let read = client.request("resources/read", json!({ "uri": format!("{handle}?page=2") })).await.expect("a page");
    let page = read["contents"][0]["text"].as_str().expect("text");
    assert!(page.ends_with(&format!("[page 2 of {pages}]")), "{page}");
    let other = post(&gateway, "/v1/tokens", &json!({ "name": "other" })).await.value();
    let secret = other["secret"].as_str().expect("a secret").to_owned();
    let request = hikite_testkit::gateway::HttpRequest::new("POST", "/v1/tools/call")
        .header("authorization", &format!("Bearer {secret}"));
    let hidden = gateway.send(request.json(json!({ "name": handle }).to_string())).await;
    assert_eq!((hidden.status, &hidden.value()["code"]), (404, &json!("NOT_FOUND")), "{}", hidden.text());
}

#[tokio::test]
async fn options_that_are_wrong_are_told_at_once() {
    let gateway = gateway(json!({ "a": stdio(&[]) })).await;
    let (status, body) = ask(&gateway, "x", json!({ "format": "short", "select": " ", "selekt": 1 })).await;
    assert_eq!(status, 400);
    let pointers: Vec<&str> =
        body["details"].as_array().expect("a list").iter().filter_map(|fault| fault["pointer"].as_str()).collect();
    assert_eq!(pointers, ["/options/selekt", "/options/format", "/options/select"]);
    let raw = ask(&gateway, "{\"a\":[1]}", json!({ "format": "raw" })).await;
    assert_eq!((result_of(&raw), raw.1.get("answer")), (&json!({ "a": [1] }), None));
}

#[tokio::test]
async fn the_terminal_prints_all_of_it() {
    let limits = json!({ "compact_bytes": "1KiB" });
    let gateway = configured(json!({ "mcpServers": { "a": stdio(&[]) }, "limits": limits })).await;
    let argument = format!("text={}", Value::from(many_issues(300)));
    let run = gateway.run(&["call", "a:echo", "--param", &argument, "--format", "compact"]).await;
    assert!(run.stdout.contains("題名 299") && !run.stdout.contains("left out"), "{}", run.stdout);
    let run = gateway.run(&["call", "a:echo", "--param", &argument, "--select", "map(.number) | add"]).await;
    assert_eq!(run.stdout.trim(), "44850", "{}", run.stderr);
    let run = gateway.run(&["call", "a:echo", "--param", &argument, "--select", ".[0] | {number, state}"]).await;
    assert!(run.stdout.contains("open"), "{}", run.stdout);
    let run = gateway.run(&["call", "a:echo", "--param", &argument, "--select", ".[0"]).await;
    assert!(run.stderr.contains("expected closing bracket") && run.stderr.contains("hint:"), "{}", run.stderr);
    assert!(!run.stderr.contains("result://"), "nothing is kept for later: {}", run.stderr);
}

#[tokio::test]
async fn what_is_saved_is_counted() {
    let gateway = gateway(json!({ "a": stdio(&[]) })).await;
    ask(&gateway, &many_issues(100), json!({ "format": "compact" })).await;
    let metrics = gateway.send(gateway.request("GET", "/metrics")).await;
    let bytes = |stage: &str| -> f64 {
        let series = format!("hikite_answer_bytes_total{{module=\"a\",stage=\"{stage}\"}} ");
        let line = metrics.text().lines().find_map(|line| line.strip_prefix(&series).map(str::to_owned));
        line.unwrap_or_else(|| panic!("no {series}\n{}", metrics.text())).parse().expect("a number")
    };
    assert!(bytes("after") > 0.0 && bytes("after") < bytes("before"), "{} {}", bytes("before"), bytes("after"));
}

#[tokio::test]
async fn a_model_reads_on_with_the_tool_it_called_until_its_session_ends() {
    let limits = json!({ "compact_bytes": "4KiB" });
    let gateway = configured(json!({ "mcpServers": { "a": stdio(&[]) }, "limits": limits })).await;
    let text = many_issues(500);
    for (surface, call, read_on) in [
        ("modules", json!({ "module": "a", "tool": "echo", "params": { "text": text } }), "continue with call {"),
        ("search", json!({ "toolKey": "a:echo", "arguments": { "text": text } }), "continue with tool_execute {"),
    ] {
        let client = gateway.client(surface).await;
        let tool = if surface == "modules" { "call" } else { "tool_execute" };
        let part = client.call(tool, with(call.clone(), "select", "map(.number) | add")).await;
        assert_eq!(part["content"][0]["text"], "124750", "{part}");
        let long = client.call(tool, with(call, "format", "compact")).await;
        let line = long["content"][0]["text"].as_str().and_then(|text| text.lines().last()).expect("a line");
        // The suggested call works verbatim.
        let (_, rest) = line.split_once(read_on).unwrap_or_else(|| panic!("{line}"));
        let (arguments, _) = rest.split_once(" (or ").expect("a call");
        let arguments: Value = serde_json::from_str(&format!("{{{arguments}")).expect("JSON");
        let next = client.call(tool, arguments).await;
        assert!(next["content"][0]["text"].as_str().is_some_and(|text| text.contains("\n[page ")), "{next}");
        let handle = long["_meta"]["hikite/answer"]["handle"].as_str().expect("a handle");
        let other = gateway.client("direct").await;
        let read = json!({ "uri": handle });
        other.request("resources/read", read.clone()).await.expect("the same caller");
        client.delete().await;
        let gone = other.request("resources/read", read).await.expect_err("gone with its session");
        assert_eq!(gone["code"], -32002, "{gone}");
    }
}
