//! Registered tools, switches, times and the revision.

use std::sync::Arc;

use hikite_core::json::Raw;
use hikite_core::key::ToolKey;

use super::{TestStore, key, tool};
use crate::StoreFault;

#[tokio::test]
async fn a_tool_is_registered_once_unless_it_may_be_overwritten() {
    for place in TestStore::both() {
        let store = place.open().await;
        assert_eq!(store.changes().revision().await.expect("read"), 0);
        let first = tool("a", 5);
        assert!(store.tools().put(&first, false).await.expect("put"));
        let second =
            crate::RegisteredToolRow { form: Raw::parse(r#"{ "x": 1.50,"u":"é" }"#).expect("JSON"), ..tool("a", 9) };
        assert!(!store.tools().put(&second, false).await.expect("refused"));
        assert_eq!(
            (store.tools().registered().await.expect("read"), store.changes().revision().await.expect("read")),
            (vec![first], 1)
        );
        assert!(store.tools().put(&second, true).await.expect("put"));
        let older = tool("b", 1);
        assert!(store.tools().put(&older, true).await.expect("put"));
        store.close().await;
        let store = place.open().await;
        let found = store.tools().registered().await.expect("read");
        assert_eq!(found, [older, second.clone()], "the oldest first, byte for byte, after another start");
        assert_eq!(found[1].form.bytes(), second.form.bytes());
        assert_eq!(store.changes().revision().await.expect("read"), 3);
    }
}

#[tokio::test]
async fn a_switch_goes_with_its_tool_and_every_change_raises_the_revision() {
    for place in TestStore::both() {
        let store = place.open().await;
        assert!(store.tools().put(&tool("a", 1), false).await.expect("put"));
        for (name, enabled) in [("a", false), ("other", false), ("other", true)] {
            store.tools().set_switch(&key(name), enabled).await.expect("switched");
        }
        let mut switches = store.tools().switches().await.expect("read");
        switches.sort();
        assert_eq!(switches, [(key("a"), false), (key("other"), true)]);
        assert!(store.tools().remove(&key("a")).await.expect("removed"));
        assert_eq!(store.tools().switches().await.expect("read"), [(key("other"), true)]);
        assert_eq!(store.changes().revision().await.expect("read"), 5);
        assert!(!store.tools().remove(&key("a")).await.expect("not there"));
        assert_eq!(store.changes().revision().await.expect("read"), 5, "nothing changed");
    }
}

#[tokio::test]
async fn the_first_time_a_tool_was_seen_stays() {
    for place in TestStore::both() {
        let store = place.open().await;
        let keys: Vec<ToolKey> = (0..1000).map(|n| key(&format!("t{n}"))).collect();
        store.tools().note_seen(&keys[..500], 10).await.expect("noted");
        store.tools().note_seen(&keys, 20).await.expect("noted");
        store.tools().note_seen(&[keys[3].clone(), keys[3].clone(), key("no\0pe")], 30).await.expect("noted");
        store.tools().note_seen(&[], 40).await.expect("nothing to note");
        let seen: std::collections::HashMap<ToolKey, u64> =
            store.tools().first_seen().await.expect("read").into_iter().collect();
        assert_eq!(seen.len(), 1000);
        assert!(keys[..500].iter().all(|key| seen[key] == 10) && keys[500..].iter().all(|key| seen[key] == 20));
        assert_eq!(store.changes().revision().await.expect("read"), 0);
    }
}

#[tokio::test]
async fn a_name_with_a_nul_is_refused_by_both_and_looks_absent() {
    for place in TestStore::both() {
        let store = place.open().await;
        let fault = |outcome: Result<(), crate::StoreError>| outcome.map_err(|error| error.fault);
        let put = store.tools().put(&tool("a\0b", 1), true).await.map(drop);
        assert_eq!(fault(put), Err(StoreFault::Nul));
        assert_eq!(fault(store.tools().set_switch(&key("a\0b"), true).await), Err(StoreFault::Nul));
        assert!(!store.tools().remove(&key("a\0b")).await.expect("not there"));
        // JSON escapes NUL, so it is stored like any other character.
        let escaped = crate::RegisteredToolRow { form: Raw::of("a\0b"), ..tool("a", 1) };
        assert!(store.tools().put(&escaped, true).await.expect("put"));
        assert_eq!(store.tools().registered().await.expect("read"), [escaped]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_many_write_at_once_is_all_there() {
    for place in TestStore::both() {
        // Each store has its own connections, like another process.
        let mut stores = Vec::new();
        for _ in 0..4 {
            stores.push(Arc::new(place.open().await));
        }
        let tasks = tokio_util::task::TaskTracker::new();
        for n in 0..80_u64 {
            let store = Arc::clone(&stores[usize::try_from(n % 4).expect("small")]);
            tasks.spawn(async move {
                let name = format!("t{n}");
                assert!(store.tools().put(&tool(&name, n), false).await.expect("put"));
                store.tools().set_switch(&key("contested"), n % 2 == 0).await.expect("switched");
                store.tools().note_seen(&[key("b"), key("a"), key(&name)], n).await.expect("noted");
            });
        }
        tasks.close();
        tasks.wait().await;
        assert_eq!(stores[0].tools().registered().await.expect("read").len(), 80, "{}", place.url);
        assert_eq!(stores[1].changes().revision().await.expect("read"), 160);
        assert_eq!(stores[2].tools().first_seen().await.expect("read").len(), 82);
        assert_eq!(stores[3].check().await.expect("checked"), [""; 0]);
    }
}
