//! Nodes that stop in good order: others take over their sessions unnoticed.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

use hikite_testkit::gateway::eventually;
use serde_json::json;

use super::*;
use crate::http_fixture;

#[tokio::test]
async fn a_node_says_that_it_leaves_before_it_does() {
    let mut cluster = Cluster::start(2, json!({ "limits": { "leave": "2s" } })).await;
    let session = cluster.client(0).await.session();
    let before = cluster.server_of(0, &session).await;
    assert!(is_ready(cluster.address(0)).await);
    let long = in_session(&session, "sleep", &json!({ "ms": 5000 }));
    let (first, running) = (cluster.address(0), long.open(cluster.address(0)));
    let story = async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        cluster.nodes[0].terminate();
        let begin = Instant::now();
        while is_ready(first).await {
            assert!(begin.elapsed() < Duration::from_secs(2), "it says so at once");
        }
        assert_eq!(cluster.server_of(0, &session).await, before, "and goes on meanwhile");
        tokio::time::sleep(Duration::from_secs(3)).await;
        let after = cluster.server_of(1, &session).await;
        assert_ne!(after, before, "the other took the session over");
    };
    let (running, ()) = tokio::join!(running, story);
    let answer = answer_in(&running.read().await);
    assert!(answer.to_string().contains("slept 5000 ms"), "what ran was finished: {answer}");
    assert!(cluster.nodes[0].exit().await.success());
}

#[tokio::test(flavor = "multi_thread")]
async fn all_nodes_are_restarted_one_by_one_without_a_failed_request() {
    let (_fixture, server) = http_fixture().await;
    let more = json!({ "mcpServers": { "a": server }, "limits": { "leave": "1s" } });
    let mut cluster = Cluster::start(2, more).await;
    let mut sessions = Vec::new();
    for number in [0, 1, 0, 1] {
        sessions.push(cluster.client(number).await.session());
    }
    let balancer = LoadBalancer::of(&cluster);
    let (sent, over) = (AtomicUsize::new(0), AtomicBool::new(false));
    let load = sessions.iter().enumerate().map(|(number, session)| {
        let (balancer, sent, over) = (&balancer, &sent, &over);
        async move {
            let request = in_session(session, "sleep", &json!({ "ms": 100 }));
            let mut turn = number;
            while !over.load(Ordering::Relaxed) {
                let reply = balancer.send(turn, &request).await;
                let reply = reply.unwrap_or_else(|failed| panic!("{failed:?} in turn {turn}"));
                assert_eq!(reply.status, 200, "{}", reply.text());
                assert!(reply.text().contains("slept 100 ms"), "{}", reply.text());
                sent.fetch_add(1, Ordering::Relaxed);
                turn += 1;
            }
        }
    });
    let story = async {
        for number in 0..2 {
            tokio::time::sleep(Duration::from_millis(500)).await;
            assert!(cluster.nodes[number].stop().await.success(), "{}", cluster.nodes[number].stderr());
            cluster.start_again(number).await;
        }
        // It continues once all of them are back.
        let before = sent.load(Ordering::Relaxed);
        assert!(eventually(|| sent.load(Ordering::Relaxed) > before + 50).await, "{before} and then {sent:?}");
        over.store(true, Ordering::Relaxed);
    };
    tokio::join!(futures_util::future::join_all(load), story);
}
