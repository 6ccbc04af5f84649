//! Index and vectors are computed in the background, and only for changed tools.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::json;

use super::{
    LetterEncoder, TOOLS, ToolListSource, change, discover, eventually, gateway, gateway_on, keys, meta, with_encoder,
};
use crate::probe::store;
use crate::search::{SearchSettings, Strategy};

const LIMIT: Duration = Duration::from_secs(5);

#[tokio::test]
async fn a_change_of_one_tool_reads_one_tool() {
    let letters = Arc::new(LetterEncoder::default());
    let (gateway, source) = gateway(with_encoder(&letters)).await;
    assert_eq!(letters.read(), 0, "nothing is read before somebody searches");
    gateway.search().wait_for_index(LIMIT).await;
    assert_eq!(letters.read(), 3);
    let mut tools = TOOLS.to_vec();
    tools[1].1 = "Reads any file.";
    source.put(&tools);
    change(&gateway);
    gateway.search().wait_for_index(LIMIT).await;
    assert_eq!(letters.read(), 4);
    tools.reverse();
    tools.push(("another", "Does something else."));
    source.put(&tools);
    change(&gateway);
    gateway.search().wait_for_index(LIMIT).await;
    assert_eq!(letters.read(), 5, "where a tool stands does not matter");
    let found = discover(&gateway, "read a file").await;
    assert_eq!(meta(&found), json!({ "provider": "hybrid", "indexed": 4, "total": 4 }));
    assert_eq!(keys(&found)[0], "m:read_file");
}

#[tokio::test]
async fn what_was_read_once_is_not_read_after_the_next_start() {
    let store = store().await;
    let source = ToolListSource::of(TOOLS);
    for expected in [3, 0] {
        let letters = Arc::new(LetterEncoder::default());
        let gateway = gateway_on(store.clone(), &[("m", &source)]);
        gateway.search().set_settings(with_encoder(&letters));
        gateway.search().wait_for_index(LIMIT).await;
        assert_eq!(letters.read(), expected);
        assert_eq!(meta(&discover(&gateway, "read a file").await)["provider"], "hybrid");
        gateway.search().stop().await;
    }
}

#[tokio::test]
async fn the_first_search_waits_for_vectors() {
    let letters = Arc::new(LetterEncoder::default());
    let (gateway, _) = gateway(with_encoder(&letters)).await;
    let found = discover(&gateway, "a note for alex").await;
    assert_eq!(meta(&found), json!({ "provider": "hybrid", "indexed": 3, "total": 3 }));
    assert!(!keys(&found).is_empty(), "letters are alike, words are not: {found}");
}

#[tokio::test]
async fn no_search_waits_for_vectors_that_nobody_makes() {
    let letters = Arc::new(LetterEncoder::default());
    letters.waits.store(true, Ordering::Relaxed);
    let (gateway, _) = gateway(with_encoder(&letters)).await;
    let found = discover(&gateway, "file").await;
    assert_eq!(keys(&found), ["m:read_file"]);
    let told = json!({ "provider": "bm25", "fallback": "indexing", "indexed": 3, "total": 3, "unencoded": 3 });
    assert_eq!(meta(&found), told);
    let nothing = discover(&gateway, "xyz").await;
    let note = nothing["structuredContent"]["note"].as_str().expect("a note");
    assert!(note.contains("3 tools are still being prepared"), "{note}");
    letters.waits.store(false, Ordering::Relaxed);
    eventually(|| letters.read() == 3).await;
    gateway.search().wait_for_index(LIMIT).await;
    assert_eq!(meta(&discover(&gateway, "file").await)["provider"], "hybrid");
}

#[tokio::test]
async fn who_searches_by_words_alone_needs_no_vectors() {
    let letters = Arc::new(LetterEncoder::default());
    let settings = SearchSettings { strategy: Strategy::Bm25, ..with_encoder(&letters) };
    let (gateway, _) = gateway(settings).await;
    let found = discover(&gateway, "file").await;
    assert_eq!(meta(&found), json!({ "provider": "bm25", "indexed": 3, "total": 3 }));
    gateway.search().wait_for_index(LIMIT).await;
    assert_eq!(letters.read(), 0);
    gateway.search().set_settings(with_encoder(&letters));
    gateway.search().wait_for_index(LIMIT).await;
    assert_eq!(letters.read(), 3, "with other settings they are");
}

#[tokio::test]
async fn with_all_hands_full_words_answer() {
    let letters = Arc::new(LetterEncoder::default());
    let (gateway, _) = gateway(with_encoder(&letters)).await;
    gateway.search().wait_for_index(LIMIT).await;
    let all = gateway.search.encoding.available_permits();
    let turns = gateway.search.encoding.try_acquire_many(u32::try_from(all).expect("few")).expect("free");
    assert_eq!(meta(&discover(&gateway, "file").await)["fallback"], "busy");
    drop(turns);
    assert_eq!(meta(&discover(&gateway, "file").await)["provider"], "hybrid");
}

#[tokio::test]
async fn a_switched_off_search_finds_nothing() {
    let settings = SearchSettings { strategy: Strategy::Off, ..SearchSettings::default() };
    let (gateway, _) = gateway(settings).await;
    let found = discover(&gateway, "file").await;
    assert!(keys(&found).is_empty());
    assert_eq!(meta(&found), json!({ "provider": "off", "indexed": 0, "total": 3 }));
}
