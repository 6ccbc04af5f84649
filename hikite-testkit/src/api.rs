//! A small HTTP service for tools that are requests: it counts what reaches it, remembers how it looked, and answers
//! as it is told – status, headers, delay, cut off in the middle. Untold, it answers with the request itself as JSON.

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

/// The running service. Dropping it ends it, with every connection.
#[derive(Debug)]
pub struct Api {
    address: SocketAddr,
    shared: Arc<Shared>,
}

/// A request as it arrived, body and all.
#[derive(Debug, Clone)]
pub struct Seen {
    pub method: String,
    pub path: String,
    /// As it stood in the address; empty if there was none.
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

/// Answers to give once each, and the one to give ever after.
#[derive(Debug, Default)]
struct Script {
    once: VecDeque<Answer>,
    always: Option<Answer>,
}

impl Api {
    /// Listens on a free loopback port.
    pub async fn start() -> Self {
        Self::at("127.0.0.1").await
    }

    /// The same on another address of this machine.
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

    /// Answers every request to this path like this from now on.
    pub fn answer(&self, path: &str, answer: Answer) {
        let script = Script { once: VecDeque::new(), always: Some(answer) };
        self.shared.scripts.lock().insert(path.to_owned(), script);
    }

    /// Answers the next requests to this path like this, one each; what was told before holds after them.
    pub fn script(&self, path: &str, answers: impl IntoIterator<Item = Answer>) {
        self.shared.scripts.lock().entry(path.to_owned()).or_default().once.extend(answers);
    }

    /// Requests so far, those that were cut off among them.
    pub fn count(&self) -> usize {
        self.shared.seen.lock().len()
    }

    pub fn count_of(&self, path: &str) -> usize {
        self.shared.seen.lock().iter().filter(|seen| seen.path == path).count()
    }

    pub fn seen(&self) -> Vec<Seen> {
        self.shared.seen.lock().clone()
    }

    /// The last one to an address.
    pub fn last_of(&self, path: &str) -> Seen {
        self.seen().into_iter().rfind(|seen| seen.path == path).expect("a request")
    }

    pub fn last(&self) -> Seen {
        self.shared.seen.lock().last().cloned().expect("a request")
    }

    /// Connections accepted so far.
    pub fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::Relaxed)
    }

    /// Closes everything and waits until nothing of it runs.
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

    /// The body as JSON, `null` if it is none.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// What an untold service answers.
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
    /// Notes the request and says what to answer.
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
