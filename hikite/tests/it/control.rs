//! The administration endpoints of the REST API and their permissions. Changes reach other processes on the same store,
//! survive a restart, and are audited.

mod category;
mod module;
mod preview;
mod records;
mod status;
mod upstream;

use std::time::Duration;

use hikite_testkit::gateway::{HttpReply, LIMIT, TestGateway};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::rest::{get, post};

const A_LITTLE: Duration = Duration::from_millis(30);

async fn send(gateway: &TestGateway, method: &str, path: &str, body: &Value) -> HttpReply {
    gateway.send(gateway.request(method, path).json(body.to_string())).await
}

async fn delete(gateway: &TestGateway, path: &str) -> HttpReply {
    gateway.send(gateway.request("DELETE", path)).await
}

/// Returns the audited actions, newest first, except token creation by the tests.
async fn actions(gateway: &TestGateway, count: usize) -> Vec<String> {
    let mut actions = Vec::new();
    let written = async {
        while actions.len() < count {
            tokio::time::sleep(A_LITTLE).await;
            let page = get(gateway, "/v1/audit?kind=admin").await.value();
            let records = page["records"].as_array().expect("records").iter();
            let own = records.filter(|record| record["method"] != "token.create");
            let word = |record: &Value, name: &str| record[name].as_str().unwrap_or_default().to_owned();
            let told = |record: &Value| ["method", "what", "outcome"].map(|name| word(record, name)).join(" ");
            actions = own.map(told).collect();
        }
    };
    tokio::time::timeout(LIMIT, written).await.expect("the audit is written");
    actions
}

/// Polls until the condition holds.
async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let waiting = async {
        while !is_so().await {
            tokio::time::sleep(A_LITTLE).await;
        }
    };
    tokio::time::timeout(LIMIT, waiting).await.unwrap_or_else(|_| panic!("it never came: {what}"));
}

/// Creates a folder shared by several processes, and a config that uses it.
fn shared(mut config: Value) -> (TempDir, Value) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).display().to_string();
    config["store"] = json!({ "url": format!("sqlite:{}", path("shared.db")) });
    config["vault"] = json!({ "key_file": path("vault.key") });
    (folder, config)
}

/// Creates a token with read and call scopes only.
async fn outsider(gateway: &TestGateway) -> String {
    let made = post(gateway, "/v1/tokens", &json!({ "name": "outsider" })).await;
    made.value()["secret"].as_str().expect("a secret").to_owned()
}

/// Asserts that requests without the admin scope are rejected.
async fn refuses_outsiders(gateway: &TestGateway, requests: &[(&str, &str)]) {
    let token = outsider(gateway).await;
    for (method, path) in requests {
        let request = gateway.request(method, path).header("authorization", &format!("Bearer {token}"));
        let reply = gateway.send(request.json("{}")).await;
        assert_eq!((reply.status, &reply.value()["code"]), (403, &json!("AUTHORIZATION_ERROR")), "{method} {path}");
    }
}
