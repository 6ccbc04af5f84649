//! The cached lists of upstream servers.

use hikite_core::json::Raw;
use hikite_core::listing::{ListCache, ListItem, ListKind, Listing};
use sqlx::Executor;

use super::TestStore;

fn listing(fetched_at: u64) -> Listing {
    let raw = Raw::parse(r#"{"name":"t","inputSchema": {"type":"object"}, "x":1.50,"e":"\u0000"}"#).expect("JSON");
    Listing { tools: vec![ListItem::read(ListKind::Tools, raw).expect("named")], fetched_at, ..Listing::default() }
}

#[tokio::test]
async fn a_list_is_found_at_once_and_after_another_start() {
    for place in TestStore::both() {
        let store = place.open().await;
        let cache = store.list_cache().await.expect("a cache");
        assert_eq!(cache.load("abc"), None);
        cache.store("abc", &listing(5));
        assert_eq!(cache.load("abc"), Some(listing(5)), "before it is written");
        cache.store("abc", &listing(6));
        cache.flush().await;
        store.close().await;
        cache.flush().await;
        let store = place.open().await;
        let cache = store.list_cache().await.expect("a cache");
        assert_eq!(cache.load("abc"), Some(listing(6)), "the later one, byte for byte");
        assert_eq!(store.changes().revision().await.expect("read"), 0);
    }
}

#[tokio::test]
async fn of_many_definitions_the_latest_lists_are_kept() {
    for place in TestStore::both() {
        let store = place.open().await;
        let cache = store.list_cache().await.expect("a cache");
        for n in 0..300 {
            cache.store(&format!("d{n}"), &listing(n));
        }
        cache.flush().await;
        for cache in [cache, store.list_cache().await.expect("another")] {
            assert_eq!(cache.load("d43"), None, "{}", place.url);
            assert!((44..300).all(|n| cache.load(&format!("d{n}")).is_some()));
        }
    }
}

#[tokio::test]
async fn an_unreadable_list_counts_as_absent_and_the_others_are_there() {
    for place in TestStore::both() {
        let store = place.open().await;
        let cache = store.list_cache().await.expect("a cache");
        cache.store("good", &listing(1));
        cache.flush().await;
        let mut connection = store.0.writer().acquire().await.expect("a connection");
        let bad = "INSERT INTO list_cache VALUES ('half', '{\"format\":', 1), ('old', '{\"format\":0}', 1)";
        connection.execute(bad).await.expect("written");
        drop(connection);
        let cache = store.list_cache().await.expect("a cache");
        assert_eq!((cache.load("half"), cache.load("old")), (None, None));
        assert_eq!(cache.load("good"), Some(listing(1)));
        cache.store("half", &listing(2));
        cache.flush().await;
        assert_eq!(store.check().await.expect("checked"), [""; 0], "it was overwritten");
    }
}
