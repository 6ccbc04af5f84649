//! Every request leaves exactly one record, whatever its outcome, without its argument values.

use std::sync::Arc;
use std::time::Duration;

use hikite_core::audit::digest;
use hikite_core::call_policy::{CallPolicy, RetryPolicy};
use hikite_core::caller::{Caller, Scopes};
use hikite_core::error::{Error, ErrorKind};
use hikite_core::json::{Object, Raw};
use hikite_core::limits::Limits;
use hikite_core::signer::HmacSigner;
use hikite_core::source::{CallContext, CallOrigin, SourceMethod};
use hikite_store::{AuditFilter, Store};
use serde_json::{Value, json};

use super::durability::Durability;
use super::queue::{AuditRules, AuditSettings, QueueFullPolicy};
use crate::builder::GatewayBuilder;
use crate::command::{CallOptions, Command, ToolTarget};
use crate::fake::{FakeAnswer, FakeSource, command, context, raw, result, rules};
use crate::gateway::Gateway;
use crate::probe;
use crate::registry::RegistryStore;
use crate::surface::{Surface, Surfaces};

const SECRET: &str = "hunter2";

const KEPT: AuditRules = AuditRules {
    durability: Durability::Group,
    when_full: QueueFullPolicy::Block,
    retention: Duration::from_secs(3600),
    max_records: None,
};

struct AuditFixture {
    gateway: Arc<Gateway>,
    source: Arc<FakeSource>,
    store: Store,
}

impl AuditFixture {
    async fn new(answer: impl Fn(usize) -> FakeAnswer + Send + Sync + 'static) -> Self {
        Self::with(answer, CallPolicy::default(), Limits::default(), KEPT).await
    }

    async fn with(
        answer: impl Fn(usize) -> FakeAnswer + Send + Sync + 'static,
        policy: CallPolicy,
        limits: Limits,
        kept: AuditRules,
    ) -> Self {
        let (source, store) = (FakeSource::new(answer), probe::store().await);
        let registry = RegistryStore::new(store.clone(), Arc::new(|_, _| Err(Vec::new())));
        let builder = GatewayBuilder::new(Arc::new(limits), HmacSigner::new([7; 32]), registry);
        let gateway = GatewayBuilder { audit: Some(AuditSettings { rules: kept, folder: None }), ..builder }.build();
        gateway.apply(rules(&source, policy, policy));
        Self { gateway, source, store }
    }

    async fn call(&self, tool: &str) -> Result<Raw, Error> {
        self.gateway.dispatch(command(tool, &json!({ "key": SECRET }).to_string()), from()).await
    }

    /// Returns all records, oldest first, and checks that none contains the secret.
    async fn records(&self) -> Vec<Value> {
        let walk = hikite_store::AuditCursor::Back(None);
        let page = self.gateway.auditor().page(&AuditFilter::default(), walk, 1000).await.expect("read");
        let rows = page.rows;
        assert!(self.gateway.auditor().verify().await.expect("verified").broken.is_none());
        for row in &rows {
            assert!(!row.record.contains(SECRET), "{}", row.record);
        }
        rows.iter().rev().map(|row| serde_json::from_str(&row.record).expect("JSON")).collect()
    }

    async fn only(&self) -> Value {
        let records = self.records().await;
        assert_eq!(records.len(), 1, "{records:#?}");
        records.into_iter().next().expect("one")
    }
}

fn from() -> CallContext {
    let origin = CallOrigin {
        request_id: Some("r-1".into()),
        client: Some(raw(r#"{"name":"tester","version":"1.2"}"#)),
        ..CallOrigin::default()
    };
    CallContext { origin, ..context("alice") }
}

fn answering(text: &'static str) -> impl Fn(usize) -> FakeAnswer {
    move |_| Box::pin(async move { Ok(raw(text)) })
}

#[track_caller]
fn is(record: &Value, members: &Value) {
    for (name, value) in members.as_object().expect("members") {
        assert_eq!(&record[name], value, "{name} of {record:#}");
    }
}

#[tokio::test]
async fn a_record_says_who_did_what_and_how_it_went() {
    let audited = AuditFixture::new(answering(r#"{"content":[]}"#)).await;
    audited.call("read").await.expect("a result");
    let record = audited.only().await;
    is(
        &record,
        &json!({ "seq": 1, "kind": "call", "decision": "allowed", "outcome": "ok", "requestId": "r-1",
            "subject": "alice", "client": "tester/1.2", "session": 1, "method": "tools/call", "module": "m",
            "tool": "read", "what": "m:read", "attempts": 1, "bytesIn": 17, "bytesOut": 14, "tokensEstimated": 8,
            "argumentsHash": digest(br#"{"key":"hunter2"}"#) }),
    );
    assert!(record["ms"].as_f64().is_some_and(|ms| ms > 0.0) && record.get("cached").is_none(), "{record}");
    let age = crate::now_ms() - record["at"].as_u64().expect("a time");
    assert!(age < 60_000, "{age}");
}

#[tokio::test]
async fn a_failure_a_panic_a_time_out_and_a_tool_that_says_no_leave_one_record_each() {
    for (answer, outcome) in [
        (
            Box::new(|| Box::pin(async { Err(Error::new(ErrorKind::ToolExecution, "no")) }) as FakeAnswer)
                as Box<dyn Fn() -> FakeAnswer + Send + Sync>,
            "TOOL_EXECUTION_ERROR",
        ),
        (Box::new(|| Box::pin(async { panic!("inside") })), "INTERNAL_ERROR"),
        (Box::new(|| Box::pin(std::future::pending())), "TIMEOUT"),
        (Box::new(|| Box::pin(async { Ok(raw(r#"{"isError":true,"content":[]}"#)) })), "tool_error"),
        (Box::new(|| Box::pin(async { Err(Error::new(ErrorKind::Cancelled, "gone")) })), "cancelled"),
    ] {
        let policy = CallPolicy { timeout: Some(Duration::from_millis(20)), ..CallPolicy::default() };
        let audited = AuditFixture::with(move |_| answer(), policy, Limits::default(), KEPT).await;
        let _ = audited.call("add").await;
        is(&audited.only().await, &json!({ "outcome": outcome, "decision": "allowed", "attempts": 1 }));
    }
}

#[tokio::test]
async fn a_call_that_is_given_up_leaves_one_record() {
    let audited = AuditFixture::new(|_| Box::pin(std::future::pending())).await;
    let call = audited.call("add");
    assert!(tokio::time::timeout(Duration::from_millis(20), call).await.is_err());
    is(&audited.only().await, &json!({ "outcome": "cancelled", "decision": "allowed", "tool": "add" }));
}

#[tokio::test]
async fn a_panic_of_our_own_leaves_one_record() {
    let audited = AuditFixture::new(answering("{}")).await;
    let gateway = Arc::clone(&audited.gateway);
    #[expect(clippy::disallowed_methods, reason = "its panic is what is looked at")]
    let broken = tokio::spawn(async move {
        let _audit = gateway.auditor().open("direct", &command("read", "{}"), &from()).await.expect("a place");
        panic!("here");
    });
    assert!(broken.await.is_err());
    is(&audited.only().await, &json!({ "outcome": "INTERNAL_ERROR", "surface": "direct" }));
}

#[tokio::test]
async fn a_retry_and_a_kept_result_leave_one_record_each() {
    let retry = Some(RetryPolicy { attempts: 3, delay: Duration::from_millis(1) });
    let policy = CallPolicy { retry, cache: Some(Duration::from_secs(60)), ..CallPolicy::default() };
    let answer = |number| -> FakeAnswer {
        let down = || Error::new(ErrorKind::UpstreamUnavailable, "no");
        Box::pin(async move { if number == 1 { Err(down()) } else { Ok(result(number)) } })
    };
    let audited = AuditFixture::with(answer, policy, Limits::default(), KEPT).await;
    for _ in 0..2 {
        audited.call("read").await.expect("a result");
    }
    let records = audited.records().await;
    assert_eq!((records.len(), audited.source.calls()), (2, 2));
    is(&records[0], &json!({ "outcome": "ok", "attempts": 2 }));
    is(&records[1], &json!({ "outcome": "ok", "cached": true }));
    assert!(records[1].get("attempts").is_none());
}

#[tokio::test]
async fn what_is_refused_is_recorded_in_the_words_of_whoever_asked() {
    let audited = AuditFixture::new(answering("{}")).await;
    let params = || Object::default().with("arguments", json!({ "key": SECRET }));
    let call = |target| Command::Call { target, params: params(), options: CallOptions::default() };
    let in_category = ToolTarget::InCategory { category: "none".into(), name: "x".into() };
    let uri = |uri: &str| Object::default().with("uri", uri);
    for (command, expected) in [
        (
            call(ToolTarget::Named("m:nothing".into())),
            json!({ "outcome": "TOOL_NOT_FOUND", "tool": "m:nothing", "kind": "call" }),
        ),
        (call(in_category), json!({ "what": "none/x", "tool": "x", "kind": "call" })),
        (
            Command::Read { params: uri(&format!("no:such?key={SECRET}")) },
            json!({ "kind": "read", "outcome": "NOT_FOUND", "what": "no:such", "method": "resources/read" }),
        ),
        (Command::Read { params: Object::default() }, json!({ "kind": "read", "outcome": "VALIDATION_ERROR" })),
        (Command::Subscribe { params: uri("no:such") }, json!({ "kind": "subscribe" })),
        (Command::Prompt { params: Object::default().with("name", "p") }, json!({ "kind": "prompt", "what": "p" })),
        (Command::Complete { params: Object::default() }, json!({ "kind": "complete" })),
        (
            Command::Task { method: SourceMethod::GetTask, params: Object::default() },
            json!({ "kind": "task", "method": "tasks/get" }),
        ),
    ] {
        let before = audited.records().await.len();
        let shown = format!("{command:?}");
        audited.gateway.dispatch(command, from()).await.expect_err(&shown);
        let records = audited.records().await;
        assert_eq!(records.len(), before + 1, "{shown}");
        is(&records[before], &expected);
        is(&records[before], &json!({ "decision": "refused", "subject": "alice" }));
    }
    assert_eq!(audited.source.calls(), 0);
}

#[tokio::test]
async fn the_surface_that_was_spoken_to_is_told_also_where_nothing_was_understood() {
    let audited = AuditFixture::new(answering(r#"{"content":[]}"#)).await;
    let surfaces = Surfaces::of([Surface::Categories, Surface::Direct]);
    for (params, expected) in [
        (json!({ "name": "m:read", "arguments": {} }), json!({ "surface": "direct", "outcome": "ok" })),
        (
            json!({ "name": "call-category-tool", "arguments": { "category": 7, "args": { "key": SECRET } } }),
            json!({ "surface": "categories", "outcome": "VALIDATION_ERROR", "tool": "call-category-tool" }),
        ),
        (json!({ "name": 5 }), json!({ "outcome": "VALIDATION_ERROR", "decision": "refused" })),
    ] {
        let before = audited.records().await.len();
        let params = Raw::of(&params).object().expect("an object");
        let _ = audited.gateway.call_tool(surfaces, params, from()).await;
        let records = audited.records().await;
        assert_eq!(records.len(), before + 1, "{records:#?}");
        is(&records[before], &expected);
    }
    let params = Raw::of(&json!({ "name": "get-category-tools", "arguments": { "category": "none" } }));
    let before = audited.records().await.len();
    let _ = audited.gateway.call_tool(surfaces, params.object().expect("an object"), from()).await;
    assert_eq!(audited.records().await.len(), before, "looking at a list is no invocation");
}

#[tokio::test]
async fn large_arguments_have_the_hash_that_small_ones_have() {
    let audited = AuditFixture::new(answering("{}")).await;
    let filling = format!("{SECRET}{}", "x".repeat(100_000));
    let arguments = json!({ "b": filling, "a": 1.0 }).to_string();
    audited.gateway.dispatch(command("add", &arguments), from()).await.expect("a result");
    let record = audited.only().await;
    let canonical = format!(r#"{{"a":1,"b":"{filling}"}}"#);
    let expected = json!({ "argumentsHash": digest(canonical.as_bytes()), "bytesIn": arguments.len() });
    is(&record, &expected);
}

#[tokio::test]
async fn a_search_leaves_one_record_also_if_it_is_given_up_or_refused() {
    let audited = AuditFixture::new(answering("{}")).await;
    let context = from();
    let who = (&context.session.caller, &context.origin);
    let search = audited.gateway.auditor().open_search(who).await.expect("a place");
    search.found("bm25", &[format!("what is {SECRET}"), "b".into()], 3);
    drop(audited.gateway.auditor().open_search(who).await.expect("a place"));
    let nobody = Caller { scopes: Scopes::NONE, ..context.session.caller.clone() };
    audited.gateway.auditor().open_search((&nobody, &context.origin)).await.expect_err("refused");
    let records = audited.records().await;
    assert_eq!(records.len(), 3);
    let queries_hash = digest(br#"["what is hunter2","b"]"#);
    is(
        &records[0],
        &json!({ "kind": "search", "outcome": "ok", "provider": "bm25", "queries": 2, "results": 3,
            "queriesHash": queries_hash, "requestId": "r-1", "client": "tester/1.2" }),
    );
    is(&records[1], &json!({ "kind": "search", "outcome": "cancelled" }));
    is(&records[2], &json!({ "outcome": "AUTHORIZATION_ERROR", "decision": "refused" }));
}

#[tokio::test]
async fn what_an_admin_does_is_recorded_also_if_it_fails() {
    let audited = AuditFixture::new(answering("{}")).await;
    let (owner, origin) = (Caller::owner(), CallOrigin::default());
    let who = (&owner, &origin);
    let done = audited.gateway.auditor().record_admin(who, "tool.enable", "m:read", async { Ok(5) }).await;
    assert_eq!(done.expect("done"), 5);
    let failed = async { Err::<(), _>(Error::new(ErrorKind::Conflict, "no")) };
    audited.gateway.auditor().record_admin(who, "tool.disable", "m:add", failed).await.expect_err("refused");
    let records = audited.records().await;
    is(&records[0], &json!({ "kind": "admin", "method": "tool.enable", "what": "m:read", "subject": "owner" }));
    is(&records[1], &json!({ "method": "tool.disable", "outcome": "CONFLICT" }));
}

fn narrow() -> Limits {
    Limits { audit_queue: 1, call_timeout: Duration::from_millis(500), ..Limits::default() }
}

/// Answers calls, except that the first one never ends and holds the only slot.
fn hanging(number: usize) -> FakeAnswer {
    if number == 1 { Box::pin(std::future::pending()) } else { Box::pin(async { Ok(raw("{}")) }) }
}

#[tokio::test]
async fn without_a_place_nothing_runs_and_what_was_refused_is_counted() {
    let audited = AuditFixture::with(hanging, CallPolicy::default(), narrow(), KEPT).await;
    let mut first = Box::pin(audited.call("add"));
    assert!(futures_util::poll!(&mut first).is_pending());
    let error = audited.call("add").await.expect_err("there is no place");
    assert_eq!((error.kind, audited.source.calls()), (ErrorKind::Overloaded, 1));
    assert!(error.hint.is_some());
    drop(first);
    audited.call("add").await.expect("a place again");
    let records = audited.records().await;
    let outcomes: Vec<&Value> = records.iter().map(|record| &record["outcome"]).collect();
    assert_eq!(outcomes.iter().filter(|outcome| **outcome == "cancelled").count(), 1, "{records:#?}");
    let lost: u64 = records.iter().filter_map(|record| record["lost"].as_u64()).sum();
    assert_eq!((records.len(), lost, audited.gateway.auditor.counts().dropped), (3, 1, 1));
}

#[tokio::test]
async fn where_records_may_be_lost_calls_run_and_how_many_is_recorded() {
    let kept = AuditRules { when_full: QueueFullPolicy::DropAndCount, ..KEPT };
    let audited = AuditFixture::with(hanging, CallPolicy::default(), narrow(), kept).await;
    let mut first = Box::pin(audited.call("add"));
    assert!(futures_util::poll!(&mut first).is_pending());
    for _ in 0..5 {
        audited.call("add").await.expect("it runs");
    }
    drop(first);
    let records = audited.records().await;
    assert_eq!(records.len(), 2, "{records:#?}");
    is(&records[0], &json!({ "outcome": "cancelled" }));
    is(&records[1], &json!({ "kind": "lost", "lost": 5 }));
    assert_eq!(audited.gateway.auditor.counts().dropped, 5);
}

#[tokio::test]
async fn everything_that_waits_is_written_before_the_end_and_nothing_is_asked_of_the_store_without_it() {
    let audited = AuditFixture::new(answering("{}")).await;
    for _ in 0..1200 {
        audited.call("add").await.expect("a result");
    }
    audited.gateway.auditor().stop().await;
    let verified = audited.store.audit().verify(None, |_, _| {}).await.expect("verified");
    assert_eq!((verified.records(), verified.broken), (1200, None));
    let counts = audited.gateway.auditor.counts();
    assert_eq!((counts.waiting, counts.written, counts.dropped), (0, 1200, 0));
    let source = FakeSource::new(|number| Box::pin(async move { Ok(result(number)) }));
    let off = crate::fake::gateway(&source, CallPolicy::default());
    off.dispatch(command("add", "{}"), from()).await.expect("a result");
    off.auditor().stop().await;
}

#[tokio::test]
async fn what_is_too_old_or_too_much_goes() {
    let kept = AuditRules { retention: Duration::from_secs(1), ..KEPT };
    let audited =
        AuditFixture::with(|n| Box::pin(async move { Ok(result(n)) }), CallPolicy::default(), Limits::default(), kept)
            .await;
    audited.call("add").await.expect("a result");
    assert_eq!(audited.records().await.len(), 1);
    let begin = std::time::Instant::now();
    loop {
        let records = audited.records().await;
        if records[0]["kind"] == "trim" {
            is(&records[0], &json!({ "seq": 2, "trimmed": 1, "trimmedTo": 1 }));
            break;
        }
        assert!(begin.elapsed() < Duration::from_secs(60));
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(audited.gateway.auditor.counts().trimmed, 1);
    audited.call("add").await.expect("a result");
    is(&audited.records().await[1], &json!({ "seq": 3, "kind": "call" }));
}

#[tokio::test]
async fn in_strict_the_record_is_committed_before_the_answer() {
    let kept = AuditRules { durability: Durability::Strict, ..KEPT };
    let audited =
        AuditFixture::with(answering(r#"{"content":[]}"#), CallPolicy::default(), Limits::default(), kept).await;
    for count in 1..=3 {
        audited.call("read").await.expect("a result");
        // Read from the store directly, because reading through the gateway flushes.
        let rows = audited.store.audit().read(&AuditFilter::default(), hikite_store::AuditCursor::Back(None), 10).await;
        assert_eq!(rows.expect("read").len(), count);
    }
    let state = audited.gateway.auditor().state().expect("it is on");
    assert_eq!((state.durability.name(), state.waiting, state.is_full), ("strict", 0, false));
}
