//! The audit chain: shared by all writers, with every manipulation detected.

mod page;
mod trim;

use std::time::Duration;

use hikite_core::audit::{AuditChain, AuditRecord, printable_excerpt};
use sqlx::{Executor, Row};

use super::TestStore;
use crate::{AuditBatch, AuditCursor, AuditFilter, Retention, Store, StoreUrl};

fn record(n: u64) -> AuditRecord {
    AuditRecord {
        at: 1000 + n,
        kind: "call",
        decision: "allowed",
        outcome: if n.is_multiple_of(3) { "TIMEOUT" } else { "ok" },
        request_id: format!("request-{n}"),
        subject: if n.is_multiple_of(2) { "alice".into() } else { "bob".into() },
        project: if n.is_multiple_of(5) { String::new() } else { "p".into() },
        module: printable_excerpt("m\0日本"),
        tool: format!("t'\"\\{n}"),
        ms: 0.125,
        ..AuditRecord::default()
    }
}

async fn append(store: &Store, numbers: impl IntoIterator<Item = u64>) {
    let mut batch = AuditBatch::new(numbers.into_iter().map(record).collect());
    store.audit().append(&mut batch).await.expect("appended");
}

/// Returns the number of the record that verification reports, or zero.
async fn named(store: &Store) -> u64 {
    store.audit().verify(None, |_, _| {}).await.expect("verified").broken.map_or(0, |broken| broken.seq)
}

/// Bypasses the protection of records that no trim record covers, as a determined attacker would.
const UNGUARDED: &str = "UPDATE audit_end SET seq = 9000000000000000000 WHERE name = 'trimmed'";

async fn empty(store: &Store) {
    for text in [UNGUARDED, "DELETE FROM audit", "UPDATE audit_end SET seq = 0, hash = ''"] {
        store.0.writer().execute(text).await.expect("emptied");
    }
}

async fn seqs(store: &Store, filter: &AuditFilter, walk: AuditCursor, limit: usize) -> Vec<u64> {
    store.audit().read(filter, walk, limit).await.expect("read").iter().map(|row| row.seq).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_appends_there_is_one_chain() {
    for place in TestStore::both() {
        let (one, other) = (place.open().await, place.open().await);
        let write = async |store: &Store, from: u64| {
            for n in 0..30 {
                append(store, from + n * 7..from + n * 7 + 1 + n % 7).await;
            }
        };
        tokio::join!(write(&one, 0), write(&other, 1000), write(&one, 2000));
        let verified = other.audit().verify(None, |_, _| {}).await.expect("verified");
        let each: u64 = (0..30).map(|n| 1 + n % 7).sum();
        assert_eq!((verified.broken.clone(), verified.records()), (None, 3 * each), "{}", place.url);
        let ids = one.audit().read(&AuditFilter::default(), AuditCursor::On(0), 10_000).await.expect("read");
        let ids: std::collections::HashSet<String> = ids.into_iter().map(|row| row.record).collect();
        assert_eq!(ids.len() as u64, 3 * each, "each once");
        assert_eq!(one.check().await.expect("checked"), [""; 0]);
    }
}

#[tokio::test]
async fn a_batch_that_is_tried_again_is_written_once() {
    for place in TestStore::both() {
        let store = place.open().await;
        append(&store, 0..3).await;
        let mut batch = AuditBatch::new((3..700).map(record).collect());
        store.audit().append(&mut batch).await.expect("appended");
        append(&store, 700..701).await;
        // Simulates a commit whose response was lost.
        store.audit().append(&mut batch).await.expect("known");
        assert_eq!(store.audit().verify(None, |_, _| {}).await.expect("verified").records(), 701);
        assert_eq!(named(&store).await, 0);
    }
}

#[tokio::test]
async fn records_are_found_by_what_they_say_the_newest_first() {
    for place in TestStore::both() {
        let store = place.open().await;
        append(&store, 1..=20).await;
        let all = AuditFilter::default();
        assert_eq!(seqs(&store, &all, AuditCursor::Back(None), 3).await, [20, 19, 18]);
        assert_eq!(seqs(&store, &all, AuditCursor::Back(Some(18)), 3).await, [17, 16, 15]);
        assert_eq!(seqs(&store, &all, AuditCursor::On(18), 3).await, [19, 20]);
        let text = |text: &str| Some(text.to_owned());
        for (filter, expected) in [
            (AuditFilter { request_id: text("request-7"), ..all.clone() }, vec![7]),
            (AuditFilter { outcome: text("TIMEOUT"), subject: text("bob"), ..all.clone() }, vec![15, 9, 3]),
            (AuditFilter { project: text(""), ..all.clone() }, vec![20, 15, 10, 5]),
            (AuditFilter { tool: text("t'\"\\4"), module: text("m\u{fffd}日本"), ..all.clone() }, vec![4]),
            (AuditFilter { since: Some(1018), until: Some(1020), ..all.clone() }, vec![19, 18]),
            (AuditFilter { kind: text("read"), ..all.clone() }, vec![]),
            (AuditFilter { decision: text("refused"), ..all.clone() }, vec![]),
            (AuditFilter { subject: text("' OR 1=1 --"), ..all.clone() }, vec![]),
            (AuditFilter { subject: text("al\0ice"), ..all.clone() }, vec![]),
        ] {
            assert_eq!(seqs(&store, &filter, AuditCursor::Back(None), 50).await, expected, "{filter:?}");
        }
    }
}

#[tokio::test]
async fn every_change_of_a_row_is_named() {
    for place in TestStore::both() {
        let store = place.open().await;
        append(&store, 1..=4).await;
        let columns =
            ["kind", "decision", "outcome", "request_id", "subject", "project", "module", "tool", "record", "hash"];
        for seq in 1..=4_i64 {
            for column in columns {
                let select = format!("SELECT {column} FROM audit WHERE seq = $1");
                let row = sqlx::query(&select).bind(seq).fetch_one(store.0.writer()).await.expect("a row");
                let before: String = row.try_get(0).expect("text");
                let set = async |text: &str| {
                    let update = format!("UPDATE audit SET {column} = $1 WHERE seq = $2");
                    let query = sqlx::query(&update).bind(text).bind(seq);
                    query.execute(store.0.writer()).await.expect("changed");
                };
                // Long records are sampled, each at other positions.
                let step = if before.len() > 20 { 11 } else { 1 };
                let from = usize::try_from(seq).expect("small") * 3 % step;
                for (at, char) in before.char_indices().skip(from).step_by(step) {
                    let other = if char == 'x' { "y" } else { "x" };
                    let mut changed = before.clone();
                    changed.replace_range(at..at + char.len_utf8(), other);
                    set(&changed).await;
                    assert_eq!(named(&store).await, u64::try_from(seq).expect("small"), "{column} at {at}");
                }
                set(&format!("{before} ")).await;
                assert_eq!(named(&store).await, u64::try_from(seq).expect("small"), "{column}");
                set(&before).await;
            }
            for (change, back) in [("at = at + 1", "at = at - 1"), ("seq = seq + 100", "seq = seq - 100")] {
                let update = |change: &str, seq: i64| format!("UPDATE audit SET {change} WHERE seq = {seq}");
                store.0.writer().execute(update(change, seq).as_str()).await.expect("changed");
                assert_eq!(named(&store).await, u64::try_from(seq).expect("small"), "{change}");
                let seq = if change.starts_with("seq") { seq + 100 } else { seq };
                store.0.writer().execute(update(back, seq).as_str()).await.expect("changed back");
            }
        }
        assert_eq!(named(&store).await, 0);
    }
}

#[tokio::test]
async fn what_is_taken_out_swapped_cut_off_or_put_in_is_named() {
    let changes: [(&[&str], u64); 9] = [
        (&["DELETE FROM audit WHERE seq = 3"], 3),
        (&["DELETE FROM audit WHERE seq >= 5"], 5),
        (&["DELETE FROM audit"], 1),
        (
            &[
                "UPDATE audit SET seq = 99 WHERE seq = 2",
                "UPDATE audit SET seq = 2 WHERE seq = 3",
                "UPDATE audit SET seq = 3 WHERE seq = 99",
            ],
            2,
        ),
        (
            &["INSERT INTO audit SELECT 7, at, kind, decision, outcome, request_id, subject, project, module, tool, \
               record, hash FROM audit WHERE seq = 6"],
            7,
        ),
        (&["UPDATE audit_end SET seq = 5 WHERE name = 'last'"], 6),
        (&["UPDATE audit_end SET hash = 'x' WHERE name = 'last'"], 6),
        (&["UPDATE audit_end SET hash = 'x' WHERE name = 'first'"], 1),
        (&["DELETE FROM audit WHERE seq = 1", "UPDATE audit_end SET seq = 1 WHERE name = 'first'"], 2),
    ];
    for place in TestStore::both() {
        for (change, expected) in changes {
            let store = place.open().await;
            empty(&store).await;
            append(&store, 1..=6).await;
            assert_eq!(named(&store).await, 0);
            store.0.writer().execute(UNGUARDED).await.expect("let go");
            for text in change {
                store.0.writer().execute(*text).await.expect("changed");
            }
            assert_eq!(named(&store).await, expected, "{change:?} on {}", place.url);
            let findings = store.check().await.expect("checked").join("\n");
            assert!(findings.contains(&format!("record {expected} of the audit")), "{findings}");
            store.close().await;
        }
        let store = place.open().await;
        store.0.writer().execute("DELETE FROM audit_end WHERE name = 'last'").await.expect("changed");
        assert!(store.audit().verify(None, |_, _| {}).await.expect("verified").broken.is_some());
    }
}

#[tokio::test]
async fn bytes_that_are_no_text_are_named_too() {
    let place = TestStore::sqlite();
    let store = place.open().await;
    append(&store, 1..=3).await;
    for column in ["subject", "record", "hash"] {
        let before = format!("UPDATE audit SET {column} = CAST(X'ff' || CAST({column} AS BLOB) AS TEXT) WHERE seq = 2");
        store.0.writer().execute(before.as_str()).await.expect("changed");
        assert_eq!(named(&store).await, 2, "{column}");
        let back = format!("UPDATE audit SET {column} = CAST(substr(CAST({column} AS BLOB), 2) AS TEXT) WHERE seq = 2");
        store.0.writer().execute(back.as_str()).await.expect("changed back");
        assert_eq!(named(&store).await, 0);
    }
}

/// Without a key, anybody who can write the store can forge a whole chain; a hash noted elsewhere reveals it.
#[tokio::test]
async fn a_chain_that_was_written_anew_does_not_have_the_hash_that_was_written_down() {
    let place = TestStore::sqlite();
    let store = place.open().await;
    append(&store, 1..=5).await;
    let verified = store.audit().verify(None, |_, _| {}).await.expect("verified");
    let anchor = verified.last;
    empty(&store).await;
    let broken = async |anchor: &AuditChain| {
        let verified = store.audit().verify(Some(anchor), |_, _| {}).await.expect("verified");
        verified.broken.map(|broken| broken.seq)
    };
    append(&store, 2..=4).await;
    assert_eq!(broken(&anchor).await, Some(5), "it is not there any more");
    append(&store, 5..=9).await;
    assert_eq!(named(&store).await, 0, "by itself it is a chain");
    assert_eq!(broken(&anchor).await, Some(5));
    let own = store.audit().verify(None, |_, _| {}).await.expect("verified").last;
    assert_eq!(broken(&own).await, None);
}

#[tokio::test]
async fn a_copy_keeps_the_chain_and_goes_on_with_it() {
    let [here, there, folder] = [TestStore::sqlite(), TestStore::postgres(), TestStore::sqlite()];
    let (one, other) = (here.open().await, there.open().await);
    append(&one, 1..=500).await;
    let retention = Retention { keep: Duration::from_secs(3600), max_records: Some(452) };
    one.audit().trim(retention, &trim::known(&one).await).await.expect("trimmed");
    let end = one.audit().verify(None, |_, _| {}).await.expect("verified");
    assert_eq!((end.first.seq, end.last.seq), (49, 501));
    // The records, the clock and the mark that a trim leaves.
    assert_eq!(one.copy_to(&other).await.expect("copied"), 454);
    append(&other, 501..=502).await;
    assert!(other.audit().verify(Some(&end.last), |_, _| {}).await.expect("verified").broken.is_none());
    let used = one.copy_to(&other).await.expect_err("it has records");
    assert_eq!(used.fault, crate::StoreFault::NotEmpty);
    for (store, last) in [(&one, 501), (&other, 503)] {
        let file = folder.folder.path().join(format!("{last}.db"));
        store.backup(&file).await.expect("copied");
        let copy = Store::open(&StoreUrl::file(&file)).await.expect("a store");
        let verified = copy.audit().verify(None, |_, _| {}).await.expect("verified");
        assert_eq!((verified.broken, verified.last.seq), (None, last));
        append(&copy, 1..=1).await;
        assert_eq!(named(&copy).await, 0);
    }
}
