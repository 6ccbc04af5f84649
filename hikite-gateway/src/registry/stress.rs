//! A thousand tools, two hundred callers and constant changes: every call sees one consistent snapshot.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use futures_util::future::join_all;
use hikite_core::caller::Caller;
use hikite_core::error::ErrorKind;
use hikite_core::json::Raw;
use serde_json::json;

use crate::command::CallOptions;
use crate::discovery::ToolFilter;
use crate::gateway::Gateway;
use crate::{fake, probe};

const STEADY: usize = 900;
const SWITCHED: usize = 50;
const PASSING: usize = 50;
const CALLERS: usize = 200;
const CALLS: usize = 60;

async fn register(gateway: &Gateway, name: &str) {
    let form = json!({
        "name": name,
        "description": "One of many",
        "parameters": [{ "name": "n", "type": "number", "description": "A number", "required": true }],
        "http": { "url": format!("https://api.example/{name}") },
    });
    let form = Raw::of(&form).object().expect("an object");
    gateway.admin().tools.register(&form).await.expect("registered");
}

/// Calls a tool and asserts that the right one ran with the right arguments.
async fn call(gateway: &Gateway, name: &str, number: usize) -> Result<(), ErrorKind> {
    let parameters = Raw::of(&json!({ "n": number }));
    let context = fake::context("owner");
    let answer = gateway.run_tool(name, Some(parameters), CallOptions::default(), context).await;
    let value = answer.map_err(|error| error.kind)?.value.value();
    assert_eq!(value["arguments"]["n"], number);
    assert_eq!(value["http"]["url"], format!("https://api.example/{name}"));
    Ok(())
}

async fn caller(gateway: Arc<Gateway>, own: usize, answered: Arc<AtomicUsize>) {
    for round in 0..CALLS {
        let number = own * CALLS + round;
        let (name, allowed): (String, &[ErrorKind]) = match number % 10 {
            8 => (format!("switched-{}", number % SWITCHED), &[ErrorKind::ToolDisabled]),
            9 => (format!("passing-{}", number % PASSING), &[ErrorKind::ToolNotFound]),
            _ => (format!("steady-{}", number % STEADY), &[]),
        };
        if let Err(kind) = call(&gateway, &name, number).await {
            assert!(allowed.contains(&kind), "{name}: {kind:?}");
        }
        answered.fetch_add(1, Ordering::Relaxed);
        tokio::task::yield_now().await;
    }
}

async fn change(gateway: Arc<Gateway>, done: Arc<AtomicBool>) -> usize {
    let mut changes = 0;
    while !done.load(Ordering::Relaxed) {
        let at = changes / 4;
        gateway.admin().tools.switch(&format!("switched-{}", at % SWITCHED), changes % 2 == 0).await.expect("switched");
        let passing = format!("passing-{}", at % PASSING);
        match gateway.admin().tools.unregister(&passing).await {
            Ok(()) => {}
            Err(error) if error.kind == ErrorKind::ToolNotFound => register(&gateway, &passing).await,
            Err(error) => panic!("{error}"),
        }
        changes += 1;
    }
    changes
}

/// Asserts that every listing contains each of the steady tools once.
async fn list(gateway: Arc<Gateway>, done: Arc<AtomicBool>) {
    while !done.load(Ordering::Relaxed) {
        let found = gateway.discovery().tools_page(&Caller::owner(), &ToolFilter::default(), 0, usize::MAX).await;
        let found = found.expect("a page");
        let steady = found.items.iter().filter(|item| item.as_str().contains("\"key\":\"registered:steady-"));
        assert_eq!(steady.count(), STEADY);
        assert_eq!(found.items.len(), found.total);
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_call_is_lost_while_tools_come_and_go() {
    let gateway = probe::gateway().await;
    let names = (0..STEADY)
        .map(|n| format!("steady-{n}"))
        .chain((0..SWITCHED).map(|n| format!("switched-{n}")))
        .chain((0..PASSING).map(|n| format!("passing-{n}")));
    for name in names {
        register(&gateway, &name).await;
    }
    let tracker = tokio_util::task::TaskTracker::new();
    let (answered, done) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
    let changing = tracker.spawn(change(Arc::clone(&gateway), Arc::clone(&done)));
    let listing = tracker.spawn(list(Arc::clone(&gateway), Arc::clone(&done)));
    let calling = (0..CALLERS).map(|own| tracker.spawn(caller(Arc::clone(&gateway), own, Arc::clone(&answered))));
    for ended in join_all(calling.collect::<Vec<_>>()).await {
        ended.expect("no caller fails");
    }
    done.store(true, Ordering::Relaxed);
    let changes = changing.await.expect("no change fails");
    listing.await.expect("no list is torn");
    assert_eq!(answered.load(Ordering::Relaxed), CALLERS * CALLS);
    assert!(changes > 0, "nothing was changed meanwhile");
}
