//! Retries and circuit breakers in front of a failing source, with a paused clock.

use std::time::Duration;

use hikite_core::breaker;
use hikite_core::call_policy::{CallPolicy, RetryPolicy};
use hikite_core::error::{Error, ErrorKind};
use tokio::time::Instant;

use crate::command::{CallOptions, Command};
use crate::fake::{FakeSource, call, command, context, gateway, result, rules};

const RETRY: CallPolicy = CallPolicy {
    timeout: None,
    retry: Some(RetryPolicy { attempts: 3, delay: Duration::from_millis(100) }),
    cache: None,
};

fn down() -> Error {
    Error::new(ErrorKind::UpstreamUnavailable, "no")
}

/// Builds a source that fails `times` times with `failure` and then succeeds.
fn failing(times: usize, failure: impl Fn() -> Error + Send + Sync + 'static) -> std::sync::Arc<FakeSource> {
    FakeSource::new(move |number| {
        let outcome = if number <= times { Err(failure()) } else { Ok(result(number)) };
        Box::pin(async { outcome })
    })
}

#[tokio::test(start_paused = true)]
async fn what_may_run_twice_is_tried_again_and_nothing_else_is() {
    for (tool, calls) in [("read", 2), ("put", 2), ("add", 1)] {
        let source = failing(1, down);
        let gateway = gateway(&source, RETRY);
        assert_eq!(call(&gateway, tool).await.is_ok(), calls == 2, "{tool}");
        assert_eq!(source.calls(), calls, "{tool}");
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_is_tried_again_unless_somebody_asked_for_it() {
    let source = failing(1, down);
    let gateway = gateway(&source, CallPolicy::default());
    assert!(call(&gateway, "read").await.is_err());
    let Command::Call { target, params, .. } = command("read", "{}") else { unreachable!() };
    let options = CallOptions { retry: RETRY.retry, ..CallOptions::default() };
    let source = failing(1, down);
    let asked = crate::fake::gateway(&source, CallPolicy::default());
    let outcome = asked.dispatch(Command::Call { target, params, options }, context("owner")).await;
    assert!(outcome.is_ok() && source.calls() == 2);
}

#[tokio::test(start_paused = true)]
async fn an_error_that_would_come_again_is_not_tried_again() {
    for kind in [ErrorKind::ToolExecution, ErrorKind::Validation, ErrorKind::Cancelled, ErrorKind::Internal] {
        let source = failing(1, move || Error::new(kind, "no"));
        assert!(call(&gateway(&source, RETRY), "read").await.is_err());
        assert_eq!(source.calls(), 1, "{kind:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_is_given_the_time_it_asks_for_if_the_call_has_it() {
    let source = failing(1, || down().after(Duration::from_secs(9)));
    let begin = Instant::now();
    assert!(call(&gateway(&source, RETRY), "read").await.is_ok());
    assert!(begin.elapsed() >= Duration::from_secs(9), "{:?}", begin.elapsed());
    let source = failing(1, || down().after(Duration::from_secs(31)));
    let begin = Instant::now();
    let error = call(&gateway(&source, RETRY), "read").await.expect_err("it has 30 s");
    assert_eq!((error.retry_after, source.calls()), (Some(Duration::from_secs(31)), 1));
    assert!(begin.elapsed() < Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn all_attempts_lie_within_one_deadline() {
    let source = FakeSource::new(|_| {
        Box::pin(async {
            tokio::time::sleep(Duration::from_secs(12)).await;
            Err(down())
        })
    });
    let gateway = gateway(&source, RETRY);
    for _ in 0..5 {
        let begin = Instant::now();
        assert!(call(&gateway, "read").await.is_err());
        assert!(begin.elapsed() <= Duration::from_secs(31), "{:?}", begin.elapsed());
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_given_up_is_not_tried_again() {
    let source = failing(9, || down().after(Duration::from_secs(5)));
    let gateway = gateway(&source, RETRY);
    assert!(tokio::time::timeout(Duration::from_secs(1), call(&gateway, "read")).await.is_err());
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(source.calls(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_outage_is_multiplied_by_a_fifth_at_most() {
    let source = FakeSource::new(|number| {
        let outcome = if number <= 500 { Ok(result(number)) } else { Err(down()) };
        Box::pin(async { outcome })
    });
    let limits = hikite_core::limits::Limits { breaker_failures: 0, ..Default::default() };
    let gateway = crate::Gateway::new(
        limits.into(),
        hikite_core::signer::HmacSigner::new([7; 32]),
        crate::probe::registry_detached(),
    );
    gateway.apply(rules(&source, RETRY, RETRY));
    for _ in 0..500 {
        call(&gateway, "read").await.expect("healthy");
    }
    let calls: Vec<_> = (0..100).map(|_| call(&gateway, "read")).collect();
    assert!(futures_util::future::join_all(calls).await.iter().all(Result::is_err));
    let sent = source.calls() - 500;
    assert!((110..=120).contains(&sent), "{sent}");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_fails_is_left_alone_and_a_reload_does_not_forget_it() {
    let source = failing(10, down);
    let gateway = gateway(&source, CallPolicy::default());
    for _ in 0..30 {
        let error = call(&gateway, "add").await.expect_err("it fails");
        assert_eq!(error.kind, ErrorKind::UpstreamUnavailable);
    }
    assert_eq!(source.calls(), 10);
    let mut changed = rules(&source, CallPolicy::default(), CallPolicy::default());
    changed.modules[0].1.concurrency = 3;
    gateway.apply(changed);
    assert_eq!(gateway.breaker_state("m"), Some(breaker::CircuitState::Open));
    let error = call(&gateway, "add").await.expect_err("still open");
    assert!(error.retry_after.is_some() && error.hint.is_some() && source.calls() == 10);
    tokio::time::sleep(Duration::from_secs(5)).await;
    call(&gateway, "add").await.expect("the one that finds out");
    assert_eq!(gateway.breaker_state("m"), Some(breaker::CircuitState::Closed));
    assert_eq!(gateway.breaker_state("other"), None);
    let other = failing(0, down);
    gateway.apply(rules(&other, CallPolicy::default(), CallPolicy::default()));
    call(&gateway, "add").await.expect("another source starts anew");
}

#[tokio::test(start_paused = true)]
async fn time_runs_out_for_the_tool_the_call_and_the_breaker() {
    let source = FakeSource::new(|_| Box::pin(std::future::pending()));
    let policy = CallPolicy { timeout: Some(Duration::from_secs(2)), ..CallPolicy::default() };
    let gateway = gateway(&source, policy);
    let begin = Instant::now();
    let error = call(&gateway, "add").await.expect_err("it hangs");
    assert_eq!((error.kind, begin.elapsed().as_secs()), (ErrorKind::Timeout, 2));
    assert_eq!(&*error.message, "`m` did not answer within 2 s.");
    let has_short_timeout = CallOptions { timeout: Some(Duration::from_millis(10)), ..CallOptions::default() };
    for _ in 0..50 {
        let Command::Call { target, params, .. } = command("add", "{}") else { unreachable!() };
        let call = Command::Call { target, params, options: has_short_timeout };
        assert_eq!(gateway.dispatch(call, context("owner")).await.expect_err("hangs").kind, ErrorKind::Timeout);
    }
    assert_eq!(gateway.breaker_state("m"), Some(breaker::CircuitState::Closed), "impatience is not the server's");
    for _ in 0..9 {
        assert_eq!(call(&gateway, "add").await.expect_err("it hangs").kind, ErrorKind::Timeout);
    }
    assert_eq!(gateway.breaker_state("m"), Some(breaker::CircuitState::Open));
}

#[tokio::test(start_paused = true)]
async fn a_panic_fails_one_call_alone() {
    let source = FakeSource::new(|number| {
        Box::pin(async move {
            assert!(number > 1, "the first one fails");
            Ok(result(number))
        })
    });
    let gateway = gateway(&source, RETRY);
    assert_eq!(call(&gateway, "read").await.expect_err("it panics").kind, ErrorKind::Internal);
    assert!(call(&gateway, "read").await.is_ok());
}
