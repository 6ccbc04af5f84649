//! `get_module_schema` as a client sees it: the content, when it is sent again, and what is hidden.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use hikite_core::caller::{Caller, ClientCapabilities, Scopes, Session, SessionId};
use hikite_core::catalog::ModuleRule;
use hikite_core::error::Error;
use hikite_core::json::{Object, Raw};
use hikite_core::limits::Limits;
use hikite_core::listing::{ListItem, ListKind, Listing};
use hikite_core::signer::HmacSigner;
use hikite_core::source::{BoxFuture, CallContext, CallOrigin, Invocation, NoClient, Source, SourceEvent, SourceState};
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::admission::Throttle;
use crate::gateway::{Gateway, GatewayRules};
use crate::list::ListPage;
use crate::probe;
use crate::registry::RegistryStore;
use crate::session::{Delivery, Inbox};
use crate::surface::{Surface, Surfaces};

/// A source whose listing can be replaced; without a listing it never completes its first one.
struct ChangingSource(Mutex<Option<Arc<Listing>>>);

impl fmt::Debug for ChangingSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Desk")
    }
}

impl ChangingSource {
    fn new(tools: &[Value]) -> Arc<Self> {
        let source = Arc::new(Self(Mutex::default()));
        source.tell(tools);
        source
    }

    fn silent() -> Arc<Self> {
        Arc::new(Self(Mutex::default()))
    }

    fn tell(&self, tools: &[Value]) {
        let items = |kind, values: &[Value]| {
            values.iter().map(|value| ListItem::read(kind, Raw::of(value)).expect("named")).collect::<Vec<_>>()
        };
        *self.0.lock() = Some(Arc::new(Listing {
            tools: items(ListKind::Tools, tools),
            resources: items(
                ListKind::Resources,
                &[json!({ "uri": "notion://me", "name": "me", "description": "Who you are.", "size": 3 })],
            ),
            templates: items(ListKind::Templates, &[json!({ "uriTemplate": "notion://page/{id}", "name": "page" })]),
            prompts: items(
                ListKind::Prompts,
                &[json!({ "name": "summarize", "description": "Sums up a page.",
                    "arguments": [{ "name": "page_id", "required": true }, { "name": "tone" }] })],
            ),
            info: Object::default().with("version", "2022-06-28"),
            instructions: Some("Search first.".into()),
            ..Listing::default()
        }));
    }
}

impl Source for ChangingSource {
    fn listing(&self) -> Option<Arc<Listing>> {
        self.0.lock().clone()
    }

    fn state(&self) -> SourceState {
        SourceState::Running
    }

    fn first_listing(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::pending())
    }

    fn call(&self, invocation: Invocation, _: CallContext) -> BoxFuture<'_, Result<Raw, Error>> {
        let asked = format!("{} {}", invocation.method.name(), invocation.params.raw().as_str());
        let text = json!({ "type": "text", "text": asked });
        let answer = match invocation.method.name() {
            "resources/read" => json!({ "contents": [{ "uri": "x:y", "text": asked }] }),
            "prompts/get" => json!({ "messages": [{ "role": "user", "content": text }] }),
            _ => json!({ "content": [text] }),
        };
        Box::pin(std::future::ready(Ok(Raw::of(&answer))))
    }

    fn roots_changed(&self, _: SessionId) {}

    fn release(&self, _: SessionId) {}

    fn close(&self, _: Duration) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

fn search() -> Value {
    json!({ "name": "search", "description": "ページを検索する。 Also databases.", "inputSchema": {
        "type": "object", "required": ["query"], "properties": {
            "query": { "type": "string" },
            "sort": { "enum": ["asc", "desc"], "description": "by time" },
        } } })
}

fn page() -> Value {
    json!({ "name": "get_page" })
}

fn gateway_with(limits: Limits, modules: &[(&str, &Arc<ChangingSource>)]) -> Arc<Gateway> {
    gateway_on(probe::registry_detached(), limits, modules)
}

fn gateway_on(registry: RegistryStore, limits: Limits, modules: &[(&str, &Arc<ChangingSource>)]) -> Arc<Gateway> {
    let throttle = Throttle::of(&limits);
    let gateway = Gateway::new(Arc::new(limits), HmacSigner::new([7; 32]), registry);
    let rule = |(name, source): &(&str, &Arc<ChangingSource>)| {
        let description = if *name == "notion" { "Notion API - ページ操作" } else { "" };
        let source = Arc::clone(source) as Arc<dyn Source>;
        (ModuleRule { description: description.into(), ..ModuleRule::new(*name, source) }, throttle)
    };
    gateway.apply(GatewayRules { modules: modules.iter().map(rule).collect(), ..GatewayRules::default() });
    gateway
}

fn notion() -> (Arc<Gateway>, Arc<ChangingSource>) {
    let source = ChangingSource::new(&[search(), page()]);
    (gateway_with(Limits::default(), &[("notion", &source)]), source)
}

fn in_session(session: u64, accepts_input_required: bool) -> CallContext {
    let caller = Caller::owner();
    let session =
        Arc::new(Session { id: SessionId(session), caller, client_capabilities: ClientCapabilities::default() });
    CallContext {
        session,
        back: Arc::new(NoClient),
        origin: CallOrigin::default(),
        accepts_input_required,
        account: None,
    }
}

async fn tool(gateway: &Gateway, context: CallContext, name: &str, arguments: Value, meta: Value) -> Value {
    let params =
        Object::default().with("name", name).with("arguments", Raw::of(&arguments)).with("_meta", Raw::of(&meta));
    let surfaces = Surfaces::of([Surface::Modules, Surface::Search]);
    gateway.call_tool(surfaces, params, context).await.expect("a result").raw.value()
}

async fn result(gateway: &Gateway, arguments: Value) -> Value {
    tool(gateway, in_session(1, false), "get_module_schema", arguments, json!({})).await
}

fn array(result: &Value) -> Vec<Value> {
    assert!(result.get("structuredContent").is_none(), "an array is no structured content: {result}");
    serde_json::from_str(result["content"][0]["text"].as_str().expect("text")).expect("an array")
}

async fn open(gateway: &Gateway, arguments: Value) -> Vec<Value> {
    array(&result(gateway, arguments).await)
}

#[tokio::test]
async fn a_module_tells_all_that_it_offers() {
    let (gateway, _) = notion();
    let description = open(&gateway, json!({ "modules": ["notion"] })).await.remove(0);
    let hash = description["hash"].as_str().expect("a hash");
    assert!(hash.len() == 12 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()), "{hash}");
    assert_eq!(
        description,
        json!({
            "module": "notion",
            "description": "Notion API - ページ操作",
            "api_version": "2022-06-28",
            "instructions": "Search first.",
            "tools": [
                "search(query: string, sort?: \"asc\" | \"desc\" /* by time */) // ページを検索する。 Also databases.",
                "get_page()",
            ],
            "resources": [
                { "uri": "notion://me", "name": "me", "description": "Who you are." },
                { "uriTemplate": "notion://page/{id}", "name": "page" },
            ],
            "prompts": ["summarize(page_id, tone?) // Sums up a page."],
            "hash": hash,
        })
    );
    let names = open(&gateway, json!({ "module": "notion", "detail": "names" })).await.remove(0);
    assert_eq!(names["tools"], json!(["search", "get_page"]));
    assert_eq!(names["resources"], json!(["notion://me", "notion://page/{id}"]));
    assert_eq!((&names["prompts"], names.get("instructions")), (&json!(["summarize"]), None));
    let schemas = open(&gateway, json!({ "module": "notion", "detail": "schemas" })).await.remove(0);
    assert_eq!(schemas["tools"], json!([search(), page()]));
    assert_eq!(schemas["resources"][0]["size"], 3);
}

#[tokio::test]
async fn what_was_sent_is_not_sent_again_until_it_changes() {
    let (gateway, source) = notion();
    let ask = async |more: Value| {
        let mut arguments = json!({ "modules": ["notion"] });
        arguments.as_object_mut().expect("an object").extend(more.as_object().cloned().unwrap_or_default());
        open(&gateway, arguments).await.remove(0)
    };
    let first = ask(json!({})).await;
    let again = ask(json!({})).await;
    assert_eq!((&again["unchanged"], &again["hash"]), (&json!(true), &first["hash"]));
    assert!(again["hint"].as_str().expect("a hint").contains("refresh: true") && again.get("tools").is_none());
    assert_eq!(ask(json!({ "refresh": true })).await, first);
    assert!(ask(json!({ "detail": "names" })).await["tools"].is_array(), "another detail is something else");
    assert!(ask(json!({ "tools": ["search"] })).await["tools"].is_array(), "and so is one tool");
    assert_eq!(ask(json!({ "tools": ["search"] })).await["unchanged"], true);
    source.tell(&[search()]);
    gateway.listener("notion")(SourceEvent::ListChanged);
    let changed = ask(json!({})).await;
    assert_ne!(changed["hash"], first["hash"]);
    assert_eq!(changed["tools"].as_array().map(Vec::len), Some(1));
    source.tell(&[search(), page()]);
    gateway.listener("notion")(SourceEvent::ListChanged);
    assert_eq!(ask(json!({})).await, first, "what it was before is news, too");
}

struct NullInbox;

impl Inbox for NullInbox {
    fn deliver(&self, _: Delivery) {}
}

#[tokio::test(start_paused = true)]
async fn a_conversation_remembers_for_itself_and_for_a_while() {
    let (gateway, _) = notion();
    let sent = async |context: &CallContext, meta: &Value, more: Value| {
        let mut arguments = json!({ "module": "notion" });
        arguments.as_object_mut().expect("an object").extend(more.as_object().cloned().unwrap_or_default());
        let result = tool(&gateway, context.clone(), "get_module_schema", arguments, meta.clone()).await;
        let description = array(&result).remove(0);
        (description.get("tools").is_some(), description["hash"].as_str().unwrap_or_default().to_owned())
    };
    let (one, other) = (in_session(1, false), in_session(2, false));
    let inbox: Arc<dyn Inbox> = Arc::new(NullInbox);
    let joined = gateway.join(Arc::clone(&one.session), Surfaces::of([Surface::Modules]), Arc::downgrade(&inbox));
    let none = json!({});
    assert!(sent(&one, &none, none.clone()).await.0);
    assert!(!sent(&one, &none, none.clone()).await.0);
    assert!(sent(&other, &none, none.clone()).await.0, "another session has its own");
    drop(joined);
    assert!(sent(&one, &none, none.clone()).await.0, "the session is over");
    tokio::time::advance(Duration::from_secs(31 * 60)).await;
    assert!(sent(&other, &none, none.clone()).await.0, "it is long ago");

    let lane = in_session(3, true);
    let named = json!({ "hikite/conversation": "会議" });
    assert!(sent(&lane, &none, none.clone()).await.0);
    let (whole, hash) = sent(&lane, &none, none.clone()).await;
    assert!(whole, "without a conversation nothing is remembered");
    assert!(!sent(&lane, &none, json!({ "known": [hash] })).await.0, "but the client may");
    assert!(sent(&lane, &none, json!({ "known": [hash], "refresh": true })).await.0);
    assert!(sent(&lane, &none, json!({ "known": ["000000000000"] })).await.0);
    assert!(sent(&lane, &named, none.clone()).await.0);
    assert!(!sent(&lane, &named, none.clone()).await.0, "a name of its own is as good as a session");
    assert!(sent(&lane, &json!({ "hikite/conversation": "other" }), none).await.0);
}

#[tokio::test(start_paused = true)]
async fn one_that_is_down_or_unknown_does_not_hide_the_others() {
    let (source, down) = (ChangingSource::new(&[search()]), ChangingSource::silent());
    let gateway =
        gateway_with(Limits::default(), &[("notion", &source), ("jira", &down), ("slow", &ChangingSource::silent())]);
    let since = tokio::time::Instant::now();
    let some = result(&gateway, json!({ "modules": ["notion", "jira", "notin", "notion"] })).await;
    assert_eq!(since.elapsed(), gateway.limits.first_list, "both were waited for at once, others not");
    assert!(some.get("isError").is_none());
    let some = array(&some);
    assert_eq!(some.iter().map(|part| &part["module"]).collect::<Vec<_>>(), ["notion", "jira", "notin"]);
    assert!(some[0]["tools"].is_array());
    assert_eq!(some[1]["error"]["code"], "UPSTREAM_UNAVAILABLE");
    assert_eq!(some[2]["error"]["code"], "NOT_FOUND");
    assert_eq!(some[2]["error"]["hint"], "Did you mean `notion`?");
    let none = result(&gateway, json!({ "modules": ["jira", "notin"] })).await;
    assert_eq!((&none["isError"], array(&none).len()), (&json!(true), 2));
    let since = tokio::time::Instant::now();
    let none = result(&gateway, json!({ "module": "nowhere at all" })).await;
    assert_eq!(since.elapsed(), Duration::ZERO);
    assert_eq!(none["isError"], true);
    let error = &none["structuredContent"]["error"];
    assert_eq!((&error["code"], error["hint"].is_string()), (&json!("NOT_FOUND"), true), "{none}");
    let call = tool(&gateway, in_session(1, false), "call", json!({ "module": "jira", "tool": "x" }), json!({})).await;
    assert_eq!(call["structuredContent"]["error"]["code"], "UPSTREAM_UNAVAILABLE");
}

#[tokio::test]
async fn single_tools_are_shown_alone_and_unknown_ones_told() {
    let registry = RegistryStore::new(probe::store().await, Arc::new(|_, _| Err(Vec::new())));
    let gateway = gateway_on(registry, Limits::default(), &[("notion", &ChangingSource::new(&[search(), page()]))]);
    let one = open(&gateway, json!({ "module": "notion", "tools": ["notion:get_page"], "detail": "schemas" })).await;
    assert_eq!((&one[0]["tools"], one[0].get("prompts")), (&json!([page()]), None));
    let two = open(&gateway, json!({ "module": "notion", "tools": ["search", "get_pag"] })).await;
    assert_eq!(two[0]["tools"].as_array().map(Vec::len), Some(1));
    assert_eq!(two[1]["tool"], "get_pag");
    assert_eq!(two[1]["error"]["hint"], "Did you mean `get_page`?");
    let none = result(&gateway, json!({ "module": "notion", "tools": ["nope"] })).await;
    assert_eq!(none["structuredContent"]["error"]["code"], "TOOL_NOT_FOUND");
    gateway.switch("notion:search", false).await.expect("off");
    let left = open(&gateway, json!({ "module": "notion", "detail": "names" })).await;
    assert_eq!(left[0]["tools"], json!(["get_page"]), "what is switched off is left out");
}

#[tokio::test]
async fn a_module_that_is_too_large_falls_back_and_says_how_to_get_the_rest() {
    let long = "x".repeat(40);
    let tools: Vec<Value> = (0..60)
        .map(|at| {
            json!({ "name": format!("tool_{at:02}"), "inputSchema": { "type": "object", "properties": {
                "a": { "type": "string", "description": long } } } })
        })
        .collect();
    let source = ChangingSource::new(&tools);
    for (budget, detail, first) in [
        (60_000, "schemas", &tools[0]),
        (6_000, "schemas", &json!(format!("tool_00(a?: string /* {long} */)"))),
        (3_000, "signatures", &json!("tool_00(a?: string)")),
        (1_000, "signatures", &json!("tool_00")),
    ] {
        let limits = Limits { compact_bytes: budget, ..Limits::default() };
        let gateway = gateway_with(limits, &[("notion", &source)]);
        let description = open(&gateway, json!({ "module": "notion", "detail": detail })).await.remove(0);
        assert_eq!(description["tools"].as_array().map(Vec::len), Some(60), "all are there");
        assert_eq!(&description["tools"][0], first);
        let note = description["note"].as_str().unwrap_or_default();
        assert_eq!(note.contains("`tools: [names]`"), budget != 60_000, "{note}");
        let one = open(&gateway, json!({ "module": "notion", "detail": "schemas", "tools": ["tool_07"] })).await;
        assert_eq!(one[0]["tools"], json!([tools[7]]), "single ones are never shortened");
    }
}

#[tokio::test]
async fn four_tools_stand_for_everything_and_the_list_stands_once() {
    let (gateway, _) = notion();
    let list = async |surfaces: &[Surface]| {
        let surfaces = Surfaces::of(surfaces.iter().copied());
        let list = gateway.list(&Caller::owner(), surfaces, ListKind::Tools, ListPage::default()).await;
        let list = list.expect("a list").value();
        let tools = list["tools"].as_array().expect("tools").clone();
        (tools.iter().map(|tool| tool["name"].clone()).collect::<Vec<_>>(), list.to_string())
    };
    let (names, text) = list(&[Surface::Search, Surface::Modules]).await;
    assert_eq!(names, ["get_module_schema", "call", "batch", "tool_discovery"]);
    assert_eq!(text.matches("- notion: Notion API").count(), 1, "{text}");
    assert!(text.contains("`call {toolKey, params}`") && !text.contains("tool_execute"), "{text}");
    let (names, text) = list(&[Surface::Modules]).await;
    assert_eq!(names, ["get_module_schema", "call", "batch"]);
    assert!(!text.contains("tool_discovery"), "{text}");
    let ran = tool(
        &gateway,
        in_session(1, false),
        "tool_execute",
        json!({ "toolKey": "notion:search",
        "arguments": { "query": "a" } }),
        json!({}),
    )
    .await;
    assert!(ran.get("isError").is_none(), "it is taken all the same: {ran}");
    let both = Surfaces::of([Surface::Search, Surface::Modules]);
    let words = gateway.instructions(&Caller::owner(), both).expect("words");
    assert!(words.contains("`batch`") && words.contains("`tool_discovery`"), "{words}");
}

#[tokio::test]
async fn tools_resources_and_prompts_are_called() {
    let (gateway, _) = notion();
    let call = async |arguments: Value| {
        let result = tool(&gateway, in_session(1, false), "call", arguments, json!({ "x": 1 })).await;
        result["content"][0]["text"].as_str().unwrap_or_default().to_owned()
    };
    let ran = call(json!({ "module": "notion", "tool_name": "search", "params": { "query": "会議メモ" } })).await;
    assert_eq!(ran, r#"tools/call {"name":"search","arguments":{"query":"会議メモ"},"_meta":{"x":1}}"#);
    let read = call(json!({ "uri": "notion://page/7" })).await;
    assert_eq!(read, r#"resources/read {"uri":"notion://page/7","_meta":{"x":1}}"#);
    let got = call(json!({ "module": "notion", "prompt": "summarize", "params": { "page_id": 7 } })).await;
    assert_eq!(got, r#"user: prompts/get {"name":"summarize","arguments":{"page_id":"7"},"_meta":{"x":1}}"#);
    assert_eq!(call(json!({ "prompt": "summarize" })).await.split('/').next(), Some("user: prompts"));
    let wrong = call(json!({ "module": "notion", "prompt": "sumarize" })).await;
    assert!(wrong.contains("Did you mean `summarize`?"), "{wrong}");
    let wrong = call(json!({ "module": "notion", "tool": "serch" })).await;
    assert!(wrong.contains("TOOL_NOT_FOUND") && wrong.contains("Did you mean `search`?"), "{wrong}");
    let wrong = call(json!({ "module": "noton", "tool": "search" })).await;
    assert!(wrong.contains("There is no module `noton`. Did you mean `notion`?"), "{wrong}");
    let wrong = call(json!({ "module": "notion", "tool": "search", "params": { "query": [] } })).await;
    assert!(wrong.contains("VALIDATION_ERROR") && wrong.contains("schema:"), "{wrong}");
}

#[tokio::test]
async fn who_may_only_look_opens_and_who_may_only_call_calls() {
    let (gateway, _) = notion();
    let with = |scopes| {
        let caller = Caller { scopes, ..Caller::named("alice") };
        let session = Session { id: SessionId(9), caller, client_capabilities: ClientCapabilities::default() };
        CallContext { session: Arc::new(session), ..in_session(9, false) }
    };
    let code = async |scopes, name: &str, arguments: Value| {
        let result = tool(&gateway, with(scopes), name, arguments, json!({})).await;
        result["structuredContent"]["error"]["code"].as_str().unwrap_or("none").to_owned()
    };
    let run = json!({ "module": "notion", "tool": "get_page" });
    let (open, read) = (json!({ "module": "notion" }), json!({ "uri": "notion://me" }));
    let prompt = json!({ "prompt": "summarize" });
    let refused = "AUTHORIZATION_ERROR";
    assert_eq!(code(Scopes::READ, "get_module_schema", open.clone()).await, "none");
    for arguments in [&run, &read, &prompt] {
        assert_eq!(code(Scopes::READ, "call", arguments.clone()).await, refused);
        assert_eq!(code(Scopes::CALL, "call", arguments.clone()).await, "none");
    }
    assert_eq!(code(Scopes::READ, "batch", json!({ "commands": [] })).await, refused);
    assert_eq!(code(Scopes::CALL, "get_module_schema", open).await, refused);
    let (blind, surfaces) = (with(Scopes::CALL), Surfaces::of([Surface::Modules]));
    let list = gateway.list(&blind.session.caller, surfaces, ListKind::Tools, ListPage::default());
    assert!(list.await.is_err(), "nor is it told what there is");
    let wrong = json!({ "module": "notion", "tool": "get_pag" });
    let told = tool(&gateway, with(Scopes::CALL), "call", wrong, json!({})).await.to_string();
    assert!(!told.contains("get_page"), "{told}");
}
