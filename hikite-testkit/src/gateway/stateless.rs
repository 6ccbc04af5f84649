//! A client of 2026-07-28, over HTTP and over `hikite stdio`. Every request carries its client's description, right or
//! wrong as the test chooses. It opens no session and answers no server requests.

mod call;
mod envelope;
#[cfg(test)]
mod tests;

use std::{
    collections::HashMap,
    net::SocketAddr,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::{
    HttpRequest, TestPrograms,
    link::{ClientLink, HttpLink, StdioLink, spawn},
    schema_checker::SchemaChecker,
};
use call::NotificationLog;
pub use call::{StatelessCall, StatelessOutcome, SubscriptionStream};
pub use envelope::{REVISION, StatelessEnvelope, encode};

const SUBSCRIPTION_ID: &str = "/params/_meta/io.modelcontextprotocol~1subscriptionId";
/// Maximum number of rounds, above what any test tool asks for.
const ROUNDS_MAX: usize = 20;

/// A stateless client. Clones are cheap; they share the connection and the request ids.
#[derive(Debug, Clone)]
pub struct StatelessClient {
    inner: Arc<StatelessClientState>,
    envelope: StatelessEnvelope,
}

#[derive(Debug)]
pub(super) struct StatelessClientState {
    link: ClientLink,
    schema_checker: SchemaChecker,
    next: AtomicU64,
    /// Over stdio: pending requests by id, and notification logs by subscription or progress token.
    waiting: Mutex<HashMap<u64, oneshot::Sender<String>>>,
    sinks: Mutex<HashMap<String, Arc<NotificationLog>>>,
    /// Messages that belong to no known request.
    stray: NotificationLog,
}

/// A call with all its question rounds.
#[derive(Debug)]
pub struct AnsweredCall {
    pub outcome: StatelessOutcome,
    /// The results that asked questions, in order.
    pub rounds: Vec<Value>,
}

impl StatelessClient {
    pub fn over_http(address: SocketAddr, path: &str, token: Option<&str>, envelope: StatelessEnvelope) -> Self {
        Self::new(ClientLink::Http(HttpLink::new(address, path, token)), envelope)
    }

    /// Starts `hikite stdio` in a folder that contains the config.
    pub fn over_stdio(programs: &TestPrograms, folder: &Path, arguments: &[&str], envelope: StatelessEnvelope) -> Self {
        let (link, mut lines) = StdioLink::start(programs, folder, arguments);
        let client = Self::new(ClientLink::Stdio(link), envelope);
        let inner = Arc::downgrade(&client.inner);
        spawn(async move {
            while let Some(line) = lines.recv().await {
                let Some(inner) = inner.upgrade() else { return };
                inner.take(&line);
            }
            // Pending requests see the end.
            if let Some(inner) = inner.upgrade() {
                inner.waiting.lock().clear();
            }
        });
        client
    }

    fn new(link: ClientLink, envelope: StatelessEnvelope) -> Self {
        let inner = StatelessClientState {
            link,
            schema_checker: SchemaChecker::new(envelope.validated, REVISION),
            next: AtomicU64::new(1),
            waiting: Mutex::default(),
            sinks: Mutex::default(),
            stray: NotificationLog::default(),
        };
        Self { inner: Arc::new(inner), envelope }
    }

    /// Returns a client with another envelope on the same connection.
    #[must_use]
    pub fn with_envelope(&self, envelope: StatelessEnvelope) -> Self {
        Self { inner: Arc::clone(&self.inner), envelope }
    }

    pub fn envelope(&self) -> StatelessEnvelope {
        self.envelope.clone()
    }

    /// Returns the process id of `hikite stdio`.
    pub fn pid(&self) -> u32 {
        let ClientLink::Stdio(link) = &self.inner.link else { panic!("no process over HTTP") };
        link.pid
    }

    /// Returns the messages over stdio that belong to no known request.
    pub fn stray(&self) -> Vec<Value> {
        self.inner.stray.0.lock().clone()
    }

    /// Sends a request without waiting for the response.
    pub fn begin(&self, method: &str, params: Value) -> StatelessCall {
        let id = self.inner.next.fetch_add(1, Ordering::Relaxed);
        let params = self.envelope.with_meta(params);
        let sink = Arc::new(NotificationLog::default());
        let body = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string();
        let sending = OutgoingRequest {
            inner: Arc::clone(&self.inner),
            validated: self.envelope.validated,
            headers: self.envelope.headers(method, &params),
            token: params["_meta"].get("progressToken").map(Value::to_string),
            method: method.to_owned(),
            id,
            body,
            sink: Arc::clone(&sink),
        };
        let task = spawn(async move { sending.run().await });
        StatelessCall { id, sink, task, inner: Arc::clone(&self.inner) }
    }

    pub async fn request(&self, method: &str, params: Value) -> StatelessOutcome {
        self.begin(method, params).outcome().await
    }

    #[expect(clippy::needless_pass_by_value, reason = "reads like the JSON it makes")]
    pub fn begin_call(&self, tool: &str, arguments: Value) -> StatelessCall {
        self.begin("tools/call", json!({ "name": tool, "arguments": arguments }))
    }

    /// Calls a tool once; a question is an outcome like any other.
    pub async fn call(&self, tool: &str, arguments: Value) -> StatelessOutcome {
        self.begin_call(tool, arguments).outcome().await
    }

    /// Calls a tool and returns the first text of its result.
    pub async fn text(&self, tool: &str, arguments: Value) -> String {
        self.call(tool, arguments).await.first_text()
    }

    /// Calls a tool and answers its questions: `answers` gets a question's key and the question. Questions it does not
    /// answer are left out.
    pub async fn call_with_answers(
        &self,
        tool: &str,
        arguments: Value,
        answers: impl Fn(&str, &Value) -> Option<Value>,
    ) -> AnsweredCall {
        self.request_with_answers("tools/call", json!({ "name": tool, "arguments": arguments }), answers).await
    }

    /// Sends any request that may ask questions, and answers them.
    pub async fn request_with_answers(
        &self,
        method: &str,
        params: Value,
        answers: impl Fn(&str, &Value) -> Option<Value>,
    ) -> AnsweredCall {
        let mut rounds = Vec::new();
        let mut next = params.clone();
        loop {
            let outcome = self.request(method, next).await;
            let asked = outcome.answer.as_ref().ok().filter(|it| it["resultType"] == "input_required");
            let Some(asked) = asked.cloned() else {
                return AnsweredCall { outcome, rounds };
            };
            assert!(rounds.len() < ROUNDS_MAX, "it asks without end: {asked}");
            next = follow_up(&params, &asked, &answers);
            rounds.push(asked);
        }
    }

    /// Subscribes; returns once the acknowledgement, which must come first, has arrived.
    pub async fn listen(&self, filter: Value) -> SubscriptionStream {
        let running = self.begin("subscriptions/listen", json!({ "notifications": filter }));
        running.told("notifications/subscriptions/acknowledged", 1).await;
        let first = running.sink.0.lock()[0].clone();
        assert_eq!(first["method"], "notifications/subscriptions/acknowledged", "it comes first");
        assert_eq!(first.pointer(SUBSCRIPTION_ID), Some(&json!(running.id)), "{first}");
        SubscriptionStream { running, acknowledged: first["params"]["notifications"].clone() }
    }

    /// Sends a raw line over stdio.
    pub fn send_line(&self, text: &str) {
        let ClientLink::Stdio(link) = &self.inner.link else { panic!("no lines over HTTP") };
        link.send(text);
    }
}

impl Drop for StatelessClient {
    fn drop(&mut self) {
        self.inner.schema_checker.assert_clean();
    }
}

/// Builds the repeated request with the answers and the returned state.
fn follow_up(params: &Value, asked: &Value, answers: impl Fn(&str, &Value) -> Option<Value>) -> Value {
    let questions = asked["inputRequests"].as_object().cloned().unwrap_or_default();
    let given: serde_json::Map<String, Value> =
        questions.iter().filter_map(|(key, question)| Some((key.clone(), answers(key, question)?))).collect();
    let mut next = params.clone();
    if !questions.is_empty() {
        next["inputResponses"] = given.into();
    }
    if let Some(state) = asked.get("requestState") {
        next["requestState"] = state.clone();
    }
    next
}

impl StatelessClientState {
    /// Handles a line received over stdio.
    fn take(&self, line: &str) {
        let message: Value = serde_json::from_str(line).unwrap_or_else(|_| panic!("not JSON: {line}"));
        if message.get("method").is_none() {
            let waiting = message["id"].as_u64().and_then(|id| self.waiting.lock().remove(&id));
            match waiting {
                Some(waiting) => drop(waiting.send(line.to_owned())),
                None => self.stray.0.lock().push(message),
            }
            return;
        }
        self.schema_checker.unsolicited(&message);
        let mark = ["/params/progressToken", SUBSCRIPTION_ID].iter().find_map(|path| message.pointer(path));
        let sink = mark.and_then(|mark| self.sinks.lock().get(&mark.to_string()).cloned());
        sink.as_deref().unwrap_or(&self.stray).0.lock().push(message);
    }

    fn cancel(&self, id: u64) {
        if let ClientLink::Stdio(link) = &self.link {
            let params = json!({ "requestId": id, "reason": "a test" });
            let told = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params });
            link.send(&told.to_string());
        }
    }
}

/// A request with everything needed to send it.
struct OutgoingRequest {
    inner: Arc<StatelessClientState>,
    validated: bool,
    headers: Vec<(String, String)>,
    token: Option<String>,
    method: String,
    id: u64,
    body: String,
    sink: Arc<NotificationLog>,
}

impl OutgoingRequest {
    async fn run(self) -> StatelessOutcome {
        let (status, text) = match &self.inner.link {
            ClientLink::Stdio(link) => (None, self.over_stdio(link).await),
            ClientLink::Http(link) => self.over_http(link).await,
        };
        let outcome = StatelessOutcome::new(status, text, self.sink.0.lock().clone());
        if self.validated && !outcome.text.is_empty() && outcome.text.starts_with('{') {
            self.inner.schema_checker.answer(&outcome.text, &self.method);
        }
        outcome
    }

    async fn over_stdio(&self, link: &StdioLink) -> Option<String> {
        let (sender, answer) = oneshot::channel();
        self.inner.waiting.lock().insert(self.id, sender);
        let marks = self.token.clone().into_iter().chain([self.id.to_string()]);
        self.inner.sinks.lock().extend(marks.map(|mark| (mark, Arc::clone(&self.sink))));
        link.send(&self.body);
        answer.await.ok()
    }

    async fn over_http(&self, link: &HttpLink) -> (Option<u16>, Option<String>) {
        let mut request: HttpRequest = link.request("POST").json(self.body.clone());
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        let connection = request.open(link.address).await;
        let status = Some(connection.status);
        assert!(connection.headers.get("mcp-session-id").is_none(), "there are no sessions");
        if !connection.is_stream() {
            return (status, Some(connection.read().await.text().to_owned()));
        }
        let mut events = connection.events();
        while let Some((_, data)) = events.next().await {
            let message: Value = serde_json::from_str(&data).unwrap_or_else(|_| panic!("not JSON: {data}"));
            if message.get("method").is_none() {
                return (status, Some(data));
            }
            if self.validated {
                self.inner.schema_checker.unsolicited(&message);
            }
            self.sink.0.lock().push(message);
        }
        (status, None)
    }
}
