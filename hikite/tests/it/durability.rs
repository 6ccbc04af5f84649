//! The audit after a crash, on a full disk, without its database, and with a damaged log: promised records are there,
//! and lost ones are reported.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use hikite_testkit::fixture::Fixture;
use hikite_testkit::gateway::{LIMIT, TestGateway};
use hikite_testkit::postgres::{PostgresServer, database};
use serde_json::{Value, json};
use sqlx::{Connection, Executor};
use tokio::task::JoinSet;

use crate::audit::{connect, file, records};
use crate::rest::{get, post};
use crate::{PROGRAMS, configured, http_fixture};

/// Loss bound of `group` documented in docs/audit.md.
const UNWRITTEN: usize = 256;
const CALLERS: usize = 50;
/// A file size limit otherwise ends the process with a signal.
const IGNORE_SIGNAL: &str = "trap '' XFSZ";

async fn call(gateway: &TestGateway) -> u16 {
    post(gateway, "/v1/tools/call", &json!({ "name": "echo", "parameters": { "text": "x" } })).await.status
}

/// Polls `/readyz` until it has this status.
async fn ready(gateway: &TestGateway, status: u16) -> Value {
    let begin = Instant::now();
    loop {
        let reply = get(gateway, "/readyz").await;
        if reply.status == status {
            return reply.value();
        }
        assert!(begin.elapsed() < LIMIT * 3, "{}: {}", reply.status, gateway.stderr());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Many callers of one gateway, until it is killed.
struct CallLoad {
    gateway: TestGateway,
    answered: Arc<AtomicUsize>,
    callers: JoinSet<()>,
    _fixture: Fixture,
}

impl CallLoad {
    /// Starts with this `audit.durability`, or with the default.
    async fn start(durability: Option<&str>, store: Option<String>) -> Self {
        let (fixture, server) = http_fixture().await;
        let mut config = json!({ "mcpServers": { "a": server } });
        if let Some(durability) = durability {
            config["audit"] = json!({ "durability": durability });
        }
        if let Some(url) = store {
            config["store"] = json!({ "url": url });
        }
        let gateway = configured(config).await;
        assert_eq!(call(&gateway).await, 200);
        let answered = Arc::new(AtomicUsize::new(1));
        let mut callers = JoinSet::new();
        for _ in 0..CALLERS {
            let request = gateway
                .request("POST", "/v1/tools/call")
                .json(json!({ "name": "echo", "parameters": { "text": "x" } }).to_string());
            let (address, answered) = (gateway.address(), Arc::clone(&answered));
            callers.spawn(async move {
                while let Ok(reply) = request.clone().attempt(address, LIMIT).await {
                    assert_eq!(reply.status, 200, "{}", reply.text());
                    answered.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
        Self { gateway, answered, callers, _fixture: fixture }
    }

    fn answered(&self) -> usize {
        self.answered.load(Ordering::SeqCst)
    }

    async fn reaches(&self, count: usize) {
        let begin = Instant::now();
        while self.answered() < count {
            assert!(begin.elapsed() < LIMIT * 6, "{}", self.gateway.stderr());
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Sends `SIGKILL` and waits for all callers.
    async fn kill(&mut self) {
        self.gateway.kill9();
        while let Some(ended) = self.callers.join_next().await {
            ended.expect("no panic");
        }
    }

    /// Returns the numbers of answered and of audited calls.
    async fn count(&self) -> (usize, usize) {
        let export = self.gateway.run(&["audit", "export", "--kind", "call"]).await;
        assert_eq!(export.code, Some(0), "{}", export.stderr);
        assert_eq!(self.gateway.run(&["audit", "verify"]).await.code, Some(0));
        (self.answered(), export.stdout.lines().count())
    }
}

async fn killed(durability: Option<&str>, store: Option<String>) -> (usize, usize) {
    let mut load = CallLoad::start(durability, store).await;
    load.reaches(4 * UNWRITTEN).await;
    load.kill().await;
    load.count().await
}

#[tokio::test(flavor = "multi_thread")]
async fn strict_loses_no_answered_call_when_it_is_killed() {
    for store in [None, Some(database())] {
        let (answered, recorded) = killed(Some("strict"), store).await;
        assert!(recorded >= answered, "{recorded} of {answered}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn group_is_the_default_and_loses_no_more_than_it_says_when_it_is_killed() {
    for store in [None, Some(database())] {
        let (answered, recorded) = killed(None, store).await;
        assert!(recorded + UNWRITTEN >= answered, "{recorded} of {answered}");
    }
}

/// A store that is locked for a moment blocks responses instead of letting them run ahead. Locked for more than five
/// seconds it counts as unreachable and calls continue; if the machine stalled for that long, the test is repeated.
#[tokio::test(flavor = "multi_thread")]
async fn group_loses_no_more_when_the_store_falls_behind() {
    for _ in 0..5 {
        let mut load = CallLoad::start(None, None).await;
        load.reaches(UNWRITTEN).await;
        let mut other = connect(&file(&load.gateway)).await;
        other.execute("BEGIN IMMEDIATE").await.expect("locked");
        let locked = Instant::now();
        let mut before = 0;
        while load.answered() > before && locked.elapsed() < Duration::from_secs(4) {
            before = load.answered();
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
        load.kill().await;
        let held = locked.elapsed();
        other.execute("ROLLBACK").await.expect("free");
        other.close().await.expect("closed");
        let (answered, recorded) = load.count().await;
        if held < Duration::from_secs(5) {
            assert!(recorded + UNWRITTEN >= answered, "{recorded} of {answered}");
            return;
        }
    }
}

#[tokio::test]
async fn which_durability_runs_is_shown() {
    for durability in ["group", "strict"] {
        let gateway = configured(json!({ "audit": { "durability": durability } })).await;
        let audit = get(&gateway, "/v1/status").await.value()["audit"].clone();
        assert_eq!((&audit["durability"], &audit["accepts"]), (&json!(durability), &json!(true)));
        let doctor = gateway.run(&["doctor", "--wait", "120"]).await;
        assert!(doctor.stdout.contains(&format!("durability `{durability}`")), "{}", doctor.stdout);
    }
}

#[tokio::test]
async fn a_full_disk_refuses_at_once_and_says_so_until_it_is_over() {
    for durability in ["group", "strict"] {
        let (_fixture, server) = http_fixture().await;
        // Waiting for a queue slot would outlast this test.
        let limits = json!({ "audit_queue": 5, "call_timeout": "5m", "drain": "1s" });
        let audit = json!({ "durability": durability });
        let config = json!({ "mcpServers": { "a": server }, "audit": audit, "limits": limits });
        let gateway = TestGateway::start_after(&PROGRAMS, config, IGNORE_SIGNAL).await;
        assert_eq!(call(&gateway).await, 200);
        gateway.fill_disk(true);
        let mut done = 1;
        let refused = loop {
            let body = json!({ "name": "echo", "parameters": { "text": "x" } });
            let path = gateway.request("POST", "/v1/tools/call").json(body.to_string());
            let reply = path.attempt(gateway.address(), LIMIT * 3).await.expect("an answer in time");
            match reply.status {
                200 => done += 1,
                503 => break reply,
                // In `strict` mode the call ran, and its response is withheld.
                500 => assert!(durability == "strict" && reply.text().contains("audit record"), "{}", reply.text()),
                other => panic!("{other}: {}", reply.text()),
            }
            assert!(done <= 6, "{}", gateway.stderr());
        };
        assert!(refused.headers.contains_key("retry-after"), "{}", refused.text());
        let said = ready(&gateway, 503).await;
        assert_eq!(said["reasons"][0]["code"], "audit_full", "{said}");
        let status = get(&gateway, "/v1/status").await.value();
        assert_eq!(status["audit"]["accepts"], false);
        assert!(status["attention"].to_string().contains("is full"), "{status}");
        gateway.fill_disk(false);
        ready(&gateway, 200).await;
        assert_eq!(call(&gateway).await, 200);
        assert!(records(&gateway, "kind=call").await.len() > done, "{}", gateway.stderr());
        assert_eq!(get(&gateway, "/v1/audit/verify").await.value()["intact"], true);
    }
}

#[tokio::test]
async fn what_a_full_disk_takes_at_the_end_is_said_with_its_number() {
    let (_fixture, server) = http_fixture().await;
    let config = json!({ "mcpServers": { "a": server } });
    let mut gateway = TestGateway::start_after(&PROGRAMS, config, IGNORE_SIGNAL).await;
    assert_eq!(call(&gateway).await, 200);
    assert_eq!(records(&gateway, "kind=call").await.len(), 1);
    gateway.fill_disk(true);
    for _ in 0..3 {
        assert_eq!(call(&gateway).await, 200);
    }
    gateway.terminate();
    assert_eq!(gateway.slow_exit().await.code(), Some(1), "{}", gateway.stderr());
    gateway.wait_for_stderr("audit records are lost").await;
    gateway.wait_for_stderr("records=3").await;
}

#[tokio::test]
async fn what_a_database_does_not_take_at_the_end_is_kept_in_a_file() {
    let (_fixture, server) = http_fixture().await;
    let postgres = PostgresServer::start();
    let config = json!({ "mcpServers": { "a": server }, "store": { "url": postgres.database() } });
    let mut gateway = configured(config).await;
    assert_eq!(call(&gateway).await, 200);
    assert_eq!(records(&gateway, "kind=call").await.len(), 1);
    postgres.stop();
    for _ in 0..3 {
        assert_eq!(call(&gateway).await, 200);
    }
    gateway.terminate();
    assert_eq!(gateway.slow_exit().await.code(), Some(1), "{}", gateway.stderr());
    let entries = fs::read_dir(gateway.folder().path().join("data")).expect("a folder");
    let files: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    let kept = files.iter().find(|file| file.to_string_lossy().contains("audit-unwritten-"));
    let kept = kept.unwrap_or_else(|| panic!("{files:?}\n{}", gateway.stderr()));
    let text = fs::read_to_string(kept).expect("a file");
    assert_eq!(text.lines().filter(|line| line.contains(r#""kind":"call""#)).count(), 3, "{text}");
    let verified = gateway.run(&["audit", "verify", "--file", kept.to_str().expect("UTF-8")]).await;
    assert_eq!(verified.code, Some(0), "{}", verified.stdout);
}

/// Returns a gateway that was killed with `calls` records in its log, and the log.
async fn with_log(calls: usize) -> (TestGateway, PathBuf, Value) {
    let (_fixture, server) = http_fixture().await;
    let config = json!({ "mcpServers": { "a": server } });
    let mut gateway = configured(config.clone()).await;
    for _ in 0..calls {
        assert_eq!(call(&gateway).await, 200);
    }
    // With the default durability the last ones may not be written yet.
    let begin = Instant::now();
    while records(&gateway, "kind=call").await.len() < calls {
        assert!(begin.elapsed() < LIMIT, "{}", gateway.stderr());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    gateway.kill9();
    let log = gateway.folder().path().join("data/hikite.db-wal");
    (gateway, log, config)
}

#[tokio::test]
async fn a_log_damaged_in_the_middle_is_reported() {
    let (gateway, log, config) = with_log(20).await;
    let mut bytes = fs::read(&log).expect("a log");
    let middle = bytes.len() / 2;
    for byte in &mut bytes[middle..middle + 64] {
        *byte ^= 0x55;
    }
    fs::write(&log, bytes).expect("written");
    let gateway = gateway.start_again(config).await;
    gateway.wait_for_stderr("is damaged at frame").await;
    gateway.wait_for_stderr("of the audit log were written and are lost").await;
    let lost = records(&gateway, "kind=lost").await;
    assert!(lost.iter().any(|record| record["method"] == "store.damage" && record["lost"].as_u64() > Some(0)));
    assert!(fs::exists(log.with_file_name("hikite.db-wal.damaged-1")).expect("a folder"));
    let status = get(&gateway, "/v1/status").await.value();
    assert!(status["attention"].to_string().contains("is damaged at frame"), "{status}");
    let verified = gateway.run(&["audit", "verify"]).await;
    assert_eq!(verified.code, Some(1));
    assert!(verified.stdout.contains("are lost") && verified.stdout.contains("hint: "), "{}", verified.stdout);
    let doctor = gateway.run(&["doctor", "--wait", "120"]).await;
    assert!(doctor.stdout.contains("are lost") && doctor.code == Some(1), "{}", doctor.stdout);
    // An administrator acknowledged it.
    fs::remove_file(log.with_file_name("hikite.db.damage")).expect("the findings");
    assert_eq!(gateway.run(&["audit", "verify"]).await.code, Some(0));
}

#[tokio::test]
async fn a_log_that_was_cut_is_reported() {
    let (gateway, log, config) = with_log(20).await;
    let file = fs::OpenOptions::new().write(true).open(&log).expect("a log");
    let length = file.metadata().expect("a length").len();
    file.set_len(length / 2).expect("cut");
    let gateway = gateway.start_again(config).await;
    let verified = gateway.run(&["audit", "verify"]).await;
    assert_eq!(verified.code, Some(1), "{}", verified.stdout);
    gateway.wait_for_stderr("to 20 of the audit log were written and are lost").await;
}

#[tokio::test]
async fn a_log_that_a_crash_left_is_no_damage() {
    let (gateway, _, config) = with_log(20).await;
    let mut gateway = gateway.start_again(config).await;
    assert_eq!(records(&gateway, "kind=call").await.len(), 20);
    assert_eq!(records(&gateway, "kind=lost").await, [json!(null); 0]);
    assert!(gateway.stop().await.success());
    assert!(!gateway.stderr().contains("gone"), "{}", gateway.stderr());
}
