//! The vault from an administrator's view: key rotation at run time, backups, and secrets that leak nowhere.

mod restore;

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use hikite_testkit::api::{MockApi, MockResponse};
use hikite_testkit::gateway::TestGateway;
use serde_json::{Value, json};

use crate::{PROGRAMS, configured};

const CANARY: &str = "ntn_canary_5f0e1c2b3a";

async fn gateway(api: &MockApi, more: Value) -> TestGateway {
    let mut config = json!({
        "modules": { "builtin": ["notion"] },
        "providers": { "notion": { "api": api.url(""), "oauth": { "client_id": "app", "client_secret": "shh" } } },
    });
    for (key, value) in more.as_object().expect("an object") {
        config[key] = value.clone();
    }
    configured(config).await
}

/// Runs a command with this stdin.
pub(crate) async fn run(gateway: &TestGateway, arguments: &[&str], input: &str) -> (i32, String) {
    let mut command = PROGRAMS.hikite(gateway.folder().path());
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("hikite");
    child.stdin.take().expect("piped").write_all(input.as_bytes()).expect("written");
    let output = tokio::task::spawn_blocking(move || child.wait_with_output()).await.expect("ended").expect("ended");
    let text = [output.stdout, output.stderr].concat();
    (output.status.code().unwrap_or(-1), String::from_utf8(text).expect("UTF-8"))
}

async fn add(gateway: &TestGateway) -> Value {
    let (code, text) = run(gateway, &["account", "add", "notion", "--token-stdin", "--json"], CANARY).await;
    assert_eq!(code, 0, "{text}");
    serde_json::from_str(text.lines().next().expect("a line")).expect("JSON")
}

async fn search(gateway: &TestGateway) -> Value {
    let call = json!({ "name": "notion:search", "parameters": { "query": "x" } });
    let request = gateway.request("POST", "/v1/tools/call").json(call.to_string());
    serde_json::from_slice(&gateway.send(request).await.body).expect("JSON")
}

/// Calls until the running hikite has seen the other process's write.
async fn works(gateway: &TestGateway) -> Value {
    let mut last = Value::Null;
    for _ in 0..60 {
        last = search(gateway).await;
        if last["success"] == true {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    last
}

#[tokio::test]
async fn the_key_changes_while_hikite_runs() {
    let api = MockApi::start().await;
    api.answer("/v1/search", MockResponse::json(&json!({ "results": [] })));
    let gateway = gateway(&api, json!({})).await;
    add(&gateway).await;
    assert_eq!(works(&gateway).await["success"], true);
    let key_file = gateway.folder().path().join("data/vault.key");
    let before = std::fs::read_to_string(&key_file).expect("a key");
    let rotated = gateway.run(&["vault", "rotate", "--json"]).await;
    assert_eq!(rotated.code, Some(0), "{rotated:?}");
    let after = std::fs::read_to_string(&key_file).expect("a key");
    assert!(before != after && after.lines().count() == 1 && !rotated.stdout.contains(after.trim()));
    assert_eq!(search(&gateway).await["success"], true, "with the key that is open");
    run(&gateway, &["account", "add", "notion", "--name", "late", "--token-stdin"], CANARY).await;
    let check = gateway.run(&["vault", "check", "--json"]).await;
    assert_eq!(check.code, Some(0), "{check:?}");
    let status: Value = serde_json::from_str(&gateway.run(&["vault", "status", "--json"]).await.stdout).expect("JSON");
    assert_eq!(status["accounts"].as_object().expect("keys").len(), 1, "{status}");
    let gateway = gateway.restart(config_again(&api)).await;
    assert_eq!(search(&gateway).await["success"], true, "after a start with the new key");
}

fn config_again(api: &MockApi) -> Value {
    json!({
        "modules": { "builtin": ["notion"] },
        "providers": { "notion": { "api": api.url(""), "oauth": { "client_id": "app", "client_secret": "shh" } } },
    })
}

#[tokio::test]
async fn a_copy_opens_with_its_passphrase_in_another_gateway() {
    let api = MockApi::start().await;
    api.answer("/v1/search", MockResponse::json(&json!({ "results": [] })));
    let (from, to) = (gateway(&api, json!({})).await, gateway(&api, json!({})).await);
    add(&from).await;
    let file = from.folder().path().join("copy");
    let path = file.to_str().expect("UTF-8");
    let (code, text) = run(&from, &["vault", "export", path], "short\n").await;
    assert!(code == 1 && text.contains("too short"), "{text}");
    let (code, text) = run(&from, &["vault", "export", path], "a long passphrase\n").await;
    assert_eq!(code, 0, "{text}");
    let copy = std::fs::read_to_string(&file).expect("a copy");
    assert!(!copy.contains("canary"));
    assert_eq!(std::fs::metadata(&file).expect("there").permissions().mode() & 0o777, 0o600);
    let (code, text) = run(&to, &["vault", "import", path], "another passphrase\n").await;
    assert!(code == 1 && text.contains("cannot be decrypted"), "{text}");
    let (code, text) = run(&to, &["vault", "import", path], "a long passphrase\n").await;
    assert_eq!(code, 0, "{text}");
    assert_eq!(works(&to).await["success"], true);
}

#[tokio::test]
async fn a_secret_is_nowhere_but_in_the_request_it_is_for() {
    let api = MockApi::start().await;
    api.answer("/v1/search", MockResponse::json(&json!({ "results": [] })));
    let more = json!({ "telemetry": { "log": { "level": "trace", "format": "json" } } });
    let gateway = gateway(&api, more).await;
    let mut seen = add(&gateway).await.to_string();
    assert_eq!(works(&gateway).await["success"], true);
    let bearer = api.last().headers["authorization"].to_str().expect("text").to_owned();
    assert_eq!(bearer, format!("Bearer {CANARY}"));
    api.answer("/v1/search", MockResponse::status(401));
    seen += &search(&gateway).await.to_string();
    for arguments in [
        &["account", "list", "--json"][..],
        &["vault", "status", "--json"],
        &["vault", "check", "--json"],
        &["config", "show"],
        &["doctor", "--wait", "120"],
        &["audit", "export"],
    ] {
        let run = gateway.run(arguments).await;
        seen += &run.stdout;
        seen += &run.stderr;
    }
    for path in ["/v1/accounts", "/v1/providers", "/v1/audit", "/metrics"] {
        seen += &String::from_utf8_lossy(&gateway.send(gateway.request("GET", path)).await.body);
    }
    seen += &gateway.stderr();
    assert!(seen.len() > 5000, "there is something to look through");
    assert!(!seen.contains("canary") && !seen.contains("\"shh\""), "{seen}");
    for entry in std::fs::read_dir(gateway.folder().path().join("data")).expect("a folder") {
        let path = entry.expect("an entry").path();
        let bytes = std::fs::read(&path).unwrap_or_default();
        let found = bytes.windows(CANARY.len()).any(|window| window == CANARY.as_bytes());
        assert!(!found, "{}", path.display());
    }
}

#[tokio::test]
async fn the_keyring_of_the_operating_system_keeps_the_key() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join("secret-tool");
    let kept = folder.path().join("kept");
    let script =
        format!("#!/bin/sh\ncase $1 in store) cat >'{0}';; lookup) [ -f '{0}' ] && cat '{0}';; esac\n", kept.display());
    std::fs::write(&program, script).expect("written");
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).expect("changed");
    std::fs::write(folder.path().join("hikite.json"), r#"{"vault":{"keyring":true}}"#).expect("written");
    let path = format!("{}:{}", folder.path().display(), std::env::var("PATH").expect("a path"));
    let status = |arguments: &'static [&'static str]| {
        let mut command = PROGRAMS.hikite(folder.path());
        command.env("PATH", &path).args(arguments);
        let output = command.output().expect("hikite");
        let text = String::from_utf8([output.stdout, output.stderr].concat()).expect("UTF-8");
        assert!(output.status.success(), "{text}");
        text
    };
    let first = status(&["vault", "status"]);
    assert!(first.contains("in the keyring"), "{first}");
    let key = std::fs::read_to_string(&kept).expect("a key");
    assert_eq!(key.len(), 64);
    assert_eq!(status(&["vault", "status"]), first, "it is made once");
    status(&["vault", "rotate"]);
    assert_ne!(std::fs::read_to_string(&kept).expect("a key"), key);
    assert!(!folder.path().join("data/vault.key").exists());
}
