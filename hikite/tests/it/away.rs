//! An unreachable or busy store: hikite starts without it and waits, refuses what it cannot know, and copies no store
//! that is in use.

use std::time::{Duration, Instant};

use hikite_testkit::fault::{FaultProxy, ProxyFault};
use hikite_testkit::gateway::{ClientOptions, HttpReply, HttpRequest, LIMIT, TestGateway};
use hikite_testkit::postgres::{PostgresServer, database};
use serde_json::{Value, json};
use sqlx::{Connection, Executor};

use crate::{PROGRAMS, configured, http_fixture};

/// Timeout long enough for machines that stall for seconds.
const IN_THE_END: Duration = Duration::from_secs(60);

async fn becomes(gateway: &TestGateway, request: &HttpRequest, status: u16) -> HttpReply {
    let begin = Instant::now();
    loop {
        let reply = request.clone().attempt(gateway.address(), LIMIT).await;
        match reply {
            Ok(reply) if reply.status == status => return reply,
            other => assert!(begin.elapsed() < IN_THE_END, "{other:?}\n{}", gateway.stderr()),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

fn readiness() -> HttpRequest {
    HttpRequest::new("GET", "/readyz")
}

/// Executes a statement on a SQLite file that hikite has open.
async fn behind_its_back(gateway: &TestGateway, statement: &str) {
    let address = format!("sqlite:{}", gateway.folder().path().join("data/hikite.db").display());
    let mut connection = sqlx::SqliteConnection::connect(&address).await.expect("a file");
    connection.execute("PRAGMA busy_timeout = 5000").await.expect("patience");
    connection.execute(statement).await.expect(statement);
    connection.close().await.expect("closed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_cannot_be_read_lets_nobody_in_but_the_owner() {
    let (_fixture, server) = http_fixture().await;
    let gateway = configured(json!({ "mcpServers": { "a": server }, "store": { "max_staleness": "2s" } })).await;
    let form = json!({ "name": "t" }).to_string();
    let made = gateway.send(gateway.request("POST", "/v1/tokens").json(form)).await;
    let secret = made.value()["secret"].as_str().expect("a secret").to_owned();
    let tools = HttpRequest::new("GET", "/v1/tools").header("authorization", &format!("Bearer {secret}"));
    assert_eq!(tools.clone().send(gateway.address()).await.status, 200);
    let owner = gateway.client_with("direct", ClientOptions::default()).await;
    behind_its_back(&gateway, "ALTER TABLE hikite RENAME TO elsewhere").await;
    let refused = becomes(&gateway, &tools, 503).await;
    assert!(refused.headers.contains_key("retry-after") && refused.text().contains("has not responded"));
    let ready = becomes(&gateway, &readiness(), 503).await.value();
    assert_eq!(ready["reasons"][0]["code"], "store_stale", "{ready}");
    assert!(!owner.names("tools/list").await.is_empty(), "the owner sits at this machine");
    behind_its_back(&gateway, "ALTER TABLE elsewhere RENAME TO hikite").await;
    becomes(&gateway, &readiness(), 200).await;
    becomes(&gateway, &tools, 200).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hikite_starts_while_its_database_is_away_and_is_ready_when_it_is_back() {
    let database = PostgresServer::start_on_tcp();
    let address = database.address().expect("a port");
    let proxy = FaultProxy::start(address).await.expect("a proxy");
    for fault in [ProxyFault::refuse(), ProxyFault::stall()] {
        let url = database.database().replace(&address.to_string(), &proxy.address().to_string());
        proxy.set(fault).await;
        let config = json!({ "store": { "url": url } });
        let mut gateway = configured(config.clone()).await;
        assert_eq!(HttpRequest::new("GET", "/health").send(gateway.address()).await.status, 200);
        let ready = readiness().send(gateway.address()).await;
        assert_eq!((ready.status, &ready.value()["status"]), (503, &json!("store_unreachable")));
        let call = gateway.send(gateway.request("POST", "/mcp").json("{}")).await;
        assert_eq!(call.status, 503);
        assert!(call.headers.contains_key("retry-after"), "{:?}", call.headers);
        assert_eq!(call.value()["code"], "OVERLOADED", "{}", call.text());
        // A shutdown is not delayed.
        assert!(gateway.stop().await.success(), "{}", gateway.stderr());
        drop(gateway);
        let gateway = configured(config).await;
        gateway.wait_for_stderr("and waiting for the store: ").await;
        proxy.set(ProxyFault::default()).await;
        becomes(&gateway, &readiness(), 200).await;
        assert_eq!(gateway.send(gateway.request("GET", "/v1/tools")).await.status, 200);
        assert_eq!(gateway.stderr().matches("waiting for the store").count(), 1, "{}", gateway.stderr());
        assert!(!gateway.stderr().contains("not-asked-for"), "the password is nobody's to read");
    }
}

#[tokio::test]
async fn what_is_wrong_with_a_database_that_answers_ends_the_start() {
    let url = database().replace("/test", "/no-such-test");
    let folder = tempfile::tempdir().expect("a folder");
    let config = json!({ "server": { "listen": "127.0.0.1:0" }, "store": { "url": url } });
    std::fs::write(folder.path().join("hikite.json"), config.to_string()).expect("a file");
    let run = PROGRAMS.run(folder.path(), &["serve"]).await;
    assert_eq!(run.code, Some(1), "{}", run.stderr);
    assert!(run.stderr.contains("hint: Check user, password and database"), "{}", run.stderr);
}

#[tokio::test]
async fn a_store_in_use_is_not_copied_and_nothing_is_copied_into_one() {
    let (_fixture, server) = http_fixture().await;
    for used in [None, Some(database())] {
        let mut config = json!({ "mcpServers": { "a": server } });
        if let Some(url) = &used {
            config["store"] = json!({ "url": url });
        }
        let mut gateway = configured(config).await;
        let url =
            used.unwrap_or_else(|| format!("sqlite:{}", gateway.folder().path().join("data/hikite.db").display()));
        let fresh = format!("sqlite:{}", gateway.folder().path().join("fresh.db").display());
        let from = gateway.run(&["store", "migrate", "--to", &fresh]).await;
        // Another hikite with its own store.
        let idle = tempfile::tempdir().expect("a folder");
        std::fs::write(idle.path().join("hikite.json"), "{}").expect("a file");
        let into = PROGRAMS.run(idle.path(), &["store", "migrate", "--to", &url]).await;
        for run in [from, into] {
            assert_eq!((run.code, run.stdout.as_str()), (Some(1), ""), "{}", run.stderr);
            assert!(run.stderr.contains("is in use"), "{}", run.stderr);
            assert!(run.stderr.contains("hint: Stop every hikite"), "{}", run.stderr);
        }
        assert!(!gateway.folder().path().join("fresh.db").exists(), "nothing was begun");
        assert_eq!(gateway.send(gateway.request("GET", "/v1/tools")).await.status, 200, "and it goes on");
        assert!(gateway.stop().await.success());
        let run = gateway.run(&["store", "migrate", "--json", "--to", &fresh]).await;
        let report: Value = serde_json::from_str(&run.stdout).unwrap_or_else(|_| panic!("{}", run.stderr));
        assert!(report["copied"]["rows"].as_u64() > Some(0), "{report}");
    }
}
