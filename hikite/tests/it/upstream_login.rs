//! A remote server that requires a login, behind the real program: calls fail, somebody logs in from a terminal, and
//! from then on all calls succeed, also after a restart.

use std::process::Stdio;

use hikite_testkit::authorization_server::{AuthorizationFaults, MockAuthorizationServer};
use hikite_testkit::gateway::{HttpReply, HttpRequest, LIMIT, TestGateway};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

use crate::identity::token;
use crate::{PROGRAMS, configured, error_of};

fn config(authority: &MockAuthorizationServer) -> Value {
    json!({
        "mcpServers": { "vault": { "description": "a server that wants a login", "url": authority.url() } },
        "server": { "surface": ["modules", "direct"] },
    })
}

fn word() -> Value {
    json!({ "module": "vault", "tool": "secret_word", "params": {} })
}

/// Sends a GET and returns the whole response.
async fn get(url: &str) -> String {
    let (address, path) = url.strip_prefix("http://").and_then(|rest| rest.split_once('/')).expect("a URL");
    let mut stream = TcpStream::connect(address).await.expect("somebody listens");
    let request = format!("GET /{path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("an answer");
    answer
}

/// Logs in from a terminal with a browser that agrees to everything; returns the output.
async fn log_in(gateway: &TestGateway) -> String {
    let mut command = tokio::process::Command::from(PROGRAMS.hikite(gateway.folder().path()));
    command.args(["login", "vault"]).stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let mut child = command.spawn().expect("it starts");
    let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
    let line = tokio::time::timeout(LIMIT, lines.next_line()).await.expect("in time").expect("text");
    let url = line.expect("an address");
    let sent = get(&url).await;
    let back = sent.lines().find_map(|line| line.strip_prefix("location: ")).expect("sent back").to_owned();
    let stray = back.replace("state=", "state=x");
    assert!(get(&stray).await.starts_with("HTTP/1.1 404"), "a stranger is sent away");
    let page = get(&back).await;
    assert!(page.starts_with("HTTP/1.1 200") && page.contains("Logged in"), "{page}");
    let output = tokio::time::timeout(LIMIT, child.wait_with_output()).await.expect("in time").expect("ended");
    let said = String::from_utf8(output.stderr).expect("UTF-8");
    assert!(output.status.success(), "{said}");
    said
}

/// Waits until the running program has noticed the login and the tool works.
async fn let_in(gateway: &TestGateway) {
    let client = gateway.client("direct").await;
    let seeing = async {
        while client.names("tools/list").await != ["secret_word"] {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(LIMIT, seeing).await.expect("the login is seen");
    assert_eq!(client.text("secret_word", json!({})).await, "open sesame");
}

#[tokio::test]
async fn somebody_logs_in_once_and_the_server_stays_open() {
    let authority = MockAuthorizationServer::start(AuthorizationFaults::default()).await;
    let gateway = configured(config(&authority)).await;
    let client = gateway.client("modules").await;
    let refused = client.call("call", word()).await;
    let error = error_of(&refused);
    assert_eq!(error["code"], "ACCOUNT_REQUIRED", "{refused}");
    assert!(error["hint"].as_str().expect("a hint").contains("hikite login vault"), "{error}");
    let modules = gateway.send(gateway.request("GET", "/v1/modules")).await;
    assert!(modules.text().contains("needs_login"), "{}", modules.text());

    let said = log_in(&gateway).await;
    assert!(said.contains("Logged in to `vault`: 1 tools."), "{said}");
    let_in(&gateway).await;
    let again = gateway.run(&["account", "connect", "vault"]).await;
    assert!(again.code == Some(0) && again.stderr.contains("already"), "{again:?}");

    let local_token = gateway.token().to_owned();
    let gateway = gateway.restart(config(&authority)).await;
    let_in(&gateway).await;
    authority.expire();
    let client = gateway.client("direct").await;
    assert_eq!(client.text("secret_word", json!({})).await, "open sesame", "renewed by itself");
    assert_eq!(authority.count("/token", "grant_type=authorization_code"), 1);
    assert!(!authority.was_replayed());

    for request in authority.seen() {
        assert!(!format!("{request:?}").contains(&local_token), "what our clients show us goes nowhere: {request:?}");
    }
    let folder = gateway.folder().path().to_owned();
    let written = gateway.stderr();
    for secret in authority.secrets() {
        assert!(!written.contains(&secret), "the log tells a secret");
        for entry in std::fs::read_dir(folder.join("data")).expect("a folder") {
            let path = entry.expect("an entry").path();
            let Ok(bytes) = std::fs::read(&path) else { continue };
            let found = bytes.windows(secret.len()).any(|window| window == secret.as_bytes());
            assert!(!found, "`{}` holds a secret", path.display());
        }
    }
}

#[tokio::test]
async fn a_login_that_must_not_be_is_refused_at_the_terminal() {
    let wrong = AuthorizationFaults { issuer: Some("https://other.example".into()), ..AuthorizationFaults::default() };
    let authority = MockAuthorizationServer::start(wrong).await;
    let gateway = configured(config(&authority)).await;
    let run = gateway.run(&["account", "connect", "vault"]).await;
    assert_eq!((run.code, run.stdout.as_str()), (Some(1), ""), "{run:?}");
    assert!(run.stderr.contains("names another issuer"), "{run:?}");
    let run = gateway.run(&["account", "connect", "nobody"]).await;
    assert_eq!(run.code, Some(1), "{run:?}");
}

#[tokio::test]
async fn credentials_in_the_headers_switch_logging_in_off() {
    let authority = MockAuthorizationServer::start(AuthorizationFaults::default()).await;
    let mut config = config(&authority);
    config["mcpServers"]["vault"]["headers"] = json!({ "Authorization": "Bearer of-the-owner" });
    let gateway = configured(config).await;
    let client = gateway.client("modules").await;
    let refused = client.call("call", word()).await;
    assert_ne!(error_of(&refused)["code"], "ACCOUNT_REQUIRED", "{refused}");
    assert!(authority.count("/resource", "") + authority.count("/metadata", "") == 0);
    let run = gateway.run(&["account", "connect", "vault"]).await;
    assert_eq!(run.code, Some(1), "{run:?}");
}

#[tokio::test]
async fn we_say_who_we_are_only_where_others_can_reach_us() {
    let authority = MockAuthorizationServer::start(AuthorizationFaults::default()).await;
    let mut config = config(&authority);
    let gateway = configured(config.clone()).await;
    assert_eq!(gateway.send(gateway.request("GET", "/oauth/client.json")).await.status, 404);
    config["server"]["public_url"] = "https://tools.example".into();
    let gateway = configured(config).await;
    let reply = gateway.send(gateway.request("GET", "/oauth/client.json")).await;
    let document: Value = serde_json::from_str(reply.text()).expect("JSON");
    assert_eq!(document["client_id"], "https://tools.example/oauth/client.json");
    assert_eq!(document["redirect_uris"], json!(["https://tools.example/connect/callback"]));
}

/// Opens the page of a browser that has at most one cookie.
async fn visit(gateway: &TestGateway, path: &str, cookie: Option<&str>) -> HttpReply {
    let request = HttpRequest::new("GET", path);
    gateway
        .send(match cookie {
            Some(cookie) => request.header("cookie", cookie),
            None => request,
        })
        .await
}

/// Submits the form of `/connect/vault`.
async fn go_on(gateway: &TestGateway, proof: &str) -> HttpReply {
    gateway.send(HttpRequest::new("POST", "/connect/vault").form(format!("proof={proof}"))).await
}

/// Lets the authorization server consent, and returns the path that it sends the browser back to.
async fn consent(gateway: &TestGateway, away: &HttpReply) -> String {
    assert_eq!(away.status, 303, "{}", away.text());
    let sent = get(away.headers["location"].to_str().expect("text")).await;
    let back = sent.lines().find_map(|line| line.strip_prefix("location: ")).expect("sent back");
    let here = format!("http://{}", gateway.address());
    back.strip_prefix(&here).unwrap_or_else(|| panic!("{back} is not at {here}")).to_owned()
}

#[tokio::test]
async fn the_link_of_the_error_leads_through_the_login() {
    let authority = MockAuthorizationServer::start(AuthorizationFaults::default()).await;
    let mut config = config(&authority);
    config["auth"] = json!({ "mode": "token" });
    config["limits"] = json!({ "failed_logins": 0 });
    let gateway = configured(config).await;
    let client = gateway.client("modules").await;
    let refused = client.call("call", word()).await;
    let hint = error_of(&refused)["hint"].as_str().expect("a hint").to_owned();
    assert!(hint.contains(&format!("http://{}/connect/vault.", gateway.address())), "{hint}");

    let page = visit(&gateway, "/connect/vault", None).await;
    assert!(page.status == 200 && page.text().contains("Log in to vault"), "{}", page.text());
    let reader = token(&gateway, json!({ "name": "r", "scopes": ["read", "call"] })).await.secret;
    for proof in ["", "wrong", &*reader] {
        assert_eq!(go_on(&gateway, proof).await.status, 403, "{proof}");
    }
    assert_eq!(visit(&gateway, "/connect/nobody", None).await.status, 404);

    let away = go_on(&gateway, gateway.token()).await;
    let cookie = away.headers["set-cookie"].to_str().expect("text").split(';').next().expect("a pair").to_owned();
    let back = consent(&gateway, &away).await;
    for other in [None, Some("hikite_server_login=x")] {
        assert_eq!(visit(&gateway, &back, other).await.status, 403, "another browser completes nothing");
    }
    let done = visit(&gateway, &back, Some(&cookie)).await;
    assert!(done.status == 200 && done.text().contains("Logged in"), "{}", done.text());
    let_in(&gateway).await;
    assert_ne!(visit(&gateway, &back, Some(&cookie)).await.status, 200, "a login is completed once");
}

#[tokio::test]
async fn a_server_of_the_store_has_a_login_too() {
    let authority = MockAuthorizationServer::start(AuthorizationFaults::default()).await;
    let config = json!({ "server": { "surface": ["modules", "direct"] }, "egress": { "allow": ["127.0.0.0/8"] } });
    let gateway = configured(config).await;
    let form = json!({ "description": "d", "url": authority.url() }).to_string();
    let put = gateway.send(gateway.request("PUT", "/v1/upstreams/vault").json(form)).await;
    assert_eq!(put.status, 201, "{}", put.text());
    let visited = visit(&gateway, "/connect/vault", None).await;
    assert_eq!(visited.status, 303, "a visitor who is not logged in is sent to the login first");
    let said = log_in(&gateway).await;
    assert!(said.contains("Logged in to `vault`: 1 tools."), "{said}");
    let_in(&gateway).await;
}
