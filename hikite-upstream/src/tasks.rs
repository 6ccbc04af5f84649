//! Tool calls that run as tasks. Inside hikite they have the form of the stateless revision's extension, whatever the
//! server speaks; tasks of 2025-11-25 are translated here.

pub(crate) mod desk;
mod form;
pub(crate) mod place;
pub(crate) mod running;
pub(crate) mod wait;

use std::sync::Arc;

use hikite_core::error::{Error, Kind};
use hikite_core::json::{Object, Raw};
use hikite_core::source::{CallContext, Method};
use hikite_wire::stateless::{MISSING_CAPABILITY, TASKS};

use crate::annotation::TaskSupport;
use crate::call::after_it_ran;
use crate::connection::Connection;
use crate::era::upstream_code;
use crate::upstream::Inner;

/// Returns `true` if the client accepts a task as a result. Removes the `task` member of 2025-11-25 from the params.
pub(crate) fn takes(params: &mut Object, context: &CallContext) -> bool {
    params.remove("task").is_some() || context.session.abilities.knows(TASKS)
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
pub(crate) fn is_over(task: &Raw) -> bool {
    let status = task.object().and_then(|task| task.text("status"));
    matches!(status.as_deref(), Some("completed" | "failed" | "cancelled"))
}

/// Returns the task id, or an error if the server has no tasks.
pub(crate) fn require(connection: &Connection, params: &Object) -> Result<String, Error> {
    let id = params.text("taskId").unwrap_or_default();
    if connection.runs_tasks() && !id.is_empty() {
        return Ok(id);
    }
    Err(Error::new(Kind::Validation, format!("`{}` has no task `{id}`", connection.name)))
}

impl Inner {
    /// Calls a tool of a server with sessions: as a task if the tool requires it, or if both sides support it.
    pub(crate) async fn call_with_task(
        self: &Arc<Self>,
        connection: &Arc<Connection>,
        mut params: Object,
        context: CallContext,
    ) -> Result<Raw, Error> {
        let wish = params.get("task").filter(|wish| wish.is_object()).cloned();
        let takes = takes(&mut params, &context);
        let support = self.annotations.load().task_support(&params).filter(|_| connection.runs_tasks());
        let as_task = match support {
            Some(TaskSupport::Required) => true,
            Some(TaskSupport::Optional) => takes,
            None => false,
        };
        let name = Method::CallTool.name();
        if !as_task {
            return connection.request(name, Some(params), Some(context)).await;
        }
        params.set("task", wish.unwrap_or_else(Raw::empty_object));
        let answer = connection.request(name, Some(params), Some(context.clone())).await?;
        // A server may still return the result at once.
        let Some(task) = form::created(&answer) else { return Ok(answer) };
        if takes {
            connection.open_desk(&task.text("taskId").unwrap_or_default());
            return Ok(self.places.put(task, connection).raw());
        }
        wait::for_result(connection, &task, context).await.map_err(after_it_ran)
    }

    /// Handles a task request for a server with sessions.
    pub(crate) async fn task_with_sessions(
        &self,
        connection: &Arc<Connection>,
        method: Method,
        params: Object,
        context: CallContext,
    ) -> Result<Raw, Error> {
        let id = require(connection, &params)?;
        match method {
            Method::UpdateTask => {
                let answers = params.get("inputResponses").and_then(Raw::object).unwrap_or_default();
                connection.answer_task(&id, &answers);
                Ok(Raw::empty_object())
            }
            Method::CancelTask => {
                connection.desks.close(&id);
                let answer = cancel(connection, &id, context).await?;
                connection.task_is_over(&id);
                Ok(answer)
            }
            _ => get(connection, &id, context).await,
        }
    }
}

/// Cancels a task. Cancelling an ended task is an error in 2025-11-25, but not in the stateless revision.
async fn cancel(connection: &Connection, id: &str, context: CallContext) -> Result<Raw, Error> {
    let ask =
        async |method: &str| connection.request(method, Some(form::named(id)), Some(context.clone())).await;
    let Err(error) = ask("tasks/cancel").await else { return Ok(Raw::empty_object()) };
    if context.takes_rounds && error.kind == Kind::Validation {
        let task = ask("tasks/get").await?.object().unwrap_or_default();
        if is_over(&task.raw()) {
            return Ok(Raw::empty_object());
        }
    }
    Err(error)
}

/// Returns the current task, including its result or its questions.
async fn get(connection: &Arc<Connection>, id: &str, context: CallContext) -> Result<Raw, Error> {
    let answer = connection.request("tasks/get", Some(form::named(id)), Some(context.clone())).await?;
    let mut task = form::flat(&answer.object().unwrap_or_default());
    match task.text("status").as_deref() {
        Some("completed" | "failed") => {
            let outcome = match connection.desks.outcome(id) {
                Some(outcome) => outcome,
                None => connection.request("tasks/result", Some(form::named(id)), Some(context)).await,
            };
            form::finish(&mut task, outcome)?;
            connection.task_is_over(id);
        }
        Some("cancelled") => connection.task_is_over(id),
        status => {
            let waits = status == Some("input_required");
            let questions = connection.questions_of(id, waits, &context).await;
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
