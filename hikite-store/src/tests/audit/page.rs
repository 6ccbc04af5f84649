//! Pages of the audit log: every filter has an index, and other searches succeed as well.

use hikite_core::audit::AuditRecord;
use sqlx::{Executor, Row};

use super::super::TestStore;
use super::{append, record, seqs};
use crate::connect::DatabaseEngine;
use crate::{AuditBatch, AuditCursor, AuditFilter, Store};

/// Returns the query plan of the database.
async fn plan(store: &Store, question: &str) -> String {
    let explain = match store.0.engine {
        DatabaseEngine::Sqlite => "EXPLAIN QUERY PLAN",
        DatabaseEngine::Postgres => "EXPLAIN",
    };
    let at = if store.0.engine == DatabaseEngine::Sqlite { 3 } else { 0 };
    let rows = sqlx::query(&format!("{explain} {question}")).fetch_all(store.0.reader()).await.expect("a plan");
    rows.iter().map(|row| row.try_get::<String, _>(at).expect("text")).collect::<Vec<_>>().join("\n")
}

#[tokio::test]
async fn every_word_and_the_time_are_found_through_an_index() {
    for place in TestStore::both() {
        let store = place.open().await;
        for from in 0..10 {
            append(&store, from * 500..(from + 1) * 500).await;
        }
        if store.0.engine == DatabaseEngine::Postgres {
            store.0.writer().execute("ANALYZE audit").await.expect("analyzed");
        }
        for column in ["kind", "decision", "outcome", "subject", "project", "module", "tool"] {
            let question = format!(
                "SELECT seq, record, hash FROM audit WHERE {column} = 'rare' AND seq >= 1 AND seq < 5001 \
                 ORDER BY seq DESC LIMIT 50"
            );
            let plan = plan(&store, &question).await;
            assert!(plan.contains(&format!("audit_{column}")), "{column}: {plan}");
            assert!(!plan.to_lowercase().contains("sort") && !plan.contains("TEMP B-TREE"), "{column}: {plan}");
        }
        let span = "SELECT COUNT(*), MIN(seq), MAX(seq) FROM (SELECT seq FROM audit WHERE at >= 5990 AND at < 7000 \
                    LIMIT 20001) AS span";
        let plan = plan(&store, span).await;
        assert!(plan.contains("audit_at_seq"), "{plan}");
    }
}

#[tokio::test]
async fn somebody_is_found_by_subject_id_and_name() {
    for place in TestStore::both() {
        let store = place.open().await;
        let query = sqlx::query(
            "INSERT INTO users (id, name, subject, role, password, permissions, disabled, project, created_at, version) \
             VALUES ('usr_1', 'Alice', 'alice', 'user', '', '', 0, '', 1, 1)",
        );
        query.execute(store.0.writer()).await.expect("a user");
        append(&store, 1..=9).await;
        let named = AuditRecord { subject: "Alice".into(), ..record(10) };
        store.audit().append(&mut AuditBatch::new(vec![named])).await.expect("appended");
        for (actor, expected) in
            [("alice", vec![8, 6, 4, 2]), ("usr_1", vec![8, 6, 4, 2]), ("Alice", vec![10, 8, 6, 4, 2])]
        {
            let filter = AuditFilter { actor: Some(actor.to_owned()), ..AuditFilter::default() };
            assert_eq!(seqs(&store, &filter, AuditCursor::Back(None), 50).await, expected, "{actor}");
            let mut forward = expected.clone();
            forward.reverse();
            assert_eq!(seqs(&store, &filter, AuditCursor::On(0), 50).await, forward, "{actor}");
            let page = store.audit().page(&filter, AuditCursor::Back(None), 2).await.expect("read");
            let next = page.next.expect("there is more");
            let more = store.audit().page(&filter, AuditCursor::Back(Some(next)), 50).await.expect("read");
            let all: Vec<u64> = page.rows.iter().chain(&more.rows).map(|row| row.seq).collect();
            assert_eq!(all, expected, "{actor}");
        }
        let both = AuditFilter {
            actor: Some("Alice".to_owned()),
            subject: Some("alice".to_owned()),
            ..AuditFilter::default()
        };
        assert_eq!(seqs(&store, &both, AuditCursor::Back(None), 2).await, [8, 6]);
    }
}

#[tokio::test]
async fn a_text_is_found_in_what_a_record_says_and_not_in_how_it_is_written() {
    for place in TestStore::both() {
        let store = place.open().await;
        append(&store, 1..=30).await;
        let odd = |what: &str| AuditRecord { what: what.into(), client: "Claude-Code/2.1".into(), ..record(31) };
        let batch = vec![odd("100% \"done\""), odd("a_b\\c"), odd("日本語")];
        store.audit().append(&mut AuditBatch::new(batch)).await.expect("appended");
        for (needle, expected) in [
            ("claude-CODE", vec![33, 32, 31]),
            ("100% \"d", vec![31]),
            ("a_b\\", vec![32]),
            ("a%c", vec![]),
            ("語", vec![33]),
            ("request-7", vec![7]),
            // All records have these members, but none contains this text.
            ("requestId", vec![]),
            ("x\0y", vec![]),
        ] {
            let filter = AuditFilter { text: Some(needle.to_owned()), ..AuditFilter::default() };
            assert_eq!(seqs(&store, &filter, AuditCursor::Back(None), 50).await, expected, "{needle}");
        }
        let all =
            AuditFilter { text: Some("TIMEOUT".to_owned()), subject: Some("bob".to_owned()), ..AuditFilter::default() };
        assert_eq!(seqs(&store, &all, AuditCursor::Back(None), 2).await, [27, 21]);
        assert_eq!(seqs(&store, &all, AuditCursor::On(3), 2).await, [9, 15]);
    }
}

#[tokio::test]
async fn pages_go_on_where_the_one_before_ended_whatever_is_asked() {
    for place in TestStore::both() {
        let store = place.open().await;
        // More records than one scan covers.
        for from in 0..24 {
            append(&store, from * 1000 + 1..=(from + 1) * 1000).await;
        }
        let all = AuditFilter::default();
        for (filter, count) in [
            (all.clone(), 24_000),
            (
                AuditFilter { outcome: Some("TIMEOUT".to_owned()), subject: Some("alice".to_owned()), ..all.clone() },
                4000,
            ),
            (AuditFilter { text: Some("request-2399".to_owned()), ..all.clone() }, 11),
            (AuditFilter { since: Some(1000 + 100), until: Some(1000 + 200), ..all.clone() }, 100),
            (AuditFilter { since: Some(1000 + 3), until: Some(1000 + 23_900), ..all.clone() }, 23_897),
            (AuditFilter { since: Some(90_000), ..all.clone() }, 0),
        ] {
            for first in [AuditCursor::Back(None), AuditCursor::On(0)] {
                let (mut walk, mut found) = (first, Vec::new());
                loop {
                    let page = store.audit().page(&filter, walk, 700).await.expect("read");
                    assert!(page.rows.len() <= 700);
                    found.extend(page.rows.iter().map(|row| row.seq));
                    match page.next {
                        Some(next) => walk = walk.resume_at(next),
                        None => break,
                    }
                }
                assert_eq!(found.len(), count, "{filter:?} {first:?}");
                let is_back = matches!(first, AuditCursor::Back(_));
                assert!(found.is_sorted_by(|a, b| if is_back { a > b } else { a < b }), "{filter:?}");
            }
        }
    }
}
