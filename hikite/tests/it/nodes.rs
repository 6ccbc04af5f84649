//! Several real processes on one PostgreSQL act as one hikite, whichever of them a client reaches. The time bounds here
//! are documented promises.

mod away;
mod crash;
mod deploy;
mod leave;
mod peer_access;
mod people;
mod revoke;
mod session;
mod stateless;

use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use hikite_testkit::gateway::{ClientOptions, HttpReply, HttpRequest, RequestFailure, SessionClient, TestGateway};
use hikite_testkit::postgres;
use hikite_vault::MasterKey;
use serde_json::{Value, json};

use crate::{PROGRAMS, stdio, with};

/// Owner's token on every node.
const TOKEN: &str = "the-token-that-all-nodes-have-in-common";
/// Timeout of a request.
const ANSWERED: Duration = Duration::from_secs(10);

struct Cluster {
    nodes: Vec<TestGateway>,
    ports: Vec<u16>,
    store: String,
    key: String,
    more: Value,
}

impl Cluster {
    /// Starts nodes with a server that has one process per session. `more` is merged into their config.
    async fn start(count: usize, more: Value) -> Self {
        Self::on(count, postgres::database(), more).await
    }

    async fn on(count: usize, store: String, more: Value) -> Self {
        let free: Vec<TcpListener> = (0..count).map(|_| TcpListener::bind("127.0.0.1:0").expect("a port")).collect();
        let ports = free.iter().map(|port| port.local_addr().expect("bound").port()).collect();
        drop(free);
        let key = MasterKey::random().expect("random").text().expose().to_owned();
        let mut cluster = Self { nodes: Vec::new(), ports, store, key, more };
        for number in 0..count {
            let node = cluster.node(number).await;
            cluster.nodes.push(node);
        }
        cluster
    }

    async fn node(&self, number: usize) -> TestGateway {
        let own = format!("127.0.0.1:{}", self.ports[number]);
        let mut config = json!({
            "data": "data",
            "store": { "url": self.store },
            "server": { "listen": own, "node_url": format!("http://{own}"), "surface": "direct" },
            "auth": { "mode": "token", "token": TOKEN },
            "mcpServers": { "a": with(stdio(&[]), "share", "never") },
        });
        for (section, value) in self.more.as_object().into_iter().flatten() {
            config[section] = value.clone();
        }
        let variables = [("HIKITE_VAULT_KEY", self.key.as_str())];
        TestGateway::start_by_file_with(&PROGRAMS, config, &variables).await
    }

    /// Starts a replacement at the same address.
    async fn start_again(&mut self, number: usize) {
        let node = self.node(number).await;
        self.nodes[number] = node;
    }

    /// Adds a node with its own store URL.
    async fn add(&mut self, store: String) {
        let free = TcpListener::bind("127.0.0.1:0").expect("a port");
        self.ports.push(free.local_addr().expect("bound").port());
        drop(free);
        let before = std::mem::replace(&mut self.store, store);
        let node = self.node(self.nodes.len()).await;
        self.store = before;
        self.nodes.push(node);
    }

    fn address(&self, number: usize) -> SocketAddr {
        self.nodes[number].address()
    }

    async fn client(&self, number: usize) -> SessionClient {
        SessionClient::over_http(self.address(number), "/mcp", Some(TOKEN), ClientOptions::default()).await
    }

    async fn send(&self, number: usize, request: HttpRequest) -> HttpReply {
        request.header("authorization", &format!("Bearer {TOKEN}")).send(self.address(number)).await
    }

    /// Calls a tool in a session through one of the nodes.
    async fn call(&self, number: usize, session: &str, tool: &str, arguments: Value) -> Value {
        let reply = self.send(number, in_session(session, tool, &arguments)).await;
        assert_eq!(reply.status, 200, "{}\n{}", reply.text(), self.nodes[number].stderr());
        answer_in(&reply)
    }

    /// Returns the pid of the server that serves a session, through one of the nodes.
    async fn server_of(&self, number: usize, session: &str) -> u64 {
        let answer = self.call(number, session, "who", json!({})).await;
        answer["result"]["structuredContent"]["pid"].as_u64().unwrap_or_else(|| panic!("{answer}"))
    }
}

fn post(body: &Value) -> HttpRequest {
    HttpRequest::new("POST", "/mcp").json(body.to_string()).header("authorization", &format!("Bearer {TOKEN}"))
}

fn in_session(session: &str, tool: &str, arguments: &Value) -> HttpRequest {
    let body = json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call",
        "params": { "name": tool, "arguments": arguments } });
    post(&body).header("mcp-session-id", session)
}

/// Returns the response of a request, alone or at the end of a stream.
fn answer_in(reply: &HttpReply) -> Value {
    let text = reply.text();
    let last = text.lines().rev().find_map(|line| line.strip_prefix("data:"));
    serde_json::from_str(last.unwrap_or(text).trim()).unwrap_or_else(|_| panic!("{} {text}", reply.status))
}

/// A load balancer: uses the next node that accepts the connection and reports that it is ready.
struct LoadBalancer {
    addresses: Vec<SocketAddr>,
}

impl LoadBalancer {
    fn of(cluster: &Cluster) -> Self {
        Self { addresses: (0..cluster.nodes.len()).map(|number| cluster.address(number)).collect() }
    }

    /// Sends a request. A refused connection is tried elsewhere; any other failure is returned.
    async fn send(&self, turn: usize, request: &HttpRequest) -> Result<HttpReply, RequestFailure> {
        let count = self.addresses.len();
        for offset in 0..count {
            let address = self.addresses[(turn + offset) % count];
            if !is_ready(address).await {
                continue;
            }
            match request.clone().attempt(address, ANSWERED).await {
                Err(RequestFailure::Refused) => {}
                other => return other,
            }
        }
        Err(RequestFailure::Refused)
    }
}

async fn is_ready(address: SocketAddr) -> bool {
    let asked = HttpRequest::new("GET", "/readyz").attempt(address, Duration::from_secs(2)).await;
    asked.is_ok_and(|reply| reply.status == 200)
}
