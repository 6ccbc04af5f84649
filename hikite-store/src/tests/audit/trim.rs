//! Trimming: by the database's clock only, and always with a trim record.

use std::time::Duration;

use hikite_core::audit::AuditRecord;
use sqlx::Executor;

use super::super::TestStore;
use super::{UNGUARDED, append, empty, named, record, seqs};
use crate::connect::DatabaseEngine;
use crate::{AuditBatch, AuditCursor, AuditFilter, Boot, MachineClock, Retention, Store, TrimEvidence, TrimOutcome};

const DAY: u64 = 24 * 3600 * 1000;
const KEEP: Duration = Duration::from_secs(90 * 24 * 3600);

/// Returns the machine's clock.
async fn now(store: &Store) -> MachineClock {
    let wall_ms = store.clock().now_ms().await.expect("a clock");
    MachineClock { wall_ms, boot: Some(Boot { id: "one".into(), uptime_ms: wall_ms }) }
}

/// Returns a clock that is confirmed as right; the records of these tests are from 1970.
pub(super) async fn known(store: &Store) -> MachineClock {
    let clock = now(store).await;
    store.clock().confirm(&clock).await.expect("confirmed");
    clock
}

/// Returns the clock with another wall time.
fn moved(clock: &MachineClock, ms: i64) -> MachineClock {
    MachineClock { wall_ms: clock.wall_ms.saturating_add_signed(ms), ..clock.clone() }
}

/// Returns the clock after some time.
fn later(clock: &MachineClock, ms: u64) -> MachineClock {
    let boot = clock.boot.clone().map(|boot| Boot { uptime_ms: boot.uptime_ms + ms, ..boot });
    MachineClock { wall_ms: clock.wall_ms + ms, boot }
}

async fn trim(store: &Store, keep: Duration, clock: &MachineClock) -> TrimOutcome {
    store.audit().trim(Retention { keep, max_records: None }, clock).await.expect("trimmed")
}

/// Ages the marks.
async fn age(store: &Store, ms: u64) {
    let text = format!("UPDATE audit_mark SET at = at - {ms}");
    store.0.writer().execute(&*text).await.expect("older");
}

async fn kinds(store: &Store) -> Vec<String> {
    let rows = store.audit().read(&AuditFilter::default(), AuditCursor::On(0), 10_000).await.expect("read");
    let kind = |row: &crate::AuditRow| row.record.split("\"kind\":\"").nth(1).map(|rest| rest[..4].to_owned());
    rows.iter().filter_map(kind).collect()
}

#[tokio::test]
async fn records_go_when_the_store_has_kept_them_long_enough_and_one_says_so() {
    for place in TestStore::both() {
        let store = place.open().await;
        let clock = now(&store).await;
        assert_eq!(trim(&store, KEEP, &clock).await, TrimOutcome::default(), "an empty chain has nothing to trim");
        // Written by nodes with wrong clocks, whose times must not matter.
        let at = |n: u64| if n.is_multiple_of(2) { 1 } else { clock.wall_ms + 400 * DAY };
        let wrong = (1..=10).map(|n| AuditRecord { at: at(n), ..record(n) }).collect();
        store.audit().append(&mut AuditBatch::new(wrong)).await.expect("appended");
        assert_eq!(trim(&store, KEEP, &clock).await.records, 0);
        age(&store, 91 * DAY).await;
        append(&store, 11..=12).await;
        let trimmed = trim(&store, KEEP, &clock).await;
        assert_eq!((trimmed.records, trimmed.more, trimmed.paused), (10, false, None), "{}", place.url);
        let verified = store.audit().verify(None, |_, _| {}).await.expect("verified");
        assert_eq!((verified.broken.clone(), verified.first.seq, verified.records()), (None, 10, 3));
        let covers = verified.first.clone();
        assert_eq!(verified.trim, Some(TrimEvidence::Record { seq: 13, covers: covers.clone() }));
        let row = &store.audit().read(&AuditFilter::default(), AuditCursor::Back(None), 1).await.expect("read")[0];
        let said = format!(r#""trimmed":10,"trimmedTo":10,"trimmedHash":"{}"}}"#, covers.hash);
        assert!(row.record.contains(r#""kind":"trim""#) && row.record.ends_with(&said), "{}", row.record);
        assert!(store.audit().verify(Some(&covers), |_, _| {}).await.expect("verified").broken.is_none());
        assert_eq!(store.check().await.expect("checked"), [""; 0]);
        assert_eq!(store.check_briefly().await.expect("checked"), [""; 0]);
    }
}

#[tokio::test]
async fn a_trim_leaves_nothing_to_trim() {
    for place in TestStore::both() {
        let store = place.open().await;
        let clock = known(&store).await;
        append(&store, 1..=3).await;
        for _ in 0..4 {
            trim(&store, KEEP, &clock).await;
            age(&store, 91 * DAY).await;
        }
        assert_eq!(kinds(&store).await, ["trim"], "its own record stays until others go");
        append(&store, 4..=4).await;
        trim(&store, KEEP, &clock).await;
        age(&store, 91 * DAY).await;
        assert_eq!(trim(&store, KEEP, &clock).await.records, 2);
        assert_eq!((kinds(&store).await, named(&store).await), (vec!["trim".to_owned()], 0));
    }
}

#[tokio::test]
async fn no_more_than_so_many_stay_and_many_go_step_by_step_under_one_record() {
    for place in TestStore::both() {
        let store = place.open().await;
        let clock = known(&store).await;
        append(&store, 1..=2500).await;
        let retention = Retention { keep: KEEP, max_records: Some(3) };
        let step = async || store.audit().trim(retention, &clock).await.expect("trimmed");
        let mut gone = Vec::new();
        loop {
            let trimmed = step().await;
            gone.push(trimmed.records);
            assert_eq!(named(&store).await, 0, "whole between two steps");
            if !trimmed.more {
                break;
            }
        }
        assert_eq!(gone, [1000, 1000, 498]);
        assert_eq!(kinds(&store).await, ["call", "call", "trim"]);
        assert_eq!(step().await.records, 0);
    }
}

/// Regression test: trimming must not use a node's own time.
#[tokio::test]
async fn a_node_a_year_ahead_erases_nothing_that_others_wrote() {
    let place = TestStore::postgres();
    let (store, ahead) = (place.open().await, place.open().await);
    append(&store, 1..=50).await;
    let clock = moved(&now(&store).await, i64::try_from(365 * DAY).expect("small"));
    for _ in 0..3 {
        assert_eq!(trim(&ahead, KEEP, &clock).await, TrimOutcome::default());
    }
    let verified = store.audit().verify(None, |_, _| {}).await.expect("verified");
    assert_eq!((verified.broken.clone(), verified.records(), verified.trim), (None, 50, None));
}

#[tokio::test]
async fn a_clock_that_jumped_trims_nothing_until_somebody_confirms_it() {
    let place = TestStore::sqlite();
    let store = place.open().await;
    let clock = known(&store).await;
    append(&store, 1..=5).await;
    trim(&store, KEEP, &clock).await;
    let year = i64::try_from(365 * DAY).expect("small");
    for jumped in [moved(&clock, year), moved(&clock, -year)] {
        let trimmed = trim(&store, KEEP, &jumped).await;
        let jump = trimmed.paused.expect("a jump");
        assert_eq!((trimmed.records, jump.expected, jump.found), (0, clock.wall_ms, jumped.wall_ms));
        assert_eq!(store.clock().jump(&jumped).await.expect("looked"), Some(jump));
    }
    assert_eq!(trim(&store, KEEP, &clock).await, TrimOutcome::default(), "it is right again");
    let slept = later(&clock, 30 * DAY);
    assert_eq!(trim(&store, KEEP, &slept).await, TrimOutcome::default(), "the machine knows where the time went");
    let jumped = moved(&slept, year);
    let most = Retention { keep: KEEP, max_records: Some(4) };
    let trimmed = store.audit().trim(most, &jumped).await.expect("trimmed");
    assert!(trimmed.records == 2 && trimmed.paused.is_some(), "what goes for its number goes all the same");
    store.clock().confirm(&jumped).await.expect("confirmed");
    assert_eq!(store.clock().jump(&jumped).await.expect("looked"), None);
    assert_eq!(trim(&store, KEEP, &jumped).await.records, 3);
    assert_eq!((kinds(&store).await, named(&store).await), (vec!["trim".to_owned(); 2], 0));
}

/// The first start of this version on an older file, with a wrong clock.
#[tokio::test]
async fn a_clock_nobody_knows_yet_is_held_against_the_newest_record() {
    let place = TestStore::sqlite();
    let store = place.open().await;
    let clock = now(&store).await;
    let fresh = AuditRecord { at: clock.wall_ms, ..record(1) };
    store.audit().append(&mut AuditBatch::new(vec![fresh])).await.expect("appended");
    let jumped = moved(&clock, i64::try_from(365 * DAY).expect("small"));
    assert!(trim(&store, KEEP, &jumped).await.paused.is_some());
    assert!(trim(&store, KEEP, &clock).await.paused.is_none());
}

#[tokio::test]
async fn what_goes_without_a_trim_record_is_refused_or_named() {
    let hash = "(SELECT hash FROM audit WHERE seq = 3)";
    let to_third = format!("UPDATE audit_end SET seq = 3, hash = {hash} WHERE name = 'first'");
    let to_last = "UPDATE audit_end SET seq = 6, hash = (SELECT hash FROM audit_end WHERE name = 'last') \
                   WHERE name = 'first'";
    for place in TestStore::both() {
        let store = place.open().await;
        for (change, expected) in
            [(vec![&*to_third, "DELETE FROM audit WHERE seq <= 3"], 3), (vec![to_last, "DELETE FROM audit"], 6)]
        {
            empty(&store).await;
            append(&store, 1..=6).await;
            let refused = store.0.writer().execute("DELETE FROM audit WHERE seq <= 3").await.expect_err("kept");
            assert!(refused.to_string().contains("only after a trim record covers it"), "{refused}");
            store.0.writer().execute(UNGUARDED).await.expect("let go");
            for text in change {
                store.0.writer().execute(text).await.expect("changed");
            }
            let broken = store.audit().verify(None, |_, _| {}).await.expect("verified").broken.expect("broken");
            assert_eq!(broken.seq, expected);
            assert!(broken.problem.contains("no trim record says so"), "{}", broken.problem);
        }
        // The chain was emptied together with its ends, but a mark remains.
        empty(&store).await;
        append(&store, 1..=6).await;
        trim(&store, KEEP, &known(&store).await).await;
        empty(&store).await;
        assert_eq!(named(&store).await, 6, "{}", place.url);
    }
}

#[tokio::test]
async fn a_store_of_the_version_before_verifies_as_it_did_and_goes_on() {
    for place in TestStore::both() {
        let before = Store::open_at(&place.url, 6, None).await.expect("a store");
        let clock = now(&before).await;
        let old = (1..=20).map(|n| AuditRecord { at: clock.wall_ms - (120 - n) * DAY, ..record(n) }).collect();
        before.audit().append(&mut AuditBatch::new(old)).await.expect("appended");
        // An earlier version trims without a record.
        for text in [
            "UPDATE audit_end SET seq = 4, hash = (SELECT hash FROM audit WHERE seq = 4) WHERE name = 'first'",
            "DELETE FROM audit WHERE seq <= 4",
        ] {
            before.0.writer().execute(text).await.expect("trimmed");
        }
        let store = place.open().await;
        let verified = store.audit().verify(None, |_, _| {}).await.expect("verified");
        assert_eq!((verified.broken.clone(), verified.first.seq, verified.records()), (None, 4, 16));
        assert_eq!(verified.trim, Some(TrimEvidence::Before));
        // A node of the previous version keeps writing, and cannot remove what no record covers.
        append(&before, 21..=22).await;
        before.0.writer().execute("DELETE FROM audit WHERE seq <= 10").await.expect_err("kept");
        assert_eq!(named(&store).await, 0);
        let keep = Duration::from_millis(105 * DAY + DAY / 2);
        if store.0.engine == DatabaseEngine::Sqlite {
            // The newest record is a hundred days old, so the clock is not trusted yet.
            assert!(trim(&store, keep, &clock).await.paused.is_some());
            store.clock().confirm(&clock).await.expect("confirmed");
        }
        assert_eq!(trim(&store, keep, &clock).await.records, 10, "by what they say themselves");
        assert_eq!(
            seqs(&store, &AuditFilter::default(), AuditCursor::On(0), 9).await,
            [15, 16, 17, 18, 19, 20, 21, 22, 23]
        );
        assert_eq!(named(&store).await, 0);
        before.close().await;
    }
}

#[tokio::test]
async fn a_file_gives_back_the_space_of_what_was_trimmed() {
    let place = TestStore::sqlite();
    let store = place.open().await;
    append(&store, 1..=5000).await;
    let size = async || {
        store.0.checkpoint_journal().await.expect("folded in");
        std::fs::metadata(place.url.path().expect("a file")).expect("a file").len()
    };
    let before = size().await;
    let retention = Retention { keep: KEEP, max_records: Some(10) };
    let clock = now(&store).await;
    while store.audit().trim(retention, &clock).await.expect("trimmed").more {}
    let after = size().await;
    assert!(after * 4 < before, "{before} bytes before, {after} after");
}
