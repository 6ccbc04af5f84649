//! The usage memory of conversations, and its limits.

use hikite_store::{SearchMemoryRow, Store};
use serde_json::{Value, json};

use super::{TOOLS, ToolListSource, call_in, context, discover, gateway_on};
use crate::gateway::Gateway;
use crate::probe::store;
use crate::search::{MemorySettings, SearchSettings};

async fn execute(gateway: &Gateway, session: u64, tool: &str, meta: Value) {
    call_in(gateway, context(session), "tool_execute", json!({ "toolKey": tool }), meta).await;
}

/// Stops search and returns the stored pairs.
async fn remembered(gateway: &Gateway, store: &Store) -> Vec<SearchMemoryRow> {
    gateway.search().stop().await;
    store.search().remembered(None).await.expect("read")
}

#[tokio::test]
async fn a_question_that_led_to_a_call_is_remembered_without_its_words() {
    let (store, source) = (store().await, ToolListSource::of(TOOLS));
    let gateway = gateway_on(store.clone(), &[("m", &source)]);
    discover(&gateway, "read the secret file").await;
    execute(&gateway, 1, "m:read_file", Value::Null).await;
    execute(&gateway, 1, "read_file", Value::Null).await;
    let pairs = remembered(&gateway, &store).await;
    assert_eq!(pairs.len(), 1);
    assert_eq!((pairs[0].key.to_string().as_str(), &pairs[0].text), ("m:read_file", &None));
    assert!(pairs[0].weight > 1.9 && !pairs[0].terms.is_empty());
    assert!(!format!("{:?}", pairs[0]).contains("secret"));
    let again = gateway_on(store.clone(), &[("m", &source)]);
    again.admin().store.open().await.expect("opened");
    let ready = again.search.ready(true).await.expect("an index");
    assert_eq!(again.search.memory.traces("", &ready, "").len(), 1, "it is known after the next start");
    assert!(again.search.memory.traces("other", &ready, "").is_empty());
    store.search().forget(None).await.expect("forgotten");
    again.admin().store.catch_up().await.expect("caught up");
    assert!(again.search.memory.traces("", &ready, "").is_empty(), "what is erased is forgotten");
}

#[tokio::test]
async fn only_a_success_with_a_shown_tool_of_the_same_conversation_counts() {
    let (store, source) = (
        store().await,
        ToolListSource::of(&[("sad", "a file"), ("broken", "a file"), ("glad", "a file"), ("other", "b")]),
    );
    let gateway = gateway_on(store.clone(), &[("m", &source)]);
    discover(&gateway, "file").await;
    execute(&gateway, 2, "m:glad", Value::Null).await;
    execute(&gateway, 1, "m:other", Value::Null).await;
    execute(&gateway, 1, "m:sad", Value::Null).await;
    execute(&gateway, 1, "m:broken", Value::Null).await;
    execute(&gateway, 1, "m:glad", json!({ "hikite/conversation": "elsewhere" })).await;
    assert_eq!(remembered(&gateway, &store).await, []);
}

#[tokio::test]
async fn a_client_without_a_session_names_its_conversation_and_nobody_else_hears_it() {
    let (store, source) = (store().await, ToolListSource::of(TOOLS));
    let gateway = gateway_on(store.clone(), &[("m", &source)]);
    let stateless = |session| {
        let mut context = context(session);
        context.accepts_input_required = true;
        context
    };
    let ask = json!({ "query": "file" });
    let run = json!({ "toolKey": "m:read_file" });
    call_in(&gateway, stateless(1), "tool_discovery", ask.clone(), Value::Null).await;
    call_in(&gateway, stateless(1), "tool_execute", run.clone(), Value::Null).await;
    let named = json!({ "hikite/conversation": "c", "kept": 1 });
    call_in(&gateway, stateless(2), "tool_discovery", ask, named.clone()).await;
    let result = call_in(&gateway, stateless(3), "tool_execute", run, named).await;
    let sent = &result["structuredContent"]["result"]["_meta"];
    assert_eq!(*sent, json!({ "kept": 1 }), "the name of a conversation is not relayed");
    let pairs = remembered(&gateway, &store).await;
    assert!(pairs.len() == 1 && pairs[0].weight < 1.1, "{pairs:?}");
}

#[tokio::test]
async fn memory_can_be_off_and_can_keep_words() {
    for (enabled, text, expected) in [(false, true, None), (true, true, Some("read a file"))] {
        let (store, source) = (store().await, ToolListSource::of(TOOLS));
        let gateway = gateway_on(store.clone(), &[("m", &source)]);
        let memory = MemorySettings { enabled, text, ..MemorySettings::default() };
        gateway.search().set_settings(SearchSettings { memory, ..SearchSettings::default() });
        discover(&gateway, "read a file").await;
        execute(&gateway, 1, "m:read_file", Value::Null).await;
        let pairs = remembered(&gateway, &store).await;
        assert_eq!(pairs.first().and_then(|pair| pair.text.as_deref()), expected);
    }
}
