//! Previews: the tool list of a model, the effect of permissions, and the active sessions.

use hikite_testkit::gateway::TestGateway;
use serde_json::{Value, json};

use super::{deeds, delete, refuses_outsiders, until};
use crate::identity::project;
use crate::rest::{get, post, refused};
use crate::{configured, stdio};

async fn house() -> TestGateway {
    let config = json!({ "mcpServers": { "a": stdio(&[]) }, "server": { "surface": ["modules", "search"] } });
    let gateway = configured(config).await;
    project(&gateway, "work", json!({ "permissions": { "allow": ["a:echo"] }, "surface": "direct" })).await;
    gateway
}

#[tokio::test]
async fn the_menu_is_exactly_what_a_model_is_given() {
    let gateway = house().await;
    let client = gateway.client("").await;
    let given = client.request("tools/list", json!({})).await.expect("a list");
    let menu = get(&gateway, "/v1/menu").await.value();
    assert_eq!((&menu["tools"], &menu["surfaces"]), (&given["tools"], &json!(["modules", "search"])));
    let (tokens, flat) = (menu["tokens"].as_u64(), menu["flatTokens"].as_u64());
    assert!(tokens > Some(100) && flat > tokens, "{tokens:?} {flat:?}");
    assert_eq!(menu["counter"], "o200k_base");
    let work = get(&gateway, "/v1/menu?project=work").await.value();
    let names: Vec<&str> =
        work["tools"].as_array().expect("tools").iter().filter_map(|tool| tool["name"].as_str()).collect();
    assert_eq!((names, &work["surfaces"], &work["project"]), (vec!["echo"], &json!(["direct"]), &json!("work")));
    let direct = get(&gateway, "/v1/menu?surface=direct").await.value();
    assert_eq!(direct["tokens"], direct["flatTokens"]);
    assert_eq!(get(&gateway, "/v1/menu?surface=nope").await.status, 400);
    assert_eq!(get(&gateway, "/v1/menu?project=work&surface=modules").await.status, 403);
    refused(&get(&gateway, "/v1/menu?project=nope").await, 404, "NOT_FOUND", "There is no project `nope`.");
}

#[tokio::test]
async fn permissions_are_tried_out_before_they_hold() {
    let gateway = house().await;
    let preview = async |permissions: Value| {
        post(&gateway, "/v1/permissions/preview", &json!({ "permissions": permissions })).await
    };
    let shown = preview(json!({ "allow": ["a:echo"] })).await.value();
    assert_eq!(shown["visible"], json!(["a:echo"]));
    let all = shown["hidden"].as_array().expect("hidden").len() + 1;
    let denied = preview(json!({ "deny": ["a:echo"] })).await.value();
    assert_eq!((&denied["hidden"], denied["visible"].as_array().map(Vec::len)), (&json!(["a:echo"]), Some(all - 1)));
    for wrong in [json!({ "alow": [] }), json!({ "allow": 1 }), json!([])] {
        assert_eq!(preview(wrong.clone()).await.status, 400, "{wrong}");
    }
    refuses_outsiders(
        &gateway,
        &[
            ("GET", "/v1/menu"),
            ("POST", "/v1/permissions/preview"),
            ("GET", "/v1/sessions"),
            ("DELETE", "/v1/sessions/1"),
        ],
    )
    .await;
}

#[tokio::test]
async fn open_sessions_are_listed_and_can_be_ended() {
    let gateway = house().await;
    let client = gateway.client("direct").await;
    let sessions = get(&gateway, "/v1/sessions").await.value();
    let [session] = &sessions["sessions"].as_array().expect("sessions")[..] else { panic!("{sessions}") };
    assert_eq!(
        (&session["subject"], &session["surfaces"], &session["project"]),
        (&json!("owner"), &json!(["direct"]), &Value::Null)
    );
    assert!(session["client"]["name"].is_string() && session["revision"].is_string(), "{session}");
    crate::rest::is_moment(&session["since"]);
    crate::rest::is_moment(&session["lastSeen"]);
    let path = format!("/v1/sessions/{}", session["id"].as_str().expect("an id"));
    assert_eq!(delete(&gateway, &path).await.status, 204);
    drop(client);
    until("it is gone", async || get(&gateway, "/v1/sessions").await.value()["sessions"] == json!([])).await;
    assert_eq!(get(&gateway, "/v1/status").await.value()["sessions"], 0);
    assert_eq!(delete(&gateway, &path).await.status, 404);
    assert!(deeds(&gateway, 3).await.iter().any(|deed| deed.starts_with("session.end ") && deed.ends_with(" ok")));
}
