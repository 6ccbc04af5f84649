//! Nodes that crash or are suspended, and a PostgreSQL that crashes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

use hikite_testkit::postgres::PostgresServer;
use parking_lot::Mutex;
use serde_json::json;

use super::*;
use crate::http_fixture;

/// Results of the requests of a load.
#[derive(Default)]
struct LoadCount {
    sent: AtomicUsize,
    /// Time and reason of each failure.
    failed: Mutex<Vec<(Instant, String)>>,
}

impl LoadCount {
    fn note(&self, outcome: Result<HttpReply, RequestFailure>) -> bool {
        self.sent.fetch_add(1, Ordering::Relaxed);
        let wrong = match outcome {
            Ok(reply) if reply.status == 200 => return true,
            Ok(reply) => format!("{} {}", reply.status, reply.text()),
            Err(failed) => format!("{failed:?}"),
        };
        self.failed.lock().push((Instant::now(), wrong));
        false
    }
}

fn standing_alone() -> HttpRequest {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": { "name": "echo", "arguments": { "text": "x" }, "_meta": meta } });
    let request = post(&body).header("mcp-protocol-version", "2026-07-28");
    request.header("mcp-method", "tools/call").header("mcp-name", "echo")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_is_killed_costs_next_to_nothing_and_its_sessions_go_on() {
    let (_fixture, server) = http_fixture().await;
    let mut cluster = Cluster::start(3, json!({ "mcpServers": { "a": server } })).await;
    let mut sessions = Vec::new();
    for number in [0, 0, 0, 1, 2] {
        sessions.push(cluster.client(number).await.session());
    }
    let (count, over) = (Arc::new(LoadCount::default()), Arc::new(AtomicBool::new(false)));
    let balancer = Arc::new(LoadBalancer::of(&cluster));
    let requests = sessions.iter().map(|session| in_session(session, "echo", &json!({ "text": "x" })));
    let requests: Vec<HttpRequest> = requests.chain([standing_alone(), standing_alone()]).collect();
    let load = requests.into_iter().enumerate().map(|(number, request)| {
        let (count, over, balancer) = (Arc::clone(&count), Arc::clone(&over), Arc::clone(&balancer));
        async move {
            let mut turn = number;
            while !over.load(Ordering::Relaxed) {
                count.note(balancer.send(turn, &request).await);
                turn += 1;
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
    });
    let load = futures_util::future::join_all(load);
    let story = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        cluster.nodes[0].kill9();
        let killed = Instant::now();
        for session in &sessions {
            let request = in_session(session, "echo", &json!({ "text": "x" }));
            while !balancer.send(1, &request).await.is_ok_and(|reply| reply.status == 200) {
                assert!(killed.elapsed() < Duration::from_secs(60), "{}", cluster.nodes[1].stderr());
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
        let owned = killed.elapsed();
        tokio::time::sleep(Duration::from_secs(8)).await;
        over.store(true, Ordering::Relaxed);
        (killed, owned)
    };
    let (_, (killed, owned)) = tokio::join!(load, story);
    assert!(owned < Duration::from_secs(10), "all sessions go on after {owned:?}");
    let (sent, failed) = (count.sent.load(Ordering::Relaxed), count.failed.lock());
    let last = failed.iter().map(|(at, _)| at.saturating_duration_since(killed)).max();
    assert!(failed.len() * 100 < sent, "{} of {sent} failed: {failed:?}", failed.len());
    assert!(last.is_none_or(|last| last < Duration::from_secs(5)), "{last:?} {failed:?}");
}

#[tokio::test]
async fn an_owner_that_was_asleep_does_not_serve_what_another_has_taken_over() {
    let cluster = Cluster::start(2, json!({})).await;
    let session = cluster.client(0).await.session();
    let before = cluster.server_of(0, &session).await;
    cluster.nodes[0].suspend();
    let begin = Instant::now();
    let after = loop {
        let request = in_session(&session, "who", &json!({}));
        if let Ok(reply) = request.attempt(cluster.address(1), ANSWERED).await
            && reply.status == 200
        {
            break answer_in(&reply)["result"]["structuredContent"]["pid"].as_u64();
        }
        assert!(begin.elapsed() < Duration::from_secs(60), "{}", cluster.nodes[1].stderr());
    };
    assert_ne!(after, Some(before), "another process of the server");
    cluster.nodes[0].wake();
    for node in [0, 1, 0] {
        assert_eq!(Some(cluster.server_of(node, &session).await), after, "at {node}");
    }
    cluster.nodes[0].wait_for_stderr("the other nodes considered this node gone").await;
    let fresh = cluster.client(0).await.session();
    let server = cluster.server_of(0, &fresh).await;
    assert_eq!(cluster.server_of(1, &fresh).await, server, "it goes on under another name");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_of_the_database_stops_no_call() {
    let database = PostgresServer::start();
    let (_fixture, server) = http_fixture().await;
    let cluster = Cluster::on(2, database.database(), json!({ "mcpServers": { "a": server } })).await;
    let session = cluster.client(0).await.session();
    let made = HttpRequest::new("POST", "/v1/tokens").json(json!({ "name": "before" }).to_string());
    let made = cluster.send(0, made).await.value();
    let (id, secret) = (made["id"].as_str().expect("an id"), made["secret"].as_str().expect("a secret"));
    for node in 0..2 {
        super::revoke::answers(&cluster, node, secret, 200, Duration::from_secs(10)).await;
    }
    let (count, over) = (LoadCount::default(), AtomicBool::new(false));
    let load = async {
        let mut turn = 0;
        while !over.load(Ordering::Relaxed) {
            turn += 1;
            let address = cluster.address(turn % 2);
            count.note(in_session(&session, "echo", &json!({ "text": "x" })).attempt(address, ANSWERED).await);
            count.note(standing_alone().attempt(address, ANSWERED).await);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let story = async {
        database.stop();
        let refused = HttpRequest::new("POST", "/v1/tokens").json(json!({ "name": "meanwhile" }).to_string());
        let refused = cluster.send(1, refused).await;
        assert_eq!(refused.status, 503, "{}", refused.text());
        assert!(refused.headers.contains_key("retry-after"));
        tokio::time::sleep(Duration::from_secs(2)).await;
        database.start_again();
        let back = Instant::now();
        loop {
            let request = HttpRequest::new("POST", "/v1/tokens").json(json!({ "name": "after" }).to_string());
            if cluster.send(1, request).await.status == 201 {
                break;
            }
            assert!(back.elapsed() < Duration::from_secs(60), "{}", cluster.nodes[1].stderr());
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        over.store(true, Ordering::Relaxed);
    };
    let ((), ()) = tokio::join!(load, story);
    let (sent, failed) = (count.sent.load(Ordering::Relaxed), count.failed.lock().clone());
    assert!(failed.is_empty() && sent > 20, "{} of {sent}: {failed:?}", failed.len());
    let gone = HttpRequest::new("DELETE", &format!("/v1/tokens/{id}"));
    assert_eq!(cluster.send(0, gone).await.status, 204);
    super::revoke::answers(&cluster, 1, secret, 401, Duration::from_secs(1)).await;
}
