//! Server processes: shared, stopped, killed, and never left behind.

use std::time::{Duration, Instant};

use hikite_testkit::gateway::{LIMIT, ProcessEntry, SessionClient, TestGateway, eventually, is_alive, kill};
use serde_json::{Value, json};

use crate::{configured, error_of, gateway, stdio, with};

async fn pid_of(client: &SessionClient, tool: &str) -> u32 {
    let who = client.call(tool, json!({})).await;
    let pid = who["structuredContent"]["pid"].as_u64().unwrap_or_else(|| panic!("{who}"));
    u32::try_from(pid).expect("a process id")
}

/// Starts a call that hangs and has reached the server.
async fn hanging(client: &SessionClient) -> hikite_testkit::gateway::PendingCall {
    let count = || async { client.text("count", json!({})).await.parse::<u64>().expect("a number") };
    let before = count().await;
    let call = client.begin_call("hang", json!({}));
    let begin = Instant::now();
    let mut own = 1;
    while count().await == before + own {
        own += 1;
        assert!(begin.elapsed() < Duration::from_secs(60), "the call does not arrive");
    }
    call
}

fn guard_of(gateway: &TestGateway, server: u32) -> ProcessEntry {
    let all = gateway.descendants();
    let parent = all.iter().find(|process| process.pid == server).expect("the server").parent;
    all.into_iter().find(|process| process.pid == parent && process.is_guard()).expect("its guard")
}

/// Asserts that the call fails at once with a reason, the next one gets a new server, and no zombie is left.
async fn survives(gateway: &TestGateway, victim: impl FnOnce(u32) -> u32) {
    let client = gateway.client("direct").await;
    let server = pid_of(&client, "who").await;
    let call = hanging(&client).await;
    let killed = Instant::now();
    kill(victim(server));
    let error = error_of(&call.answer().await.expect("a result"));
    assert!(killed.elapsed() < LIMIT, "{:?}", killed.elapsed());
    assert_eq!(error["code"], "UPSTREAM_UNAVAILABLE");
    let message = error["message"].as_str().expect("text");
    assert!(message.starts_with("`a` is gone: its process "), "{message}");
    assert_ne!(pid_of(&client, "who").await, server);
    assert!(eventually(|| !is_alive(server)).await, "the old server lives");
    assert!(eventually(|| gateway.zombies().is_empty()).await, "{:?}", gateway.zombies());
}

#[tokio::test]
async fn a_killed_server_fails_its_call_at_once_and_the_next_call_works() {
    let gateway = gateway(json!({ "a": stdio(&[]) })).await;
    survives(&gateway, |server| server).await;
}

#[tokio::test]
async fn a_killed_guard_takes_its_server_along_and_the_next_call_works() {
    let gateway = gateway(json!({ "a": stdio(&[]) })).await;
    survives(&gateway, |server| guard_of(&gateway, server).pid).await;
}

#[tokio::test]
async fn a_misbehaving_server_harms_nobody_else() {
    let gateway = gateway(json!({ "bad": stdio(&[]), "good": stdio(&[]) })).await;
    let client = gateway.client("direct").await;
    client.call("good__echo", json!({ "text": "up" })).await;
    let hanging = client.begin_call("bad__hang", json!({}));
    for (tool, expected) in
        [("garbage", "after the garbage"), ("flood_stderr", "after the flood"), ("big_line", "xxxx")]
    {
        let bad = client.begin_call(&format!("bad__{tool}"), json!({}));
        for round in 0..5 {
            assert_eq!(
                client.text("good__echo", json!({ "text": format!("{tool} {round}") })).await,
                format!("{tool} {round}")
            );
        }
        let result = bad.answer().await.expect("a result");
        assert!(result["content"][0]["text"].as_str().expect("text").starts_with(expected), "{tool}");
    }
    assert!(!hanging.is_finished());
    let big = client.text("bad__big_line", json!({ "bytes": 2_000_000 })).await;
    assert_eq!(big.len(), 2_000_000);
    let crashing = client.begin_call("bad__crash", json!({}));
    assert_eq!(client.text("good__echo", json!({ "text": "still" })).await, "still");
    for call in [crashing, hanging] {
        assert_eq!(error_of(&call.answer().await.expect("a result"))["code"], "UPSTREAM_UNAVAILABLE");
    }
    assert_eq!(client.text("bad__echo", json!({ "text": "back" })).await, "back");
}

#[tokio::test]
async fn a_line_over_the_limit_fails_its_own_call() {
    let gateway = configured(json!({ "mcpServers": { "a": stdio(&[]) }, "limits": { "line_bytes": "1MiB" } })).await;
    let client = gateway.client("direct").await;
    let hanging = client.begin_call("hang", json!({}));
    let error = error_of(&client.call("big_line", json!({})).await);
    assert_eq!(error["code"], "PAYLOAD_TOO_LARGE", "{error}");
    assert!(!hanging.is_finished());
    assert!(error.to_string().contains("is larger than 1048576 bytes"), "{error}");
    assert_eq!(error["hint"], "Ask for less, or raise `limits.line_bytes`.");
    assert_eq!(client.text("echo", json!({ "text": "on" })).await, "on");
    assert!(gateway.stderr().contains("deprecated: use `limits.answer_bytes`"), "{}", gateway.stderr());
}

#[tokio::test]
async fn an_answer_of_a_program_is_bounded_as_every_other() {
    let gateway = gateway(json!({ "a": stdio(&[]) })).await;
    let client = gateway.client("direct").await;
    let bytes = 9_000_000;
    assert_eq!(client.text("big_line", json!({ "bytes": bytes })).await.len(), bytes);
    let limits = json!({ "answer_bytes": "1MiB" });
    let gateway = gateway.restart(json!({ "mcpServers": { "a": stdio(&[]) }, "limits": limits })).await;
    let client = gateway.client("direct").await;
    let error = error_of(&client.call("big_line", json!({ "bytes": bytes })).await);
    assert_eq!(error["code"], "PAYLOAD_TOO_LARGE", "{error}");
    assert_eq!(error["hint"], "Ask for less, or raise `limits.answer_bytes`.");
    assert!(!gateway.stderr().contains("deprecated"), "{}", gateway.stderr());
}

/// Returns the pids of a child in the server's process group and of one that left it.
async fn grandchildren(client: &SessionClient) -> [u32; 2] {
    let pids = client.call("spawn_grandchild", json!({})).await["structuredContent"].clone();
    let pid = |name: &str| u32::try_from(pids[name].as_u64().expect("a pid")).expect("a pid");
    let pids = [pid("child"), pid("escaped")];
    assert!(pids.iter().all(|pid| is_alive(*pid)));
    pids
}

async fn all_gone(pids: [u32; 2]) -> bool {
    eventually(|| !pids.iter().any(|pid| is_alive(*pid))).await
}

#[tokio::test]
async fn after_sigterm_no_descendant_lives() {
    let mut gateway = gateway(json!({ "a": stdio(&[]) })).await;
    let pids = grandchildren(&gateway.client("direct").await).await;
    assert!(gateway.stop().await.success(), "{}", gateway.stderr());
    assert!(!pids.iter().any(|pid| is_alive(*pid)), "it ended before its family");
    assert!(gateway.descendants().is_empty(), "{:?}", gateway.descendants());
}

#[tokio::test]
async fn after_kill_9_no_descendant_lives() {
    let servers = json!({ "a": stdio(&[]), "b": stdio(&["--never-start"]) });
    let mut gateway = configured(json!({ "mcpServers": servers, "limits": { "all_lists": "3s" } })).await;
    let client = gateway.client("direct").await;
    assert_eq!(client.names("tools/list").await.len(), 33);
    let pids = grandchildren(&client).await;
    gateway.kill9();
    assert!(all_gone(pids).await);
    assert!(gateway.has_no_descendants().await, "{:?}", gateway.descendants());
}

#[tokio::test]
async fn after_an_idle_stop_no_descendant_lives_and_the_next_call_starts_it_again() {
    let config = json!({ "mcpServers": { "a": stdio(&[]) }, "limits": { "idle_stop": "300ms" } });
    let gateway = configured(config).await;
    let client = gateway.client("direct").await;
    let first = pid_of(&client, "who").await;
    let pids = grandchildren(&client).await;
    assert!(all_gone(pids).await);
    assert!(gateway.has_no_descendants().await, "{:?}", gateway.descendants());
    assert!(eventually(|| gateway.zombies().is_empty()).await);
    assert_eq!(client.names("tools/list").await.len(), 33, "the list needs no server");
    assert!(gateway.descendants().is_empty(), "nor does it start one");
    assert_ne!(pid_of(&client, "who").await, first);
}

#[tokio::test]
async fn a_running_call_keeps_its_server_from_being_idle() {
    let config = json!({ "mcpServers": { "a": stdio(&[]) }, "limits": { "idle_stop": "200ms" } });
    let gateway = configured(config).await;
    let client = gateway.client("direct").await;
    assert_eq!(client.text("sleep", json!({ "ms": 900 })).await, "slept 900 ms");
}

#[tokio::test]
async fn sessions_share_one_process_unless_told_otherwise() {
    let gateway = gateway(json!({ "one": stdio(&[]), "each": with(stdio(&[]), "share", "never") })).await;
    let (first, second) = (gateway.client("direct").await, gateway.client("direct").await);
    assert_eq!(pid_of(&first, "one__who").await, pid_of(&second, "one__who").await);
    let own = pid_of(&first, "each__who").await;
    assert_ne!(own, pid_of(&second, "each__who").await);
    assert_eq!(own, pid_of(&first, "each__who").await);
    first.delete().await;
    assert!(eventually(|| !is_alive(own)).await, "its process outlives the session");
}

#[tokio::test]
async fn the_number_of_processes_has_a_limit() {
    let limits = json!({ "stdio_processes": 1, "idle_stop": "500ms" });
    let gateway = configured(json!({ "mcpServers": { "a": stdio(&[]), "b": stdio(&[]) }, "limits": limits })).await;
    let client = gateway.client("direct").await;
    let begin = Instant::now();
    while client.names("tools/list").await.len() < 66 {
        assert!(begin.elapsed() < Duration::from_secs(60), "{}", gateway.stderr());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    // The server listed last still has the only slot.
    assert!(eventually(|| gateway.descendants().is_empty()).await, "{:?}", gateway.descendants());
    let held = client.begin_call("a__sleep", json!({ "ms": 1500 }));
    assert!(eventually(|| gateway.descendants().len() == 2).await, "{}", gateway.stderr());
    let refused = error_of(&client.call("b__echo", json!({ "text": "x" })).await);
    assert_eq!(refused["code"], "OVERLOADED");
    assert_eq!(refused["message"], "`b` cannot start because all 1 server processes are busy.");
    let hint = "Try again when some of their calls have finished, or raise `limits.stdio_processes`.";
    assert_eq!(refused["hint"], hint);
    held.answer().await.expect("a result");
    let begin = Instant::now();
    while client.call("b__echo", json!({ "text": "x" })).await["isError"] == true {
        assert!(begin.elapsed() < Duration::from_secs(60), "no place becomes free");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn a_server_that_never_starts_delays_no_other() {
    let gateway = gateway(json!({ "good": stdio(&[]), "never": stdio(&["--never-start"]) })).await;
    let client = gateway.client("direct").await;
    let begin = Instant::now();
    // The very first call: the healthy server's list is not known yet either.
    assert_eq!(client.text("echo", json!({ "text": "now" })).await, "now");
    assert!(begin.elapsed() < LIMIT, "{:?}", begin.elapsed());
    let begin = Instant::now();
    assert_eq!(client.names("tools/list").await.len(), 33);
    assert!(begin.elapsed() < LIMIT, "{:?}", begin.elapsed());
}

#[tokio::test]
async fn a_server_that_dies_after_its_answer_is_started_again() {
    let gateway = gateway(json!({ "a": stdio(&["--die-after", "1"]) })).await;
    let client = gateway.client("direct").await;
    for _ in 0..3 {
        // A call before the exit is noticed fails with the server.
        let begin = Instant::now();
        let answer = loop {
            let answer = client.call("count", json!({})).await;
            if answer["isError"] != true {
                break answer;
            }
            assert!(begin.elapsed() < LIMIT, "it is not started again: {answer}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        };
        assert_eq!(answer["content"][0]["text"], "1");
        assert!(gateway.has_no_descendants().await);
    }
    assert!(eventually(|| gateway.zombies().is_empty()).await);
}

#[tokio::test]
async fn a_command_that_fails_is_not_hammered() {
    let folder = tempfile::tempdir().expect("a folder");
    let starts = folder.path().join("starts");
    let script = format!("echo x >> {}; echo I give up >&2; exit 3", starts.display());
    let server = json!({ "description": "d", "command": "sh", "args": ["-c", script] });
    let categories = json!({ "c": { "description": "d", "server": "a", "tools": { "includeNames": ["t"] } } });
    let gateway = configured(json!({ "mcpServers": { "a": server }, "categories": categories })).await;
    let client = gateway.client("").await;
    let begin = Instant::now();
    let (mut first, mut refused) = (None, Value::Null);
    while begin.elapsed() < Duration::from_secs(3) {
        refused = error_of(&client.call_in("c", "t", json!({})).await);
        first.get_or_insert_with(|| refused.clone());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!((&refused["code"], &refused["name"]), (&json!("UPSTREAM_UNAVAILABLE"), &json!("UpstreamCallError")));
    let first = first.unwrap_or_default();
    let message = first["message"].as_str().expect("text");
    assert!(message.contains("its process exited with code 3"), "{message}");
    assert!(!message.contains("I give up"), "what it wrote to stderr is for the log: {message}");
    gateway.wait_for_stderr("on stderr: I give up").await;
    let count = std::fs::read_to_string(&starts).expect("started").lines().count();
    assert!((2..=6).contains(&count), "started {count} times in 3 s");
}

#[tokio::test]
async fn a_server_sees_only_the_environment_it_is_given() {
    let plain = with(stdio(&[]), "env", json!({ "PROBE": "seen" }));
    let gateway = gateway(json!({ "a": plain })).await;
    let client = gateway.client("direct").await;
    assert_eq!(client.text("env", json!({ "name": "PROBE" })).await, "seen");
    assert_eq!(client.text("env", json!({ "name": "HIKITE_LOG" })).await, "HIKITE_LOG is not set");
}

#[tokio::test]
async fn the_flags_of_a_server_are_its_own() {
    use std::os::unix::fs::PermissionsExt;

    let folder = tempfile::tempdir().expect("a folder");
    let (program, seen) = (folder.path().join("server"), folder.path().join("seen"));
    let script =
        format!("#!/bin/sh\nprintf '%s\\n' \"$@\" > {}\nexec {} --stdio\n", seen.display(), crate::PROGRAMS.fixture());
    std::fs::write(&program, script).expect("a file");
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).expect("ours");
    let flags = ["--config", "x", "-h", "--log", "debug", "--", "--data=y", "--version", "--", ""];
    let server = json!({ "description": "d", "command": program, "args": flags });
    let gateway = gateway(json!({ "a": server })).await;
    let client = gateway.client("direct").await;
    assert_eq!(client.text("echo", json!({ "text": "up" })).await, "up");
    let seen = std::fs::read_to_string(&seen).expect("it ran");
    assert_eq!(seen.strip_suffix('\n').expect("a line").split('\n').collect::<Vec<_>>(), flags);
}

#[tokio::test]
async fn a_session_that_ends_while_its_process_starts_leaves_none() {
    let script = format!("sleep 1; exec {} --stdio", crate::PROGRAMS.fixture());
    let server = json!({ "description": "d", "command": "sh", "args": ["-c", script], "share": "never" });
    let gateway = gateway(json!({ "a": server })).await;
    let client = gateway.client("direct").await;
    let begin = Instant::now();
    while client.names("tools/list").await.is_empty() {
        assert!(begin.elapsed() < Duration::from_secs(60), "{}", gateway.stderr());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(gateway.has_no_descendants().await, "the list has been read");
    let call = client.begin_call("echo", json!({ "text": "x" }));
    assert!(eventually(|| !gateway.descendants().is_empty()).await);
    assert_eq!(client.delete().await, 204);
    // Nothing waits for the response either.
    drop(call);
    // By now it would have started.
    tokio::time::sleep(Duration::from_millis(1500)).await;
    assert!(gateway.descendants().is_empty(), "{:?}", gateway.descendants());
    assert!(eventually(|| gateway.zombies().is_empty()).await);
}
