//! A user who is disabled or deleted on one node is so on all nodes.

use hikite_testkit::gateway::LIMIT;
use serde_json::{Value, json};

use super::revoke::answers;
use super::*;

async fn made(cluster: &Cluster, node: usize, path: &str, form: Value) -> Value {
    let reply = cluster.send(node, HttpRequest::new("POST", path).json(form.to_string())).await;
    assert_eq!(reply.status, 201, "{}", reply.text());
    reply.value()
}

async fn token_of(cluster: &Cluster, user: &str) -> String {
    let token = made(cluster, 0, "/v1/tokens", json!({ "name": "t", "user": user })).await;
    token["secret"].as_str().expect("a secret").to_owned()
}

#[tokio::test]
async fn what_becomes_of_a_user_at_one_node_becomes_of_them_at_all() {
    let cluster = Cluster::start(2, json!({})).await;
    let first = made(&cluster, 0, "/v1/users", json!({ "name": "alice", "permissions": { "deny": ["a:echo"] } })).await;
    let secret = token_of(&cluster, "alice").await;
    let sees = async |node: usize, secret: &str| {
        let request = HttpRequest::new("GET", "/v1/tools").header("authorization", &format!("Bearer {secret}"));
        request.send(cluster.address(node)).await.text().contains("\"a:echo\"")
    };
    for node in [0, 1] {
        answers(&cluster, node, &secret, 200, LIMIT).await;
        assert!(!sees(node, &secret).await, "a token is never let in before the mask of its user");
    }
    let path = "/v1/users/alice";
    for (disabled, status) in [(true, 401), (false, 200)] {
        let form = json!({ "disabled": disabled }).to_string();
        let reply = cluster.send(1, HttpRequest::new("PATCH", path).json(form)).await;
        assert_eq!(reply.status, 200, "{}", reply.text());
        answers(&cluster, 1, &secret, status, Duration::ZERO).await;
        answers(&cluster, 0, &secret, status, LIMIT).await;
    }
    assert_eq!(cluster.send(0, HttpRequest::new("DELETE", path)).await.status, 204);
    answers(&cluster, 0, &secret, 401, Duration::ZERO).await;
    answers(&cluster, 1, &secret, 401, LIMIT).await;
    let second = made(&cluster, 1, "/v1/users", json!({ "name": "alice" })).await;
    assert_ne!(second["id"], first["id"]);
    for node in [0, 1] {
        answers(&cluster, node, &secret, 401, Duration::ZERO).await;
    }
    let own = token_of(&cluster, "alice").await;
    answers(&cluster, 1, &own, 200, LIMIT).await;
    assert!(sees(1, &own).await, "the mask of the first alice is not hers");
}

#[tokio::test]
async fn a_session_at_one_node_ends_when_its_user_is_removed_at_another() {
    let cluster = Cluster::start(2, json!({})).await;
    made(&cluster, 0, "/v1/users", json!({ "name": "alice" })).await;
    let secret = token_of(&cluster, "alice").await;
    answers(&cluster, 1, &secret, 200, LIMIT).await;
    let client = SessionClient::over_http(cluster.address(1), "/mcp", Some(&secret), ClientOptions::default()).await;
    assert!(client.names("tools/list").await.contains(&"echo".to_owned()));
    assert_eq!(cluster.send(0, HttpRequest::new("DELETE", "/v1/users/alice")).await.status, 204);
    let begin = std::time::Instant::now();
    loop {
        let sessions = cluster.send(1, HttpRequest::new("GET", "/v1/sessions")).await;
        if !sessions.text().contains("usr_") {
            break;
        }
        assert!(begin.elapsed() < LIMIT, "{}", sessions.text());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
