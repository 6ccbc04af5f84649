//! Stored results: ownership, lifetime and completeness.

use std::time::Duration;

use hikite_core::caller::{Caller, ClientCapabilities};
use hikite_core::compact::TextFormat;
use hikite_core::error::{Error, ErrorKind};
use hikite_core::limits::Limits;
use hikite_core::signer::HmacSigner;
use hikite_core::source::{CallContext, CallOrigin, NoClient};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::line::ResultLines;
use super::*;
use crate::command::{Command, Dialect};
use crate::fake::{raw, rules};
use crate::session::{Delivery, Inbox};
use crate::surface::{Surface, Surfaces};
use crate::{fake, probe};

fn result_store(results: usize, result_bytes: usize) -> ResultStore {
    ResultStore::new(&Limits { results, result_bytes, ..Limits::default() }, "0123456789")
}

fn alice() -> Caller {
    let token = Some("tok_1".into());
    Caller { token, project: Some("work".into()), ..Caller::named("alice") }
}

/// Builds a gateway with the given limits.
fn gateway(limits: Limits) -> Arc<Gateway> {
    let source = fake::FakeSource::new(|_| Box::pin(std::future::ready(Ok(raw("{}")))));
    let gateway = Gateway::new(Arc::new(limits), HmacSigner::new([7; 32]), probe::registry_detached());
    gateway.apply(rules(
        &source,
        hikite_core::call_policy::CallPolicy::default(),
        hikite_core::call_policy::CallPolicy::default(),
    ));
    gateway
}

fn context_of(caller: Caller, id: u64) -> CallContext {
    let session = Arc::new(Session { id: SessionId(id), caller, client_capabilities: ClientCapabilities::default() });
    CallContext {
        session,
        back: Arc::new(NoClient),
        origin: CallOrigin::default(),
        accepts_input_required: false,
        account: None,
    }
}

async fn read(gateway: &Gateway, context: &CallContext, uri: &str) -> Result<Value, Error> {
    let params = Object::default().with("uri", uri);
    gateway.dispatch(Command::Read { params }, context.clone()).await.map(|result| result.value())
}

fn rows(count: usize) -> Value {
    (0..count).map(|n| json!({ "n": n, "title": format!("題名 {n}"), "state": "open" })).collect()
}

#[tokio::test(start_paused = true)]
async fn what_is_kept_is_its_owners_alone_and_goes_with_time() {
    let result_store = result_store(10, 10_000);
    let id = result_store.store_result(&raw("[1]"), None, &alice(), None).expect("kept");
    assert_eq!(id.len(), 32);
    assert!(result_store.find(&id, &alice()).is_some());
    let others = [
        Caller { subject: "bob".into(), ..alice() },
        Caller { project: None, ..alice() },
        Caller { project: Some("home".into()), ..alice() },
        Caller { token: None, ..alice() },
        Caller { token: Some("tok_2".into()), ..alice() },
        Caller::owner(),
    ];
    for other in others {
        assert!(result_store.find(&id, &other).is_none(), "{other:?}");
    }
    tokio::time::advance(Duration::from_secs(1799)).await;
    assert!(result_store.find(&id, &alice()).is_some());
    tokio::time::advance(Duration::from_secs(2)).await;
    assert!(result_store.find(&id, &alice()).is_none());
    assert_eq!(result_store.holds(), (0, 0), "nothing is left of it");
}

#[tokio::test]
async fn the_oldest_goes_first_and_what_is_too_large_is_not_kept() {
    let few = result_store(3, 1_000_000);
    let ids: Vec<Arc<str>> =
        (0..5).map(|n| few.store_result(&raw(&n.to_string()), None, &alice(), None).expect("kept")).collect();
    let there: Vec<bool> = ids.iter().map(|id| few.find(id, &alice()).is_some()).collect();
    assert_eq!(there, [false, false, true, true, true]);
    let small = result_store(100, 3000);
    let text = raw(&format!("\"{}\"", "x".repeat(1000)));
    let first = small.store_result(&text, None, &alice(), None).expect("kept");
    let second = small.store_result(&text, None, &alice(), None).expect("kept");
    assert!(small.find(&first, &alice()).is_none() && small.find(&second, &alice()).is_some());
    let large = raw(&format!("\"{}\"", "x".repeat(3000)));
    assert!(small.store_result(&large, None, &alice(), None).is_none());
    assert!(small.find(&second, &alice()).is_some(), "and nothing had to go for it");
    assert!(result_store(0, 3000).store_result(&text, None, &alice(), None).is_none());
}

#[test]
fn many_at_once_stay_within_the_bounds() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    let _context = runtime.enter();
    let result_store = result_store(50, 50 * 600);
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let (result_store, handle) = (&result_store, runtime.handle());
            scope.spawn(move || {
                let _context = handle.enter();
                for n in 0..200 {
                    let session = Some(SessionId(n % 7));
                    let id = result_store.store_result(&raw(&format!("[{thread},{n}]")), None, &alice(), session);
                    let id = id.expect("kept");
                    if n % 3 == 0 {
                        result_store.release(SessionId(n % 7));
                    }
                    if let Some(kept) = result_store.find(&id, &alice()) {
                        assert_eq!(kept.value.as_str(), format!("[{thread},{n}]"));
                    }
                }
            });
        }
    });
    let (count, bytes) = result_store.holds();
    assert!(count <= 50 && bytes <= 50 * 600, "{count} {bytes}");
    for session in 0..7 {
        result_store.release(SessionId(session));
    }
    assert_eq!(result_store.holds(), (0, 0), "what is counted is what is there");
}

#[derive(Debug)]
struct SilentInbox;

impl Inbox for SilentInbox {
    fn deliver(&self, _: Delivery) {}
}

#[tokio::test]
async fn it_goes_with_the_session_of_a_client_that_listens() {
    let gateway = gateway(Limits { compact_bytes: 1000, ..Limits::default() });
    let ear: Arc<dyn Inbox> = Arc::new(SilentInbox);
    let surfaces = Surfaces::of([Surface::Direct]);
    let kept = |context: &CallContext| {
        let holder = ResultOwner::of(&mut Object::default(), context);
        result_uri(&gateway.store_result(&Raw::of(&rows(100)), None, &holder).expect("kept"))
    };
    let heard = context_of(Caller::owner(), 1);
    let joined = gateway.join(Arc::clone(&heard.session), surfaces, Arc::downgrade(&ear));
    let uri = kept(&heard);
    assert!(read(&gateway, &heard, &uri).await.is_ok());
    let again = context_of(Caller::owner(), 3);
    assert!(read(&gateway, &again, &uri).await.is_ok(), "the same caller, in whatever session");
    drop(joined);
    assert_eq!(read(&gateway, &heard, &uri).await.expect_err("gone").kind, ErrorKind::NotFound);
    // A stateless session is reused by one request after another, and may be gone before the next.
    let lane = context_of(Caller::owner(), 2);
    let joined = gateway.join(Arc::clone(&lane.session), surfaces, std::sync::Weak::<SilentInbox>::new());
    let uri = kept(&lane);
    drop(joined);
    assert!(read(&gateway, &lane, &uri).await.is_ok());
}

#[tokio::test]
async fn another_caller_is_told_what_is_told_of_an_unknown_one() {
    let gateway = gateway(Limits::default());
    let owner = context_of(Caller::owner(), 1);
    let holder = ResultOwner::of(&mut Object::default(), &owner);
    let id = gateway.store_result(&Raw::of(&rows(9)), None, &holder).expect("kept");
    let nowhere = "0".repeat(32);
    for part in ["", "?page=1", "?jq=.", "?search=x", "?page=99"] {
        let other = context_of(Caller::named("bob"), 2);
        let hidden = read(&gateway, &other, &format!("result://{id}{part}")).await.expect_err("hidden");
        let unknown = read(&gateway, &other, &format!("result://{nowhere}{part}")).await.expect_err("unknown");
        let words = |error: &Error, id: &str| error.rpc().as_str().replace(id, "ID");
        assert_eq!(words(&hidden, &id), words(&unknown, &nowhere), "{part}");
        assert_eq!(hidden.kind, ErrorKind::NotFound);
    }
}

#[tokio::test]
async fn it_is_read_in_pages_and_by_a_text() {
    let gateway = gateway(Limits { compact_bytes: 1000, ..Limits::default() });
    let context = context_of(Caller::owner(), 1);
    let holder = ResultOwner::of(&mut Object::default(), &context);
    let uri = result_uri(&gateway.store_result(&Raw::of(&rows(200)), None, &holder).expect("kept"));
    let first = read(&gateway, &context, &uri).await.expect("a page");
    let pages = first["_meta"]["hikite/answer"]["pages"].as_u64().expect("a number");
    assert!(pages > 2, "{first}");
    let mut all = String::new();
    for page in 1..=pages {
        let read = read(&gateway, &context, &format!("{uri}?page={page}")).await.expect("a page");
        let text = read["contents"][0]["text"].as_str().expect("text").to_owned();
        assert!(text.ends_with(&format!("\n[page {page} of {pages}]")) && text.len() <= 1000, "{text}");
        all.push_str(&text);
    }
    for n in 0..200 {
        assert!(all.contains(&format!("題名 {n}")), "{n}");
    }
    let after = read(&gateway, &context, &format!("{uri}?page={}", pages + 1)).await.expect_err("none");
    assert_eq!(&*after.message, format!("There is no page {}: there are {pages} pages.", pages + 1));
    let found = read(&gateway, &context, &format!("{uri}?search=題名 199")).await.expect("found");
    let text = found["contents"][0]["text"].as_str().expect("text");
    assert!(text.starts_with("1 of ") && text.contains("題名 199") && !text.contains("題名 198"), "{text}");
    let none = read(&gateway, &context, &format!("{uri}?search=xyz")).await.expect("an answer");
    assert!(none["contents"][0]["text"].as_str().expect("text").starts_with("0 of "), "{none}");
    let jq = read(&gateway, &context, &format!("{uri}?jq=length")).await.expect_err("nobody runs it");
    assert_eq!(&*jq.message, "jq is not available here.");
    let path = read(&gateway, &context, &format!("{uri}?jq=.[7].title")).await.expect("a plain path");
    assert_eq!(path["contents"][0]["text"], "題名 7");
}

#[tokio::test]
async fn a_tool_can_read_it_and_ordinary_resources_too() {
    let answer = r#"{"contents":[{"uri":"x:y","text":"one\ntwo 設計\nthree"},{"uri":"x:z","blob":"AA=="}]}"#;
    let source = fake::FakeSource::new(move |_| Box::pin(std::future::ready(Ok(raw(answer)))));
    let gateway = fake::gateway(&source, hikite_core::call_policy::CallPolicy::default());
    let fetch = async |part: ResultPart| {
        let command = Command::Fetch { uri: "x:y".into(), part, params: Object::default(), dialect: Dialect::Result };
        gateway.dispatch(command, fake::context("owner")).await.map(|result| result.value())
    };
    let whole = fetch(ResultPart::default()).await.expect("a resource");
    assert_eq!(whole["content"][0], json!({ "type": "text", "text": "one\ntwo 設計\nthree" }));
    assert_eq!(whole["content"][1]["resource"]["blob"], "AA==");
    let found = fetch(ResultPart { search: Some("設計".into()), ..ResultPart::default() }).await.expect("found");
    assert_eq!(found["content"][0]["text"], "1 of 3 lines contain `設計`\n2: two 設計");
    let both = fetch(ResultPart { search: Some("x".into()), page: Some(1), ..ResultPart::default() }).await;
    assert_eq!(both.expect_err("two ways").kind, ErrorKind::Validation);
}

/// Generates a value of limited depth and size.
fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        "[a-z設計 ,\n\"]{0,120}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 64, 12, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..12).prop_map(Value::from),
            prop::collection::vec(("[a-z設]{1,6}", inner), 0..8)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn pages_hold_every_line_and_none_is_too_long(value in any_value(), size in 200..2000_usize) {
        let lines = ResultLines::of(&value, None);
        let pages = page::pages(&lines, size);
        for page in &pages {
            prop_assert!(page.len() <= size, "{} > {size}", page.len());
        }
        // Parent lines repeated at the top of a page add text but never remove any.
        let mut at = 0;
        let joined = pages.join("\n");
        for line in &lines.all {
            for piece in line.as_bytes().chunks(size / 8).filter_map(|piece| std::str::from_utf8(piece).ok()) {
                if line.len() <= size / 2 {
                    let found = joined[at..].find(piece);
                    prop_assert!(found.is_some(), "{piece}");
                    at += found.unwrap_or_default();
                }
            }
        }
        let bytes: usize = lines.all.iter().map(String::len).sum();
        let given: usize = pages.iter().map(|page| page.bytes().filter(|byte| *byte != b'\n').count()).sum();
        prop_assert!(given >= bytes, "{given} < {bytes}");
        if lines.form == TextFormat::Json {
            let whole: String = lines.all.concat();
            prop_assert!(serde_json::from_str::<Value>(&whole).is_ok(), "{whole}");
        }
    }
}

#[tokio::test]
async fn a_flood_of_one_caller_takes_nothing_from_another() {
    let result_store = result_store(10, 20_000);
    let (quiet, greedy) = (Caller::named("quiet"), Caller::named("greedy"));
    let kept = result_store.store_result(&raw("\"mine\""), None, &quiet, None).expect("kept");
    let large = format!("\"{}\"", "x".repeat(3000));
    for _ in 0..50 {
        result_store.store_result(&raw("\"small\""), None, &greedy, None).expect("kept");
        result_store.store_result(&raw(&large), None, &greedy, None).expect("kept");
    }
    assert!(result_store.find(&kept, &quiet).is_some(), "whoever holds most gives way");
    let (count, bytes) = result_store.holds();
    assert!(count <= 10 && bytes <= 20_000, "{count} {bytes}");
}
