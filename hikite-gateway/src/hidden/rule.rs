//! Single rules: names within a view, modules without a list, deleted projects, and scopes.

use std::time::Duration;

use hikite_core::caller::{Caller, Scopes};
use hikite_core::error::{Error, ErrorKind};
use hikite_core::json::{Object, Raw};
use hikite_core::listing::ListKind;
use hikite_core::source::CallOrigin;
use tokio::time::Instant;

use super::fixture::{self, TestCatalog, TestServer, TestTool, context, member, permit, with_scopes};
use crate::command::Command;
use crate::discovery::ListPage;
use crate::discovery::ToolFilter;
use crate::fake::raw;
use crate::gateway::Gateway;
use crate::surface::{Surface, Surfaces};
use hikite_identity::Project;

fn direct() -> Surfaces {
    Surfaces::of([Surface::Direct])
}

async fn shown(gateway: &Gateway, caller: &Caller) -> Vec<String> {
    let list = gateway.discovery().list(caller, direct(), ListKind::Tools, ListPage::default()).await.expect("a list");
    let tools = list.object().and_then(|list| list.get("tools")?.items()).expect("tools");
    tools.iter().filter_map(|tool| tool.object()?.text("name")).collect()
}

async fn call(gateway: &Gateway, caller: &Caller, name: &str) -> Result<Raw, Error> {
    let params = Object::default().with("name", name);
    gateway.call_tool(direct(), params, context(caller)).await.map(|result| result.raw)
}

#[tokio::test]
async fn names_are_given_within_the_view() {
    let servers = vec![TestServer::new("git", &["status", "push"]), TestServer::new("k8s", &["status"])];
    let gateway = TestCatalog { servers, ..TestCatalog::default() }.open();
    permit(&gateway, r#"{"deny":["k8s","git:push"]}"#);
    let caller = member("p");
    assert_eq!(shown(&gateway, &Caller::owner()).await, ["git__status", "push", "k8s__status"]);
    assert_eq!(shown(&gateway, &caller).await, ["status"], "a hidden namesake changes no name");
    assert!(call(&gateway, &caller, "status").await.is_ok(), "nor makes it ambiguous");
    assert!(call(&gateway, &caller, "git:status").await.is_ok());
    for hidden in ["push", "git:push", "git__push", "k8s:status", "k8s__status"] {
        let refused = call(&gateway, &caller, hidden).await.expect_err("hidden");
        assert_eq!(refused.kind, ErrorKind::ToolNotFound, "{hidden}");
        assert!(!refused.hint.as_deref().unwrap_or_default().contains("push"), "{refused:?}");
    }
}

#[tokio::test]
async fn a_tool_that_needs_a_hidden_one_lacks_it() {
    let needing = TestTool { name: "clone", annotations: "{}", needs: Some("git:fetch") };
    let mut git = TestServer::new("git", &["fetch"]);
    git.tools.push(needing);
    let gateway = TestCatalog { servers: vec![git], ..TestCatalog::default() }.open();
    permit(&gateway, r#"{"deny":["git:fetch"]}"#);
    assert!(call(&gateway, &Caller::owner(), "clone").await.is_ok());
    let refused = call(&gateway, &member("p"), "clone").await.expect("a result that tells");
    assert!(refused.as_str().contains("which is not registered"), "{}", refused.as_str());
}

#[tokio::test(start_paused = true)]
async fn only_modules_that_may_be_seen_are_waited_for() {
    let silent = |name| TestServer { told: false, ..TestServer::new(name, &[]) };
    let world = TestCatalog { servers: vec![silent("git"), silent("hub")], ..TestCatalog::default() };
    let gateway = world.open();
    let waits = async |permissions: &str| {
        permit(&gateway, permissions);
        let since = Instant::now();
        assert!(call(&gateway, &member("p"), "x").await.is_err());
        since.elapsed()
    };
    let whole = gateway.limits.first_list;
    assert_eq!(waits(r#"{"allow":["git:x"]}"#).await, whole);
    assert_eq!(waits(r#"{"allow":["*:x"]}"#).await, whole, "it might have it");
    assert_eq!(waits(r#"{"allow":["other"]}"#).await, Duration::ZERO);
    assert_eq!(waits(r#"{"deny":["git","hub"]}"#).await, Duration::ZERO);
    permit(&gateway, r#"{"allow":["git:x"]}"#);
    let modules = gateway.admin().modules.module_objects(&member("p")).await.expect("modules");
    assert_eq!(modules.len(), 1, "the one that could turn out to have something");
}

#[tokio::test]
async fn before_its_list_is_known_a_tool_counts_as_destructive() {
    let silent = TestServer { told: false, ..TestServer::new("git", &[]) };
    let kind = fixture::TestCategory { name: "work", servers: vec!["git"], includes: vec!["log"], disables: None };
    let gateway = TestCatalog { servers: vec![silent], categories: vec![kind] }.open();
    let call = async |permissions: &str| {
        permit(&gateway, permissions);
        let arguments = Object::default().with("category", "work").with("name", "log").with("args", raw("{}"));
        let params = Object::default().with("name", "call-category-tool").with("arguments", arguments);
        let surfaces = Surfaces::of([Surface::Categories]);
        let answer = gateway.call_tool(surfaces, params, context(&member("p"))).await.expect("an answer");
        answer.raw.as_str().contains("\"server\":\"git\"")
    };
    tokio::time::pause();
    assert!(call(r#"{"allow":["git"]}"#).await);
    assert!(call(r#"{"allow":["git:log"]}"#).await);
    assert!(!call(r#"{"allow":[{"module":"git","risk":"read"}]}"#).await);
    assert!(!call(r#"{"deny":["risk:destructive"]}"#).await);
}

#[tokio::test]
async fn a_caller_of_an_unknown_project_sees_nothing() {
    let gateway = TestCatalog { servers: vec![TestServer::new("git", &["log"])], ..TestCatalog::default() }.open();
    permit(&gateway, "{}");
    assert_eq!(shown(&gateway, &member("p")).await, ["log"]);
    assert!(shown(&gateway, &member("q")).await.is_empty());
    assert!(gateway.catalogs().project_of(&member("q")).is_none());
    let refused = call(&gateway, &member("q"), "log").await.expect_err("hidden");
    assert_eq!((refused.kind, refused.hint), (ErrorKind::ToolNotFound, None));
    gateway.catalogs().set_projects(Vec::new());
    assert!(shown(&gateway, &member("p")).await.is_empty(), "once it is gone");
}

#[tokio::test]
async fn without_its_scope_nothing_is_done_and_nothing_told() {
    let gateway = TestCatalog { servers: vec![TestServer::new("git", &["log"])], ..TestCatalog::default() }.open();
    let (looks, runs) = (with_scopes(Scopes::READ), with_scopes(Scopes::CALL));
    let words = |error: &Error| format!("{error:?}");
    let here = call(&gateway, &looks, "log").await.expect("a result that tells");
    assert_eq!(here, call(&gateway, &looks, "nowhere").await.expect("the same"));
    assert!(here.as_str().contains("AUTHORIZATION_ERROR"), "{}", here.as_str());
    let lacks_scope = async |caller: &Caller| {
        let params = Object::default().with("name", "log");
        gateway.call_tool(direct(), params, context(caller)).await.expect("a result").insufficient_scope
    };
    assert!(lacks_scope(&looks).await && !lacks_scope(&runs).await);
    let read = async |uri: &str| {
        let command = Command::Read { params: Object::default().with("uri", uri) };
        words(&gateway.dispatch(command, context(&looks)).await.expect_err("refused"))
    };
    assert_eq!(read("x:git").await, read("x:nowhere").await);
    let kind = |error: Error| error.kind;
    let filter = ToolFilter::default();
    let refused = [
        gateway.discovery().list(&runs, direct(), ListKind::Tools, ListPage::default()).await.map(drop).map_err(kind),
        gateway.discovery().tools_page(&runs, &filter, 0, 1).await.map(drop).map_err(kind),
        gateway.discovery().tool(&runs, "log").await.map(drop).map_err(kind),
        gateway.discovery().tool(&runs, "nowhere").await.map(drop).map_err(kind),
        gateway
            .discovery()
            .find_tools((&runs, &CallOrigin::default()), "log", &filter, 1)
            .await
            .map(drop)
            .map_err(kind),
        gateway.admin().modules.module_objects(&runs).await.map(drop).map_err(kind),
        gateway.admin().modules.category_objects(&runs).await.map(drop).map_err(kind),
    ];
    assert_eq!(refused, [Err(ErrorKind::Authorization); 7]);
    assert_eq!(gateway.discovery().instructions(&runs, direct()), None);
    assert!(call(&gateway, &runs, "log").await.is_ok());
    let unknown = call(&gateway, &runs, "logg").await.expect_err("unknown");
    assert_eq!((unknown.kind, unknown.hint), (ErrorKind::ToolNotFound, None), "it is not told what there is");
}

#[tokio::test]
async fn a_project_limits_the_surfaces_that_may_be_chosen() {
    let gateway = TestCatalog::default().open();
    let (categories, both) = (Surfaces::of([Surface::Categories]), Surfaces::of(Surface::ALL));
    let form = |text: &str| raw(text).object().expect("an object");
    let project = Project::read("p", &form(r#"{"surface":"direct"}"#)).expect("a project");
    let open = Project::read("open", &form("{}")).expect("a project");
    gateway.catalogs().set_projects(vec![project.into(), open.into()]);
    let choose =
        |caller: &Caller, asked| gateway.catalogs().surfaces_for(caller, asked, categories).map_err(|error| error.kind);
    assert_eq!(choose(&member("p"), None), Ok(direct()));
    assert_eq!(choose(&member("p"), Some(direct())), Ok(direct()));
    assert_eq!(choose(&member("p"), Some(both)), Err(ErrorKind::Authorization));
    for free in [Caller::owner(), member("open"), member("gone")] {
        assert_eq!(choose(&free, None), Ok(categories));
        assert_eq!(choose(&free, Some(both)), Ok(both));
    }
}
