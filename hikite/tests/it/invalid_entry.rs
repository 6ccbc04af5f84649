//! A fault of one server disables that server; the others run. `config check` reports it as before.

use hikite_testkit::gateway::TestGateway;
use serde_json::{Value, json};

use crate::{PROGRAMS, configured, http_fixture, with};

/// Returns a config with a valid server `up` and a server `unset` whose variable is not set.
fn config(up: &Value, unset: &Value) -> Value {
    json!({ "mcpServers": { "unset": unset, "up": up }, "server": { "surface": ["modules"] } })
}

async fn echo(gateway: &TestGateway, module: &str) -> Value {
    let client = gateway.client("modules").await;
    client.call("call", json!({ "module": module, "tool": "echo", "params": { "text": module } })).await
}

#[tokio::test]
async fn an_unset_variable_disables_one_server_and_the_rest_runs() {
    let (_fixture, up) = http_fixture().await;
    let unset = with(up.clone(), "headers", json!({ "X-Key": "${HIKITE_TEST_UNSET}" }));
    let config = config(&up, &unset);
    let gateway = configured(config.clone()).await;
    let line = "the server `unset` is disabled:";
    gateway.wait_for_stderr(line).await;
    assert!(
        gateway.stderr().contains("the environment variable `HIKITE_TEST_UNSET` is not set"),
        "{}",
        gateway.stderr()
    );
    assert_eq!(echo(&gateway, "up").await["content"][0]["text"], "up");
    assert_eq!(echo(&gateway, "unset").await["isError"], true);
    let status = gateway.send(gateway.request("GET", "/v1/status")).await;
    assert!(status.text().contains(line), "{}", status.text());

    let check = PROGRAMS.run(gateway.folder().path(), &["config", "check"]).await;
    assert_eq!(check.code, Some(2), "{check:?}");
    assert!(check.stderr.contains("mcpServers.unset.headers.X-Key: the environment variable"), "{check:?}");
}

#[tokio::test]
async fn an_invalid_change_of_one_server_keeps_its_running_definition() {
    let (_fixture, up) = http_fixture().await;
    let gateway = configured(config(&up, &up)).await;
    assert_eq!(echo(&gateway, "unset").await["content"][0]["text"], "unset");
    let mut changed = config(&up, &with(up.clone(), "urll", "x"));
    changed["mcpServers"]["new"] = up.clone();
    gateway.write_config(&changed);
    gateway.wait_for_stderr("the server `unset` keeps its previous definition:").await;
    gateway.wait_for_stderr("the changed config is active").await;
    for module in ["up", "unset", "new"] {
        assert_eq!(echo(&gateway, module).await["content"][0]["text"], *module, "{module}");
    }
    // A fault in `auth` still stops the change as a whole.
    changed["auth"] = json!({ "token": "${HIKITE_TEST_UNSET}" });
    changed["mcpServers"]["never"] = up.clone();
    gateway.write_config(&changed);
    gateway.wait_for_stderr("the changed config is invalid; the previous one stays active:").await;
    assert_eq!(echo(&gateway, "never").await["isError"], true);
}

#[tokio::test]
async fn faults_in_other_sections_still_stop_the_start() {
    for section in [
        json!({ "auth": { "token": "${HIKITE_TEST_UNSET}" } }),
        json!({ "vault": { "key_file": "${HIKITE_TEST_UNSET}" } }),
        json!({ "projects": { "p": { "nope": 1 } } }),
        json!({ "server": { "nope": 1 } }),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("hikite.json"), section.to_string()).expect("a file");
        let run = PROGRAMS.run(folder.path(), &["serve"]).await;
        assert_eq!(run.code, Some(2), "{section}: {run:?}");
    }
}
