//! Categories created at run time, and overrides of a server's texts.

use serde_json::{Value, json};

use super::{actions, delete, outsider, refuses_outsiders, send, shared, until};
use crate::rest::{get, post, refused};
use crate::{configured, gateway, stdio, with};

#[tokio::test]
async fn a_category_is_made_changed_and_taken_away() {
    let file = json!({ "own": { "description": "of the file", "server": "a" } });
    let (_folder, config) = shared(json!({ "mcpServers": { "a": stdio(&[]) }, "categories": file }));
    let gateway = configured(config.clone()).await;
    let other = configured(config.clone()).await;
    let form = json!({ "description": "small things", "server": "a", "tools": { "includeNames": ["echo"] } });
    let made = send(&gateway, "PUT", "/v1/categories/small", &form).await;
    assert_eq!(made.status, 201, "{}", made.text());
    let made = made.value();
    assert_eq!((&made["managedBy"], &made["tools"], &made["form"]), (&json!("store"), &json!(["a:echo"]), &form));
    let names = |all: &Value| -> Vec<String> {
        let all = all["categories"].as_array().expect("categories").iter();
        all.map(|one| format!("{} {}", one["name"], one["managedBy"]).replace('"', "")).collect()
    };
    assert_eq!(names(&get(&gateway, "/v1/categories").await.value()), ["own file", "small store"]);
    let client = gateway.client("categories").await;
    let menu = client.request("tools/list", json!({})).await.expect("a list").to_string();
    assert!(menu.contains("small things"), "{menu}");
    until("the other process has it", async || names(&get(&other, "/v1/categories").await.value()).len() == 2).await;
    let gateway = gateway.restart(config).await;
    let changed =
        send(&gateway, "PUT", "/v1/categories/small", &json!({ "description": "all", "server": ["a"] })).await;
    assert!(
        changed.status == 200 && changed.value()["tools"].as_array().is_some_and(|tools| tools.len() > 1),
        "{}",
        changed.text()
    );
    let taken = send(&gateway, "PUT", "/v1/categories/own", &form).await;
    refused(&taken, 409, "CONFLICT", "The category `own` is managed by the config file.");
    for wrong in [json!({ "description": "d" }), json!({ "server": "nobody" }), json!({ "server": "a", "x": 1 })] {
        let reply = send(&gateway, "PUT", "/v1/categories/wrong", &wrong).await;
        assert_eq!(
            (reply.status, &reply.value()["code"]),
            (400, &json!("VALIDATION_ERROR")),
            "{wrong}: {}",
            reply.text()
        );
    }
    assert_eq!(delete(&gateway, "/v1/categories/small").await.status, 204);
    assert_eq!(get(&gateway, "/v1/categories/small").await.status, 404);
    assert_eq!(delete(&gateway, "/v1/categories/small").await.status, 404);
    refuses_outsiders(&gateway, &[("PUT", "/v1/categories/x"), ("DELETE", "/v1/categories/own")]).await;
    let actions = actions(&gateway, 8).await;
    assert_eq!(actions.iter().filter(|action| *action == "category.put small ok").count(), 2, "{actions:?}");
}

#[tokio::test]
async fn texts_in_place_of_the_servers_own_are_shown_everywhere_and_can_be_taken_back() {
    let gateway = gateway(json!({ "a": stdio(&[]) })).await;
    let own = get(&gateway, "/v1/tools/a:echo").await.value();
    assert_eq!(own["overrides"], json!({}));
    let texts = json!({ "title": "Echo of mine", "description": "says it again" });
    let changed = send(&gateway, "PATCH", "/v1/tools/a:echo", &texts).await;
    assert_eq!(changed.status, 200, "{}", changed.text());
    let changed = changed.value();
    assert_eq!(
        (&changed["overrides"], &changed["title"], &changed["description"]),
        (&texts, &texts["title"], &texts["description"])
    );
    assert_eq!(changed["original"]["description"], own["description"]);
    let client = gateway.client("direct").await;
    let menu = client.request("tools/list", json!({})).await.expect("a list").to_string();
    assert!(menu.contains("Echo of mine") && menu.contains("says it again"), "{menu}");
    let found = post(&gateway, "/v1/tools/search", &json!({ "query": "says it again" })).await.value();
    assert_eq!(found["results"][0]["key"], "a:echo", "{found}");
    let token = outsider(&gateway).await;
    let request = gateway.request("GET", "/v1/tools/a:echo").header("authorization", &format!("Bearer {token}"));
    let seen = gateway.send(request).await.value();
    assert!(seen["original"].is_null() && seen["description"] == "says it again", "{seen}");
    let gateway = gateway.restart(json!({ "mcpServers": { "a": stdio(&[]) } })).await;
    assert_eq!(get(&gateway, "/v1/tools/a:echo").await.value()["title"], "Echo of mine");
    let back = send(&gateway, "PATCH", "/v1/tools/a:echo", &json!({ "title": null, "description": null })).await;
    let without_time = |tool: Value| with(tool, "registeredAt", "");
    assert_eq!(without_time(back.value()), without_time(own));
    for wrong in [json!({ "title": "" }), json!({ "name": "x" }), json!({ "description": 1 })] {
        assert_eq!(send(&gateway, "PATCH", "/v1/tools/a:echo", &wrong).await.status, 400, "{wrong}");
    }
    assert_eq!(send(&gateway, "PATCH", "/v1/tools/a:nobody", &json!({})).await.status, 404);
    refuses_outsiders(&gateway, &[("PATCH", "/v1/tools/a:echo")]).await;
}
