//! A mock HTTP service for tools that send requests. It counts and records requests and answers as scripted: status,
//! headers, delay, or a connection cut midway. Without a script it echoes the request as JSON.

mod response;
mod serve;

use std::{
    collections::{HashMap, VecDeque},
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use bytes::Bytes;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

pub use response::MockResponse;

/// A running mock service. Dropping it stops it and closes every connection.
#[derive(Debug)]
pub struct MockApi {
    address: SocketAddr,
    shared: Arc<MockApiState>,
}

/// A received request, including its body.
#[derive(Debug, Clone)]
pub struct RecordedRequest {
    pub method: String,
    pub path: String,
    /// Query string; empty if there was none.
    pub query: String,
    pub headers: http::HeaderMap,
    pub body: Bytes,
}

#[derive(Debug, Default)]
pub(crate) struct MockApiState {
    scripts: Mutex<HashMap<String, ResponseScript>>,
    seen: Mutex<Vec<RecordedRequest>>,
    connections: AtomicUsize,
    shutdown: CancellationToken,
    tasks: TaskTracker,
}

/// Responses to use once each, and the one to use afterwards.
#[derive(Debug, Default)]
struct ResponseScript {
    once: VecDeque<MockResponse>,
    always: Option<MockResponse>,
}

impl MockApi {
    /// Starts the service on a free loopback port.
    pub async fn start() -> Self {
        Self::at("127.0.0.1").await
    }

    /// Starts the service on another address of this machine.
    pub async fn at(host: &str) -> Self {
        let listener = TcpListener::bind((host, 0)).await.expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let shared = Arc::new(MockApiState::default());
        shared.tasks.spawn(serve::accept(Arc::clone(&shared), listener));
        Self { address, shared }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Sets the response to every later request to this path.
    pub fn answer(&self, path: &str, answer: MockResponse) {
        let script = ResponseScript { once: VecDeque::new(), always: Some(answer) };
        self.shared.scripts.lock().insert(path.to_owned(), script);
    }

    /// Queues responses to the next requests to this path; the permanent response applies after them.
    pub fn script(&self, path: &str, answers: impl IntoIterator<Item = MockResponse>) {
        self.shared.scripts.lock().entry(path.to_owned()).or_default().once.extend(answers);
    }

    /// Returns the number of requests so far, including those that were cut off.
    pub fn count(&self) -> usize {
        self.shared.seen.lock().len()
    }

    pub fn count_of(&self, path: &str) -> usize {
        self.shared.seen.lock().iter().filter(|seen| seen.path == path).count()
    }

    pub fn seen(&self) -> Vec<RecordedRequest> {
        self.shared.seen.lock().clone()
    }

    /// Returns the last request to a path.
    pub fn last_of(&self, path: &str) -> RecordedRequest {
        self.seen().into_iter().rfind(|seen| seen.path == path).expect("a request")
    }

    pub fn last(&self) -> RecordedRequest {
        self.shared.seen.lock().last().cloned().expect("a request")
    }

    /// Returns the number of connections accepted so far.
    pub fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::Relaxed)
    }

    /// Stops the service and waits until all its tasks have ended.
    pub async fn stop(self) {
        self.shared.shutdown.cancel();
        self.shared.tasks.close();
        self.shared.tasks.wait().await;
    }
}

impl Drop for MockApi {
    fn drop(&mut self) {
        self.shared.shutdown.cancel();
    }
}

impl RecordedRequest {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// Returns the body as JSON, or `null` if it is not JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// Returns the request as JSON, the default response.
    fn echo(&self) -> Value {
        let headers: serde_json::Map<String, Value> = self
            .headers
            .iter()
            .map(|(name, value)| (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into()))
            .collect();
        let body = String::from_utf8_lossy(&self.body);
        json!({ "method": self.method, "path": self.path, "query": self.query, "headers": headers, "body": body })
    }
}

impl MockApiState {
    /// Records the request and chooses the response.
    fn take(&self, seen: RecordedRequest) -> MockResponse {
        let scripted = self
            .scripts
            .lock()
            .get_mut(&seen.path)
            .and_then(|script| script.once.pop_front().or_else(|| script.always.clone()));
        let answer = scripted.unwrap_or_else(|| MockResponse::json(&seen.echo()));
        self.seen.lock().push(seen);
        answer
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use hikite_egress::{EgressClient, RequestBody, SendError, read};
    use http::Request;

    use super::*;

    async fn get(client: &EgressClient, url: &str) -> Result<(u16, Bytes), SendError> {
        let answer = client.send(Request::get(url).body(RequestBody::default()).expect("a request")).await?;
        let status = answer.status().as_u16();
        Ok((status, read(answer.into_body(), 1 << 20).await?))
    }

    #[tokio::test]
    async fn it_answers_as_told_and_remembers() {
        let api = MockApi::start().await;
        let client = EgressClient::new();
        let (status, body) = get(&client, &api.url("/x?a=1")).await.expect("an answer");
        let echo: Value = serde_json::from_slice(&body).expect("JSON");
        assert_eq!((status, &echo["path"], &echo["query"]), (200, &json!("/x"), &json!("a=1")));
        api.answer("/y", MockResponse::json(&json!({ "ok": true })));
        api.script("/y", [MockResponse::status(503).header("retry-after", "1")]);
        assert_eq!(get(&client, &api.url("/y")).await.expect("an answer").0, 503);
        assert_eq!(get(&client, &api.url("/y")).await.expect("an answer").1, r#"{"ok":true}"#);
        assert_eq!((api.count(), api.count_of("/y"), api.connections()), (3, 2, 1));
        assert_eq!(api.last().method, "GET");
        api.stop().await;
    }

    #[tokio::test]
    async fn it_is_late_and_it_breaks_off() {
        let api = MockApi::start().await;
        let client = EgressClient::new();
        api.answer("/late", MockResponse::text("late").delay(Duration::from_millis(80)));
        let begin = std::time::Instant::now();
        get(&client, &api.url("/late")).await.expect("an answer");
        assert!(begin.elapsed() >= Duration::from_millis(80));
        api.answer("/cut", MockResponse::text("half of it").cut_after(4));
        assert!(matches!(get(&client, &api.url("/cut")).await, Err(SendError::Transfer(_))));
        api.answer("/none", MockResponse::cut());
        assert!(matches!(get(&client, &api.url("/none")).await, Err(SendError::Transfer(_))));
        assert_eq!(api.count(), 3);
    }
}
