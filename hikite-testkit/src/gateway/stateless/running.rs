//! A request of 2026-07-28 on its way: what was said on its stream so far, and in the end its answer.

use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::Inner;
use crate::gateway::{LIMIT, eventually};

/// What came of a request.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// Over HTTP.
    pub status: Option<u16>,
    /// The result or the error object. A stream that ended without an answer is the error `{"closed": true}`; a
    /// body that is no answer is the error `{"body": …}`.
    pub answer: Result<Value, Value>,
    /// The answer as it was written.
    pub text: String,
    /// What was said before, oldest first.
    pub notifications: Vec<Value>,
}

impl Outcome {
    pub(super) fn new(status: Option<u16>, text: Option<String>, notifications: Vec<Value>) -> Self {
        let text = text.unwrap_or_default();
        let message: Value = serde_json::from_str(&text).unwrap_or_default();
        let answer = match (message.get("result"), message.get("error")) {
            (Some(result), _) => Ok(result.clone()),
            (None, Some(error)) => Err(error.clone()),
            (None, None) if text.is_empty() && status.is_none_or(|status| status == 200) => {
                Err(json!({ "closed": true }))
            }
            (None, None) => Err(json!({ "body": text })),
        };
        Self { status, answer, text, notifications }
    }

    /// The result; an error is a panic.
    #[track_caller]
    pub fn result(&self) -> Value {
        self.answer.clone().unwrap_or_else(|error| panic!("{:?} {error}", self.status))
    }

    /// The error object; a result is a panic.
    #[track_caller]
    pub fn error(&self) -> Value {
        match &self.answer {
            Ok(result) => panic!("not refused: {result}"),
            Err(error) => error.clone(),
        }
    }

    /// The number of the error; a result is a panic.
    #[track_caller]
    pub fn code(&self) -> i64 {
        self.error()["code"].as_i64().unwrap_or_default()
    }

    /// The first text of a tool's result.
    #[track_caller]
    pub fn first_text(&self) -> String {
        let result = self.result();
        result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no text: {result}")).to_owned()
    }

    /// The params of what was said under this name.
    pub fn told(&self, method: &str) -> Vec<Value> {
        of_method(&self.notifications, method)
    }
}

/// Where the notifications of one request gather.
#[derive(Debug, Default)]
pub(super) struct Sink(pub(super) Mutex<Vec<Value>>);

/// Dropping it leaves: over HTTP the connection is closed, over stdio the request goes on unheard.
#[derive(Debug)]
pub struct Running {
    pub id: u64,
    pub(super) sink: Arc<Sink>,
    pub(super) task: JoinHandle<Outcome>,
    pub(super) inner: Arc<Inner>,
}

impl Running {
    pub async fn outcome(mut self) -> Outcome {
        tokio::time::timeout(LIMIT, &mut self.task).await.expect("an answer in time").expect("no panic")
    }

    pub fn is_finished(&self) -> bool {
        self.task.is_finished()
    }

    /// The params of what was said so far under this name.
    pub fn notifications(&self, method: &str) -> Vec<Value> {
        of_method(&self.sink.0.lock(), method)
    }

    /// Waits until it has been said so many times.
    #[track_caller]
    pub fn told(&self, method: &str, times: usize) -> impl Future<Output = Vec<Value>> {
        let place = std::panic::Location::caller();
        let (sink, method) = (Arc::clone(&self.sink), method.to_owned());
        async move {
            let all = || of_method(&sink.0.lock(), &method);
            let told = eventually(|| all().len() >= times).await;
            assert!(told, "{place}: {method} came {} times", all().len());
            all()
        }
    }

    /// Gives the request up as its transport does: over HTTP by leaving, over stdio by saying so.
    pub fn cancel(self) {
        self.inner.cancel(self.id);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn of_method(all: &[Value], method: &str) -> Vec<Value> {
    all.iter().filter(|told| told["method"] == method).map(|told| told["params"].clone()).collect()
}

/// An open `subscriptions/listen`. Dropping it leaves.
#[derive(Debug)]
pub struct Listening {
    pub(super) running: Running,
    /// What of the wish is honoured.
    pub acknowledged: Value,
}

impl Listening {
    pub fn id(&self) -> u64 {
        self.running.id
    }

    pub fn notifications(&self, method: &str) -> Vec<Value> {
        self.running.notifications(method)
    }

    /// Everything but the acknowledgement, oldest first.
    pub fn all(&self) -> Vec<Value> {
        self.running.sink.0.lock().iter().skip(1).cloned().collect()
    }

    #[track_caller]
    pub fn told(&self, method: &str, times: usize) -> impl Future<Output = Vec<Value>> {
        self.running.told(method, times)
    }

    pub fn is_over(&self) -> bool {
        self.running.is_finished()
    }

    /// Waits for the server to end it.
    pub async fn ended(self) -> Outcome {
        self.running.outcome().await
    }

    pub fn cancel(self) {
        self.running.cancel();
    }
}
