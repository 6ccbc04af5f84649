//! Tasks of 2025-11-25 for clients with a session. Internally a task has the form of the later extension; the older
//! form differs in member names and in blocking until the result is available.

use std::collections::HashSet;
use std::time::Duration;

use hikite_core::error::{Error, ErrorKind};
use hikite_core::json::{Object, Raw};
use hikite_core::source::{CallContext, InputRequest, InputRequestKind, SourceMethod};
use hikite_gateway::{CallResult, Command};
use hikite_wire::stateless::ResultType;

use crate::mcp::session::ClientSession;

const RELATED: &str = "io.modelcontextprotocol/related-task";
const SHORTEST_POLL: Duration = Duration::from_millis(50);
const LONGEST_POLL: Duration = Duration::from_secs(5);
const DEFAULT_POLL: Duration = Duration::from_millis(500);

impl ClientSession {
    /// Handles a call that requests a task. Returns the task, or the result if the server does not support tasks.
    pub(crate) async fn begin_task(&self, params: Object, context: CallContext) -> Result<CallResult, Error> {
        let result = self.app.gateway.call_tool(self.surfaces, params, context).await?;
        match result.raw.object() {
            Some(body) if ResultType::of(&body) == ResultType::Task => {
                Ok(Object::default().with("task", of_session(body)).raw().into())
            }
            _ => Ok(result),
        }
    }

    pub(crate) async fn task(&self, method: &str, params: Object, context: CallContext) -> Result<Raw, Error> {
        let id = params.text("taskId").unwrap_or_default();
        match method {
            "tasks/result" => self.task_result(&id, &context).await,
            "tasks/cancel" => {
                if is_over(&self.task_of(SourceMethod::GetTask, task_params(&id), &context).await?) {
                    return Err(Error::new(ErrorKind::Validation, "The task has ended and cannot be cancelled."));
                }
                self.task_of(SourceMethod::CancelTask, task_params(&id), &context).await?;
                self.task_of(SourceMethod::GetTask, task_params(&id), &context).await.map(|task| of_session(task).raw())
            }
            _ => {
                self.task_of(SourceMethod::GetTask, task_params(&id), &context).await.map(|task| of_session(task).raw())
            }
        }
    }

    /// Waits until the task has ended; input that the server requires meanwhile is requested from the client.
    async fn task_result(&self, id: &str, context: &CallContext) -> Result<Raw, Error> {
        // A server may report a question for a while after it was answered.
        let mut asked = HashSet::new();
        loop {
            let task = self.task_of(SourceMethod::GetTask, task_params(id), context).await?;
            match task.text("status").as_deref() {
                Some("completed") => {
                    let result = task.get("result").and_then(Raw::object).unwrap_or_default();
                    return Ok(related(result, id).raw());
                }
                Some("failed") => {
                    let error = task.get("error").cloned().unwrap_or_else(Raw::empty_object);
                    return Err(Error::from_upstream(error));
                }
                Some("cancelled") => return Err(Error::new(ErrorKind::Validation, "The task was cancelled.")),
                Some("input_required") => self.answer_task(id, &task, &mut asked, context).await?,
                _ => {}
            }
            tokio::time::sleep(poll_interval(&task)).await;
        }
    }

    /// Sends the questions of a task to the client concurrently and forwards the answers.
    async fn answer_task(
        &self,
        id: &str,
        task: &Object,
        asked: &mut HashSet<String>,
        context: &CallContext,
    ) -> Result<(), Error> {
        let requests = task.get("inputRequests").and_then(Raw::object).unwrap_or_default();
        let new = requests.iter().filter(|(key, _)| asked.insert((*key).to_owned()));
        let questions = new.filter_map(|(key, request)| {
            let question = read_question(key, request, id)?;
            let asked = context.back.ask(question);
            Some(async move { (key, asked.await) })
        });
        let answers = futures_util::future::join_all(questions).await.into_iter();
        let answered = answers.map(|(key, answer)| Ok((key.into(), answer.map_err(Error::from_upstream)?)));
        let responses: Object = answered.collect::<Result<Object, Error>>()?;
        if responses.is_empty() {
            return Ok(());
        }
        let params = task_params(id).with("inputResponses", responses);
        self.task_of(SourceMethod::UpdateTask, params, context).await.map(drop)
    }

    async fn task_of(&self, method: SourceMethod, params: Object, context: &CallContext) -> Result<Object, Error> {
        let command = Command::Task { method, params };
        let task = self.app.gateway.dispatch(command, context.clone()).await?;
        Ok(task.object().unwrap_or_default())
    }
}

fn task_params(id: &str) -> Object {
    Object::default().with("taskId", id)
}

fn related(body: Object, id: &str) -> Object {
    let meta = body.get("_meta").and_then(Raw::object).unwrap_or_default();
    body.with("_meta", meta.with(RELATED, task_params(id)))
}

fn read_question(key: &str, request: &Raw, id: &str) -> Option<InputRequest> {
    let request = request.object()?;
    let kind = InputRequestKind::of_method(&request.text("method")?)?;
    let params = request.get("params").and_then(Raw::object).unwrap_or_default();
    Some(InputRequest { kind, params: related(params, id).raw(), key: Some(key.into()) })
}

fn is_over(task: &Object) -> bool {
    matches!(task.text("status").as_deref(), Some("completed" | "failed" | "cancelled"))
}

fn poll_interval(task: &Object) -> Duration {
    let wanted = task.get("pollIntervalMs").and_then(|ms| ms.decode().ok()).map(Duration::from_millis);
    wanted.unwrap_or(DEFAULT_POLL).clamp(SHORTEST_POLL, LONGEST_POLL)
}

/// Converts a task to the form of 2025-11-25.
fn of_session(mut task: Object) -> Object {
    for gone in ["resultType", "result", "error", "inputRequests"] {
        task.remove(gone);
    }
    let renamed = [("ttlMs", "ttl"), ("pollIntervalMs", "pollInterval")];
    for (name, older) in renamed {
        if let Some(value) = task.remove(name) {
            task.set(older, value);
        }
    }
    if task.get("ttl").is_none() {
        task.set("ttl", Raw::null());
    }
    task
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_changes_its_names_and_keeps_the_rest() {
        let task = Raw::parse(
            r#"{"resultType":"complete","taskId":"a","status":"completed","createdAt":"c","ttlMs":5,"pollIntervalMs":7,"result":{}}"#,
        );
        let task = task.expect("valid").object().expect("an object");
        assert_eq!(
            of_session(task).raw().as_str(),
            r#"{"taskId":"a","status":"completed","createdAt":"c","ttl":5,"pollInterval":7}"#
        );
    }
}
