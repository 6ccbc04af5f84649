//! Servers are added, removed, switched and restarted with commands; the config file keeps its comments.

use std::path::Path;
use std::process::Stdio;

use hikite_testkit::authorization_server::{AuthorizationFaults, MockAuthorizationServer};
use hikite_testkit::gateway::{CommandOutput, TestGateway, eventually};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;

use crate::rest::post;
use crate::{PROGRAMS, configured, http_fixture, stdio};

mod catalog;
mod program;

const COMMENTED: &str = "{\n  // The servers of this test.\n  \"mcpServers\": {\n    \"a\": { \"command\": \"x\", \"disabled\": true }, // not now\n  },\n}\n";

/// Returns the state of the first server as `hikite server list` shows it.
async fn state(folder: &Path) -> String {
    let listed = done(folder, &["server", "list", "--json"]).await;
    let listed: Value = serde_json::from_str(&listed.stdout).expect("JSON");
    listed[0]["state"].as_str().expect("a state").to_owned()
}

/// Runs a command on a folder, and asserts that it succeeds.
async fn done(folder: &Path, arguments: &[&str]) -> CommandOutput {
    let run = PROGRAMS.run(folder, arguments).await;
    assert_eq!(run.code, Some(0), "{arguments:?}: {run:?}");
    run
}

fn file(folder: &Path) -> String {
    std::fs::read_to_string(folder.join("hikite.json")).expect("a file")
}

fn entries(folder: &Path) -> Value {
    let text = file(folder)
        .replace("// The servers of this test.", "")
        .replace("// not now", "")
        .replace(",\n  },\n}", "\n }}");
    serde_json::from_str::<Value>(&text).map_or(Value::Null, |config| config["mcpServers"].clone())
}

/// Returns the status of a call of the module's `echo`.
async fn calls(gateway: &TestGateway, module: &str) -> u16 {
    let call = json!({ "name": format!("{module}:echo"), "parameters": { "text": "x" } });
    post(gateway, "/v1/tools/call", &call).await.status
}

/// Waits until a call of the module's `echo` has this status.
async fn until(gateway: &TestGateway, module: &str, status: u16) {
    let waiting = async {
        while calls(gateway, module).await != status {
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    };
    let limit = hikite_testkit::gateway::LIMIT;
    tokio::time::timeout(limit, waiting).await.unwrap_or_else(|_| panic!("`{module}` is not {status}"));
}

#[tokio::test]
async fn a_program_is_tried_added_and_removed_and_the_file_keeps_its_comments() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    std::fs::write(folder.join("hikite.json"), COMMENTED).expect("a file");
    let missing = PROGRAMS.run(folder, &["add", "no", "--", "/no/such/program"]).await;
    assert!(missing.code == Some(1) && missing.stderr.contains("`no` was not added:"), "{missing:?}");
    assert_eq!(file(folder), COMMENTED, "a server that does not start is not added");

    let said = done(folder, &["add", "fx", "--env", "KEY=value", "--", PROGRAMS.fixture(), "--stdio"]).await;
    assert!(said.stderr.contains("Added `fx` to ") && said.stderr.contains(" tools."), "{said:?}");
    let text = file(folder);
    assert!(text.contains("// The servers of this test.") && text.contains("// not now"), "{text}");
    let entry = json!({ "command": PROGRAMS.fixture(), "args": ["--stdio"], "env": { "KEY": "value" } });
    assert_eq!(entries(folder)["fx"], entry, "{text}");
    let taken = PROGRAMS.run(folder, &["add", "fx", "--", PROGRAMS.fixture(), "--stdio"]).await;
    assert!(taken.code == Some(1) && taken.stderr.contains("`hikite remove fx`"), "{taken:?}");

    let called = done(folder, &["call", "fx:echo", "--param", "text=hello"]).await;
    assert!(called.stdout.contains("hello"), "{called:?}");
    done(folder, &["remove", "fx"]).await;
    assert_eq!(file(folder), COMMENTED);
    let unknown = PROGRAMS.run(folder, &["remove", "fx"]).await;
    assert!(unknown.code == Some(1) && unknown.stderr.contains("There is no server `fx`."), "{unknown:?}");
}

#[tokio::test]
async fn a_remote_server_is_added_to_the_running_hikite_in_both_scopes() {
    let (_fixture, remote) = http_fixture().await;
    let url = remote["url"].as_str().expect("an address");
    let gateway = configured(json!({ "egress": { "allow": ["127.0.0.0/8"] } })).await;
    let folder = gateway.folder().path().to_owned();
    done(&folder, &["add", "one", url, "--header", "X-Key: k", "--description", "d"]).await;
    done(&folder, &["add", "two", url, "--scope", "store"]).await;
    for module in ["one", "two"] {
        until(&gateway, module, 200).await;
    }
    let listed = done(&folder, &["server", "list", "--json"]).await;
    let listed: Value = serde_json::from_str(&listed.stdout).expect("JSON");
    let scopes: Vec<(&Value, &Value)> =
        listed.as_array().expect("a list").iter().map(|line| (&line["name"], &line["scope"])).collect();
    assert_eq!(scopes, [(&json!("one"), &json!("file")), (&json!("two"), &json!("store"))]);
    for module in ["one", "two"] {
        done(&folder, &["remove", module]).await;
        until(&gateway, module, 404).await;
    }
}

#[tokio::test]
async fn a_server_that_wants_a_login_is_added_and_says_so() {
    let authority = MockAuthorizationServer::start(AuthorizationFaults::default()).await;
    let folder = tempfile::tempdir().expect("a folder");
    let run = done(folder.path(), &["add", "vault", &authority.url()]).await;
    assert!(
        run.stderr.contains("Run `hikite login vault`") && run.stderr.contains("The config file is new."),
        "{run:?}"
    );
    assert_eq!(entries(folder.path())["vault"]["url"], authority.url());
}

#[tokio::test]
async fn modules_are_switched_and_restarted_while_hikite_runs() {
    let gateway = configured(json!({ "mcpServers": { "fx": stdio(&[]) } })).await;
    let folder = gateway.folder().path().to_owned();
    until(&gateway, "fx", 200).await;
    done(&folder, &["disable", "fx"]).await;
    until(&gateway, "fx", 404).await;
    assert_eq!(state(&folder).await, "disabled");
    done(&folder, &["enable", "fx"]).await;
    assert_eq!(state(&folder).await, "enabled");
    until(&gateway, "fx", 200).await;
    let pids = || gateway.descendants().iter().map(|process| process.pid).collect::<Vec<u32>>();
    let before = pids();
    let address = gateway.address().to_string();
    done(&folder, &["restart", "fx", "--listen", &address]).await;
    until(&gateway, "fx", 200).await;
    assert!(eventually(|| pids().iter().any(|pid| !before.contains(pid))).await, "{before:?}");

    gateway.write_config(&json!({ "mcpServers": { "fx": crate::with(stdio(&[]), "disabled", true) } }));
    until(&gateway, "fx", 404).await;
    done(&folder, &["enable", "fx"]).await;
    assert_eq!(entries(&folder)["fx"].get("disabled"), None);
    until(&gateway, "fx", 200).await;
}

#[tokio::test]
async fn without_arguments_it_asks() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("hikite.json"), "{}").expect("a file");
    let mut command = tokio::process::Command::from(PROGRAMS.hikite(folder.path()));
    command.arg("add").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let mut child = command.spawn().expect("it starts");
    let answers = format!("fx\n\"{}\" --stdio\nKEY=value\n\nEchoes.\n\n", PROGRAMS.fixture());
    child.stdin.take().expect("piped").write_all(answers.as_bytes()).await.expect("written");
    let output = child.wait_with_output().await.expect("ended");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let entry = json!({ "command": PROGRAMS.fixture(), "args": ["--stdio"], "env": { "KEY": "value" }, "description": "Echoes." });
    assert_eq!(entries(folder.path())["fx"], entry);
}
