//! Tool calls that run as tasks. Inside hikite they have the form of the stateless revision's extension, whatever the
//! server speaks; tasks of 2025-11-25 are translated here.

pub(crate) mod conversion;
pub(crate) mod inbox;
mod question;
pub(crate) mod running;
pub(crate) mod task_address;
pub(crate) mod wait;

use std::sync::Arc;

use hikite_core::error::{Error, ErrorKind};
use hikite_core::json::{Object, Raw};
use hikite_core::source::{CallContext, SourceMethod};
use hikite_wire::stateless::{MISSING_CAPABILITY, TASKS};

use crate::annotation::TaskSupport;
use crate::connection::Connection;
use crate::error::UpstreamError;
use crate::revision::upstream_code;
use crate::upstream::UpstreamInner;

/// Returns `true` if the client accepts a task as a result. Removes the `task` member of 2025-11-25 from the params.
pub(crate) fn accepts_tasks(params: &mut Object, context: &CallContext) -> bool {
    params.remove("task").is_some() || context.session.client_capabilities.has_extension(TASKS)
}

/// Returns `true` if a call was refused because the tool requires a task.
pub(crate) fn is_required(error: &Error) -> bool {
    let names_tasks = || {
        let data = error.relayed.as_ref()?.object()?.get("data")?.object()?;
        data.get("requiredCapabilities")?.object()?.get("extensions")?.object()?.get(TASKS).cloned()
    };
    upstream_code(error) == Some(MISSING_CAPABILITY) && names_tasks().is_some()
}

/// Returns `true` if a task has ended.
pub(crate) fn has_ended(task: &Raw) -> bool {
    let status = task.object().and_then(|task| task.text("status"));
    matches!(status.as_deref(), Some("completed" | "failed" | "cancelled"))
}

/// Returns the task id, or an error if the server has no tasks.
pub(crate) fn require(connection: &Connection, params: &Object) -> Result<String, Error> {
    let id = params.text("taskId").unwrap_or_default();
    if connection.runs_tasks() && !id.is_empty() {
        return Ok(id);
    }
    Err(Error::new(ErrorKind::Validation, format!("`{}` has no task `{id}`.", connection.name)))
}

/// Calls a tool of a server with sessions: as a task if the tool requires it, or if both sides support it.
pub(crate) async fn call_with_task(
    upstream: &Arc<UpstreamInner>,
    connection: &Arc<Connection>,
    mut params: Object,
    context: CallContext,
) -> Result<Raw, UpstreamError> {
    let wish = params.get("task").filter(|wish| wish.is_object()).cloned();
    let accepts_tasks = accepts_tasks(&mut params, &context);
    let support = upstream.lists.annotations.load().task_support(&params).filter(|_| connection.runs_tasks());
    let as_task = match support {
        Some(TaskSupport::Required) => true,
        Some(TaskSupport::Optional) => accepts_tasks,
        None => false,
    };
    let name = SourceMethod::CallTool.name();
    if !as_task {
        return connection.request(name, Some(params), Some(context)).await;
    }
    params.set("task", wish.unwrap_or_else(Raw::empty_object));
    let answer = connection.request(name, Some(params), Some(context.clone())).await?;
    // A server may still return the result at once.
    let Some(task) = conversion::created(&answer) else { return Ok(answer) };
    if accepts_tasks {
        question::open_inbox(connection, &task.text("taskId").unwrap_or_default());
        return Ok(upstream.task_connections.put(task, connection).raw());
    }
    wait::for_result(connection, &task, context).await.map_err(UpstreamError::not_retryable)
}

/// Handles a task request for a server with sessions.
pub(crate) async fn task_with_sessions(
    connection: &Arc<Connection>,
    method: SourceMethod,
    params: Object,
    context: CallContext,
) -> Result<Raw, UpstreamError> {
    let id = require(connection, &params)?;
    match method {
        SourceMethod::UpdateTask => {
            let answers = params.get("inputResponses").and_then(Raw::object).unwrap_or_default();
            question::answer(connection, &id, &answers);
            Ok(Raw::empty_object())
        }
        SourceMethod::CancelTask => {
            connection.inboxes.close(&id);
            let answer = cancel(connection, &id, context).await?;
            question::end_task(connection, &id);
            Ok(answer)
        }
        _ => get(connection, &id, context).await,
    }
}

/// Cancels a task. Cancelling an ended task is an error in 2025-11-25, but not in the stateless revision.
async fn cancel(connection: &Connection, id: &str, context: CallContext) -> Result<Raw, UpstreamError> {
    let ask = async |method: &str| connection.request(method, Some(conversion::named(id)), Some(context.clone())).await;
    let Err(error) = ask("tasks/cancel").await else { return Ok(Raw::empty_object()) };
    if context.accepts_input_required && error.error.kind == ErrorKind::Validation {
        let task = ask("tasks/get").await?.object().unwrap_or_default();
        if has_ended(&task.raw()) {
            return Ok(Raw::empty_object());
        }
    }
    Err(error)
}

/// Returns the current task, including its result or its questions.
async fn get(connection: &Arc<Connection>, id: &str, context: CallContext) -> Result<Raw, UpstreamError> {
    let answer = connection.request("tasks/get", Some(conversion::named(id)), Some(context.clone())).await?;
    let mut task = conversion::flat(&answer.object().unwrap_or_default());
    match task.text("status").as_deref() {
        Some("completed" | "failed") => {
            let outcome = match connection.inboxes.outcome(id) {
                Some(outcome) => outcome,
                None => connection.request("tasks/result", Some(conversion::named(id)), Some(context)).await,
            };
            conversion::finish(&mut task, outcome)?;
            question::end_task(connection, id);
        }
        Some("cancelled") => question::end_task(connection, id),
        status => {
            let waits = status == Some("input_required");
            let questions = question::open_questions(connection, id, waits, &context).await;
            if waits || !questions.is_empty() {
                task.set("status", "input_required");
                task.set("inputRequests", questions);
            }
        }
    }
    Ok(task.raw())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_refusal_that_names_tasks_asks_for_one() {
        let refused = |data: &str| {
            let text = format!(r#"{{"code":-32021,"message":"no","data":{data}}}"#);
            is_required(&Error::from_upstream(Raw::parse(text).expect("valid")))
        };
        assert!(refused(r#"{"requiredCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}"#));
        assert!(!refused(r#"{"requiredCapabilities":{"sampling":{}}}"#));
        assert!(!refused("null"));
    }
}
