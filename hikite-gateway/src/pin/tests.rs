//! Pinning by a gateway whose server changes its tool list.

use std::sync::Arc;
use std::time::Duration;

use hikite_core::caller::{Caller, SessionId};
use hikite_core::catalog::ModuleRule;
use hikite_core::category::CategoryRule;
use hikite_core::error::{Error, ErrorKind};
use hikite_core::json::{Object, Raw};
use hikite_core::listing::{ListItem, ListKind, Listing};
use hikite_core::pin::Pinning;
use hikite_core::source::{BoxFuture, CallContext, Invocation, Source, SourceEvent, SourceState};
use hikite_core::tool_selection::Selection;
use hikite_store::Store;
use parking_lot::Mutex;

use crate::admin::{PinFilter, PinState};
use crate::admission::Throttle;
use crate::catalogs::GatewayRules;
use crate::fake::{call, raw, result};
use crate::gateway::Gateway;
use crate::probe;

#[derive(Debug, Default)]
struct ChangingServer {
    listing: Mutex<Option<Arc<Listing>>>,
}

impl ChangingServer {
    /// Offers the tools `a`, with this description, and `b`.
    fn says(&self, description: &str) {
        let tool = |text: String| ListItem::read(ListKind::Tools, raw(&text)).expect("named");
        let tools = vec![
            tool(format!(r#"{{"name":"a","description":"{description}"}}"#)),
            tool(r#"{"name":"b","description":"same"}"#.into()),
        ];
        *self.listing.lock() = Some(Arc::new(Listing { tools, ..Listing::default() }));
    }
}

impl Source for ChangingServer {
    fn listing(&self) -> Option<Arc<Listing>> {
        self.listing.lock().clone()
    }

    fn state(&self) -> SourceState {
        SourceState::Running
    }

    fn first_listing(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }

    fn call(&self, _: Invocation, _: CallContext) -> BoxFuture<'_, Result<Raw, Error>> {
        Box::pin(std::future::ready(Ok(result(1))))
    }

    fn roots_changed(&self, _: SessionId) {}

    fn release(&self, _: SessionId) {}

    fn close(&self, _: Duration) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }
}

fn apply(gateway: &Gateway, server: &Arc<ChangingServer>, pins: Pinning) {
    let rule = ModuleRule { pins, ..ModuleRule::new("m", Arc::clone(server) as Arc<dyn Source>) };
    let category = CategoryRule {
        origin: hikite_core::origin::ConfigOrigin::File,
        name: "c".into(),
        description: String::new(),
        servers: vec!["m".into()],
        selection: Selection::default(),
        skill: None,
    };
    let throttle = Throttle { concurrency: 5, queue: 5, rate: None, timeout: Duration::from_secs(30) };
    gateway.apply(GatewayRules {
        modules: vec![(rule, throttle)],
        categories: vec![Arc::new(category)],
        ..GatewayRules::default()
    });
}

async fn open(store: &Store, server: &Arc<ChangingServer>, pins: Pinning) -> Arc<Gateway> {
    let gateway = probe::gateway_on(store.clone()).await;
    gateway.admin().pins.read_store().await.expect("read");
    apply(&gateway, server, pins);
    gateway
}

fn change(gateway: &Arc<Gateway>, server: &ChangingServer, description: &str) {
    server.says(description);
    gateway.catalogs().listener("m")(SourceEvent::ListChanged);
}

#[track_caller]
fn check_states(gateway: &Gateway, expected: [(&str, PinState); 2]) {
    let known: Vec<(String, PinState)> = gateway
        .admin()
        .pins
        .tools(&PinFilter::default())
        .into_iter()
        .map(|waiting| (waiting.key.to_string(), waiting.state))
        .collect();
    assert_eq!(known, expected.map(|(key, state)| (key.to_owned(), state)));
}

async fn refused(gateway: &Gateway) -> String {
    let error = call(gateway, "a").await.expect_err("held back");
    assert_eq!(error.kind, ErrorKind::ToolDisabled);
    assert!(error.hint.as_deref().is_some_and(|hint| hint.contains("hikite pin show m:a")), "{error:?}");
    error.message.into()
}

fn hash_of(gateway: &Gateway, key: &str) -> Arc<str> {
    let known = gateway.admin().pins.tools(&PinFilter::default());
    let tool = known.into_iter().find(|waiting| waiting.key.to_string() == key).expect("known");
    tool.hash.expect("offered")
}

#[tokio::test]
async fn what_changes_is_held_back_until_it_is_approved_and_its_siblings_go_on() {
    let (store, server) = (probe::store().await, Arc::new(ChangingServer::default()));
    server.says("first");
    let gateway = open(&store, &server, Pinning::Tofu).await;
    call(&gateway, "a").await.expect("seen first");
    change(&gateway, &server, "second");
    check_states(&gateway, [("m:a", PinState::Changed), ("m:b", PinState::Ok)]);
    assert_eq!(refused(&gateway).await, "The tool `m:a` is held back: it changed since it was approved.");
    call(&gateway, "b").await.expect("a sibling");
    let view = gateway.catalogs().owner_view();
    assert_eq!(view.enabled_tools().map(|tool| &*tool.name).collect::<Vec<_>>(), ["b"]);
    let module = view.module("m").expect("there");
    assert_eq!(module.listing.as_ref().map(|listing| listing.tools.len()), Some(1));
    assert!(matches!(
        view.category("c").expect("there").find("a"),
        hikite_core::category::CategoryLookup::Disabled(hikite_core::switch::DisabledReason::Held { .. })
    ));
    change(&gateway, &server, "first");
    call(&gateway, "a").await.expect("as it was approved");
    change(&gateway, &server, "second");
    let (first, second) = (hash_of(&gateway, "m:b"), hash_of(&gateway, "m:a"));
    let error = gateway.admin().pins.approve("m:a", &first).await.expect_err("not what was seen");
    assert_eq!(error.kind, ErrorKind::Conflict);
    refused(&gateway).await;
    gateway.admin().pins.approve("a", &second).await.expect("approved");
    call(&gateway, "a").await.expect("approved");
}

#[tokio::test]
async fn what_was_approved_is_known_to_other_processes_and_after_a_restart() {
    let (store, server) = (probe::store().await, Arc::new(ChangingServer::default()));
    server.says("first");
    let one = open(&store, &server, Pinning::Tofu).await;
    one.admin().store.catch_up().await.expect("written");
    let another = Arc::new(ChangingServer::default());
    another.says("second");
    let other = open(&store, &another, Pinning::Tofu).await;
    check_states(&other, [("m:a", PinState::Changed), ("m:b", PinState::Ok)]);
    let hash = hash_of(&other, "m:a");
    other.admin().pins.approve("m:a", &hash).await.expect("approved");
    one.admin().store.catch_up().await.expect("read");
    check_states(&one, [("m:a", PinState::Changed), ("m:b", PinState::Ok)]);
    change(&one, &server, "second");
    call(&one, "a").await.expect("approved elsewhere");
    one.admin().pins.block("m:a").await.expect("blocked");
    other.admin().store.catch_up().await.expect("read");
    assert_eq!(refused(&other).await, "The tool `m:a` is held back: it was blocked.");
    let again = open(&store, &another, Pinning::Tofu).await;
    refused(&again).await;
}

#[tokio::test]
async fn of_two_who_see_a_tool_first_the_one_who_wrote_it_down_first_counts() {
    let (store, servers) =
        (probe::store().await, [Arc::new(ChangingServer::default()), Arc::new(ChangingServer::default())]);
    servers[0].says("first");
    servers[1].says("second");
    let one = open(&store, &servers[0], Pinning::Tofu).await;
    let other = open(&store, &servers[1], Pinning::Tofu).await;
    check_states(&other, [("m:a", PinState::Ok), ("m:b", PinState::Ok)]);
    one.admin().store.catch_up().await.expect("written");
    other.admin().store.catch_up().await.expect("read");
    check_states(&one, [("m:a", PinState::Ok), ("m:b", PinState::Ok)]);
    check_states(&other, [("m:a", PinState::Changed), ("m:b", PinState::Ok)]);
}

#[tokio::test]
async fn where_it_is_strict_what_is_new_waits_and_where_it_is_off_nothing_does() {
    let (store, server) = (probe::store().await, Arc::new(ChangingServer::default()));
    server.says("first");
    let gateway = open(&store, &server, Pinning::Strict).await;
    check_states(&gateway, [("m:a", PinState::New), ("m:b", PinState::New)]);
    assert_eq!(refused(&gateway).await, "The tool `m:a` is held back: it is new and not approved yet.");
    let shown = gateway.admin().pins.get("m:a").await.expect("shown").value();
    assert_eq!((&shown["before"], &shown["after"]["description"]), (&serde_json::Value::Null, &"first".into()));
    let hash = hash_of(&gateway, "m:a");
    gateway.admin().pins.approve("m:a", &hash).await.expect("approved");
    call(&gateway, "a").await.expect("approved");
    change(&gateway, &server, "second");
    refused(&gateway).await;
    apply(&gateway, &server, Pinning::Off);
    call(&gateway, "a").await.expect("off");
    let error = gateway.admin().pins.block("m:a").await.expect_err("not pinned");
    assert_eq!(error.kind, ErrorKind::Conflict);
    apply(&gateway, &server, Pinning::Tofu);
    refused(&gateway).await;
}

#[tokio::test]
async fn while_nothing_is_known_of_a_server_what_was_blocked_is_not_called() {
    let (store, server) = (probe::store().await, Arc::new(ChangingServer::default()));
    server.says("first");
    let gateway = open(&store, &server, Pinning::Tofu).await;
    gateway.admin().pins.block("m:a").await.expect("blocked");
    let silent = Arc::new(ChangingServer::default());
    let gateway = open(&store, &silent, Pinning::Tofu).await;
    refused(&gateway).await;
    let find = |gateway: &Gateway, name: &str| {
        format!("{:?}", gateway.catalogs().owner_view().category("c").expect("there").find(name))
    };
    assert!(find(&gateway, "a").starts_with("Disabled(Held"), "{}", find(&gateway, "a"));
    assert!(find(&gateway, "b").starts_with("Unlisted"), "{}", find(&gateway, "b"));
    apply(&gateway, &silent, Pinning::Strict);
    assert!(find(&gateway, "b").starts_with("ServerUnlisted"), "{}", find(&gateway, "b"));
}

#[tokio::test]
async fn who_may_not_see_a_tool_is_not_told_that_it_is_held_back() {
    let (store, server) = (probe::store().await, Arc::new(ChangingServer::default()));
    server.says("first");
    let gateway = open(&store, &server, Pinning::Tofu).await;
    let form = Object::default().with("permissions", raw(r#"{"deny":["m:a"]}"#));
    gateway.people().projects().create("p", &form).await.expect("made");
    gateway.admin().store.catch_up().await.expect("read");
    gateway.admin().access.publish_projects();
    change(&gateway, &server, "second");
    let inside = gateway.catalogs().view_of(&Caller::owner().within("p".into()));
    for name in ["m:a", "a", "m__a"] {
        let error = inside.tool(name).expect_err("hidden");
        let message = format!("There is no tool `{name}`.");
        assert_eq!((error.kind, &*error.message), (ErrorKind::ToolNotFound, message.as_str()));
        assert!(error.hint.is_none_or(|hint| !hint.contains("pin")));
        assert_eq!(gateway.catalogs().owner_view().tool(name).expect_err("held back").kind, ErrorKind::ToolDisabled);
    }
}

#[tokio::test]
async fn a_name_does_not_pass_to_another_tool_while_its_owner_is_held_back() {
    let (store, server) = (probe::store().await, Arc::new(ChangingServer::default()));
    server.says("first");
    let gateway = open(&store, &server, Pinning::Tofu).await;
    let other = Arc::new(ChangingServer::default());
    other.says("another");
    let rule = |name: &str, server: &Arc<ChangingServer>| {
        let throttle = Throttle { concurrency: 5, queue: 5, rate: None, timeout: Duration::from_secs(30) };
        let source = Arc::clone(server) as Arc<dyn Source>;
        (ModuleRule { pins: Pinning::Tofu, ..ModuleRule::new(name, source) }, throttle)
    };
    gateway.apply(GatewayRules { modules: vec![rule("m", &server), rule("n", &other)], ..GatewayRules::default() });
    change(&gateway, &server, "second");
    let view = gateway.catalogs().owner_view();
    assert!(view.tool("n__a").is_ok());
    assert_eq!(view.tool("m__a").expect_err("held back").kind, ErrorKind::ToolDisabled);
    assert_eq!(view.tool("a").expect_err("several").kind, ErrorKind::ToolNotFound);
}
