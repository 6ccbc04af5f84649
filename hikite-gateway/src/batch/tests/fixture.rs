//! A scripted source that records its calls, and a client that records its notifications.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use hikite_core::caller::{Caller, ClientCapabilities, Session, SessionId};
use hikite_core::catalog::ModuleRule;
use hikite_core::error::Error;
use hikite_core::json::{Object, Raw};
use hikite_core::limits::Limits;
use hikite_core::listing::{ListItem, ListKind, Listing};
use hikite_core::plan::OnError;
use hikite_core::signer::HmacSigner;
use hikite_core::source::{
    Backchannel, BoxFuture, CallContext, CallOrigin, InputRequest, InputRequestKind, Invocation, Source, SourceState,
};
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::admission::Throttle;
use crate::builder::GatewayBuilder;
use crate::catalogs::GatewayRules;
use crate::command::Batch;
use crate::command::Command;
use crate::fake::raw;
use crate::gateway::Gateway;
use crate::probe;

#[derive(Default)]
pub(super) struct ScriptedSource {
    /// The tools that ran, with their arguments.
    pub(super) calls: Mutex<Vec<(String, Value)>>,
    running: AtomicUsize,
    most: AtomicUsize,
    cancelled: AtomicUsize,
}

impl ScriptedSource {
    pub(super) fn calls(&self) -> Vec<String> {
        self.calls.lock().iter().map(|(name, _)| name.clone()).collect()
    }

    /// Returns the highest number of concurrent calls.
    pub(super) fn most(&self) -> usize {
        self.most.load(Ordering::Relaxed)
    }

    pub(super) fn cancelled(&self) -> usize {
        self.cancelled.load(Ordering::Relaxed)
    }

    pub(super) fn running(&self) -> usize {
        self.running.load(Ordering::Relaxed)
    }
}

impl fmt::Debug for ScriptedSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Stage")
    }
}

/// One running call; dropped before its end it counts as cancelled.
struct ScriptedCall<'a>(&'a ScriptedSource, bool);

impl Drop for ScriptedCall<'_> {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::Relaxed);
        if !self.1 {
            self.0.cancelled.fetch_add(1, Ordering::Relaxed);
        }
    }
}

const TOOLS: &str = r#"[
    {"name":"search","inputSchema":{"type":"object","properties":{"query":{"type":"string"}},"required":["query"]},
        "annotations":{"readOnlyHint":true}},
    {"name":"get_page","inputSchema":{"type":"object","properties":{"page_id":{"type":"string"}},"required":["page_id"]},
        "annotations":{"readOnlyHint":true}},
    {"name":"echo","annotations":{"destructiveHint":false}},
    {"name":"fail"}, {"name":"sleep"}, {"name":"hang"}, {"name":"picture"}, {"name":"ask"}, {"name":"rounds"},
    {"name":"task"}, {"name":"steps"}, {"name":"large"}
]"#;

impl Source for ScriptedSource {
    fn listing(&self) -> Option<Arc<Listing>> {
        let tools = raw(TOOLS).items().expect("a list");
        let item = |tool: Raw| ListItem::read(ListKind::Tools, tool).expect("named");
        Some(Arc::new(Listing { tools: tools.into_iter().map(item).collect(), ..Listing::default() }))
    }

    fn state(&self) -> SourceState {
        SourceState::Running
    }

    fn first_listing(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }

    fn call(&self, invocation: Invocation, context: CallContext) -> BoxFuture<'_, Result<Raw, Error>> {
        let name = invocation.params.text("name").expect("a name");
        let arguments = invocation.params.get("arguments").map(Raw::value).unwrap_or_default();
        self.calls.lock().push((name.clone(), arguments.clone()));
        let running = self.running.fetch_add(1, Ordering::Relaxed) + 1;
        self.most.fetch_max(running, Ordering::Relaxed);
        Box::pin(async move {
            let mut running = ScriptedCall(self, false);
            let result = play(&name, &arguments, context).await;
            running.1 = true;
            Ok(raw(&result.to_string()))
        })
    }

    fn roots_changed(&self, _: SessionId) {}

    fn release(&self, _: SessionId) {}

    fn close(&self, _: Duration) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }
}

async fn play(name: &str, arguments: &Value, context: CallContext) -> Value {
    let text = |text: &str| json!({ "content": [{ "type": "text", "text": text }] });
    match name {
        "search" => {
            let page = |id: &str| json!({ "id": id, "title": format!("{} {id}", arguments["query"].as_str().unwrap_or_default()) });
            let results = json!({ "results": [page("p1"), page("p2")] });
            json!({ "content": [{ "type": "text", "text": results.to_string() }] })
        }
        "get_page" => text(&format!("# {}\n\n本文", arguments["page_id"].as_str().unwrap_or_default())),
        "fail" => {
            let words = arguments["text"].as_str().unwrap_or_default();
            json!({ "content": [{ "type": "text", "text": words }], "isError": true })
        }
        "sleep" => {
            let ms = arguments["ms"].as_u64().unwrap_or_default();
            tokio::time::sleep(Duration::from_millis(ms)).await;
            json!({ "content": [], "structuredContent": arguments })
        }
        "hang" => std::future::pending().await,
        "picture" => {
            json!({ "content": [{ "type": "image", "data": "AA==", "mimeType": "image/png" }, { "type": "text", "text": "seen" }] })
        }
        "ask" => {
            let question = InputRequest { kind: InputRequestKind::Elicitation, params: raw("{}"), key: None };
            match context.back.ask(question).await {
                Ok(answer) => text(&answer.as_str()),
                Err(refused) => {
                    json!({ "content": [{ "type": "text", "text": refused.value()["message"] }], "isError": true })
                }
            }
        }
        "rounds" => json!({ "resultType": "input_required", "inputRequests": {} }),
        "task" => json!({ "resultType": "task", "taskId": "t" }),
        "steps" => {
            context.back.progress(Object::default().with("progress", raw("1")));
            context.back.log(raw(r#"{"level":"info","data":"from inside"}"#));
            text("done")
        }
        "large" => text(&"x".repeat(usize::try_from(arguments["bytes"].as_u64().unwrap_or_default()).expect("small"))),
        _ => json!({ "content": [], "structuredContent": arguments }),
    }
}

/// A client that records notifications and counts questions.
#[derive(Default)]
pub(super) struct RecordingClient {
    pub(super) progress: Mutex<Vec<Value>>,
    pub(super) logs: Mutex<Vec<Value>>,
    pub(super) asked: AtomicUsize,
}

impl Backchannel for RecordingClient {
    fn progress(&self, params: Object) {
        self.progress.lock().push(params.raw().value());
    }

    fn log(&self, params: Raw) {
        self.logs.lock().push(params.value());
    }

    fn ask(&self, _: InputRequest) -> BoxFuture<'static, Result<Raw, Raw>> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        Box::pin(std::future::ready(Ok(raw(r#"{"action":"accept"}"#))))
    }
}

/// A gateway with the scripted source as its module `notion`, and a client.
pub(super) struct BatchFixture {
    pub(super) gateway: Arc<Gateway>,
    pub(super) stage: Arc<ScriptedSource>,
    pub(super) client: Arc<RecordingClient>,
    pub(super) caller: Caller,
}

impl BatchFixture {
    pub(super) fn open() -> Self {
        Self::with(Limits::default())
    }

    pub(super) fn with(limits: Limits) -> Self {
        let gateway =
            GatewayBuilder::new(Arc::new(limits), HmacSigner::new([7; 32]), probe::registry_detached()).build();
        Self::around(gateway)
    }

    pub(super) fn around(gateway: Arc<Gateway>) -> Self {
        let stage = Arc::new(ScriptedSource::default());
        let rule = ModuleRule::new("notion", Arc::clone(&stage) as Arc<dyn Source>);
        let throttle = Throttle::of(&Limits::default());
        gateway.apply(GatewayRules { modules: vec![(rule, throttle)], ..GatewayRules::default() });
        Self { gateway, stage, client: Arc::default(), caller: Caller::owner() }
    }

    pub(super) fn context(&self) -> CallContext {
        let client_capabilities = ClientCapabilities::all();
        let session = Arc::new(Session { id: SessionId(1), caller: self.caller.clone(), client_capabilities });
        let back = Arc::clone(&self.client) as Arc<dyn Backchannel>;
        CallContext { session, back, origin: CallOrigin::default(), accepts_input_required: false, account: None }
    }

    pub(super) async fn send(&self, batch: Batch) -> Result<Value, Error> {
        let result = self.gateway.dispatch(Command::Batch(batch), self.context()).await;
        result.map(|result| result.value())
    }

    /// Runs the tasks and returns the tool result.
    pub(super) async fn result(&self, tasks: &Value) -> Value {
        self.send(batch(tasks)).await.expect("a plan that runs")
    }

    /// Runs the tasks and returns the document in the result.
    pub(super) async fn run(&self, tasks: &Value) -> Value {
        self.result(tasks).await["structuredContent"].clone()
    }

    pub(super) async fn refused(&self, batch: Batch) -> Error {
        let error = self.send(batch).await.expect_err("it is wrong");
        assert_eq!(self.stage.calls(), [""; 0], "nothing runs");
        error
    }
}

pub(super) fn batch(tasks: &Value) -> Batch {
    Batch {
        commands: Raw::of(tasks),
        dry_run: false,
        concurrency: None,
        on_error: OnError::default(),
        params: Object::default(),
    }
}

pub(super) fn task(id: &str, tool: &str, params: Value) -> Value {
    let mut task = json!({ "id": id, "module": "notion", "tool": tool });
    task["params"] = params;
    task
}

/// Adds members to a task.
pub(super) fn with(mut task: Value, members: Value) -> Value {
    let Value::Object(members) = members else { panic!("no members: {members}") };
    for (name, value) in members {
        task[name.as_str()] = value;
    }
    task
}

/// Returns `id status` of every task.
pub(super) fn statuses(document: &Value) -> Vec<String> {
    let tasks = document["tasks"].as_array().expect("tasks");
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    tasks.iter().map(|task| format!("{} {}", text(&task["id"]), text(&task["status"]))).collect()
}
