//! A mock HTTP service for tools that send requests. It counts and records requests and answers as scripted: status,
//! headers, delay, or a connection cut midway. Without a script it echoes the request as JSON.

mod answer;
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

pub use answer::Answer;

/// A running mock service. Dropping it stops it and closes every connection.
#[derive(Debug)]
pub struct Api {
    address: SocketAddr,
    shared: Arc<Shared>,
}

/// A received request, including its body.
#[derive(Debug, Clone)]
pub struct Seen {
    pub method: String,
    pub path: String,
    /// Query string; empty if there was none.
    pub query: String,
    pub headers: http::HeaderMap,
    pub body: Bytes,
}

#[derive(Debug, Default)]
pub(crate) struct Shared {
    scripts: Mutex<HashMap<String, Script>>,
    seen: Mutex<Vec<Seen>>,
    connections: AtomicUsize,
    shutdown: CancellationToken,
    tasks: TaskTracker,
}

/// Responses to use once each, and the one to use afterwards.
#[derive(Debug, Default)]
struct Script {
    once: VecDeque<Answer>,
    always: Option<Answer>,
}

impl Api {
    /// Starts the service on a free loopback port.
    pub async fn start() -> Self {
        Self::at("127.0.0.1").await
    }

    /// Starts the service on another address of this machine.
    pub async fn at(host: &str) -> Self {
        let listener = TcpListener::bind((host, 0)).await.expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let shared = Arc::new(Shared::default());
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
    pub fn answer(&self, path: &str, answer: Answer) {
        let script = Script { once: VecDeque::new(), always: Some(answer) };
        self.shared.scripts.lock().insert(path.to_owned(), script);
    }

    /// Queues responses to the next requests to this path; the permanent response applies after them.
    pub fn script(&self, path: &str, answers: impl IntoIterator<Item = Answer>) {
        self.shared.scripts.lock().entry(path.to_owned()).or_default().once.extend(answers);
    }

    /// Returns the number of requests so far, including those that were cut off.
    pub fn count(&self) -> usize {
        self.shared.seen.lock().len()
    }

    pub fn count_of(&self, path: &str) -> usize {
        self.shared.seen.lock().iter().filter(|seen| seen.path == path).count()
    }

    pub fn seen(&self) -> Vec<Seen> {
        self.shared.seen.lock().clone()
    }

    /// Returns the last request to a path.
    pub fn last_of(&self, path: &str) -> Seen {
        self.seen().into_iter().rfind(|seen| seen.path == path).expect("a request")
    }

    pub fn last(&self) -> Seen {
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

impl Drop for Api {
    fn drop(&mut self) {
        self.shared.shutdown.cancel();
    }
}

impl Seen {
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

impl Shared {
    /// Records the request and chooses the response.
    fn take(&self, seen: Seen) -> Answer {
        let told = self
            .scripts
            .lock()
            .get_mut(&seen.path)
            .and_then(|script| script.once.pop_front().or_else(|| script.always.clone()));
        let answer = told.unwrap_or_else(|| Answer::json(&seen.echo()));
        self.seen.lock().push(seen);
        answer
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use hikite_egress::{Client, Content, SendError, read};
    use http::Request;

    use super::*;

    async fn get(client: &Client, url: &str) -> Result<(u16, Bytes), SendError> {
        let answer = client.send(Request::get(url).body(Content::default()).expect("a request")).await?;
        let status = answer.status().as_u16();
        Ok((status, read(answer.into_body(), 1 << 20).await?))
    }

    #[tokio::test]
    async fn it_answers_as_told_and_remembers() {
        let api = Api::start().await;
        let client = Client::new();
        let (status, body) = get(&client, &api.url("/x?a=1")).await.expect("an answer");
        let echo: Value = serde_json::from_slice(&body).expect("JSON");
        assert_eq!((status, &echo["path"], &echo["query"]), (200, &json!("/x"), &json!("a=1")));
        api.answer("/y", Answer::json(&json!({ "ok": true })));
        api.script("/y", [Answer::status(503).header("retry-after", "1")]);
        assert_eq!(get(&client, &api.url("/y")).await.expect("an answer").0, 503);
        assert_eq!(get(&client, &api.url("/y")).await.expect("an answer").1, r#"{"ok":true}"#);
        assert_eq!((api.count(), api.count_of("/y"), api.connections()), (3, 2, 1));
        assert_eq!(api.last().method, "GET");
        api.stop().await;
    }

    #[tokio::test]
    async fn it_is_late_and_it_breaks_off() {
        let api = Api::start().await;
        let client = Client::new();
        api.answer("/late", Answer::text("late").delay(Duration::from_millis(80)));
        let begin = std::time::Instant::now();
        get(&client, &api.url("/late")).await.expect("an answer");
        assert!(begin.elapsed() >= Duration::from_millis(80));
        api.answer("/cut", Answer::text("half of it").cut_after(4));
        assert!(matches!(get(&client, &api.url("/cut")).await, Err(SendError::Transfer(_))));
        api.answer("/none", Answer::cut());
        assert!(matches!(get(&client, &api.url("/none")).await, Err(SendError::Transfer(_))));
        assert_eq!(api.count(), 3);
    }
}
