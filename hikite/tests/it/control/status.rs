//! The status overview: counters, token savings by day, and items that need attention.

use serde_json::{Value, json};

use super::{refuses_outsiders, until};
use crate::rest::{get, post};
use crate::{configured, stdio};

fn kinds(status: &Value) -> Vec<String> {
    let concerns = status["attention"].as_array().expect("a list").iter();
    concerns.map(|concern| format!("{} {}", concern["kind"], concern["name"]).replace('"', "")).collect()
}

#[tokio::test]
async fn calls_and_savings_are_counted_and_survive_a_restart() {
    let config = json!({ "mcpServers": { "a": stdio(&[]) }, "server": { "surface": ["modules", "search"] } });
    let gateway = configured(config.clone()).await;
    let client = gateway.client("").await;
    let call =
        json!({ "name": "a:echo", "parameters": { "text": "word ".repeat(2000) }, "options": { "format": "compact" } });
    assert_eq!(post(&gateway, "/v1/tools/call", &call).await.status, 200);
    assert_eq!(post(&gateway, "/v1/tools/call", &json!({ "name": "a:test_error_handling" })).await.status, 500);
    // Now the tools and their cost are known.
    assert!(!client.names("tools/list").await.is_empty());
    let status = get(&gateway, "/v1/status").await.value();
    assert_eq!((&status["sessions"], &status["calls"]["total"]), (&json!(1), &json!(2)), "{status}");
    assert_eq!(status["calls"]["errorRate"], 0.5, "{status}");
    let today = &status["saved"]["today"];
    assert_eq!((&today["calls"], &today["errors"]), (&json!(2), &json!(1)), "{today}");
    let number = |name: &str| today[name].as_u64().unwrap_or_else(|| panic!("{name} of {today}"));
    assert!(number("tokensFlat") > number("tokensMenu") && number("tokensMenu") > 0, "{today}");
    assert!(number("tokensRaw") > 0 && number("tokensSaved") > 0, "{today}");
    let days = status["saved"]["days"].as_array().expect("days");
    assert_eq!((days.len(), &days[29]["calls"], &days[28]["calls"]), (30, &json!(2), &json!(0)));
    assert_eq!((&days[29]["tokensSaved"], kinds(&status).len()), (&today["tokensSaved"], 0));
    let gateway = gateway.restart(config).await;
    let again = get(&gateway, "/v1/status").await.value();
    assert_eq!((&again["saved"], &again["calls"]["total"]), (&status["saved"], &json!(0)));
    refuses_outsiders(&gateway, &[("GET", "/v1/status")]).await;
}

#[tokio::test]
async fn what_fails_and_what_is_wrong_in_the_file_needs_somebody() {
    let broken = json!({ "description": "d", "command": "/no/such/program" });
    let gateway = configured(json!({ "mcpServers": { "a": broken } })).await;
    let kinds = async || kinds(&get(&gateway, "/v1/status").await.value());
    until("the server fails", async || kinds().await == ["module a"]).await;
    gateway.write_text("{ wrong");
    until("the file is wrong", async || kinds().await == ["config config", "module a"]).await;
    gateway.write_config(&json!({ "mcpServers": {} }));
    until("all is well", async || kinds().await.is_empty()).await;
}
