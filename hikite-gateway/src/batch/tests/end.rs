//! Tasks that end in unusual ways: notifications and audit records.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use hikite_core::caller::Caller;
use hikite_core::limits::Limits;
use hikite_core::signer::HmacSigner;
use hikite_core::source::CallContext;
use hikite_store::AuditFilter;
use serde_json::{Value, json};

use super::fixture::{BatchFixture, batch, statuses, task, with};
use crate::audit::{AuditRules, Durability, QueueFullPolicy};
use crate::command::Command;
use crate::gateway::Gateway;
use crate::probe;
use crate::registry::RegistryStore;

#[tokio::test(start_paused = true)]
async fn a_tool_that_fails_is_told_in_its_own_words() {
    let scene = BatchFixture::open();
    let document = scene.run(&json!([task("t", "fail", json!({ "text": "そんなページはない" }))])).await;
    assert_eq!(
        document["tasks"][0]["error"],
        json!({ "code": "TOOL_EXECUTION_ERROR", "message": "そんなページはない" })
    );
    let long = scene.run(&json!([task("t", "fail", json!({ "text": "長".repeat(5000) }))])).await;
    let message = long["tasks"][0]["error"]["message"].as_str().expect("a message");
    assert_eq!(message.chars().count(), 1000);
}

#[tokio::test(start_paused = true)]
async fn a_task_has_the_time_it_says() {
    let scene = BatchFixture::open();
    let tasks = json!([
        with(task("slow", "hang", json!({})), json!({ "timeout_ms": 200 })),
        with(task("quick", "sleep", json!({ "ms": 100 })), json!({ "timeout_ms": 200 })),
        with(task("then", "echo", json!({})), json!({ "after": "slow" })),
    ]);
    let document = scene.run(&tasks).await;
    assert_eq!(statuses(&document), ["slow timeout", "quick ok", "then skipped"]);
    assert_eq!((&document["tasks"][0]["error"]["code"], &document["tasks"][0]["ms"]), (&json!("TIMEOUT"), &json!(200)));
    assert_eq!(document["summary"], json!({ "ok": 1, "error": 0, "skipped": 1, "timeout": 1, "cancelled": 0 }));
}

#[tokio::test(start_paused = true)]
async fn nothing_runs_on_when_nobody_waits_for_the_batch() {
    let scene = BatchFixture::open();
    let tasks = json!([
        task("a", "hang", json!({})),
        task("b", "hang", json!({})),
        with(task("each", "hang", json!({})), json!({ "for_each": [1, 2, 3] })),
        with(task("later", "echo", json!({})), json!({ "after": "a" })),
    ]);
    let running = scene.send(batch(&tasks));
    assert!(tokio::time::timeout(Duration::from_secs(1), running).await.is_err(), "it hangs");
    assert_eq!((scene.stage.running(), scene.stage.cancelled()), (0, 5));
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(scene.stage.calls().len(), 5);
}

#[tokio::test(start_paused = true)]
async fn a_client_hears_of_every_task_that_ends_and_of_nothing_in_between() {
    let scene = BatchFixture::open();
    let tasks = json!([
        task("search", "steps", json!({})),
        with(task("slow", "sleep", json!({ "ms": 1500 })), json!({ "after": "search" })),
        with(task("broken", "fail", json!({})), json!({ "after": "slow" })),
        with(task("never", "echo", json!({})), json!({ "after": "broken" })),
    ]);
    scene.run(&tasks).await;
    let told = |done: u32, message: &str| json!({ "progress": done, "total": 4, "message": message });
    assert_eq!(
        *scene.client.progress.lock(),
        [
            told(1, "search: ok (0 ms)"),
            told(2, "slow: ok (1500 ms)"),
            told(3, "broken: error (0 ms)"),
            told(4, "never: skipped"),
        ]
    );
    assert_eq!(scene.client.logs.lock().len(), 1, "what a server logs is passed on");
}

#[tokio::test(start_paused = true)]
async fn a_client_with_a_session_is_asked_and_one_without_is_told_to_call_the_tool_alone() {
    let scene = BatchFixture::open();
    let tasks = json!([with(task("t", "ask", json!({})), json!({ "raw_output": true }))]);
    let document = scene.run(&tasks).await;
    assert_eq!(document["tasks"][0]["result"], json!({ "action": "accept" }));
    assert_eq!(scene.client.asked.load(Ordering::Relaxed), 1);
    let context = CallContext { accepts_input_required: true, ..scene.context() };
    let tasks = json!([task("t", "ask", json!({})), task("r", "rounds", json!({})), task("k", "task", json!({}))]);
    let result =
        scene.gateway.dispatch(Command::Batch(batch(&tasks)), context).await.expect("a plan that runs").value();
    let document = &result["structuredContent"];
    assert_eq!(statuses(document), ["t error", "r error", "k error"]);
    assert_eq!(document["tasks"][0]["error"]["message"], "Tools cannot ask the user anything in a batch.");
    for at in [1, 2] {
        assert_eq!(document["tasks"][at]["error"]["hint"], "Call the tool alone, outside a batch.");
    }
    assert_eq!(scene.client.asked.load(Ordering::Relaxed), 1, "nobody was asked");
}

#[tokio::test(start_paused = true)]
async fn results_that_are_too_large_together_fail_the_task_that_brings_them() {
    let scene = BatchFixture::with(Limits { answer_bytes: 1300, ..Limits::default() });
    let large = |id: &str, bytes: u32| task(id, "large", json!({ "bytes": bytes }));
    let tasks = json!([
        large("a", 1000),
        with(task("uses", "echo", json!({ "n": "x" })), json!({ "after": "a" })),
        with(large("b", 1000), json!({ "after": "uses" })),
        with(task("uses_b", "echo", json!({})), json!({ "after": "b" })),
    ]);
    let document = scene.run(&tasks).await;
    assert_eq!(statuses(&document), ["a ok", "uses ok", "b ok", "uses_b ok"], "what nobody needs is let go");
    let both = json!([
        with(large("a", 600), json!({ "raw_output": true })),
        with(large("b", 600), json!({ "raw_output": true, "after": "a" }))
    ]);
    let document = scene.run(&both).await;
    assert_eq!(statuses(&document), ["a ok", "b error"]);
    assert_eq!(document["tasks"][1]["error"]["code"], "PAYLOAD_TOO_LARGE");
    let each = json!([with(large("e", 500), json!({ "for_each": [1, 2, 3] }))]);
    assert_eq!(statuses(&scene.run(&each).await), ["e error"]);
}

/// Builds a scene whose audit queue has this many slots.
async fn audited(places: usize) -> BatchFixture {
    let registry = RegistryStore::new(probe::store().await, Arc::new(|_, _| Err(Vec::new())));
    let limits = Limits { audit_queue: places, ..Limits::default() };
    let gateway = Gateway::new(Arc::new(limits), HmacSigner::new([7; 32]), registry);
    let rules = AuditRules {
        durability: Durability::Group,
        when_full: QueueFullPolicy::Block,
        retention: Duration::from_secs(3600),
        max_records: None,
    };
    gateway.start_audit(rules, None);
    BatchFixture { caller: Caller::named("alice"), ..BatchFixture::around(gateway) }
}

/// Returns `kind tool outcome` of every record, in any order.
async fn records(scene: &BatchFixture) -> Vec<String> {
    let page = scene
        .gateway
        .audit_page(&AuditFilter::default(), hikite_store::AuditCursor::Back(None), 1000)
        .await
        .expect("read");
    assert!(scene.gateway.verify_audit().await.expect("verified").broken.is_none());
    let records = page.rows.iter().map(|row| serde_json::from_str::<Value>(&row.record).expect("JSON"));
    let word = |record: &Value, name: &str| record[name].as_str().unwrap_or_default().to_owned();
    let mut told: Vec<String> = records
        .map(|record| format!("{} {} {}", word(&record, "kind"), word(&record, "tool"), word(&record, "outcome")))
        .collect();
    told.sort_unstable();
    told
}

#[tokio::test]
async fn every_task_has_its_own_record_beside_that_of_the_batch() {
    let scene = audited(100).await;
    let tasks = json!([
        task("a", "echo", json!({})),
        task("b", "fail", json!({})),
        with(task("c", "echo", json!({})), json!({ "for_each": [1, 2] })),
        with(task("never", "search", json!({ "query": "x" })), json!({ "after": "b" })),
    ]);
    scene.run(&tasks).await;
    assert_eq!(
        records(&scene).await,
        ["batch  ok", "call echo ok", "call echo ok", "call echo ok", "call fail tool_error"]
    );
}

#[tokio::test]
async fn what_is_cancelled_by_a_failure_is_recorded_as_that() {
    let scene = audited(100).await;
    let tasks = json!([
        task("a", "hang", json!({})),
        with(task("each", "hang", json!({})), json!({ "for_each": [1, 2] })),
        with(task("b", "sleep", json!({ "ms": 50 })), json!({})),
        with(task("c", "fail", json!({})), json!({ "after": "b", "on_error": "fail_fast" })),
    ]);
    let document = scene.run(&tasks).await;
    assert_eq!(statuses(&document), ["a cancelled", "each cancelled", "b ok", "c error"]);
    assert_eq!(document["tasks"][0]["cause"], "c");
    let told = records(&scene).await;
    assert_eq!(told.iter().filter(|record| *record == "call hang cancelled").count(), 3, "{told:?}");
    assert_eq!(scene.stage.running(), 0);
}

#[tokio::test]
async fn batches_do_not_hold_the_places_that_their_tasks_need() {
    let scene = audited(1).await;
    let tasks: Value = (0..20).map(|n| task(&format!("t{n}"), "echo", json!({}))).collect();
    let both = futures_util::future::join_all((0..4).map(|_| scene.run(&tasks)));
    let documents = tokio::time::timeout(Duration::from_secs(20), both).await.expect("it goes on");
    for document in documents {
        assert_eq!(document["summary"]["ok"], 20, "{document}");
    }
    let told = records(&scene).await;
    assert_eq!(told.iter().filter(|record| *record == "batch  ok").count(), 4);
    assert_eq!(told.len(), 84);
}
