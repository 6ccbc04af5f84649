//! The result cache as seen through a gateway with one source: callers, lifetimes and exclusions.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use hikite_core::call_policy::CallPolicy;
use hikite_core::error::{Error, ErrorKind};
use hikite_core::json::{Object, Raw};
use hikite_core::source::{CallContext, SourceEvent};

use crate::builder::GatewayBuilder;
use crate::command::Command;
use crate::fake::{FakeAnswer, FakeSource, call, command, context, gateway, raw, result, rules};
use crate::gateway::Gateway;

const MINUTE: CallPolicy = CallPolicy { timeout: None, retry: None, cache: Some(Duration::from_secs(60)) };

fn quick() -> Arc<FakeSource> {
    FakeSource::new(|number| Box::pin(async move { Ok(result(number)) }))
}

/// Builds a source that takes a second per call.
fn slow(outcome: impl Fn(usize) -> Result<Raw, Error> + Send + Sync + 'static) -> Arc<FakeSource> {
    FakeSource::new(move |number| -> FakeAnswer {
        let outcome = outcome(number);
        Box::pin(async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            outcome
        })
    })
}

async fn read(gateway: &Gateway, arguments: &str, context: CallContext) -> Raw {
    gateway.dispatch(command("read", arguments), context).await.expect("a result")
}

async fn resource(gateway: &Gateway) -> Raw {
    let params = Object::default().with("uri", "x:y");
    gateway.dispatch(Command::Read { params }, context("owner")).await.expect("a result")
}

/// Returns the age in a cached result; `None` if it was not cached.
fn age(result: &Raw) -> Option<u64> {
    let mark = result.object()?.get("_meta")?.object()?.get("hikite/cache")?.object()?;
    assert_eq!(mark.get("hit").map(|hit| hit.as_str().into_owned()).as_deref(), Some("true"));
    mark.get("ageMs")?.decode().ok()
}

#[tokio::test(start_paused = true)]
async fn a_result_is_given_again_as_long_as_it_may_and_says_so() {
    let source = quick();
    let gateway = gateway(&source, MINUTE);
    let first = read(&gateway, r#"{"a":1,"b":[ ]}"#, context("owner")).await;
    assert_eq!((age(&first), first), (None, result(1)));
    tokio::time::advance(Duration::from_secs(2)).await;
    let again = read(&gateway, r#"{"b":[],"a":1}"#, context("owner")).await;
    assert_eq!((age(&again), source.calls()), (Some(2000), 1));
    assert!(again.as_str().starts_with(r#"{"content":[],"n":1,"#), "{again:?}");
    read(&gateway, r#"{"a":2}"#, context("owner")).await;
    assert_eq!(source.calls(), 2, "other arguments");
    tokio::time::advance(Duration::from_secs(58)).await;
    read(&gateway, r#"{"a":1,"b":[]}"#, context("owner")).await;
    assert_eq!(source.calls(), 3, "its time is over");
}

#[tokio::test(start_paused = true)]
async fn what_one_caller_got_is_never_shown_to_another() {
    let source = slow(|number| Ok(result(number)));
    let gateway = gateway(&source, MINUTE);
    let (ada, bob) = tokio::join!(read(&gateway, "{}", context("ada")), read(&gateway, "{}", context("bob")),);
    assert_ne!(ada, bob);
    assert_eq!((age(&ada), age(&bob), source.calls()), (None, None, 2), "not even while it is fetched");
    let again = read(&gateway, "{}", context("bob")).await;
    assert!(
        age(&again).is_some() && again.object().expect("object").get("n") == bob.object().expect("object").get("n")
    );
}

#[tokio::test(start_paused = true)]
async fn only_what_is_marked_and_only_reads_is_kept() {
    let source = quick();
    let kept = gateway(&source, MINUTE);
    for tool in ["put", "add"] {
        call(&kept, tool).await.expect("a result");
        assert_eq!(age(&call(&kept, tool).await.expect("a result")), None, "{tool}");
    }
    let unmarked = gateway(&source, CallPolicy::default());
    for _ in 0..2 {
        assert_eq!(age(&call(&unmarked, "read").await.expect("a result")), None);
        assert_eq!(age(&resource(&unmarked).await), None);
    }
    assert_eq!(source.calls(), 8);
}

#[tokio::test(start_paused = true)]
async fn errors_questions_and_what_the_server_forbids_are_not_kept() {
    for body in [
        r#"{"content":[],"isError":true}"#,
        r#"{"content":[],"ttlMs":0}"#,
        r#"{"content":[],"ttlMs":"long"}"#,
        r#"{"resultType":"input_required"}"#,
        r#"{"resultType":"task","taskId":"1"}"#,
    ] {
        let source = FakeSource::new(move |_| Box::pin(async move { Ok(raw(body)) }));
        let gateway = gateway(&source, MINUTE);
        read(&gateway, "{}", context("owner")).await;
        assert_eq!(age(&read(&gateway, "{}", context("owner")).await), None, "{body}");
        assert_eq!(source.calls(), 2, "{body}");
    }
    let source = FakeSource::new(|_| Box::pin(async { Err(Error::new(ErrorKind::ToolExecution, "no")) }));
    let gateway = gateway(&source, MINUTE);
    assert!(call(&gateway, "read").await.is_err() && call(&gateway, "read").await.is_err());
    assert_eq!(source.calls(), 2);
}

#[tokio::test(start_paused = true)]
async fn the_shorter_time_counts_and_what_is_left_of_it_is_told() {
    let source = FakeSource::new(|_| Box::pin(async { Ok(raw(r#"{"content":[],"ttlMs":5000}"#)) }));
    let gateway = gateway(&source, MINUTE);
    read(&gateway, "{}", context("owner")).await;
    tokio::time::advance(Duration::from_secs(3)).await;
    let again = read(&gateway, "{}", context("owner")).await;
    assert_eq!(again.object().and_then(|body| body.get("ttlMs").cloned()), Some(raw("2000")));
    tokio::time::advance(Duration::from_secs(2)).await;
    read(&gateway, "{}", context("owner")).await;
    assert_eq!(source.calls(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_hundred_who_ask_for_the_same_make_one_call() {
    let source = slow(|number| Ok(result(number)));
    let gateway = gateway(&source, MINUTE);
    let all = join_all((0..100).map(|_| read(&gateway, "{}", context("owner")))).await;
    assert_eq!(source.calls(), 1);
    assert_eq!(all.iter().filter(|result| age(result).is_none()).count(), 1, "one of them called");
    assert!(gateway.executor.cache.fetches.lock().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_failure_is_told_to_all_who_wait_and_not_kept() {
    let source =
        slow(
            |number| {
                if number == 1 { Err(Error::new(ErrorKind::UpstreamUnavailable, "no")) } else { Ok(result(number)) }
            },
        );
    let gateway = gateway(&source, MINUTE);
    let all = join_all((0..10).map(|_| call(&gateway, "read"))).await;
    assert!(all.iter().all(Result::is_err) && source.calls() == 1);
    assert!(call(&gateway, "read").await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn one_who_goes_away_does_not_take_the_others_along() {
    let source = slow(|number| Ok(result(number)));
    let gateway = gateway(&source, MINUTE);
    let first = tokio::time::timeout(Duration::from_millis(500), call(&gateway, "read"));
    let others = join_all((0..10).map(|_| call(&gateway, "read")));
    let (gone, others) = tokio::join!(first, others);
    assert!(gone.is_err() && others.iter().all(Result::is_ok));
    assert_eq!(source.calls(), 2, "the next in line called");
    assert!(gateway.executor.cache.fetches.lock().is_empty());
}

#[tokio::test(start_paused = true)]
async fn whoever_runs_out_of_time_does_so_alone() {
    let source = slow(|number| Ok(result(number)));
    let gateway = gateway(&source, MINUTE);
    let has_short_timeout = |ms| {
        let Command::Call { target, params, mut options } = command("read", "{}") else { unreachable!() };
        options.timeout = Some(Duration::from_millis(ms));
        gateway.dispatch(Command::Call { target, params, options }, context("owner"))
    };
    // The caller that fetches, and one that waits for it.
    let (leader, patient, follower) =
        tokio::join!(has_short_timeout(300), call(&gateway, "read"), has_short_timeout(100));
    assert_eq!(leader.expect_err("300 ms").kind, ErrorKind::Timeout);
    assert_eq!(follower.expect_err("100 ms").kind, ErrorKind::Timeout);
    assert!(patient.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_resource_is_forgotten_when_it_is_updated_even_while_it_is_read() {
    let source = slow(|number| Ok(result(number)));
    let gateway = gateway(&source, MINUTE);
    let listener = gateway.catalogs().listener("m");
    let updated = |uri: &str| {
        let params = Object::default().with("uri", uri).raw();
        listener(SourceEvent::ResourceUpdated { sessions: Vec::new(), params });
    };
    resource(&gateway).await;
    updated("x:other");
    assert!(age(&resource(&gateway).await).is_some());
    updated("x:y");
    let reading = resource(&gateway);
    let update = async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        updated("x:y");
    };
    let (fresh, ()) = tokio::join!(reading, update);
    assert_eq!(age(&fresh), None);
    assert_eq!(age(&resource(&gateway).await), None, "what was read before the update is not kept");
    assert!(age(&resource(&gateway).await).is_some());
    assert_eq!(source.calls(), 3);
}

#[tokio::test(start_paused = true)]
async fn other_rules_or_another_source_forget_what_was_kept() {
    let source = quick();
    let gateway = gateway(&source, MINUTE);
    call(&gateway, "read").await.expect("a result");
    gateway.catalogs().listener("m")(SourceEvent::ListChanged);
    assert!(age(&call(&gateway, "read").await.expect("a result")).is_some(), "nothing changed");
    gateway.apply(rules(&source, MINUTE, MINUTE));
    assert_eq!(age(&call(&gateway, "read").await.expect("a result")), None);
    let other = quick();
    gateway.apply(rules(&other, MINUTE, MINUTE));
    assert_eq!(age(&call(&gateway, "read").await.expect("a result")), None);
    assert_eq!((source.calls(), other.calls()), (2, 1));
}

#[tokio::test(start_paused = true)]
async fn what_belongs_to_one_conversation_is_not_shared() {
    let source = quick();
    let gateway = gateway(&source, MINUTE);
    let with = |name: &str, value: &str| {
        let Command::Call { target, mut params, options } = command("read", "{}") else { unreachable!() };
        params.set(name, raw(value));
        gateway.dispatch(Command::Call { target, params, options }, context("owner"))
    };
    for (name, value) in [("task", "{}"), ("requestState", "\"s\""), ("inputResponses", "{}")] {
        for _ in 0..2 {
            assert_eq!(age(&with(name, value).await.expect("a result")), None, "{name}");
        }
    }
    assert_eq!(source.calls(), 6);
    // A progress token does not change the cache key; any other member of `_meta` may.
    with("_meta", r#"{"progressToken":1,"traceparent":"a"}"#).await.expect("a result");
    assert!(age(&with("_meta", r#"{"progressToken":2}"#).await.expect("a result")).is_some());
    assert_eq!(age(&with("_meta", r#"{"tenant":2}"#).await.expect("a result")), None);
}

#[tokio::test(start_paused = true)]
async fn what_is_too_large_is_not_kept_and_zero_bytes_keep_nothing() {
    let big = format!(r#"{{"content":[],"x":"{}"}}"#, "x".repeat(2 << 20));
    let source = FakeSource::new(move |_| {
        let big = big.clone();
        Box::pin(async move { Ok(raw(&big)) })
    });
    let large = gateway(&source, MINUTE);
    for _ in 0..2 {
        assert_eq!(age(&call(&large, "read").await.expect("a result")), None);
    }
    let limits = hikite_core::limits::Limits { cache_bytes: 0, ..Default::default() };
    let off = GatewayBuilder::new(
        limits.into(),
        hikite_core::signer::HmacSigner::new([7; 32]),
        crate::probe::registry_detached(),
    )
    .build();
    let source = quick();
    off.apply(rules(&source, MINUTE, MINUTE));
    for _ in 0..2 {
        assert_eq!(age(&call(&off, "read").await.expect("a result")), None);
    }
}
