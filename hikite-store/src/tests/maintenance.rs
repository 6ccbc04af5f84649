//! Checks, backups and copies.

use std::os::unix::fs::PermissionsExt;

use hikite_core::json::Raw;
use hikite_core::key::ToolKey;
use hikite_core::listing::{ListCache, Listing};
use sqlx::Executor;

use super::{TestStore, key, tool};
use crate::{RegisteredToolRow, Store, StoreFault, StoreUrl};

/// Returns texts that a database might alter: all planes, all control characters, and syntax.
fn hard_texts() -> Vec<String> {
    let planes: String = (1..=16_u32).filter_map(|plane| char::from_u32(plane * 0x1_0000 + 0x41)).collect();
    let controls: String = (1..0x20_u8).map(char::from).chain(['\u{7f}', '\u{80}', '\u{9f}']).collect();
    let edges = "\u{fffd}\u{ffff}\u{10ffff}\u{d7ff}\u{e000}\u{feff}\u{202e}\u{200b}e\u{301}é".to_owned();
    vec![planes, controls, edges, "'; DROP TABLE hikite; --\\ \" $1 ?1 %s".into(), " ".into(), "日本語 🇯🇵".into()]
}

async fn fill(store: &Store) {
    for (n, text) in (0_u64..).zip(hard_texts()) {
        let key = ToolKey::new(format!("m{text}"), text.clone());
        let registered_at = if n == 0 { u64::from(u32::MAX) << 20 } else { n };
        let tool = RegisteredToolRow { key: key.clone(), form: Raw::of(&[text.as_str(), "\0"]), registered_at };
        assert!(store.tools().put(&tool, false).await.expect("put"));
        store.tools().set_switch(&key, n % 2 == 0).await.expect("switched");
        store.tools().note_seen(&[key], n).await.expect("noted");
    }
    let many: Vec<ToolKey> = (0..1001).map(|n| key(&format!("seen{n}"))).collect();
    store.tools().note_seen(&many, 7).await.expect("noted");
    let cache = store.list_cache().await.expect("a cache");
    cache.store("d", &Listing { instructions: Some(hard_texts().concat()), fetched_at: 3, ..Listing::default() });
    cache.flush().await;
}

/// Returns the whole content, sorted.
async fn content(store: &Store) -> impl PartialEq + std::fmt::Debug + use<> {
    let mut switches = store.tools().switches().await.expect("read");
    let mut seen = store.tools().first_seen().await.expect("read");
    switches.sort();
    seen.sort();
    let lists = store.list_cache().await.expect("a cache").load("d");
    (store.tools().registered().await.expect("read"), switches, seen, lists)
}

#[tokio::test]
async fn a_store_is_the_same_after_it_was_copied_there_and_back() {
    let [here, there, back] = [TestStore::sqlite(), TestStore::postgres(), TestStore::sqlite()];
    let (here, there, back) = (here.open().await, there.open().await, back.open().await);
    fill(&here).await;
    let before = content(&here).await;
    let rows = here.copy_to(&there).await.expect("copied");
    assert_eq!(rows, 6 * 3 + 1001 + 1);
    assert_eq!(there.copy_to(&back).await.expect("copied back"), rows);
    assert!(content(&there).await == before && content(&back).await == before);
    assert_eq!(back.check().await.expect("checked"), [""; 0]);
    assert!(back.changes().revision().await.expect("read") > 0, "whoever runs on it has something to read");
}

#[tokio::test]
async fn a_store_with_something_in_it_is_not_copied_over() {
    for (place, full) in TestStore::both().into_iter().zip(TestStore::both()) {
        let (from, to) = (place.open().await, full.open().await);
        assert!(from.tools().put(&tool("mine", 1), false).await.expect("put"));
        to.tools().note_seen(&[key("theirs")], 1).await.expect("noted");
        let error = from.copy_to(&to).await.expect_err("refused");
        assert_eq!(error.fault, StoreFault::NotEmpty);
        assert_eq!(to.tools().registered().await.expect("read"), []);
        assert_eq!(to.changes().revision().await.expect("read"), 0);
    }
}

#[tokio::test]
async fn a_backup_is_a_store_of_its_own_and_its_owners_alone() {
    for place in TestStore::both() {
        let store = place.open().await;
        fill(&store).await;
        let file = place.folder.path().join("copy 1.db");
        let bytes = store.backup(&file).await.expect("copied");
        let metadata = std::fs::metadata(&file).expect("a file");
        assert_eq!((metadata.len(), metadata.permissions().mode() & 0o777), (bytes, 0o600));
        let copy = Store::open(&StoreUrl::file(&file)).await.expect("a store");
        assert!(content(&copy).await == content(&store).await, "{}", place.url);
        assert_eq!(copy.check().await.expect("checked"), [""; 0]);
        copy.close().await;
        let again = store.backup(&file).await.expect_err("it is there");
        assert_eq!(again.fault, StoreFault::Exists);
        let nowhere = store.backup(&place.folder.path().join("no/such/folder.db")).await.expect_err("no folder");
        assert_eq!(nowhere.fault, StoreFault::NotWritable);
        let left: Vec<_> = std::fs::read_dir(place.folder.path()).expect("a folder").flatten().collect();
        assert!(!left.iter().any(|entry| entry.file_name().to_string_lossy().contains(".new")), "{left:?}");
    }
}

#[tokio::test]
async fn a_check_names_every_row_that_cannot_be_read() {
    for place in TestStore::both() {
        let store = place.open().await;
        fill(&store).await;
        assert_eq!(store.check().await.expect("checked"), [""; 0]);
        for change in [
            "INSERT INTO registered_tool VALUES ('m', 'half', '{', 1)",
            "INSERT INTO tool_switch VALUES ('m', 'both', 2)",
            "INSERT INTO tool_seen VALUES ('m', 'before', -1)",
            "INSERT INTO list_cache VALUES ('d2', '[', 1)",
            "UPDATE hikite SET value = 0 WHERE name = 'version'",
        ] {
            store.0.writer().execute(change).await.expect(change);
        }
        let found = store.check().await.expect("checked").join("\n");
        for said in [
            "`form` of `m:half` in `registered_tool`",
            "`enabled` of `m:both` in `tool_switch`",
            "`seen_at` of `m:before` in `tool_seen`",
            "`lists` of `d2` in `list_cache`",
            "it has version 0",
        ] {
            assert!(found.contains(said), "{said}: {found}");
        }
        assert_eq!(found.lines().count(), 5, "{found}");
        let readable = store.tools().registered().await.expect("read");
        assert_eq!(readable.len(), 6, "one bad row does not take the others away");
    }
}
