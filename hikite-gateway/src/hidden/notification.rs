//! Notifications and running tasks: only callers who see a tool are notified of its changes, and losing sight of a tool
//! ends its tasks.

use std::sync::Arc;

use hikite_core::caller::{Caller, ClientCapabilities, Scopes, Session, SessionId, TASKS};
use hikite_core::json::Object;
use hikite_core::listing::ListKind;
use hikite_core::source::{CallContext, SourceEvent, SourceMethod};
use parking_lot::Mutex;

use super::fixture::{EchoSource, TestCatalog, TestServer, context, member, permit, session};
use crate::command::Command;
use crate::fake::raw;
use crate::gateway::Gateway;
use crate::session::{Delivery, Inbox};
use crate::sessions::SessionRegistration;
use crate::surface::{Surface, Surfaces};

/// Records the notifications of a session.
#[derive(Default)]
struct RecordingInbox(Mutex<Vec<String>>);

impl Inbox for RecordingInbox {
    fn deliver(&self, delivery: Delivery) {
        self.0.lock().push(format!("{delivery:?}"));
    }
}

impl RecordingInbox {
    fn heard(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock())
    }
}

fn listen(gateway: &Arc<Gateway>, caller: &Caller, id: u64) -> (Arc<RecordingInbox>, SessionRegistration) {
    let ear = Arc::new(RecordingInbox::default());
    let inbox = Arc::downgrade(&ear);
    let joined = gateway.sessions().join(session(caller, id), Surfaces::of([Surface::Direct]), inbox);
    (ear, joined)
}

fn changed(kind: ListKind) -> String {
    format!("{:?}", Delivery::ListChanged(kind))
}

#[tokio::test]
async fn a_change_of_what_is_hidden_is_not_told() {
    let (git, hub) = (TestServer::new("git", &["log"]), TestServer::new("hub", &["get", "put"]));
    let sources = [EchoSource::new(&git), EchoSource::new(&hub)];
    let gateway = TestCatalog { servers: vec![git, hub], ..TestCatalog::default() }.open_with(&sources);
    permit(&gateway, r#"{"deny":["git","hub:put"]}"#);
    let (mine, _joined) = listen(&gateway, &member("p"), 1);
    let (owners, _also) = listen(&gateway, &Caller::owner(), 2);
    let blind = Caller { scopes: Scopes::CALL, ..Caller::owner() };
    let (blind, _too) = listen(&gateway, &blind, 3);

    // A tool with the name of a visible one, and a new definition of a hidden one.
    sources[0].tell(&TestServer::new("git", &["get"]));
    gateway.catalogs().listener("git")(SourceEvent::ListChanged);
    assert_eq!(owners.heard(), [changed(ListKind::Tools)]);
    assert!(mine.heard().is_empty());

    sources[1].tell(&TestServer::new("hub", &["get", "put", "new"]));
    gateway.catalogs().listener("hub")(SourceEvent::ListChanged);
    assert_eq!(owners.heard(), [changed(ListKind::Tools)]);
    assert_eq!(mine.heard(), [changed(ListKind::Tools)]);
    assert!(blind.heard().is_empty(), "who may not look is told of no lists");
}

#[tokio::test]
async fn who_sees_more_or_less_from_now_on_is_told() {
    let world = TestCatalog {
        servers: vec![TestServer::new("git", &["log"]), TestServer { more: false, ..TestServer::new("hub", &["get"]) }],
        ..TestCatalog::default()
    };
    let gateway = world.open();
    permit(&gateway, r#"{"allow":["git:log"]}"#);
    let (ear, _joined) = listen(&gateway, &member("p"), 1);
    permit(&gateway, r#"{"allow":["git:log"],"deny":["hub:delete"]}"#);
    assert!(ear.heard().is_empty(), "other words for the same");
    permit(&gateway, r#"{"allow":["git"]}"#);
    assert_eq!(ear.heard(), [changed(ListKind::Resources), changed(ListKind::Prompts)]);
    permit(&gateway, r#"{"allow":["git","hub"]}"#);
    assert_eq!(ear.heard(), [changed(ListKind::Tools)]);
    gateway.catalogs().set_projects(Vec::new());
    assert_eq!(ear.heard().len(), 3, "without the project everything is gone");
}

#[tokio::test]
async fn what_a_hidden_server_says_is_not_passed_on() {
    let world = TestCatalog {
        servers: vec![TestServer::new("git", &["log"]), TestServer::new("hub", &["get"])],
        ..TestCatalog::default()
    };
    let gateway = world.open();
    permit(&gateway, r#"{"allow":["git:log"]}"#);
    let (ear, _joined) = listen(&gateway, &member("p"), 1);
    let say = |module: &str| {
        let hear = gateway.catalogs().listener(module);
        let (session, sessions) = (SessionId(1), vec![SessionId(1)]);
        hear(SourceEvent::Log { session, params: raw(r#"{"level":"info"}"#) });
        hear(SourceEvent::ElicitationComplete { session, params: raw("{}") });
        hear(SourceEvent::ResourceUpdated { sessions, params: raw(r#"{"uri":"x:git"}"#) });
        ear.heard().len()
    };
    assert_eq!(say("hub"), 0, "nothing of it is seen");
    assert_eq!(say("git"), 2, "a tool is seen, its resources are not");
    permit(&gateway, r#"{"allow":["git"]}"#);
    ear.heard();
    assert_eq!(say("git"), 3);
}

#[tokio::test]
async fn a_task_is_lost_with_the_sight_of_its_tool() {
    let world = TestCatalog { servers: vec![TestServer::new("git", &["log", "push"])], ..TestCatalog::default() };
    let gateway = world.open();
    permit(&gateway, r#"{"allow":["git:log"]}"#);
    let caller = member("p");
    let extensions = Object::default().with(TASKS, raw("{}"));
    let client_capabilities = ClientCapabilities::read(&Object::default().with("extensions", extensions));
    let able = |caller: &Caller| {
        let session =
            Session { id: SessionId(1), caller: caller.clone(), client_capabilities: client_capabilities.clone() };
        CallContext { session: Arc::new(session), ..context(caller) }
    };
    let params = Object::default().with("name", "log");
    let direct = Surfaces::of([Surface::Direct]);
    let task = gateway.call_tool(direct, params, able(&caller)).await.expect("a task");
    let id = task.raw.object().and_then(|task| task.text("taskId")).expect("an id");
    let look = async |caller: &Caller, id: &str| {
        let command = Command::Task { method: SourceMethod::GetTask, params: Object::default().with("taskId", id) };
        gateway.dispatch(command, able(caller)).await.map_err(|error| format!("{error:?}"))
    };
    assert!(look(&caller, &id).await.is_ok());
    let lost = look(&caller, "never").await.expect_err("no task");
    for stranger in [member("q"), Caller::named("alice"), Caller { subject: "bob".into(), ..member("p") }] {
        assert_eq!(look(&stranger, &id).await, Err(lost.clone()));
    }
    permit(&gateway, r#"{"allow":["git:push"]}"#);
    assert_eq!(look(&caller, &id).await, Err(lost), "as if it had never been");
}
