//! A session MCP client written against the specification instead of hikite's code: it preserves messages byte for
//! byte, answers questions as the test says, and can disconnect at any moment.

use std::{
    collections::HashMap,
    fmt,
    net::SocketAddr,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};
use tokio::{sync::oneshot, task::JoinHandle};

use super::{
    LIMIT, TestPrograms,
    client_options::{ClientOptions, ServerRequest},
    eventually,
    link::{ClientLink, HttpLink, StdioLink, spawn},
    schema_checker::SchemaChecker,
};

/// A client with a session.
#[derive(Debug, Clone)]
pub struct SessionClient {
    inner: Arc<SessionClientState>,
}

struct SessionClientState {
    link: ClientLink,
    client_options: ClientOptions,
    schema_checker: SchemaChecker,
    next: AtomicU64,
    /// Result of `initialize`.
    welcome: Mutex<Value>,
    notifications: Mutex<Vec<Value>>,
    questions: Mutex<Vec<ServerRequest>>,
    /// Over stdio: pending requests by id.
    waiting: Mutex<HashMap<u64, oneshot::Sender<String>>>,
}

impl fmt::Debug for SessionClientState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionClientState").field("link", &self.link).finish_non_exhaustive()
    }
}

/// A pending request. Dropping it abandons the request: over HTTP the connection is closed.
#[derive(Debug)]
pub struct PendingCall {
    pub id: u64,
    task: JoinHandle<String>,
}

impl PendingCall {
    /// Returns the raw response.
    pub async fn raw(mut self) -> String {
        tokio::time::timeout(LIMIT, &mut self.task).await.expect("an answer in time").expect("no panic")
    }

    pub async fn answer(self) -> Result<Value, Value> {
        outcome(&self.raw().await)
    }

    pub fn is_finished(&self) -> bool {
        self.task.is_finished()
    }
}

impl Drop for PendingCall {
    fn drop(&mut self) {
        self.task.abort();
    }
}

#[derive(Deserialize)]
struct IncomingMessage<'a> {
    id: Option<Value>,
    method: Option<String>,
    params: Option<Value>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

fn outcome(answer: &str) -> Result<Value, Value> {
    let value: Value = serde_json::from_str(answer).unwrap_or_else(|_| panic!("not JSON: {answer}"));
    match value.get("error") {
        Some(error) => Err(error.clone()),
        None => Ok(value["result"].clone()),
    }
}

impl SessionClient {
    pub async fn over_http(
        address: SocketAddr,
        path: &str,
        token: Option<&str>,
        client_options: ClientOptions,
    ) -> Self {
        let client = Self::new(ClientLink::Http(HttpLink::new(address, path, token)), client_options);
        client.initialize().await;
        client
    }

    /// Starts `hikite stdio` in a folder that contains the config.
    pub async fn over_stdio(
        programs: &TestPrograms,
        folder: &Path,
        arguments: &[&str],
        client_options: ClientOptions,
    ) -> Self {
        let (link, mut lines) = StdioLink::start(programs, folder, arguments);
        let client = Self::new(ClientLink::Stdio(link), client_options);
        let inner = Arc::downgrade(&client.inner);
        spawn(async move {
            while let Some(line) = lines.recv().await {
                let Some(inner) = inner.upgrade() else { return };
                SessionClientState::take(&inner, &line);
            }
            // Pending requests see the end.
            if let Some(inner) = inner.upgrade() {
                inner.waiting.lock().clear();
            }
        });
        client.initialize().await;
        client
    }

    fn new(link: ClientLink, client_options: ClientOptions) -> Self {
        let inner = SessionClientState {
            link,
            schema_checker: SchemaChecker::new(client_options.validated, client_options.revision),
            client_options,
            next: AtomicU64::new(1),
            welcome: Mutex::default(),
            notifications: Mutex::default(),
            questions: Mutex::default(),
            waiting: Mutex::default(),
        };
        Self { inner: Arc::new(inner) }
    }

    async fn initialize(&self) {
        let client_options = &self.inner.client_options;
        let params = json!({
            "protocolVersion": client_options.revision,
            "capabilities": client_options.capabilities,
            "clientInfo": { "name": "test", "version": "1" },
        });
        let welcome = self.request("initialize", params).await.expect("a welcome");
        if let ClientLink::Http(link) = &self.inner.link {
            *link.revision.lock() = welcome["protocolVersion"].as_str().map(ToOwned::to_owned);
        }
        *self.inner.welcome.lock() = welcome;
        self.notify("notifications/initialized", json!({})).await;
    }

    pub fn welcome(&self) -> Value {
        self.inner.welcome.lock().clone()
    }

    /// Returns the session id, over HTTP.
    pub fn session(&self) -> String {
        let ClientLink::Http(link) = &self.inner.link else { panic!("no session over stdio") };
        link.session.lock().clone().expect("a session")
    }

    /// Returns the process id of `hikite stdio`.
    pub fn pid(&self) -> u32 {
        let ClientLink::Stdio(link) = &self.inner.link else { panic!("no process over HTTP") };
        link.pid
    }

    /// Sends a request and returns its result or its error object.
    pub async fn request(&self, method: &str, params: Value) -> Result<Value, Value> {
        outcome(&self.raw(method, params).await)
    }

    /// Sends a request and returns the text of the whole response.
    pub async fn raw(&self, method: &str, params: Value) -> String {
        self.begin(method, params).raw().await
    }

    /// Sends a request and returns the text of the result.
    #[track_caller]
    pub fn raw_result(&self, method: &str, params: Value) -> impl Future<Output = String> {
        let pending = self.begin(method, params);
        async move {
            let answer = pending.raw().await;
            let envelope: IncomingMessage<'_> = serde_json::from_str(&answer).expect("JSON");
            envelope.result.unwrap_or_else(|| panic!("{answer}")).get().to_owned()
        }
    }

    /// Calls a tool of the `direct` surface; panics on a protocol error.
    pub async fn call(&self, tool: &str, arguments: Value) -> Value {
        let params = json!({ "name": tool, "arguments": arguments });
        self.request("tools/call", params).await.unwrap_or_else(|error| panic!("{tool}: {error}"))
    }

    /// Calls a tool and returns the first text of its result.
    pub async fn text(&self, tool: &str, arguments: Value) -> String {
        text_of(&self.call(tool, arguments).await)
    }

    /// Calls a tool through its category.
    pub async fn call_in(&self, category: &str, tool: &str, arguments: Value) -> Value {
        let arguments = json!({ "category": category, "name": tool, "args": arguments });
        self.call("call-category-tool", arguments).await
    }

    /// Returns the names of a whole list, in order.
    pub async fn names(&self, method: &str) -> Vec<String> {
        let (member, name) = match method {
            "tools/list" => ("tools", "name"),
            "prompts/list" => ("prompts", "name"),
            "resources/list" => ("resources", "uri"),
            _ => ("resourceTemplates", "uriTemplate"),
        };
        let list = self.request(method, json!({})).await.expect("a list");
        let items = list[member].as_array().expect("an array");
        items.iter().map(|item| item[name].as_str().expect("a name").to_owned()).collect()
    }

    /// Sends a request without waiting for the response.
    #[expect(clippy::needless_pass_by_value, reason = "reads like the JSON it makes")]
    pub fn begin(&self, method: &str, params: Value) -> PendingCall {
        let id = self.inner.next.fetch_add(1, Ordering::Relaxed);
        let message = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string();
        let (inner, method) = (Arc::clone(&self.inner), method.to_owned());
        let task = spawn(async move {
            let answer = Arc::clone(&inner).exchange(id, message).await;
            inner.schema_checker.answer(&answer, &method);
            answer
        });
        PendingCall { id, task }
    }

    #[expect(clippy::needless_pass_by_value, reason = "reads like the JSON it makes")]
    pub fn begin_call(&self, tool: &str, arguments: Value) -> PendingCall {
        self.begin("tools/call", json!({ "name": tool, "arguments": arguments }))
    }

    pub async fn notify(&self, method: &str, params: Value) {
        self.inner.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params }).to_string()).await;
    }

    /// Sends `notifications/cancelled` for a request.
    pub async fn cancel(&self, id: u64) {
        self.notify("notifications/cancelled", json!({ "requestId": id, "reason": "a test" })).await;
    }

    /// Answers a question that was left open.
    pub async fn answer(&self, question: &ServerRequest, result: Value) {
        self.inner.send(&json!({ "jsonrpc": "2.0", "id": question.id, "result": result }).to_string()).await;
    }

    /// Opens the GET stream; returns once it is open.
    pub async fn listen(&self) {
        let ClientLink::Http(link) = &self.inner.link else { return };
        let connection = link.request("GET").open(link.address).await;
        assert_eq!(connection.status, 200, "no stream");
        let inner = Arc::downgrade(&self.inner);
        let mut events = connection.events();
        spawn(async move {
            while let Some((_, data)) = events.next().await {
                let Some(inner) = inner.upgrade() else { return };
                SessionClientState::take(&inner, &data);
            }
        });
    }

    /// Ends the session and returns the response status.
    pub async fn delete(&self) -> u16 {
        let ClientLink::Http(link) = &self.inner.link else { panic!("nothing to delete") };
        link.request("DELETE").send(link.address).await.status
    }

    /// Closes the input of `hikite stdio` and waits for the exit.
    pub async fn close(&self) -> std::process::ExitStatus {
        let ClientLink::Stdio(link) = &self.inner.link else { panic!("nothing to close") };
        link.close();
        tokio::time::timeout(LIMIT, async { link.child.lock().await.wait().await })
            .await
            .expect("an end")
            .expect("ours")
    }

    /// Sends a raw line.
    pub fn send_line(&self, text: &str) {
        let ClientLink::Stdio(link) = &self.inner.link else { panic!("no lines over HTTP") };
        link.send(text);
    }

    /// Returns the params of the notifications of this method so far, oldest first.
    pub fn notifications(&self, method: &str) -> Vec<Value> {
        let all = self.inner.notifications.lock();
        all.iter().filter(|told| told["method"] == method).map(|told| told["params"].clone()).collect()
    }

    /// Waits until this many notifications of a method have arrived.
    #[track_caller]
    pub fn told(&self, method: &str, times: usize) -> impl Future<Output = Vec<Value>> {
        let place = std::panic::Location::caller();
        let (client, method) = (self.clone(), method.to_owned());
        async move {
            let told = eventually(|| client.notifications(&method).len() >= times).await;
            assert!(told, "{place}: {method} came {} times", client.notifications(&method).len());
            client.notifications(&method)
        }
    }

    pub fn questions(&self) -> Vec<ServerRequest> {
        self.inner.questions.lock().clone()
    }

    /// Waits for the next request of the server.
    #[track_caller]
    pub fn asked(&self) -> impl Future<Output = ServerRequest> {
        let place = std::panic::Location::caller();
        let client = self.clone();
        async move {
            assert!(eventually(|| !client.questions().is_empty()).await, "{place}: nobody asked");
            client.questions().remove(0)
        }
    }
}

impl Drop for SessionClient {
    fn drop(&mut self) {
        self.inner.schema_checker.assert_clean();
    }
}

impl SessionClientState {
    async fn exchange(self: Arc<Self>, id: u64, message: String) -> String {
        match &self.link {
            ClientLink::Stdio(link) => {
                let (sender, answer) = oneshot::channel();
                self.waiting.lock().insert(id, sender);
                link.send(&message);
                answer.await.expect("an answer before the end")
            }
            ClientLink::Http(link) => self.post(link, id, message).await,
        }
    }

    async fn post(self: &Arc<Self>, link: &HttpLink, id: u64, message: String) -> String {
        let connection = link.request("POST").json(message).open(link.address).await;
        if let Some(session) = connection.headers.get("mcp-session-id") {
            *link.session.lock() = Some(session.to_str().expect("visible").to_owned());
        }
        if !connection.is_stream() {
            let reply = connection.read().await;
            assert_eq!(reply.status, 200, "{}", reply.text());
            return reply.text().to_owned();
        }
        let mut events = connection.events();
        while let Some((_, data)) = events.next().await {
            let envelope: IncomingMessage<'_> = serde_json::from_str(&data).expect("JSON");
            if envelope.method.is_none() && envelope.id == Some(json!(id)) {
                return data;
            }
            Self::take(self, &data);
        }
        panic!("the stream ended before the answer to {id}")
    }

    async fn send(&self, message: &str) {
        match &self.link {
            ClientLink::Stdio(link) => link.send(message),
            ClientLink::Http(link) => {
                let reply = link.request("POST").json(message.to_owned()).send(link.address).await;
                assert_eq!(reply.status, 202, "{}", reply.text());
            }
        }
    }

    /// Handles an unsolicited message or, over stdio, a response.
    fn take(self: &Arc<Self>, message: &str) {
        let envelope: IncomingMessage<'_> =
            serde_json::from_str(message).unwrap_or_else(|_| panic!("not JSON: {message}"));
        let value: Value = serde_json::from_str(message).expect("JSON");
        match (envelope.method, envelope.id) {
            (None, id) => {
                assert!(envelope.result.is_some() || envelope.error.is_some(), "neither answer nor request: {message}");
                let waiting = id.as_ref().and_then(Value::as_u64).and_then(|id| self.waiting.lock().remove(&id));
                match waiting {
                    Some(waiting) => drop(waiting.send(message.to_owned())),
                    // A response without a known id, recorded for the test.
                    None => {
                        self.schema_checker.unsolicited(&value);
                        self.notifications.lock().push(json!({ "method": "(answer)", "params": value }));
                    }
                }
            }
            (Some(method), None) => {
                self.schema_checker.unsolicited(&value);
                let params = envelope.params.unwrap_or_default();
                self.notifications.lock().push(json!({ "method": method, "params": params }));
            }
            (Some(method), Some(id)) => {
                self.schema_checker.unsolicited(&value);
                self.asked(ServerRequest { id, method, params: envelope.params.unwrap_or_default() });
            }
        }
    }

    fn asked(self: &Arc<Self>, question: ServerRequest) {
        let answer = (self.client_options.answer)(&question);
        let id = question.id.clone();
        self.questions.lock().push(question);
        if let Some(answer) = answer {
            let inner = Arc::clone(self);
            let message = json!({ "jsonrpc": "2.0", "id": id, "result": answer }).to_string();
            spawn(async move { inner.send(&message).await });
        }
    }
}

fn text_of(result: &Value) -> String {
    result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no text: {result}")).to_owned()
}

/// Time within which an unwanted event would have happened.
pub const SETTLE_TIME: Duration = Duration::from_millis(200);
