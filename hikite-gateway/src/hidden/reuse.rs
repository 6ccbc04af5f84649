//! Views are shared between callers and survive unrelated changes. Builds are counted, not timed.

use std::sync::Arc;

use hikite_core::caller::Caller;
use hikite_core::json::Object;
use hikite_core::limits::Limits;
use hikite_core::listing::ListKind;
use hikite_core::signer::HmacSigner;
use hikite_core::source::SourceEvent;

use super::fixture::{EchoSource, TestCatalog, TestServer, member};
use crate::admission::Throttle;
use crate::builder::GatewayBuilder;
use crate::catalogs::GatewayRules;
use crate::discovery::ListPage;
use crate::fake::raw;
use crate::gateway::Gateway;
use crate::probe;
use crate::surface::{Surface, Surfaces};
use hikite_identity::Project;

fn project(name: &str, permissions: &str) -> Arc<Project> {
    let form = Object::default().with("permissions", raw(permissions));
    Arc::new(Project::read(name, &form).expect("a project"))
}

/// Builds the projects `p0`, `p1` and so on, each with its own permissions, all for `git`.
fn projects(count: usize) -> Vec<Arc<Project>> {
    let rule = |number| format!(r#"{{"allow":["git"],"deny":["git:none-{number}"]}}"#);
    (0..count).map(|number| project(&format!("p{number}"), &rule(number))).collect()
}

async fn tools(gateway: &Gateway, caller: &Caller) -> Vec<String> {
    let direct = Surfaces::of([Surface::Direct]);
    let list = gateway.discovery().list(caller, direct, ListKind::Tools, ListPage::default()).await.expect("a list");
    let tools = list.object().and_then(|list| list.get("tools")?.items()).expect("tools");
    tools.iter().filter_map(|tool| tool.object()?.text("name")).collect()
}

/// Lists the tools in every project and returns the number of views built.
async fn look(gateway: &Gateway, projects: &[Arc<Project>]) -> u64 {
    let before = gateway.catalogs().view_counts().1;
    for project in projects {
        tools(gateway, &member(&project.name)).await;
    }
    gateway.catalogs().view_counts().1 - before
}

#[tokio::test]
async fn a_change_builds_what_it_changed_and_nothing_else() {
    let (git, hub) = (TestServer::new("git", &["log", "push"]), TestServer::new("hub", &["get"]));
    let sources = [EchoSource::new(&git), EchoSource::new(&hub)];
    let gateway = TestCatalog { servers: vec![git, hub], ..TestCatalog::default() }.open_with(&sources);
    let mut all = projects(20);
    all.push(project("twin", r#"{"allow":["git"],"deny":["git:none-0"]}"#));
    gateway.catalogs().set_projects(all.clone());
    assert_eq!(look(&gateway, &all).await, 20, "the twin sees what another has built");
    assert_eq!(look(&gateway, &all).await, 0);

    all[7] = project("p7", r#"{"allow":["git:log"]}"#);
    gateway.catalogs().set_projects(all.clone());
    assert_eq!(tools(&gateway, &member("p7")).await, ["log"], "narrowed for the very next request");
    assert_eq!(look(&gateway, &all).await, 0, "and nobody else's was built again");

    // A module that none of them can reach.
    sources[1].tell(&TestServer::new("hub", &["get", "put"]));
    gateway.catalogs().listener("hub")(SourceEvent::ListChanged);
    assert_eq!(look(&gateway, &all).await, 0);
    assert_eq!(tools(&gateway, &Caller::owner()).await.len(), 4, "the owner sees it");

    sources[0].tell(&TestServer::new("git", &["log", "pull"]));
    gateway.catalogs().listener("git")(SourceEvent::ListChanged);
    assert_eq!(tools(&gateway, &member("p3")).await, ["log", "pull"]);
    assert_eq!(look(&gateway, &all).await, 19, "everybody else's");
}

#[tokio::test]
async fn a_mask_changes_the_views_of_its_user_alone() {
    let git = TestServer::new("git", &["log", "push"]);
    let gateway = TestCatalog { servers: vec![git], ..TestCatalog::default() }.open();
    let all = projects(5);
    gateway.catalogs().set_projects(all.clone());
    let bob = |project: &str| Caller { project: Some(project.into()), ..Caller::named("bob") };
    look(&gateway, &all).await;
    let mask = hikite_core::permission::Permissions::read(&raw(r#"{"deny":["git:push"]}"#)).expect("a mask");
    gateway.catalogs().set_masks([("bob".into(), Arc::new(mask))].into());
    assert_eq!(look(&gateway, &all).await, 0, "alice sees what she saw");
    assert_eq!(tools(&gateway, &bob("p1")).await, ["log"]);
    gateway.catalogs().set_masks([].into());
    assert_eq!(tools(&gateway, &bob("p1")).await, ["log", "push"]);
}

#[tokio::test]
async fn views_are_bounded_and_the_least_recently_used_go() {
    let limits = Arc::new(Limits { view_bytes: 64 * 1024, ..Limits::default() });
    let gateway =
        GatewayBuilder::new(Arc::clone(&limits), HmacSigner::new([7; 32]), probe::registry_detached()).build();
    let git = TestServer::new("git", &["log", "push", "pull", "fetch", "clone", "status"]);
    let rule = git.rule(EchoSource::new(&git));
    gateway.apply(GatewayRules { modules: vec![(rule, Throttle::of(&limits))], ..GatewayRules::default() });
    let all = projects(400);
    gateway.catalogs().set_projects(all.clone());
    assert_eq!(look(&gateway, &all).await, 400);
    let (held, _) = gateway.catalogs().view_counts();
    assert!((1..400).contains(&held), "{held}");
    assert_eq!(look(&gateway, &all[399..]).await, 0, "the newest is there");
    assert_eq!(look(&gateway, &all[..1]).await, 1, "the oldest is built again when it is used");
    gateway.catalogs().drop_idle_views();
    assert!(gateway.catalogs().view_counts().0 > 0, "what was just used is not idle");
}
