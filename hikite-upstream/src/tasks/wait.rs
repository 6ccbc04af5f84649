//! Waits for tasks on behalf of clients without task support.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use hikite_core::error::Error;
use hikite_core::json::{Object, Raw};
use hikite_core::source::CallContext;
use hikite_wire::stateless::TASKS;

use crate::connection::request_meta::StatelessMeta;
use crate::connection::{BACKGROUND_TIMEOUT, Connection};
use crate::error::UpstreamError;
use crate::rounds::{ask_all, failed};
use crate::tasks::conversion;

const SHORTEST_POLL: Duration = Duration::from_millis(50);
const LONGEST_POLL: Duration = Duration::from_secs(5);
/// Poll interval for servers that do not specify one.
const POLL: Duration = Duration::from_secs(1);

/// Polls the task of a stateless server until it ends, asking the client its questions.
pub(crate) async fn until_done(
    connection: &Arc<Connection>,
    created: Object,
    context: &CallContext,
) -> Result<Raw, UpstreamError> {
    let id = created.text("taskId").unwrap_or_default();
    let mut abandoned = CancelTaskOnDrop { connection: Arc::clone(connection), id: id.clone(), armed: true };
    let ask = async |method: &str, params: Object| {
        let request_meta = StatelessMeta::for_call(context, true);
        connection.request_stateless(method, params, Some(context.clone()), request_meta).await
    };
    let mut asked = HashSet::new();
    let mut task = created;
    loop {
        if let Some(end) = end(&task) {
            abandoned.armed = false;
            return Ok(end?);
        }
        let questions = new_questions(&task, &mut asked);
        if !questions.is_empty() {
            let answers = ask_all(&connection.name, &questions, context).await?;
            ask("tasks/update", conversion::named(&id).with("inputResponses", answers)).await?;
        }
        tokio::time::sleep(poll_interval(&task)).await;
        task = ask("tasks/get", conversion::named(&id)).await?.object().unwrap_or_default();
    }
}

/// Waits for the result of a task of a server with sessions.
pub(crate) async fn for_result(
    connection: &Arc<Connection>,
    task: &Object,
    context: CallContext,
) -> Result<Raw, UpstreamError> {
    let id = task.text("taskId").unwrap_or_default();
    let mut abandoned = CancelTaskOnDrop { connection: Arc::clone(connection), id: id.clone(), armed: true };
    let _waiting = connection.inboxes.wait_for(&id, &context);
    let answer = connection.request("tasks/result", Some(conversion::named(&id)), Some(context)).await;
    abandoned.armed = false;
    answer
}

/// Returns the outcome of a task, or `None` while it runs.
fn end(task: &Object) -> Option<Result<Raw, Error>> {
    let message = || task.text("statusMessage");
    match task.text("status").as_deref() {
        Some("completed") => {
            let result = task.get("result").cloned();
            Some(result.ok_or_else(|| failed("The task ended without a result.")))
        }
        Some("failed") => Some(Err(task
            .get("error")
            .cloned()
            .map_or_else(|| failed(message().unwrap_or_else(|| "The task failed.".into())), Error::from_upstream))),
        Some("cancelled") => Some(Err(failed(message().unwrap_or_else(|| "The task was cancelled.".into())))),
        Some(_) => None,
        None => Some(Err(failed("The task has no status."))),
    }
}

/// Returns the questions that have not been asked before.
fn new_questions(task: &Object, asked: &mut HashSet<String>) -> Object {
    let all = task.get("inputRequests").and_then(Raw::object).unwrap_or_default();
    let new = all.iter().filter(|(key, _)| asked.insert((*key).to_owned()));
    new.fold(Object::default(), |new, (key, request)| new.with(key, request.clone()))
}

fn poll_interval(task: &Object) -> Duration {
    let asked = task.get("pollIntervalMs").and_then(|interval| interval.decode::<f64>().ok());
    let asked = asked.and_then(|ms| Duration::try_from_secs_f64(ms / 1000.0).ok());
    asked.unwrap_or(POLL).clamp(SHORTEST_POLL, LONGEST_POLL)
}

/// Cancels a task on drop if nobody waits for it any more.
struct CancelTaskOnDrop {
    connection: Arc<Connection>,
    id: String,
    armed: bool,
}

impl Drop for CancelTaskOnDrop {
    fn drop(&mut self) {
        if self.armed {
            cancel_task(&self.connection, &self.id);
        }
    }
}

fn cancel_task(connection: &Arc<Connection>, id: &str) {
    if !connection.is_open() {
        return;
    }
    let (canceller, params) = (Arc::clone(connection), conversion::named(id));
    if !connection.is_stateless() {
        return drop(connection.request_detached("tasks/cancel", params));
    }
    connection.tasks.spawn(async move {
        let request_meta = StatelessMeta::default().with_extension(TASKS);
        let cancelling = canceller.request_stateless("tasks/cancel", params, None, request_meta);
        let _ = tokio::time::timeout(BACKGROUND_TIMEOUT, cancelling).await;
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(text: &str) -> Object {
        Raw::parse(text.to_owned()).expect("valid").object().expect("an object")
    }

    #[test]
    fn a_task_ends_with_its_result_or_its_error() {
        assert!(end(&task(r#"{"status":"working"}"#)).is_none());
        assert!(end(&task(r#"{"status":"input_required"}"#)).is_none());
        let done = end(&task(r#"{"status":"completed","result":{"content":[]}}"#)).expect("an end");
        assert_eq!(done.expect("a result").as_str(), r#"{"content":[]}"#);
        let broken = end(&task(r#"{"status":"failed","error":{"code":7,"message":"no"}}"#)).expect("an end");
        assert_eq!(&*broken.expect_err("an error").message, "no");
        assert!(end(&task(r#"{"status":"cancelled"}"#)).is_some_and(|end| end.is_err()));
    }

    #[test]
    fn questions_are_asked_once_and_polls_are_neither_frantic_nor_lazy() {
        let mut asked = HashSet::new();
        let first = task(r#"{"inputRequests":{"a":{}}}"#);
        assert_eq!(new_questions(&first, &mut asked).len(), 1);
        assert_eq!(new_questions(&task(r#"{"inputRequests":{"a":{},"b":{}}}"#), &mut asked).len(), 1);
        assert_eq!(poll_interval(&task(r#"{"pollIntervalMs":1}"#)), SHORTEST_POLL);
        assert_eq!(poll_interval(&task(r#"{"pollIntervalMs":1e9}"#)), LONGEST_POLL);
        assert_eq!(poll_interval(&task(r#"{"pollIntervalMs":-5}"#)), POLL);
    }
}
