//! A pending request of 2026-07-28: the notifications so far, and finally its response.

use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::StatelessClientState;
use crate::gateway::{LIMIT, eventually};

/// Outcome of a request.
#[derive(Debug, Clone)]
pub struct StatelessOutcome {
    /// HTTP status, over HTTP.
    pub status: Option<u16>,
    /// The result or the error object. A stream that ended without a response is the error `{"closed": true}`; a body
    /// that is no response is the error `{"body": …}`.
    pub answer: Result<Value, Value>,
    /// Response text as received.
    pub text: String,
    /// Earlier notifications, oldest first.
    pub notifications: Vec<Value>,
}

impl StatelessOutcome {
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

    /// Returns the result; panics on an error.
    #[track_caller]
    pub fn result(&self) -> Value {
        self.answer.clone().unwrap_or_else(|error| panic!("{:?} {error}", self.status))
    }

    /// Returns the error object; panics on a result.
    #[track_caller]
    pub fn error(&self) -> Value {
        match &self.answer {
            Ok(result) => panic!("not refused: {result}"),
            Err(error) => error.clone(),
        }
    }

    /// Returns the error code; panics on a result.
    #[track_caller]
    pub fn code(&self) -> i64 {
        self.error()["code"].as_i64().unwrap_or_default()
    }

    /// Returns the first text of a tool's result.
    #[track_caller]
    pub fn first_text(&self) -> String {
        let result = self.result();
        result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no text: {result}")).to_owned()
    }

    /// Returns the params of the notifications of this method.
    pub fn told(&self, method: &str) -> Vec<Value> {
        of_method(&self.notifications, method)
    }
}

/// Collected notifications of one request.
#[derive(Debug, Default)]
pub(super) struct NotificationLog(pub(super) Mutex<Vec<Value>>);

/// A pending request. Dropping it abandons the request: over HTTP the connection is closed, over stdio it continues
/// unread.
#[derive(Debug)]
pub struct StatelessCall {
    pub id: u64,
    pub(super) sink: Arc<NotificationLog>,
    pub(super) task: JoinHandle<StatelessOutcome>,
    pub(super) inner: Arc<StatelessClientState>,
}

impl StatelessCall {
    pub async fn outcome(mut self) -> StatelessOutcome {
        tokio::time::timeout(LIMIT, &mut self.task).await.expect("an answer in time").expect("no panic")
    }

    pub fn is_finished(&self) -> bool {
        self.task.is_finished()
    }

    /// Returns the params of the notifications of this method so far.
    pub fn notifications(&self, method: &str) -> Vec<Value> {
        of_method(&self.sink.0.lock(), method)
    }

    /// Waits until this many notifications of a method have arrived.
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

    /// Cancels the request: over HTTP by disconnecting, over stdio by a notification.
    pub fn cancel(self) {
        self.inner.cancel(self.id);
    }
}

impl Drop for StatelessCall {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn of_method(all: &[Value], method: &str) -> Vec<Value> {
    all.iter().filter(|told| told["method"] == method).map(|told| told["params"].clone()).collect()
}

/// An open `subscriptions/listen`. Dropping it ends the subscription.
#[derive(Debug)]
pub struct SubscriptionStream {
    pub(super) running: StatelessCall,
    /// The part of the filter that the server acknowledged.
    pub acknowledged: Value,
}

impl SubscriptionStream {
    pub fn id(&self) -> u64 {
        self.running.id
    }

    pub fn notifications(&self, method: &str) -> Vec<Value> {
        self.running.notifications(method)
    }

    /// Returns every notification except the acknowledgement, oldest first.
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

    /// Waits until the server ends the subscription.
    pub async fn ended(self) -> StatelessOutcome {
        self.running.outcome().await
    }

    pub fn cancel(self) {
        self.running.cancel();
    }
}
