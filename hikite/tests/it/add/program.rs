//! Programs of the store start only where somebody approved them at a terminal; REST never creates one.

use serde_json::{Value, json};

use super::{calls, done, until};
use crate::rest::post;
use crate::{PROGRAMS, configured, stdio};

const APPROVALS: &str = "data/approved-programs.json";

#[tokio::test]
async fn a_program_of_the_store_starts_only_on_a_machine_where_it_is_approved() {
    let gateway = configured(json!({})).await;
    let folder = gateway.folder().path().to_owned();
    done(&folder, &["add", "fx", "--scope", "store", "--env", "KEY=canary-77aa", "--", PROGRAMS.fixture(), "--stdio"])
        .await;
    until(&gateway, "fx", 200).await;
    let shown = gateway.send(gateway.request("GET", "/v1/upstreams")).await;
    assert!(shown.text().contains("\"stdio\"") && !shown.text().contains("canary-77aa"), "{}", shown.text());

    // Another machine on the same store has no approvals of its own.
    std::fs::remove_file(folder.join(APPROVALS)).expect("the approvals are a file");
    let gateway = gateway.restart(json!({})).await;
    gateway.wait_for_stderr("the program `fx` from the store is not approved on this machine").await;
    assert_eq!(calls(&gateway, "fx").await, 404);
    assert!(gateway.descendants().iter().all(hikite_testkit::gateway::ProcessEntry::is_guard), "nothing was started");
    let listed = done(&folder, &["server", "list", "--json"]).await;
    let listed: Value = serde_json::from_str(&listed.stdout).expect("JSON");
    let code = listed[0]["code"].as_str().expect("a code").to_owned();
    let wrong = PROGRAMS.run(&folder, &["server", "approve", "0000-0000-0000"]).await;
    assert!(wrong.code == Some(1) && wrong.stderr.contains("No program waits"), "{wrong:?}");
    assert_eq!(calls(&gateway, "fx").await, 404);
    let approved = done(&folder, &["server", "approve", &code.to_lowercase()]).await;
    assert!(approved.stderr.contains("`fx` may start on this machine: "), "{approved:?}");
    until(&gateway, "fx", 200).await;

    // An approval is for one definition: a changed one on this machine's file does not count.
    let text = std::fs::read_to_string(folder.join(APPROVALS)).expect("a file");
    let mut approvals: Value = serde_json::from_str(&text).expect("JSON");
    approvals["fx"] = "0".repeat(64).into();
    std::fs::write(folder.join(APPROVALS), approvals.to_string()).expect("written");
    let gateway = gateway.restart(json!({})).await;
    gateway.wait_for_stderr("is not approved on this machine").await;
    assert_eq!(calls(&gateway, "fx").await, 404);
    done(&folder, &["remove", "fx"]).await;
    let listed = done(&folder, &["server", "list", "--json"]).await;
    assert_eq!(listed.stdout.trim(), "[]");
}

#[tokio::test]
async fn rest_never_creates_or_changes_a_program() {
    let gateway = configured(json!({})).await;
    let folder = gateway.folder().path().to_owned();
    let put = async |name: &str, entry: &Value| {
        let path = format!("/v1/upstreams/{name}");
        gateway.send(gateway.request("PUT", &path).json(entry.to_string())).await.status
    };
    assert_eq!(put("new", &stdio(&[])).await, 403);
    assert_eq!(put("new", &json!({ "type": "stdio", "url": "https://x.example" })).await, 403);
    let import = json!({ "config": { "mcpServers": { "new": stdio(&[]) } }, "apply": true });
    let reply = post(&gateway, "/v1/upstreams/import", &import).await;
    assert!(!reply.text().contains("\"applied\":[\"new\"]"), "{}", reply.text());
    let listed = done(&folder, &["server", "list", "--json"]).await;
    assert_eq!(listed.stdout.trim(), "[]");

    done(&folder, &["add", "fx", "--scope", "store", "--", PROGRAMS.fixture(), "--stdio"]).await;
    until(&gateway, "fx", 200).await;
    assert_eq!(put("fx", &stdio(&["--other"])).await, 403);
    assert_eq!(calls(&gateway, "fx").await, 200, "the program is as it was");
}
