//! Documents and leases.

use std::time::Duration;

use hikite_core::json::Raw;
use serde_json::json;

use super::TestStore;
use crate::DocumentRow;

fn entry(id: &str, owner: &str, created_at: u64, expires_at: u64) -> DocumentRow {
    let document = Raw::of(&json!({ "id": id }));
    DocumentRow { kind: "code", id: id.into(), owner: owner.into(), document, version: 1, created_at, expires_at }
}

#[tokio::test]
async fn a_form_is_changed_by_who_knows_its_version() {
    for place in TestStore::both() {
        let store = place.open().await;
        let first = entry("a", "alice", 1, 0);
        assert!(store.documents().put(&first).await.expect("put"));
        assert!(!store.documents().put(&first).await.expect("refused"), "it is there");
        assert_eq!(store.documents().get("code", "a", 9).await.expect("read"), Some(first.clone()));
        assert_eq!(store.documents().get("grant", "a", 9).await.expect("read"), None, "another kind");
        let changed = DocumentRow { owner: "bob".into(), expires_at: 50, ..first.clone() };
        assert!(store.documents().change(&changed).await.expect("changed"));
        assert!(!store.documents().change(&first).await.expect("refused"), "in another version by now");
        let found = store.documents().get("code", "a", 9).await.expect("read").expect("there");
        assert_eq!((found.version, found.owner.as_str(), found.expires_at), (2, "bob", 50));
        assert_eq!(store.documents().get("code", "a", 50).await.expect("read"), None, "over");
        assert_eq!(store.documents().get("code", "a\0", 9).await.expect("read"), None);
        assert_eq!(store.changes().revision().await.expect("read"), 2);
    }
}

#[tokio::test]
async fn what_may_be_used_once_is_used_by_one() {
    for place in TestStore::both() {
        let store = place.open().await;
        assert!(store.documents().put(&entry("code", "alice", 1, 100)).await.expect("put"));
        assert!(store.documents().put(&entry("late", "alice", 1, 10)).await.expect("put"));
        let documents = store.documents();
        let takers = (0..20).map(|_| documents.take("code", "code", 50));
        let got = futures_util::future::join_all(takers).await;
        let got: Vec<_> = got.into_iter().filter_map(|taken| taken.expect("taken")).collect();
        assert_eq!(got, [entry("code", "alice", 1, 100)]);
        assert_eq!(store.documents().take("code", "late", 50).await.expect("read"), None, "its time was over");
        assert!(store.documents().put(&entry("x", "alice", 2, 0)).await.expect("put"));
        assert_eq!(store.documents().all("code", Some("alice"), 50).await.expect("read"), [entry("x", "alice", 2, 0)]);
        assert_eq!(store.documents().all("code", Some("bob"), 50).await.expect("read"), []);
        assert_eq!(store.documents().remove_of("code", "alice").await.expect("removed"), 2, "expired or not");
        assert!(store.documents().put(&entry("late", "alice", 1, 10)).await.expect("put"));
        assert_eq!(store.delete_expired(10).await.expect("swept"), 1);
        assert_eq!(store.check().await.expect("checked"), [""; 0]);
    }
}

#[tokio::test]
async fn a_lease_has_one_holder_and_each_new_one_a_greater_fence() {
    for place in TestStore::both() {
        let store = place.open().await;
        let (long, over) = (Duration::from_secs(3600), Duration::ZERO);
        let take = async |holder: &str, life: Duration| {
            store.leases().take("refresh", holder, life).await.expect("asked").map(|lease| lease.fence)
        };
        assert_eq!(take("one", long).await, Some(1));
        assert_eq!(take("two", long).await, None, "held");
        assert_eq!(take("one", over).await, Some(1), "held on, and let end");
        assert_eq!(take("two", long).await, Some(2), "its time was over");
        assert_eq!(take("one", long).await, None);
        let lease = store.leases().take("refresh", "two", long).await.expect("asked").expect("held");
        let now = store.clock().now_ms().await.expect("a clock");
        assert!(lease.until > now && lease.until <= now + 3_600_000, "by the database's clock");
        assert!(store.leases().release(&lease).await.expect("released"));
        assert_eq!(take("one", long).await, Some(3));
        assert!(!store.leases().release(&lease).await.expect("refused"), "it is another's by now");
        let all: Vec<String> = (0..10).map(|holder| holder.to_string()).collect();
        let leases = store.leases();
        let takers = all.iter().map(|holder| leases.take("race", holder, long));
        let got = futures_util::future::join_all(takers).await;
        assert_eq!(got.into_iter().filter(|taken| taken.as_ref().is_ok_and(Option::is_some)).count(), 1);
    }
}
