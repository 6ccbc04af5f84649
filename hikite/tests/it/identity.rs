//! Identity: tokens and projects on every interface, and what each of them permits.

use std::time::{Duration, Instant};

use hikite_testkit::collector::{CollectorBehavior, OtlpCollector};
use hikite_testkit::gateway::{
    ClientOptions, HttpReply, HttpRequest, LIMIT, SessionClient, StatelessClient, StatelessEnvelope, TestGateway,
    eventually,
};
use serde_json::{Value, json};

use crate::rest::{get, post, refused};
use crate::{PROGRAMS, configured, http_fixture};

const NO_PROJECT: &str = "There is no such project.";

/// A token and its secret.
pub(crate) struct IssuedToken {
    pub(crate) id: String,
    pub(crate) secret: String,
}

pub(crate) async fn token(gateway: &TestGateway, form: Value) -> IssuedToken {
    let reply = post(gateway, "/v1/tokens", &form).await;
    let body = reply.value();
    assert_eq!(reply.status, 201, "{body}");
    let text = |name: &str| body[name].as_str().expect("text").to_owned();
    IssuedToken { id: text("id"), secret: text("secret") }
}

pub(crate) async fn project(gateway: &TestGateway, name: &str, mut form: Value) {
    form["name"] = name.into();
    let reply = post(gateway, "/v1/projects", &form).await;
    assert_eq!(reply.status, 201, "{}", reply.text());
}

/// Starts the fixture behind two projects: `work` has no `mirror`.
async fn two_projects() -> (hikite_testkit::fixture::Fixture, TestGateway) {
    let (fixture, web) = http_fixture().await;
    let gateway = configured(json!({ "mcpServers": { "web": web } })).await;
    project(&gateway, "work", json!({ "permissions": { "deny": ["web:mirror"] } })).await;
    project(&gateway, "home", json!({})).await;
    (fixture, gateway)
}

pub(crate) fn as_bearer(secret: &str, method: &str, path: &str) -> HttpRequest {
    HttpRequest::new(method, path).header("authorization", &format!("Bearer {secret}"))
}

pub(crate) async fn client(gateway: &TestGateway, path: &str, secret: &str) -> SessionClient {
    SessionClient::over_http(gateway.address(), path, Some(secret), ClientOptions::default()).await
}

async fn has_mirror(client: &SessionClient) -> bool {
    client.names("tools/list").await.iter().any(|name| name == "mirror")
}

/// Sends an MCP message without identifying headers.
async fn send_bare(gateway: &TestGateway, session: Option<&str>, body: &Value) -> HttpReply {
    let mut request = HttpRequest::new("POST", "/mcp").json(body.to_string());
    if let Some(session) = session {
        request = request.header("mcp-session-id", session);
    }
    gateway.send(request).await
}

fn initialize(meta: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": { "_meta": meta,
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } } })
}

fn call(tool: &str, meta: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call",
        "params": { "name": tool, "arguments": { "text": "hi" }, "_meta": meta } })
}

#[tokio::test]
async fn a_token_sees_its_project_and_says_who_it_is() {
    let (_fixture, gateway) = two_projects().await;
    let made = token(&gateway, json!({ "name": "ci", "project": "work", "expiresIn": 3600 })).await;
    let me = gateway.send(as_bearer(&made.secret, "GET", "/v1/me")).await.value();
    assert_eq!(
        (&me["subject"], &me["project"], &me["scopes"], &me["token"]),
        (&json!(format!("token:{}", made.id)), &json!("work"), &json!(["read", "call"]), &json!(made.id))
    );
    crate::rest::is_moment(&me["expiresAt"]);
    let owner = get(&gateway, "/v1/me").await.value();
    assert_eq!(
        (&owner["subject"], &owner["project"], &owner["scopes"]),
        (&json!("owner"), &Value::Null, &json!(["read", "call", "admin"]))
    );
    for path in ["/mcp?surface=direct", "/mcp/work?surface=direct"] {
        let client = client(&gateway, path, &made.secret).await;
        assert!(!has_mirror(&client).await, "{path}");
        assert_eq!(client.text("echo", json!({ "text": "hi" })).await, "hi");
        let hidden = client.request("tools/call", json!({ "name": "mirror" })).await.expect_err("hidden");
        let absent = client.request("tools/call", json!({ "name": "mirro_" })).await.expect_err("absent");
        assert_eq!(hidden["code"], absent["code"], "{hidden} {absent}");
    }
    let rest = gateway.send(as_bearer(&made.secret, "GET", "/v1/tools/web:mirror")).await;
    refused(&rest, 404, "TOOL_NOT_FOUND", "Tool not found: web:mirror");
    assert!(has_mirror(&gateway.client("direct").await).await, "the owner is in no project");
}

#[tokio::test]
async fn an_unknown_project_and_anothers_look_the_same() {
    let (_fixture, gateway) = two_projects().await;
    let made = token(&gateway, json!({ "name": "ci", "project": "work" })).await;
    let body = |reply: &HttpReply| {
        let mut body = reply.value();
        for own in ["requestId", "timestamp"] {
            body[own].take();
        }
        (reply.status, body)
    };
    let ask = |secret: &str, path: &str| as_bearer(secret, "POST", path).json(initialize(&json!({})).to_string());
    let another = gateway.send(ask(&made.secret, "/mcp/home")).await;
    refused(&another, 404, "NOT_FOUND", NO_PROJECT);
    let unknown = gateway.send(ask(&made.secret, "/mcp/nowhere")).await;
    assert_eq!(body(&another), body(&unknown));
    assert_eq!(body(&gateway.send(ask(gateway.token(), "/mcp/nowhere")).await), body(&unknown));
    for method in ["GET", "DELETE"] {
        let unknown = gateway.send(as_bearer(&made.secret, method, "/mcp/nowhere")).await;
        let another = gateway.send(as_bearer(&made.secret, method, "/mcp/home")).await;
        assert_eq!((another.status, body(&another)), (404, body(&unknown)), "{method}");
    }
    for named in ["home", "nowhere"] {
        let header = as_bearer(&made.secret, "GET", "/v1/tools").header("hikite-project", named);
        assert_eq!(body(&gateway.send(header).await), body(&unknown), "{named}");
        let session = client(&gateway, "/mcp?surface=direct", &made.secret).await;
        let said = call("echo", &json!({ "projectId": named }));
        let request = as_bearer(&made.secret, "POST", "/mcp").header("mcp-session-id", &session.session());
        assert_eq!(body(&gateway.send(request.json(said.to_string())).await), body(&unknown), "{named}");
    }
    assert_eq!(gateway.send(HttpRequest::new("POST", "/mcp/work")).await.status, 401, "who asks comes first");
    assert_eq!(gateway.send(as_bearer(gateway.token(), "PUT", "/mcp/work")).await.status, 405);
    assert_eq!(gateway.send(as_bearer(gateway.token(), "POST", "/mcp/work/more")).await.status, 404);
}

#[tokio::test]
async fn the_owner_may_work_in_any_project_for_once() {
    let (_fixture, gateway) = two_projects().await;
    let client = gateway.client("direct").await;
    assert!(has_mirror(&client).await);
    let ask = |headers: &[(&str, &str)], body: Value| {
        let request = gateway.request("POST", "/mcp").header("mcp-session-id", &client.session());
        let request = headers.iter().fold(request, |request, (name, value)| request.header(name, value));
        gateway.send(request.json(body.to_string()))
    };
    let in_work = [("hikite-project", "work")];
    let listed = ask(&in_work, json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" })).await;
    assert!(!listed.text().contains("\"mirror\"") && listed.text().contains("\"echo\""), "{}", listed.text());
    for (headers, meta) in [(&in_work[..], json!({})), (&[], json!({ "projectId": "work" }))] {
        let reply = ask(headers, call("mirror", &meta)).await;
        assert!(reply.value()["error"].is_object(), "{}", reply.text());
    }
    for none in [json!({ "projectId": "" }), json!({ "projectId": "__unassigned__" }), json!({ "projectId": null })] {
        let mirrored = ask(&[], call("mirror", &none)).await;
        assert!(!mirrored.text().contains("projectId"), "{}", mirrored.text());
        assert!(mirrored.value()["result"].is_object(), "{}", mirrored.text());
    }
    assert!(has_mirror(&client).await, "each was for its own request");
    let admin = gateway.send(gateway.request("GET", "/v1/tokens").header("hikite-project", "work")).await;
    refused(&admin, 403, "AUTHORIZATION_ERROR", "Only an admin may do this.");
}

#[tokio::test]
async fn what_was_begun_in_a_project_stays_there() {
    let (_fixture, gateway) = two_projects().await;
    let begun = client(&gateway, "/mcp/work?surface=direct", gateway.token()).await;
    let other = token(&gateway, json!({ "name": "ci", "project": "work" })).await;
    for (secret, path) in [
        (gateway.token(), "/mcp"),
        (gateway.token(), "/mcp/home"),
        (other.secret.as_str(), "/mcp"),
        (other.secret.as_str(), "/mcp/work"),
    ] {
        let request = as_bearer(secret, "POST", path).header("mcp-session-id", &begun.session());
        let reply = gateway.send(request.json(call("echo", &json!({})).to_string())).await;
        assert_eq!(reply.status, 404, "{path} {}", reply.text());
    }
    assert_eq!(begun.text("echo", json!({ "text": "hi" })).await, "hi");
}

#[tokio::test]
async fn a_message_may_say_itself_who_sends_it() {
    let (fixture, gateway) = two_projects().await;
    let made = token(&gateway, json!({ "name": "ci", "project": "home" })).await;
    let said = json!({ "token": made.secret, "projectId": "home", "kept": 1 });
    let begun = send_bare(&gateway, None, &initialize(&said)).await;
    assert_eq!(begun.status, 200, "{}", begun.text());
    let session = begun.headers["mcp-session-id"].to_str().expect("text");
    let mirrored = send_bare(&gateway, Some(session), &call("mirror", &said)).await;
    let params = mirrored.value()["result"]["content"][0]["text"].as_str().expect("text").to_owned();
    let meta: Value = serde_json::from_str::<Value>(&params).expect("JSON")["_meta"].clone();
    assert_eq!((&meta["kept"], &meta["token"], &meta["projectId"]), (&json!(1), &Value::Null, &Value::Null));
    // Without other members, `_meta` is removed.
    let alone = json!({ "token": made.secret });
    send_bare(&gateway, Some(session), &call("echo", &alone)).await;
    let refused = [
        send_bare(&gateway, Some(session), &call("echo", &json!({}))).await,
        send_bare(&gateway, Some(session), &call("echo", &json!({ "token": "hk_wrong" }))).await,
        send_bare(&gateway, Some(session), &call("echo", &json!({ "token": 5 }))).await,
        send_bare(&gateway, None, &json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await,
        gateway.send(HttpRequest::new("GET", "/mcp").header("mcp-session-id", session)).await,
        gateway.send(HttpRequest::new("POST", "/v1/tools/call").json(call("echo", &said).to_string())).await,
    ];
    for (at, reply) in refused.iter().enumerate() {
        let challenge = reply.headers["www-authenticate"].to_str().expect("text");
        assert!(reply.status == 401 && challenge.starts_with("Bearer realm=\"hikite\""), "{at} {challenge}");
    }
    let large = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping",
        "params": { "_meta": alone, "text": "x".repeat(1_100_000) } });
    assert_eq!(send_bare(&gateway, Some(session), &large).await.status, 401, "too much of nobody");
    let both = as_bearer(gateway.token(), "POST", "/mcp").json(call("echo", &alone).to_string());
    assert_eq!(gateway.send(both).await.status, 400, "a session is needed first");
    let seen: Vec<String> = fixture.received().into_iter().filter_map(|message| message.params).collect();
    assert!(seen.iter().all(|params| !params.contains(&made.secret) && !params.contains("projectId")));
}

#[tokio::test]
async fn a_bearer_and_another_token_in_the_message_are_refused() {
    let (_fixture, gateway) = two_projects().await;
    let made = token(&gateway, json!({ "name": "ci", "project": "home" })).await;
    let client = client(&gateway, "/mcp?surface=direct", &made.secret).await;
    for (meta, status) in [
        (json!({ "token": made.secret }), 200),
        (json!({ "token": gateway.token() }), 401),
        (json!({ "token": "hk_wrong" }), 401),
        (json!({ "token": "" }), 401),
        (json!({ "token": null }), 200),
    ] {
        for method in ["tools/call", "notifications/cancelled"] {
            let mut body = call("echo", &meta);
            body["method"] = method.into();
            if method != "tools/call" {
                body.as_object_mut().expect("an object").remove("id");
            }
            let request = as_bearer(&made.secret, "POST", "/mcp").header("mcp-session-id", &client.session());
            let reply = gateway.send(request.json(body.to_string())).await;
            let fine = if method == "tools/call" { 200 } else { 202 };
            assert_eq!(reply.status, if status == 200 { fine } else { 401 }, "{method} {meta}");
        }
    }
}

#[tokio::test]
async fn it_is_the_same_without_sessions() {
    let (_fixture, gateway) = two_projects().await;
    let made = token(&gateway, json!({ "name": "ci", "project": "work" })).await;
    let at = |path: &str, secret: Option<&str>, envelope: StatelessEnvelope| {
        StatelessClient::over_http(gateway.address(), path, secret, envelope)
    };
    let path = "/mcp?surface=direct";
    let said = StatelessEnvelope::default().meta("token", made.secret.clone()).meta("projectId", "work");
    for client in [
        at(path, Some(&made.secret), StatelessEnvelope::default()),
        at("/mcp/work?surface=direct", Some(gateway.token()), StatelessEnvelope::default()),
        at(path, Some(gateway.token()), StatelessEnvelope::default().meta("projectId", "work")),
        at(path, None, said.clone()),
    ] {
        assert_eq!(client.text("echo", json!({ "text": "hi" })).await, "hi");
        assert!(client.call("mirror", json!({})).await.answer.is_err());
    }
    let home = token(&gateway, json!({ "name": "ci", "project": "home" })).await;
    let said = StatelessEnvelope::default().meta("token", home.secret.clone());
    let mirrored = at(path, None, said.clone()).text("mirror", json!({})).await;
    assert!(!mirrored.contains(&home.secret) && !mirrored.contains("\"token\""), "{mirrored}");
    for (secret, envelope, status) in [
        (None, StatelessEnvelope::default(), 401),
        (None, StatelessEnvelope::default().meta("token", "hk_wrong"), 401),
        (Some(gateway.token()), said.clone(), 401),
        (None, said.meta("projectId", "work"), 404),
    ] {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call" });
        let outcome = at(path, secret, envelope.unvalidated()).begin("tools/call", body).outcome().await;
        assert_eq!(outcome.status, Some(status), "{}", outcome.text);
    }
}

#[tokio::test]
async fn on_a_pipe_a_token_makes_a_message_its_holders() {
    let (_fixture, gateway) = two_projects().await;
    let made = token(&gateway, json!({ "name": "ci", "project": "work" })).await;
    let folder = gateway.folder().path();
    let client = SessionClient::over_stdio(&PROGRAMS, folder, &["--surface", "direct"], ClientOptions::default()).await;
    let ask = async |meta: Value| client.request("tools/call", call("mirror", &meta)["params"].clone()).await;
    let mirrored = ask(json!({ "kept": 1 })).await.expect("the owner's pipe");
    assert!(mirrored["content"][0]["text"].as_str().expect("text").contains("kept"));
    assert_eq!(ask(json!({ "token": made.secret })).await.expect_err("there is none in its project")["code"], -32602);
    assert!(ask(json!({ "projectId": "work" })).await.is_err());
    let unknown = ask(json!({ "token": "hk_wrong" })).await.expect_err("refused");
    assert_eq!((&unknown["code"], &unknown["data"]["code"]), (&json!(-32001), &json!("AUTHENTICATION_ERROR")));
    let elsewhere = ask(json!({ "token": made.secret, "projectId": "home" })).await.expect_err("refused");
    let nowhere = ask(json!({ "token": made.secret, "projectId": "nowhere" })).await.expect_err("refused");
    assert_eq!((&elsewhere, &elsewhere["message"]), (&nowhere, &json!(NO_PROJECT)));
    let envelope = StatelessEnvelope::default().meta("token", "hk_wrong");
    let alone = StatelessClient::over_stdio(&PROGRAMS, folder, &["--surface", "direct"], envelope);
    assert_eq!(alone.call("echo", json!({ "text": "hi" })).await.code(), -32001);
    let alone = alone.with_envelope(StatelessEnvelope::default().meta("token", made.secret.clone()));
    assert_eq!(alone.text("echo", json!({ "text": "hi" })).await, "hi");
}

#[tokio::test]
async fn a_token_that_is_taken_back_opens_nothing_here_or_elsewhere() {
    let (_fixture, gateway) = two_projects().await;
    let made = token(&gateway, json!({ "name": "ci", "project": "work" })).await;
    let client = client(&gateway, "/mcp?surface=direct", &made.secret).await;
    assert_eq!(client.text("echo", json!({ "text": "hi" })).await, "hi");
    let gone = gateway.send(gateway.request("DELETE", &format!("/v1/tokens/{}", made.id))).await;
    assert_eq!(gone.status, 204);
    let again = || gateway.send(as_bearer(&made.secret, "GET", "/v1/me"));
    assert_eq!(again().await.status, 401, "at once");
    let gone = gateway.send(gateway.request("DELETE", &format!("/v1/tokens/{}", made.id))).await;
    refused(&gone, 404, "NOT_FOUND", &format!("There is no token `{}`.", made.id));
    // From a terminal, which is another process.
    let run =
        gateway.run(&["token", "create", "--name", "cli", "--project", "work", "--expires", "1h", "--json"]).await;
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let made: Value = serde_json::from_str(&run.stdout).expect("JSON");
    let (id, secret) = (made["id"].as_str().expect("text"), made["secret"].as_str().expect("text"));
    let status = async || gateway.send(as_bearer(secret, "GET", "/v1/me")).await.status;
    let becomes = async |wanted: u16| {
        let begin = Instant::now();
        while status().await != wanted {
            assert!(begin.elapsed() < Duration::from_secs(60), "it does not become {wanted}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        begin.elapsed()
    };
    becomes(200).await;
    let run = gateway.run(&["token", "revoke", id]).await;
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let took = becomes(401).await;
    assert!(took < Duration::from_secs(2), "{took:?}");
}

#[tokio::test]
async fn an_expired_token_and_one_of_a_deleted_project_open_nothing() {
    let (_fixture, gateway) = two_projects().await;
    let brief = token(&gateway, json!({ "name": "brief", "expiresIn": 3 })).await;
    let of_work = token(&gateway, json!({ "name": "ci", "project": "work" })).await;
    let status = async |made: &IssuedToken| gateway.send(as_bearer(&made.secret, "GET", "/v1/me")).await.status;
    assert_eq!((status(&brief).await, status(&of_work).await), (200, 200));
    assert_eq!(gateway.send(gateway.request("DELETE", "/v1/projects/work")).await.status, 204);
    assert_eq!(status(&of_work).await, 401);
    let begin = Instant::now();
    while status(&brief).await != 401 {
        assert!(begin.elapsed() < LIMIT, "it does not expire");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    project(&gateway, "work", json!({})).await;
    assert_eq!(status(&of_work).await, 401, "it was for another of that name");
}

#[tokio::test]
async fn scopes_hold_on_every_way() {
    let (_fixture, gateway) = two_projects().await;
    let reader = token(&gateway, json!({ "name": "r", "scopes": ["read"] })).await;
    let admin = token(&gateway, json!({ "name": "a", "scopes": ["read", "admin"] })).await;
    let call = json!({ "name": "web:echo", "parameters": { "text": "hi" } });
    for made in [&reader, &admin] {
        let request = as_bearer(&made.secret, "POST", "/v1/tools/call").json(call.to_string());
        assert_eq!(gateway.send(request).await.status, 403);
        assert_eq!(gateway.send(as_bearer(&made.secret, "GET", "/v1/tools")).await.status, 200);
    }
    for (path, body) in [("/v1/projects", json!({ "name": "p" })), ("/v1/tokens", json!({ "name": "t" }))] {
        for (made, status) in [(&reader, 403), (&admin, 201)] {
            let request = as_bearer(&made.secret, "POST", path).json(body.to_string());
            assert_eq!(gateway.send(request).await.status, status, "{path}");
        }
        assert_eq!(gateway.send(as_bearer(&reader.secret, "GET", path)).await.status, 403, "{path}");
    }
    let bound = post(&gateway, "/v1/tokens", &json!({ "name": "x", "project": "work", "scopes": ["admin"] })).await;
    assert_eq!((bound.status, &bound.value()["details"][0]["pointer"]), (400, &json!("/scopes")));
    assert_eq!(gateway.send(as_bearer(&reader.secret, "GET", "/metrics")).await.status, 403);
    assert_eq!(gateway.send(as_bearer(&admin.secret, "GET", "/metrics")).await.status, 200);
}

#[tokio::test]
async fn too_many_wrong_tokens_are_answered_later() {
    let config = json!({ "limits": { "failed_logins": 3 }, "auth": { "token": "a-long-enough-token-of-mine" } });
    let gateway = configured(config).await;
    let status = async |secret: &str| {
        let reply = gateway.send(as_bearer(secret, "GET", "/v1/me")).await;
        (reply.status, reply.headers.get("retry-after").map(|wait| wait.to_str().expect("text").to_owned()))
    };
    let own = "a-long-enough-token-of-mine";
    for _ in 0..5 {
        assert_eq!(status(own).await.0, 200, "right ones do not count");
        assert_eq!(gateway.send(HttpRequest::new("GET", "/v1/me")).await.status, 401, "nor does none at all");
    }
    let request = as_bearer(own, "POST", "/v1/tokens").json(json!({ "name": "t" }).to_string());
    let made = gateway.send(request).await.value();
    for _ in 0..3 {
        assert_eq!(status("wrong").await.0, 401);
    }
    for secret in ["wrong", "hk_wrong", own] {
        let (status, wait) = status(secret).await;
        assert_eq!(status, 429, "{secret}");
        assert!((1..=60).contains(&wait.expect("a wait").parse::<u32>().expect("seconds")));
    }
    assert_eq!(status(made["secret"].as_str().expect("text")).await.0, 200, "nobody guesses these");
    assert_eq!(gateway.send(HttpRequest::new("GET", "/health")).await.status, 200);
}

#[tokio::test]
async fn a_secret_is_shown_once_and_stands_nowhere() {
    let collector = OtlpCollector::start(CollectorBehavior::Accept).await;
    let (fixture, web) = http_fixture().await;
    let otlp = json!({ "endpoint": collector.url(), "interval": "200ms", "timeout": "1s" });
    let config = json!({ "mcpServers": { "web": web }, "telemetry": { "otlp": otlp, "log": { "level": "trace" } } });
    let gateway = configured(config).await;
    let made = token(&gateway, json!({ "name": "canary" })).await;
    let canary = "hk_canary0000000000000000000000000000000000000x";
    let client = client(&gateway, "/mcp?surface=direct", &made.secret).await;
    let mut shown = Vec::new();
    for secret in [made.secret.as_str(), canary] {
        for meta in [json!({ "token": secret }), json!({ "projectId": secret, "token": secret })] {
            shown.push(send_bare(&gateway, Some(&client.session()), &call("mirror", &meta)).await.text().to_owned());
            // A JSON escape spells the same name.
            let text = call("mirror", &meta).to_string().replace("\"token\"", "\"\\u0074oken\"");
            let request = as_bearer(&made.secret, "POST", "/mcp").header("mcp-session-id", &client.session());
            shown.push(gateway.send(request.json(text)).await.text().to_owned());
            let envelope = StatelessEnvelope::default().meta("token", secret).unvalidated();
            let alone = StatelessClient::over_http(gateway.address(), "/mcp?surface=direct", None, envelope);
            shown.push(alone.begin("tools/call", call("mirror", &json!({}))["params"].clone()).outcome().await.text);
        }
        let batch = SessionClient::over_http(
            gateway.address(),
            "/mcp?surface=direct",
            Some(&made.secret),
            ClientOptions { revision: "2025-03-26", ..ClientOptions::default() },
        )
        .await;
        let request = as_bearer(&made.secret, "POST", "/mcp").header("mcp-session-id", &batch.session());
        let body = json!([call("mirror", &json!({ "token": secret })), call("echo", &json!({}))]);
        let reply = gateway.send(request.json(body.to_string())).await;
        assert_eq!(reply.status, 200, "{}", reply.text());
        shown.push(reply.text().to_owned());
    }
    shown.push(get(&gateway, "/v1/tokens").await.text().to_owned());
    shown.push(gateway.run(&["token", "list"]).await.stdout);
    shown.push(gateway.run(&["token", "list", "--json"]).await.stdout);
    assert!(eventually(|| !collector.spans().is_empty()).await);
    shown.push(gateway.stderr());
    shown.extend(fixture.received().into_iter().filter_map(|message| message.params));
    let data = gateway.folder().path().join("data");
    for file in std::fs::read_dir(data).expect("a folder").flatten() {
        shown.push(String::from_utf8_lossy(&std::fs::read(file.path()).expect("a file")).into_owned());
    }
    for secret in [made.secret.as_str(), canary] {
        for text in &shown {
            assert!(!text.contains(secret), "{text}");
        }
        assert!(!collector.has_received(secret));
    }
}

#[tokio::test]
async fn what_the_file_names_is_read_only_and_wins() {
    let projects = json!({ "work": { "description": "of the file", "optimization": null } });
    let gateway = configured(json!({})).await;
    project(&gateway, "work", json!({ "description": "of the store" })).await;
    project(&gateway, "home", json!({})).await;
    let gateway = gateway.restart(json!({ "projects": projects })).await;
    gateway.wait_for_stderr("the config file defines a project that is also in the store").await;
    let shown = get(&gateway, "/v1/projects/work").await.value();
    assert_eq!((&shown["description"], &shown["managedByFile"]), (&json!("of the file"), &json!(true)));
    let listed = get(&gateway, "/v1/projects").await.value();
    assert_eq!(listed["projects"].as_array().map(Vec::len), Some(2));
    let message = "The project `work` is managed by the config file.";
    let change = gateway.request("PATCH", "/v1/projects/work").json("{}");
    refused(&gateway.send(change).await, 409, "CONFLICT", message);
    let delete = gateway.request("DELETE", "/v1/projects/work");
    refused(&gateway.send(delete).await, 409, "CONFLICT", message);
    refused(&post(&gateway, "/v1/projects", &json!({ "name": "work" })).await, 409, "CONFLICT", message);
    let change = gateway.request("PATCH", "/v1/projects/home").json(json!({ "optimization": "bm25" }).to_string());
    assert_eq!(gateway.send(change).await.value()["optimization"], "bm25");
    let wrong = gateway.request("PATCH", "/v1/projects/home").json(json!({ "optimisation": 1 }).to_string());
    assert_eq!(gateway.send(wrong).await.status, 400);
    let gone = get(&gateway, "/v1/projects/nowhere").await;
    refused(&gone, 404, "NOT_FOUND", "There is no project `nowhere`.");
}

#[tokio::test]
async fn projects_and_tokens_are_made_from_a_terminal() {
    let gateway = configured(json!({ "projects": { "fixed": { "description": "of the file" } } })).await;
    let run = async |arguments: &[&str]| {
        let run = gateway.run(arguments).await;
        assert_eq!(run.code, Some(0), "{arguments:?}: {}", run.stderr);
        run
    };
    run(&[
        "project",
        "create",
        "work",
        "--description",
        "d",
        "--deny",
        "web:*",
        "--member",
        "alice",
        "--optimization",
        "off",
    ])
    .await;
    let shown: Value = serde_json::from_str(&run(&["project", "show", "work", "--json"]).await.stdout).expect("JSON");
    assert_eq!((&shown["members"], &shown["optimization"]), (&json!(["alice"]), &Value::Null));
    assert_eq!(shown["permissions"]["deny"], json!(["web:*"]));
    run(&[
        "project",
        "set",
        "work",
        "--allow",
        "web",
        "--surface",
        "direct",
        "--clear",
        "member",
        "--clear",
        "optimization",
    ])
    .await;
    let shown: Value = serde_json::from_str(&run(&["project", "show", "work", "--json"]).await.stdout).expect("JSON");
    assert_eq!(shown["permissions"], json!({ "deny": ["web:*"], "allow": ["web"] }));
    assert_eq!(
        (&shown["members"], &shown["surface"], shown.get("optimization")),
        (&json!([]), &json!(["direct"]), None)
    );
    let listed: Value = serde_json::from_str(&run(&["project", "list", "--json"]).await.stdout).expect("JSON");
    assert_eq!(listed.as_array().map(Vec::len), Some(2));
    assert!(run(&["project", "list"]).await.stdout.contains("(file) of the file"));
    let made =
        run(&["token", "create", "--name", "ci", "--project", "work", "--scope", "read", "--expires", "30d"]).await;
    let secret = made.stdout.trim();
    assert!(secret.starts_with("hk_") && secret.len() == 46, "{secret}");
    assert!(made.stderr.contains(&format!("--header \"Authorization: Bearer {secret}\"")), "{}", made.stderr);
    assert!(!made.stderr.contains("Claude Desktop"), "a program that is started needs no token");
    let listed = run(&["token", "list"]).await.stdout;
    assert!(listed.contains("work") && listed.contains("read") && !listed.contains(secret), "{listed}");
    run(&["project", "delete", "work"]).await;
    assert_eq!(run(&["token", "list", "--json"]).await.stdout.trim(), "[]");
}

#[tokio::test]
async fn what_cannot_be_done_from_a_terminal_says_why() {
    let gateway = configured(json!({ "projects": { "fixed": {} } })).await;
    for (arguments, said) in [
        (&["project", "delete", "fixed"][..], "managed by the config file"),
        (&["project", "create", "fixed"], "managed by the config file"),
        (&["project", "create", "x", "--allow", "/(/"], "/permissions/allow/0"),
        (&["token", "create", "--project", "none"], "There is no project `none`."),
        (&["token", "revoke", "tok_none"], "There is no token `tok_none`."),
        (&["token", "create", "--scope", "write"], "`read`, `call`, `admin`"),
    ] {
        let run = gateway.run(arguments).await;
        assert_eq!(run.code, Some(1), "{arguments:?}");
        assert!(run.stderr.contains(said), "{arguments:?}: {}", run.stderr);
    }
}
