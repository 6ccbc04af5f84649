//! A remote server that requires a login, behind the real program: calls fail, somebody logs in from a terminal, and
//! from then on all calls succeed, also after a restart.

use std::process::Stdio;

use hikite_testkit::authorization_server::{AuthorizationFaults, MockAuthorizationServer};
use hikite_testkit::gateway::{LIMIT, TestGateway};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

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
    command.args(["account", "connect", "vault"]).stdin(Stdio::null());
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
    assert!(error["hint"].as_str().expect("a hint").contains("hikite account connect vault"), "{error}");
    let modules = gateway.send(gateway.request("GET", "/v1/modules")).await;
    assert!(modules.text().contains("needs_login"), "{}", modules.text());

    let said = log_in(&gateway).await;
    assert!(said.contains("Logged in to `vault`: 1 tools."), "{said}");
    let_in(&gateway).await;
    let again = gateway.run(&["account", "connect", "vault"]).await;
    assert!(again.code == Some(0) && again.stderr.contains("already"), "{again:?}");

    let token = gateway.token().to_owned();
    let gateway = gateway.restart(config(&authority)).await;
    let_in(&gateway).await;
    authority.expire();
    let client = gateway.client("direct").await;
    assert_eq!(client.text("secret_word", json!({})).await, "open sesame", "renewed by itself");
    assert_eq!(authority.count("/token", "grant_type=authorization_code"), 1);
    assert!(!authority.was_replayed());

    for request in authority.seen() {
        assert!(!format!("{request:?}").contains(&token), "what our clients show us goes nowhere: {request:?}");
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
