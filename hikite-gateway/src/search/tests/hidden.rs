//! Tools that a project does not allow are never found, never sent, and indistinguishable from absent ones.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use hikite_core::caller::{Caller, ClientCapabilities, Session, SessionId};
use hikite_core::json::Object;
use hikite_core::listing::ListKind;
use hikite_core::search::provider::SearchProvider;
use hikite_core::source::{CallContext, CallOrigin, NoClient};
use serde_json::{Value, json};

use super::cloud::ScriptedProvider;
use super::{TOOLS, ToolListSource, call_in, gateway_on, keys, meta};
use crate::discovery::ListPage;
use crate::fake::raw;
use crate::gateway::Gateway;
use crate::probe::store;
use crate::search::{SearchSettings, Strategy};
use crate::surface::{Surface, Surfaces};
use hikite_identity::Project;

fn project(name: &str, form: &str) -> Arc<Project> {
    let form: Object = raw(form).object().expect("an object");
    Arc::new(Project::read(name, &form).expect("a project"))
}

fn of(project: &str) -> CallContext {
    let caller = Caller { project: Some(project.into()), ..Caller::named("alice") };
    let session = Arc::new(Session { id: SessionId(1), caller, client_capabilities: ClientCapabilities::default() });
    CallContext {
        session,
        back: Arc::new(NoClient),
        origin: CallOrigin::default(),
        accepts_input_required: false,
        account: None,
    }
}

async fn ask(gateway: &Gateway, project: &str, name: &str, arguments: Value) -> Value {
    call_in(gateway, of(project), name, arguments, Value::Null).await
}

async fn two() -> Arc<Gateway> {
    let (open, closed) = (ToolListSource::of(TOOLS), ToolListSource::of(&[("file_away", "A file of the other kind.")]));
    let gateway = gateway_on(store().await, &[("m", &open), ("closed", &closed)]);
    gateway.catalogs().set_projects(vec![
        project("p", r#"{"permissions":{"allow":["m"],"deny":["m:send_mail"]}}"#),
        project("quiet", r#"{"optimization":null}"#),
        project("words", r#"{"optimization":"bm25"}"#),
    ]);
    gateway
}

#[tokio::test]
async fn a_hidden_tool_is_not_found_and_looks_absent() {
    let gateway = two().await;
    for query in ["file", "mail", "closed", "send_mail"] {
        let found = ask(&gateway, "p", "tool_discovery", json!({ "query": query, "maxResults": 50 })).await;
        assert!(!keys(&found).iter().any(|key| matches!(*key, "m:send_mail" | "closed:file_away")), "{found}");
        assert_eq!(meta(&found)["total"], 2, "hidden tools are not counted, either");
    }
    let run = async |key: &str| {
        let result = ask(&gateway, "p", "tool_execute", json!({ "toolKey": key })).await;
        result["structuredContent"]["error"].to_string().replace(key, "KEY")
    };
    assert_eq!(run("m:send_mail").await, run("m:nosuch_xyz").await);
    assert_eq!(run("closed:file_away").await, run("closed:nosuch_xyz").await);
    let surfaces = Surfaces::of([Surface::Search]);
    let caller = &of("p").session.caller;
    let list = gateway.discovery().list(caller, surfaces, ListKind::Tools, ListPage::default()).await.expect("a list");
    assert!(list.as_str().contains("- m: ") && !list.as_str().contains("closed"), "{list:?}");
}

#[tokio::test]
async fn nothing_hidden_is_sent_to_the_cloud() {
    let gateway = two().await;
    let cloud = Arc::new(ScriptedProvider::default());
    *cloud.chooses.lock() = Some(vec![("send_mail", 1.0), ("read_file", 0.5)]);
    gateway.search().set_settings(SearchSettings {
        strategy: Strategy::Cloud,
        cloud: Some(Arc::clone(&cloud) as Arc<dyn SearchProvider>),
        ..SearchSettings::default()
    });
    let found = ask(&gateway, "p", "tool_discovery", json!({ "query": "mail" })).await;
    assert_eq!(keys(&found), ["m:read_file"]);
    let sent: Vec<String> = cloud.sent.lock().iter().map(|tool| tool.key.to_string()).collect();
    assert_eq!(sent, ["m:create_issue", "m:read_file"]);
    assert_eq!(keys(&ask(&gateway, "gone", "tool_discovery", json!({ "query": "file" })).await), [""; 0]);
    assert!(cloud.sent.lock().is_empty(), "a project that is not there has no tools");
}

#[tokio::test]
async fn a_project_decides_how_it_is_searched() {
    let gateway = two().await;
    let quiet = ask(&gateway, "quiet", "tool_discovery", json!({ "query": "file" })).await;
    assert_eq!((keys(&quiet).len(), &meta(&quiet)["provider"]), (0, &json!("off")));
    assert!(quiet["structuredContent"]["note"].as_str().is_some_and(|text| text.contains("disabled")));
    let ran = ask(&gateway, "quiet", "tool_execute", json!({ "toolKey": "m:read_file" })).await;
    assert!(ran.get("isError").is_none(), "{ran}");
    let words = ask(&gateway, "words", "tool_discovery", json!({ "query": "file" })).await;
    assert_eq!((&meta(&words)["provider"], meta(&words).get("fallback")), (&json!("bm25"), None));
}

#[tokio::test]
async fn a_service_without_an_account_is_named_to_those_who_may_see_it() {
    let open = ToolListSource::of(TOOLS);
    let closed = ToolListSource::of(&[("forecast", "Tells the weather of the next days.")]);
    closed.lacks_account.store(true, Ordering::Relaxed);
    let gateway = gateway_on(store().await, &[("m", &open), ("sky", &closed)]);
    gateway.catalogs().set_projects(vec![project("all", "{}"), project("p", r#"{"permissions":{"deny":["sky"]}}"#)]);
    let query = json!({ "query": "weather forecast" });
    let found = ask(&gateway, "all", "tool_discovery", query.clone()).await;
    let needs = json!([{ "module": "sky", "tool": "sky:forecast", "how": "Log in to it." }]);
    assert_eq!((&found["structuredContent"]["needs"], keys(&found).len()), (&needs, 0), "{found}");
    let note = found["structuredContent"]["note"].as_str();
    assert!(note.is_some_and(|note| note.contains("`needs`")), "{found}");
    let hidden = ask(&gateway, "p", "tool_discovery", query).await;
    assert!(!hidden.to_string().contains("sky") && !hidden.to_string().contains("needs"), "{hidden}");
    let other = ask(&gateway, "all", "tool_discovery", json!({ "query": "read a file" })).await;
    assert_eq!((keys(&other)[0], other["structuredContent"].get("needs")), ("m:read_file", None), "{other}");
    gateway.admin().tools.switch("sky:forecast", false).await.expect("off");
    let off = ask(&gateway, "all", "tool_discovery", json!({ "query": "weather forecast" })).await;
    assert_eq!(off["structuredContent"].get("needs"), None, "{off}");
}
