//! SIGHUP and the open file limit: neither ends running calls.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;

use hikite_testkit::gateway::{ClientOptions, LIMIT, SessionClient, TestGateway, eventually, hang_up};
use serde_json::json;

use crate::{PROGRAMS, configured, gateway, http_fixture, stdio};

#[tokio::test]
async fn a_hangup_reads_the_config_again_and_ends_nothing() {
    let (_fixture, server) = http_fixture().await;
    let mut gateway = gateway(json!({ "a": server })).await;
    let client = gateway.client("").await;
    let running = client.begin_call("sleep", json!({ "ms": 1500 }));
    for round in 1..=2 {
        gateway.hang_up();
        let said = || gateway.stderr().matches("SIGHUP: reloading the config").count() == round;
        assert!(eventually(said).await, "{}", gateway.stderr());
    }
    let in_force = || gateway.stderr().matches("the changed config is active").count() == 2;
    assert!(eventually(in_force).await, "{}", gateway.stderr());
    assert!(running.answer().await.expect("a result").to_string().contains("slept"));
    gateway.write_text("{");
    gateway.hang_up();
    gateway.wait_for_stderr("the previous one stays active").await;
    assert_eq!(client.text("echo", json!({ "text": "x" })).await, "x");
    assert!(gateway.stop().await.success());
}

#[tokio::test]
async fn a_hangup_does_not_end_a_gateway_on_stdio() {
    let (_fixture, server) = http_fixture().await;
    let folder = tempfile::tempdir().expect("a folder");
    let config = json!({ "mcpServers": { "a": server }, "modules": { "builtin": false } });
    fs::write(folder.path().join("hikite.json"), config.to_string()).expect("a file");
    let client =
        SessionClient::over_stdio(&PROGRAMS, folder.path(), &["--surface", "direct"], ClientOptions::default()).await;
    assert_eq!(client.text("echo", json!({ "text": "x" })).await, "x");
    hang_up(client.pid());
    assert_eq!(client.text("echo", json!({ "text": "y" })).await, "y");
    assert!(client.close().await.success());
}

/// Returns the soft and hard limit from the kernel.
fn file_limits(pid: u32) -> (String, String) {
    let limits = fs::read_to_string(format!("/proc/{pid}/limits")).expect("limits");
    let line = limits.lines().find(|line| line.starts_with("Max open files")).expect("a limit");
    let mut words = line.split_whitespace().skip(3).map(str::to_owned);
    (words.next().expect("soft"), words.next().expect("hard"))
}

#[tokio::test]
async fn the_limit_of_open_files_is_raised_for_hikite_and_not_for_its_servers() {
    let config = json!({ "mcpServers": { "a": stdio(&[]) }, "server": { "surface": "direct" } });
    let gateway = TestGateway::start_after(&PROGRAMS, config, "ulimit -Sn 512; ulimit -Hn 4096").await;
    assert_eq!(file_limits(gateway.pid()), ("4096".into(), "4096".into()));
    assert_eq!(gateway.client("").await.text("echo", json!({ "text": "x" })).await, "x");
    let servers = gateway.descendants();
    let server = servers.iter().find(|process| !process.is_guard()).expect("a server");
    assert_eq!(file_limits(server.pid), ("512".into(), "4096".into()));
}

#[tokio::test]
async fn without_files_new_connections_are_refused_and_calls_go_on() {
    let (fixture, server) = http_fixture().await;
    let gateway = configured(json!({ "mcpServers": { "a": server }, "server": { "surface": "direct" } })).await;
    let client = gateway.client("").await;
    assert_eq!(client.text("echo", json!({ "text": "x" })).await, "x");
    let before = fixture.calls();
    let running = client.begin_call("sleep", json!({ "ms": 3000 }));
    assert!(eventually(|| gateway.stderr().contains("listening")).await);
    assert!(eventually(|| fixture.calls() > before).await, "the call does not run");
    // Numbers above the limit are of no use. The descriptors that hikite holds in reserve are open on `/dev/null`.
    let open = fs::read_dir(format!("/proc/{}/fd", gateway.pid())).expect("open files").filter_map(Result::ok);
    let reserve = open.filter(|entry| fs::read_link(entry.path()).is_ok_and(|file| file == Path::new("/dev/null")));
    let numbers = reserve.filter_map(|entry| entry.file_name().to_str()?.parse::<u64>().ok());
    gateway.limit_files(numbers.max().expect("a file") + 1);
    let address = gateway.address();
    // Connections take the free numbers below the limit; the first one without a number is refused.
    let refused = tokio::task::spawn_blocking(move || {
        let mut held = Vec::new();
        loop {
            let mut socket = TcpStream::connect(address).expect("the kernel takes it");
            socket.set_read_timeout(Some(LIMIT)).expect("a limit");
            let _ = socket.write_all(b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n");
            let mut answer = [0; 1024];
            let count = socket.read(&mut answer).unwrap_or_default();
            let answer = String::from_utf8_lossy(&answer[..count]).into_owned();
            if !answer.starts_with("HTTP/1.1 200") || held.len() == 100 {
                return answer;
            }
            held.push(socket);
        }
    });
    let refused = refused.await.expect("no panic");
    assert!(refused.starts_with("HTTP/1.1 503"), "{refused}\n{}", gateway.stderr());
    gateway.wait_for_stderr("the limit of open files is reached").await;
    assert!(running.answer().await.expect("a result").to_string().contains("slept"));
    gateway.limit_files(1024);
    assert_eq!(gateway.client("").await.text("echo", json!({ "text": "x" })).await, "x");
}

#[tokio::test]
async fn running_calls_have_their_own_time_to_finish_unless_the_config_says_otherwise() {
    for (limits, drain) in [
        (json!({}), "\"drain\": \"30s\""),
        (json!({ "call_timeout": "45s" }), "\"drain\": \"45s\""),
        (json!({ "call_timeout": "45s", "drain": "5s" }), "\"drain\": \"5s\""),
    ] {
        let gateway = configured(json!({ "limits": limits })).await;
        let shown = gateway.run(&["config", "show"]).await;
        assert!(shown.stdout.contains(drain), "{}", shown.stdout);
    }
}
