//! Accounts: connected in a browser, chosen by a call, restricted by a mask; also under concurrent calls and when
//! processes are killed.

mod apart;
mod browser;
mod masks;
mod opener;
mod processes;
mod refresh;
mod terminal;
mod verify;

use hikite_testkit::gateway::{HttpReply, HttpRequest, TestGateway};
use hikite_testkit::provider::{CLIENT_ID, CLIENT_SECRET, MockProvider};
use serde_json::{Value, json};

use crate::configured;

/// Starts a hikite whose Notion is the mock provider.
async fn with(provider: &MockProvider, more: Value) -> TestGateway {
    let mut config = json!({
        "modules": { "builtin": ["notion"] },
        "providers": { "notion": {
            "api": provider.url(""),
            "oauth": {
                "client_id": CLIENT_ID,
                "client_secret": CLIENT_SECRET,
                "authorize_url": provider.url("/authorize"),
                "token_url": provider.url("/token"),
                "pkce": true,
            },
        } },
    });
    for (key, value) in more.as_object().expect("an object") {
        config[key] = value.clone();
    }
    configured(config).await
}

fn path_of(url: &str) -> String {
    let rest = url.split_once("://").expect("an address").1;
    rest[rest.find('/').expect("a path")..].to_owned()
}

#[track_caller]
fn to(reply: &HttpReply) -> String {
    assert!((300..400).contains(&reply.status), "{} {}", reply.status, String::from_utf8_lossy(&reply.body));
    reply.headers["location"].to_str().expect("text").to_owned()
}

fn cookie_of(reply: &HttpReply) -> String {
    let cookie = reply.headers["set-cookie"].to_str().expect("text");
    cookie.split(';').next().expect("a pair").to_owned()
}

fn body(reply: &HttpReply) -> Value {
    serde_json::from_slice(&reply.body).unwrap_or_default()
}

async fn post(gateway: &TestGateway, path: &str, form: &Value) -> HttpReply {
    gateway.send(gateway.request("POST", path).json(form.to_string())).await
}

/// Sends a browser request, with nothing but a cookie.
async fn visit(gateway: &TestGateway, method: &str, path: &str, cookie: Option<&str>) -> HttpReply {
    let mut request = HttpRequest::new(method, path);
    if let Some(cookie) = cookie {
        request = request.header("cookie", cookie);
    }
    gateway.send(request).await
}

/// A connect link, as a terminal gets it.
struct ConnectLink {
    id: String,
    path: String,
    code: String,
}

async fn link(gateway: &TestGateway, name: &str) -> ConnectLink {
    let form = json!({ "provider": "notion", "name": name, "terminal": true });
    let reply = post(gateway, "/v1/accounts/connect", &form).await;
    assert_eq!(reply.status, 201, "{}", String::from_utf8_lossy(&reply.body));
    let link = body(&reply);
    let text = |name: &str| link[name].as_str().expect("text").to_owned();
    ConnectLink { id: text("id"), path: path_of(&text("url")), code: text("code") }
}

/// Submits the form of a link's page with the proof of identity.
async fn go_on(gateway: &TestGateway, path: &str, proof: &str) -> HttpReply {
    gateway.send(HttpRequest::new("POST", path).form(format!("proof={proof}"))).await
}

/// Connects an account as a user would, and returns its id.
pub(crate) async fn connect(gateway: &TestGateway, provider: &MockProvider, name: &str) -> String {
    let ConnectLink { id, path, code } = link(gateway, name).await;
    let away = go_on(gateway, &path, &code).await;
    let (code, state) = provider.consent(&to(&away));
    let back = format!("/connect/callback?code={code}&state={state}");
    let done = visit(gateway, "GET", &back, Some(&cookie_of(&away))).await;
    assert_eq!(done.status, 200, "{}", String::from_utf8_lossy(&done.body));
    let at = gateway.send(gateway.request("GET", &format!("/v1/accounts/connect/{id}"))).await;
    assert_eq!(body(&at)["state"], "connected");
    body(&at)["account"].as_str().expect("an id").to_owned()
}

fn search(account: Option<&str>) -> Value {
    let mut call = json!({ "module": "notion", "tool": "search", "params": { "query": "x" }, "format": "raw" });
    if let Some(account) = account {
        call["account"] = account.into();
    }
    call
}

/// Returns the provider's grant that served the call.
#[track_caller]
fn family(result: &Value) -> i64 {
    let text = result["content"][0]["text"].as_str().unwrap_or_default();
    let value: Value = serde_json::from_str(text).unwrap_or_default();
    value["family"].as_i64().unwrap_or_else(|| panic!("{result}"))
}
