//! Locked, newer, damaged, foreign and unreachable stores: their error messages, and that nothing is lost.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use sqlx::{Executor, Row};

use super::{TestStore, tool};
use crate::{Store, StoreError, StoreFault, StoreUrl};

#[track_caller]
fn says(error: &StoreError, fault: StoreFault, words: &[&str]) {
    let said = error.to_string();
    assert_eq!(error.fault, fault, "{said}");
    assert!(words.iter().all(|word| said.contains(word)) && said.contains("\nhint: "), "{said}");
    assert!(!said.contains("not-asked-for"), "the password shows: {said}");
}

#[tokio::test]
async fn who_holds_a_lock_is_waited_for_and_then_it_is_said() {
    for place in TestStore::both() {
        let (store, other) = (place.open().await, place.open().await);
        let hold = || async {
            let mut lock = other.0.begin().await.expect("a lock");
            lock.execute("UPDATE hikite SET value = value WHERE name = 'revision'").await.expect("locked");
            lock
        };
        let lock = hold().await;
        let begin = Instant::now();
        let error = store.tools().put(&tool("a", 1), false).await.expect_err("locked");
        says(&error, StoreFault::Busy, &["is busy", "lock", "Try again"]);
        assert!(begin.elapsed() > Duration::from_secs(3), "it waited {:?}", begin.elapsed());
        assert_eq!(store.tools().registered().await.expect("who only reads does not wait"), []);
        drop(lock);
        let lock = hold().await;
        let tool = tool("b", 1);
        let tools = store.tools();
        let (put, ()) = tokio::join!(tools.put(&tool, false), async {
            tokio::time::sleep(Duration::from_millis(300)).await;
            lock.commit().await.expect("let go");
        });
        assert!(put.expect("it waited long enough"));
    }
}

/// Simulates SQLite's rollback on a full disk.
#[tokio::test]
async fn a_transaction_that_was_ended_by_the_database_spoils_none_after_it() {
    let place = TestStore::sqlite();
    let store = place.open().await;
    for name in ["a", "b", "c"] {
        let mut ended = store.0.begin().await.expect("a transaction");
        ended.execute("ROLLBACK").await.expect("ended");
        drop(ended);
        store.tools().put(&tool(name, 1), false).await.expect("written");
    }
    assert_eq!(store.tools().registered().await.expect("read").len(), 3);
}

#[tokio::test]
async fn a_store_of_a_newer_hikite_is_refused_and_left_as_it_is() {
    for place in TestStore::both() {
        let store = place.open().await;
        store.0.writer().execute("UPDATE hikite SET value = 99 WHERE name = 'version'").await.expect("changed");
        store.close().await;
        let error = Store::open(&place.url).await.expect_err("newer");
        says(&error, StoreFault::Newer, &["newer hikite", "version 99"]);
    }
}

#[tokio::test]
async fn a_damaged_file_is_refused_with_what_to_do() {
    let place = TestStore::sqlite();
    let path = place.url.path().expect("a file").to_owned();
    fs::create_dir_all(path.parent().expect("a folder")).expect("made");
    fs::write(&path, "this was a database once, and then it was something else. ".repeat(100)).expect("written");
    let error = Store::open(&place.url).await.expect_err("damaged");
    says(&error, StoreFault::Damaged, &["is damaged", "hikite store backup", "-wal"]);
    assert!(fs::read_to_string(&path).expect("there").starts_with("this was"), "it was left as it is");
}

#[tokio::test]
async fn damage_inside_a_file_is_found() {
    let place = TestStore::sqlite();
    let path = place.url.path().expect("a file").to_owned();
    let store = place.open().await;
    for n in 0..200 {
        assert!(store.tools().put(&tool(&format!("t{n}"), n), false).await.expect("put"));
    }
    store.close().await;
    let mut bytes = fs::read(&path).expect("there");
    let from = bytes.len() / 2;
    bytes[from..].fill(0x5a);
    fs::write(&path, bytes).expect("written");
    let found = match Store::open(&place.url).await {
        Ok(store) => store.check().await.expect("checked").join("\n"),
        Err(error) => error.to_string(),
    };
    assert!(!found.is_empty(), "nobody saw it");
}

#[tokio::test]
async fn a_file_and_its_folder_are_their_owners_alone() {
    let place = TestStore::sqlite();
    let path = place.url.path().expect("a file").to_owned();
    let mode = |path: &std::path::Path| fs::metadata(path).expect("there").permissions().mode() & 0o777;
    let store = place.open().await;
    assert!(store.tools().put(&tool("a", 1), false).await.expect("put"));
    assert_eq!((mode(&path), mode(path.parent().expect("a folder"))), (0o600, 0o700));
    let journal = path.with_file_name(format!("{}-wal", path.file_name().expect("a name").to_string_lossy()));
    assert_eq!(mode(&journal), 0o600);
    store.close().await;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).expect("changed");
    place.open().await.close().await;
    assert_eq!(mode(&path), 0o600, "it was put there by hand");
}

#[tokio::test]
async fn a_folder_that_cannot_be_written_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o500)).expect("changed");
    // Root can write everywhere except into the kernel's file systems.
    let is_root = fs::write(folder.path().join("probe"), "").is_ok();
    let path = if is_root { "/proc/hikite/hikite.db".into() } else { folder.path().join("hikite.db") };
    let error = Store::open(&StoreUrl::file(&path)).await.expect_err("refused");
    says(&error, StoreFault::NotWritable, &[path.to_str().expect("UTF-8"), "cannot be written", "`--data`"]);
    let error = Store::open(&StoreUrl::file(folder.path())).await.expect_err("a folder is no file");
    says(&error, StoreFault::NotWritable, &["cannot be written"]);
}

#[tokio::test]
async fn a_database_that_is_not_there_is_said_at_once() {
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = nobody.local_addr().expect("an address").port();
    drop(nobody);
    let url = format!("postgres://u:not-asked-for@127.0.0.1:{port}/d");
    let begin = Instant::now();
    let error = Store::open(&StoreUrl::parse(&url).expect("an address")).await.expect_err("nobody there");
    says(&error, StoreFault::Unreachable, &["postgres://u:***@127.0.0.1", "store.url"]);
    assert!(begin.elapsed() < Duration::from_secs(4));
    let there = hikite_testkit::postgres::database();
    let error = Store::open(&StoreUrl::parse(&format!("{there}-not")).expect("an address")).await;
    says(&error.expect_err("no such database"), StoreFault::Refused, &["does not exist", "store.url"]);
}

#[tokio::test]
async fn a_database_that_does_not_answer_is_not_waited_for_forever() {
    let mute = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("postgres://u@{}/d", mute.local_addr().expect("an address"));
    let error = Store::open(&StoreUrl::parse(&url).expect("an address")).await.expect_err("mute");
    says(&error, StoreFault::Unreachable, &["does not respond"]);
}

/// A power cut cannot be tested here; the settings that protect against one can.
#[tokio::test]
async fn what_is_committed_is_on_the_disk_and_readers_cannot_write() {
    let place = TestStore::sqlite();
    let store = place.open().await;
    for pool in [store.0.reader(), store.0.writer()] {
        let mut connection = pool.acquire().await.expect("a connection");
        for (setting, expected) in [
            ("journal_mode", "wal"),
            ("synchronous", "2"),
            ("fullfsync", "1"),
            ("foreign_keys", "1"),
            ("busy_timeout", "5000"),
        ] {
            let text = format!("SELECT CAST({setting} AS TEXT) FROM pragma_{setting}");
            let text = text.replace("CAST(busy_timeout", "CAST(timeout");
            let row = connection.fetch_one(text.as_str()).await.expect(setting);
            assert_eq!(row.try_get::<String, _>(0).expect("text"), expected, "{setting}");
        }
    }
    let error = store.0.reader().execute("DELETE FROM registered_tool").await.expect_err("refused");
    assert!(error.to_string().contains("readonly"), "{error}");
}
