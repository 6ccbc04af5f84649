//! Questions of tasks on a server with sessions, towards the client that queries the task.

use std::sync::Arc;
use std::time::Duration;

use hikite_core::json::Object;
use hikite_core::source::CallContext;
use hikite_wire::encode;
use tokio::sync::Notify;

use crate::connection::Connection;
use crate::tasks::conversion;

/// Time for a question to arrive after its task's result was requested.
const QUESTION_TIMEOUT: Duration = Duration::from_secs(1);

/// Creates the inbox of a task, and refuses the questions of a task that was dropped for it.
pub(super) fn open_inbox(connection: &Connection, task: &str) {
    for id in connection.inboxes.open(task) {
        connection.refuse(&id, "Too many tasks are waiting for answers.");
    }
}

/// Releases everything that belongs to a finished task.
pub(super) fn end_task(connection: &Connection, task: &str) {
    connection.inboxes.close(task);
    connection.running.end(task);
    connection.retirement.became_idle();
}

/// Returns the open questions of a task, after requesting its result if it needs input.
pub(super) async fn open_questions(
    connection: &Arc<Connection>,
    task: &str,
    waits: bool,
    context: &CallContext,
) -> Object {
    if !waits {
        return take_open_questions(connection, task, context);
    }
    let arrived = fetch_questions(connection, task);
    let arrival = arrived.notified();
    let questions = take_open_questions(connection, task, context);
    if !questions.is_empty() {
        return questions;
    }
    let _ = tokio::time::timeout(QUESTION_TIMEOUT, arrival).await;
    take_open_questions(connection, task, context)
}

/// Returns the open questions, and refuses those that the client cannot answer.
fn take_open_questions(connection: &Connection, task: &str, context: &CallContext) -> Object {
    let (questions, unable) = connection.inboxes.partition_questions(task, context);
    for (id, kind) in unable {
        context.back.capability_missing(kind);
        connection.refuse(&id, &format!("The client does not support `{}`.", kind.method()));
    }
    questions
}

/// Answers questions of a task by key. Unknown keys are ignored.
pub(super) fn answer(connection: &Connection, task: &str, answers: &Object) {
    for (key, answer) in answers.iter() {
        if let Some(id) = connection.inboxes.take(task, key) {
            connection.send(encode::result(&id, answer));
        }
    }
}

/// Requests the result of a task in the background, once per task, because its questions arrive only then.
fn fetch_questions(connection: &Arc<Connection>, task: &str) -> Arc<Notify> {
    open_inbox(connection, task);
    let (arrived, fetch) = connection.inboxes.begin_fetch(task, || connection.pending_request(None).ok());
    let Some((pending_request, finished)) = fetch else { return arrived };
    let (fetching, task) = (Arc::clone(connection), task.to_owned());
    connection.tasks.spawn(async move {
        let exchange = fetching.exchange(pending_request, "tasks/result", Some(conversion::named(&task)), None);
        let outcome = finished.run_until_cancelled(exchange).await;
        fetching.inboxes.end_fetch(&task, outcome);
    });
    arrived
}
