//! A node that is cut off from the store while others are not: it continues for `store.max_staleness`, then refuses
//! what may have been revoked, and recovers by itself.

use std::time::Instant;

use hikite_testkit::fault::{DirectionFault, FaultProxy, ProxyFault};
use hikite_testkit::gateway::LIMIT;
use hikite_testkit::postgres::PostgresServer;
use serde_json::json;

use super::*;

/// Timeout long enough for machines that stall for seconds.
const IN_THE_END: Duration = Duration::from_secs(90);

/// Starts two nodes, of which the second reaches the database through a proxy and may have `store.max_staleness`.
async fn divided(max_staleness: Option<&str>) -> (PostgresServer, FaultProxy, Cluster) {
    let database = PostgresServer::start_on_tcp();
    let address = database.address().expect("a port");
    let proxy = FaultProxy::start(address).await.expect("a proxy");
    let store = database.database();
    let through = store.replace(&address.to_string(), &proxy.address().to_string());
    // A shared server, which is not the subject here.
    let more = json!({ "mcpServers": { "a": stdio(&[]) } });
    let mut cluster = Cluster::on(1, store.clone(), more).await;
    cluster.more["store"] = json!({ "url": through });
    if let Some(span) = max_staleness {
        cluster.more["store"]["max_staleness"] = span.into();
    }
    cluster.add(through).await;
    (database, proxy, cluster)
}

/// Returns a fault that holds back all data and closes nothing.
fn black_hole() -> ProxyFault {
    let lane = DirectionFault { stall: true, ..DirectionFault::default() };
    ProxyFault { to_server: lane, to_client: lane, ..ProxyFault::default() }
}

async fn token(cluster: &Cluster, name: &str) -> (String, String) {
    let form = json!({ "name": name }).to_string();
    let made = cluster.send(0, HttpRequest::new("POST", "/v1/tokens").json(form)).await;
    assert_eq!(made.status, 201, "{}", made.text());
    let text = |member: &str| made.value()[member].as_str().expect("text").to_owned();
    (text("id"), text("secret"))
}

fn tools(secret: &str) -> HttpRequest {
    HttpRequest::new("GET", "/v1/tools").header("authorization", &format!("Bearer {secret}"))
}

/// Polls until the response has this status.
async fn becomes(cluster: &Cluster, node: usize, request: &HttpRequest, status: u16) -> HttpReply {
    let begin = Instant::now();
    loop {
        match request.clone().attempt(cluster.address(node), LIMIT).await {
            Ok(reply) if reply.status == status => return reply,
            other => assert!(begin.elapsed() < IN_THE_END, "{other:?}\n{}", cluster.nodes[node].stderr()),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Returns the value of a metric without labels.
async fn metric(cluster: &Cluster, node: usize, name: &str) -> String {
    let reply = cluster.send(node, HttpRequest::new("GET", "/metrics")).await;
    let value = reply.text().lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    value.unwrap_or_else(|| panic!("no {name}: {}", reply.text())).to_owned()
}

async fn cut_off(fault: ProxyFault, is_sudden: bool, max_staleness: Option<&str>) {
    let (_database, proxy, cluster) = divided(max_staleness).await;
    let ((id, revoked), (_, good)) = (token(&cluster, "revoked").await, token(&cluster, "good").await);
    for secret in [&revoked, &good] {
        becomes(&cluster, 1, &tools(secret), 200).await;
    }
    let hello = SessionClient::over_http(cluster.address(1), "/mcp", Some(&revoked), ClientOptions::default()).await;
    let session = hello.session();
    let listen = HttpRequest::new("GET", "/mcp").header("authorization", &format!("Bearer {revoked}"));
    let listen = listen.header("mcp-session-id", &session).header("accept", "text/event-stream");
    let mut stream = listen.clone().open(cluster.address(1)).await.events();

    proxy.set(fault).await;
    if is_sudden {
        proxy.cut();
    }
    let gone = cluster.send(0, HttpRequest::new("DELETE", &format!("/v1/tokens/{id}"))).await;
    assert_eq!(gone.status, 204);
    refuses(&cluster, &revoked, &session).await;
    // Unknown which ones were revoked.
    assert_eq!(tools(&good).send(cluster.address(1)).await.status, 503);
    assert_eq!(listen.send(cluster.address(1)).await.status, 503);
    let ended = tokio::time::timeout(IN_THE_END, async { while stream.next().await.is_some() {} }).await;
    assert!(ended.is_ok(), "a stream of somebody who may have been revoked ends");
    is_told(&cluster).await;
    assert_eq!(HttpRequest::new("GET", "/readyz").send(cluster.address(0)).await.status, 200, "the other goes on");

    proxy.set(ProxyFault::default()).await;
    becomes(&cluster, 1, &HttpRequest::new("GET", "/readyz"), 200).await;
    becomes(&cluster, 1, &tools(&good), 200).await;
    assert_eq!(tools(&revoked).send(cluster.address(1)).await.status, 401, "revoked while it was away");
    assert_eq!(metric(&cluster, 1, "hikite_store_up").await, "1");
    assert_eq!(metric(&cluster, 1, "hikite_nodes").await, "2");
    assert_eq!(metric(&cluster, 1, "hikite_config_reloads_failed_total").await, "0");
    cluster.nodes[1].wait_for_stderr("the store responds again").await;
}

/// Asserts that the cut-off node refuses a token and its session, with a reason and `Retry-After`. The owner is known
/// without the store; projects and sessions are not.
async fn refuses(cluster: &Cluster, secret: &str, session: &str) {
    let refused = becomes(cluster, 1, &tools(secret), 503).await;
    assert!(refused.headers.contains_key("retry-after"), "{:?}", refused.headers);
    let said = refused.value();
    let has = |member: &str, text: &str| said[member].as_str().is_some_and(|said| said.contains(text));
    assert!(has("error", "The store has not responded for") && has("hint", "another node"), "{said}");
    let call = in_session(session, "echo", &json!({ "text": "x" }));
    let call = call.header("authorization", &format!("Bearer {secret}"));
    assert_eq!(call.send(cluster.address(1)).await.status, 503);
    assert_eq!(cluster.send(1, HttpRequest::new("GET", "/v1/tools")).await.status, 200);
    let within = HttpRequest::new("GET", "/v1/tools").header("hikite-project", "x");
    assert_eq!(cluster.send(1, within).await.status, 503);
    let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
    assert_eq!(post(&list).header("mcp-session-id", session).send(cluster.address(1)).await.status, 503);
}

/// Asserts that readiness and metrics report the outage.
async fn is_told(cluster: &Cluster) {
    let ready = becomes(cluster, 1, &HttpRequest::new("GET", "/readyz"), 503).await.value();
    let told = (&ready["status"], &ready["reasons"][0]["code"]);
    assert_eq!(told, (&json!("store_stale"), &json!("store_stale")));
    assert_eq!(metric(cluster, 1, "hikite_store_up").await, "0");
    let age: f64 = metric(cluster, 1, "hikite_store_age_seconds").await.parse().expect("a number");
    assert!(age > 3.0, "{age}");
    let begin = Instant::now();
    while metric(cluster, 1, "hikite_store_reads_failed_total").await == "0" {
        assert!(begin.elapsed() < IN_THE_END, "a read that hangs is given up");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_whose_store_falls_silent_refuses_what_may_have_been_revoked() {
    cut_off(black_hole(), false, Some("3s")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_whose_store_refuses_it_refuses_what_may_have_been_revoked() {
    // The default: 30 s.
    cut_off(ProxyFault::refuse(), true, None).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_that_hang_for_ever_are_given_up() {
    let (_database, proxy, cluster) = divided(Some("3s")).await;
    let (_, good) = token(&cluster, "good").await;
    becomes(&cluster, 1, &tools(&good), 200).await;
    let call = |text: &str| {
        let body = json!({ "name": "a:echo", "parameters": { "text": text } }).to_string();
        let request = HttpRequest::new("POST", "/v1/tools/call").json(body);
        request.header("authorization", &format!("Bearer {good}"))
    };
    assert_eq!(call("before").send(cluster.address(1)).await.status, 200);
    proxy.freeze();
    becomes(&cluster, 1, &call("after"), 200).await;
    becomes(&cluster, 1, &HttpRequest::new("GET", "/readyz"), 200).await;
    // Writes pending on the old connections are made on the new ones.
    let begin = Instant::now();
    loop {
        let page = cluster.send(0, HttpRequest::new("GET", "/v1/audit?kind=call&outcome=ok")).await.value();
        if page["records"].as_array().expect("records").len() >= 2 {
            break;
        }
        assert!(begin.elapsed() < IN_THE_END, "{page}\n{}", cluster.nodes[1].stderr());
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let (id, secret) = token(&cluster, "short").await;
    becomes(&cluster, 1, &tools(&secret), 200).await;
    assert_eq!(cluster.send(0, HttpRequest::new("DELETE", &format!("/v1/tokens/{id}"))).await.status, 204);
    becomes(&cluster, 1, &tools(&secret), 401).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn clocks_of_nodes_that_differ_too_much_are_named() {
    let free = TcpListener::bind("127.0.0.1:0").expect("a port");
    let own = free.local_addr().expect("bound");
    drop(free);
    let proxy = FaultProxy::start(own).await.expect("a proxy");
    let mut cluster = Cluster::on(0, postgres::database(), json!({})).await;
    let url = format!("http://{}", proxy.address());
    cluster.more = json!({ "server": { "listen": own.to_string(), "node_url": url, "surface": "direct" } });
    cluster.ports.push(own.port());
    let node = cluster.node(0).await;
    cluster.nodes.push(node);
    cluster.more = json!({});
    cluster.add(cluster.store.clone()).await;
    let session = cluster.client(0).await.session();
    assert!(cluster.server_of(1, &session).await > 0, "handed on");
    // A delay above the allowed clock difference cannot be told from a wrong clock.
    let late = DirectionFault { delay: Duration::from_secs(11), ..DirectionFault::default() };
    proxy.set(ProxyFault { to_server: late, ..ProxyFault::default() }).await;
    let reply = in_session(&session, "who", &json!({})).attempt(cluster.address(1), IN_THE_END).await;
    let reply = reply.expect("an answer");
    assert_eq!(reply.status, 503, "{}", reply.text());
    let said = reply.value();
    assert!(said["error"].as_str().is_some_and(|said| said.contains("The clocks of two nodes differ by 1")), "{said}");
    assert!(said["hint"].as_str().is_some_and(|hint| hint.contains("NTP")), "{said}");
    cluster.nodes[0].wait_for_stderr("that of the other node; the limit is 10 s").await;
    proxy.set(ProxyFault::default()).await;
    assert!(cluster.server_of(1, &session).await > 0, "and goes on");
}
