//! The administrator's view of consents and logins, and their revocation.

use super::*;

async fn ask(gateway: &TestGateway, method: &str, path: &str) -> HttpReply {
    gateway.send(gateway.request(method, path)).await
}

#[tokio::test]
async fn a_consent_that_is_taken_back_ends_the_tokens_that_came_of_it() {
    let (gateway, mut browser) = owned_gateway().await;
    let client = registered(&gateway).await;
    let tokens = tokens(&gateway, &mut browser, &client, "read").await;
    assert_eq!(me(&gateway, access(&tokens)).await.status, 200);
    let list = ask(&gateway, "GET", "/v1/consents").await.value();
    let [consent] = &list["consents"].as_array().expect("consents")[..] else { panic!("{list}") };
    assert_eq!((&consent["client"], &consent["scopes"]), (&json!(client), &json!(["read"])), "{consent}");
    assert!(consent["user"].is_string() && consent["clientName"].is_string(), "{consent}");
    let path = format!("/v1/consents/{}", consent["id"].as_str().expect("an id"));
    let by_client = gateway.request("DELETE", &path).header("authorization", &format!("Bearer {}", access(&tokens)));
    assert_eq!(gateway.send(by_client).await.status, 403);
    assert_eq!(ask(&gateway, "DELETE", &path).await.status, 204);
    assert_eq!(me(&gateway, access(&tokens)).await.status, 401);
    assert_eq!(ask(&gateway, "DELETE", &path).await.status, 404);
}

#[tokio::test]
async fn a_browser_that_an_admin_logs_out_has_to_log_in_again() {
    let (gateway, mut browser) = owned_gateway().await;
    let list = ask(&gateway, "GET", "/v1/logins").await;
    assert!(browser.cookies.values().all(|secret| !list.text().contains(secret)), "{}", list.text());
    let list = list.value();
    let [login] = &list["logins"].as_array().expect("logins")[..] else { panic!("{list}") };
    let path = format!("/v1/logins/{}", login["id"].as_str().expect("an id"));
    assert_eq!(ask(&gateway, "DELETE", &path).await.status, 204);
    assert_eq!(ask(&gateway, "GET", "/v1/logins").await.value()["logins"], json!([]));
    assert_eq!(ask(&gateway, "DELETE", &path).await.status, 404);
    let client = registered(&gateway).await;
    let page = browser.get(&gateway, &authorize(&gateway, &client, &[])).await;
    assert!((300..400).contains(&page.status), "{} {}", page.status, page.text);
}
