//! Cost of a change, counted from outside: views are built on first use, and only those that the change affects.
//! Reduced permissions apply to the very next request.

use hikite_testkit::fixture::Fixture;
use hikite_testkit::gateway::TestGateway;
use serde_json::{Value, json};

use crate::identity::{project, token};
use crate::metrics::scraped;
use crate::{configured, http_fixture};

const PROJECTS: usize = 24;

fn allowing_a(number: usize) -> Value {
    json!({ "permissions": { "allow": ["a"], "deny": [format!("a:none-{number}")] } })
}

async fn world() -> (Fixture, TestGateway) {
    let (fixture, server) = http_fixture().await;
    let gateway = configured(json!({ "mcpServers": { "a": server.clone(), "b": server } })).await;
    for number in 0..PROJECTS {
        project(&gateway, &format!("p{number}"), allowing_a(number)).await;
    }
    project(&gateway, "twin", allowing_a(0)).await;
    (fixture, gateway)
}

/// Returns the tools of a project.
async fn tools(gateway: &TestGateway, project: &str) -> String {
    let request = gateway.request("GET", "/v1/tools").header("hikite-project", project);
    let reply = gateway.send(request).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    reply.text().to_owned()
}

/// Requests the tools of every project; returns the number of views built.
async fn look(gateway: &TestGateway) -> u64 {
    let before = built(gateway).await;
    for number in 0..PROJECTS {
        tools(gateway, &format!("p{number}")).await;
    }
    tools(gateway, "twin").await;
    built(gateway).await - before
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count of a few dozen")]
async fn built(gateway: &TestGateway) -> u64 {
    scraped(gateway).await.value("hikite_views_built_total", &[]) as u64
}

async fn change(gateway: &TestGateway, method: &str, path: &str, body: Value) -> u16 {
    let mut request = gateway.request(method, path);
    if !body.is_null() {
        request = request.json(body.to_string());
    }
    gateway.send(request).await.status
}

#[tokio::test]
async fn a_change_builds_the_views_that_it_changed() {
    let (_fixture, gateway) = world().await;
    tools(&gateway, "p0").await;
    assert_eq!(look(&gateway).await, PROJECTS as u64 - 1, "equal ones are shared, and one was built before");
    assert_eq!(look(&gateway).await, 0);

    let narrower = json!({ "permissions": { "allow": ["a"], "deny": ["a:echo"] } });
    assert_eq!(change(&gateway, "PATCH", "/v1/projects/p7", narrower).await, 200);
    assert!(!tools(&gateway, "p7").await.contains("\"a:echo\""), "not even for the next request");
    assert_eq!(look(&gateway).await, 0, "one view was built, by that request");

    let made = token(&gateway, json!({ "name": "ci", "project": "p3" })).await;
    project(&gateway, "new", json!({})).await;
    assert_eq!(change(&gateway, "DELETE", "/v1/projects/new", Value::Null).await, 204);
    assert_eq!(change(&gateway, "DELETE", &format!("/v1/tokens/{}", made.id), Value::Null).await, 204);
    assert_eq!(look(&gateway).await, 0, "tokens and other projects concern none of them");

    // A tool that none of them sees.
    assert_eq!(change(&gateway, "POST", "/v1/tools/b:echo/disable", Value::Null).await, 200);
    assert_eq!(look(&gateway).await, 0);
    assert_eq!(change(&gateway, "POST", "/v1/tools/a:echo/disable", Value::Null).await, 200);
    assert_eq!(look(&gateway).await, PROJECTS as u64, "everybody's");
}
