//! Nodes on one store: live ones, those gone for good, and exclusive ownership of sessions.

use std::time::Duration;

use sqlx::Row;

use super::{TestStore, tool};
use crate::NOBODY;
use crate::connect::DatabaseEngine;
use crate::node::{IS_SESSION, nodes_query};
use crate::store::Store;

const LONG: Duration = Duration::from_secs(600);

#[tokio::test]
async fn who_was_declared_gone_does_not_come_back_under_its_name() {
    for place in TestStore::both() {
        let store = place.open().await;
        store.nodes().announce("a", "http://a", LONG).await.expect("announced");
        store.nodes().announce("b", "http://b", Duration::ZERO).await.expect("announced");
        assert!(store.nodes().announce("a", "http://c", LONG).await.is_err(), "a name is used once");
        let there = store.nodes().all().await.expect("read");
        assert_eq!(there.iter().map(|node| (&*node.id, &*node.url)).collect::<Vec<_>>(), [("a", "http://a")]);
        assert!(store.nodes().renew("b", LONG).await.expect("renewed"), "late, and nobody has said so");
        assert!(!store.nodes().is_gone("b").await.expect("asked"));
        assert!(store.nodes().renew("b", Duration::ZERO).await.expect("renewed"));
        assert!(store.nodes().is_gone("b").await.expect("asked"), "its time is over");
        assert!(!store.nodes().renew("b", LONG).await.expect("asked"), "and stays so");
        assert!(store.nodes().is_gone("never").await.expect("asked"));
        store.nodes().end("a").await.expect("ended");
        assert!(
            store.nodes().is_gone("a").await.expect("asked") && store.nodes().all().await.expect("read").is_empty()
        );
    }
}

#[tokio::test]
async fn of_several_who_want_a_session_one_gets_it() {
    for place in TestStore::both() {
        let store = place.open().await;
        let holder =
            async || store.nodes().session_lease("s").await.expect("read").map(|lease| (lease.holder, lease.fence));
        assert_eq!(holder().await, None);
        let nodes = store.nodes();
        let (one, other) = tokio::join!(nodes.take_session("s", "a", 0), nodes.take_session("s", "b", 0));
        assert_ne!(one.expect("asked"), other.expect("asked"));
        let (first, fence) = holder().await.expect("held");
        assert_eq!(fence, 1);
        assert!(!store.nodes().take_session("s", "c", 0).await.expect("asked"), "who saw nobody comes late");
        assert!(store.nodes().take_session("s", "c", 1).await.expect("asked"));
        assert!(!store.nodes().take_session("s", &first, 1).await.expect("asked"), "an older fence");
        store.nodes().renew_sessions("c").await.expect("tended");
        assert_eq!(holder().await, Some(("c".into(), 2)));
        store.nodes().end_session("s").await.expect("ended");
        assert_eq!(holder().await, Some((NOBODY.into(), 3)));
    }
}

#[tokio::test]
async fn word_of_a_change_comes_from_another_process_where_it_is_sent() {
    let place = TestStore::postgres();
    let (here, there) = (place.open().await, place.open().await);
    here.listen();
    // Starting to listen sends a notification as well.
    assert!(here.changed(Duration::from_secs(10)).await);
    while here.changed(Duration::from_millis(100)).await {}
    assert!(there.tools().put(&tool("t", 1), false).await.expect("put"));
    assert!(here.changed(Duration::from_secs(10)).await, "told");
    let silent = TestStore::sqlite().open().await;
    silent.listen();
    assert!(!silent.changed(Duration::from_millis(1)).await);
}

/// Returns the query plan of the database.
async fn plan(store: &Store, query: &str) -> String {
    let (explain, column) = match store.0.engine {
        DatabaseEngine::Sqlite => ("EXPLAIN QUERY PLAN", 3),
        DatabaseEngine::Postgres => ("EXPLAIN", 0),
    };
    let rows = sqlx::query(&format!("{explain} {query}")).fetch_all(store.0.writer()).await.expect("a plan");
    let line = |row: &sqlx::any::AnyRow| row.try_get::<String, _>(column).expect("a line");
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[tokio::test]
async fn what_nodes_ask_every_second_uses_an_index() {
    const MANY: &str = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000) \
        INSERT INTO lease (name, holder, fence, until) \
        SELECT 'session:' || i, CASE WHEN i % 100 = 0 THEN 'a' ELSE 'b' || i END, 1, 9000000000000 + i FROM n";
    for place in TestStore::both() {
        let store = place.open().await;
        sqlx::query(MANY).execute(store.0.writer()).await.expect("many sessions that moved");
        store.nodes().announce("a", "http://a", LONG).await.expect("announced");
        sqlx::query("ANALYZE lease").execute(store.0.writer()).await.expect("counted");
        let nodes = plan(&store, &nodes_query(store.0.engine)).await;
        assert!(nodes.contains("lease_node"), "{nodes}");
        let held = format!("SELECT name FROM lease WHERE {IS_SESSION} AND holder = 'b7'");
        let held = plan(&store, &held).await;
        assert!(held.contains("lease_session_holder"), "{held}");
        let old = format!("SELECT name FROM lease WHERE {IS_SESSION} AND until <= 9000000000010");
        let old = plan(&store, &old).await;
        assert!(old.contains("lease_session_until"), "{old}");
        // The indexes do not change the results.
        assert_eq!(store.nodes().all().await.expect("read").len(), 1);
        store.nodes().renew_sessions("a").await.expect("tended");
        assert_eq!(store.nodes().all().await.expect("read").len(), 1);
    }
}
