//! The path of one call: picks a connection, sends the request in its protocol revision, and retries on another
//! connection if the first one refused it before running anything.

use std::sync::Arc;

use hikite_core::call_policy::ToolHints;
use hikite_core::caller::ClientCapabilities;
use hikite_core::error::Error;
use hikite_core::json::{Object, Raw};
use hikite_core::source::{CallContext, Invocation, SourceMethod};
use hikite_wire::stateless::MISSING_CAPABILITY;

use crate::connection::retire::RetireReason;
use crate::connection::{Connection, ConnectionPurpose, subscription};
use crate::count_guard::CountGuard;
use crate::definition::ConnectionSharing;
use crate::error::{FailureReason, UpstreamError};
use crate::tasks::task_address::TaskAddress;
use crate::upstream::UpstreamInner;
use crate::{capability, lists, ready, revision, rounds, set_level, stateless, tasks};

pub(crate) async fn call(
    upstream: &Arc<UpstreamInner>,
    mut invocation: Invocation,
    context: CallContext,
) -> Result<Raw, UpstreamError> {
    if invocation.method == SourceMethod::SetLevel {
        Box::pin(set_level::set_level(upstream, &invocation.params, &context.session)).await;
        return Ok(Raw::empty_object());
    }
    let _counted = CountGuard::new(&upstream.calls);
    if is_task_request(invocation.method)
        && let Some(answer) = Box::pin(send_to_task_connection(upstream, &mut invocation, &context)).await
    {
        return answer;
    }
    let connection = ready(upstream, &invocation, &context).await?;
    let error = match send(upstream, &connection, invocation.clone(), context.clone()).await {
        Ok(answer) => return Ok(answer),
        Err(error) => error,
    };
    if connection.is_stateless() || matches!(error.reason, FailureReason::RevisionChanged) {
        lists::invalidate(upstream, &connection, &error);
    }
    // Refused before anything ran, so another connection may take it.
    if error.ran_nothing() {
        // Retired rather than closed: other calls on it may still succeed.
        connection.retire(RetireReason::Invalidated);
    } else if !needs_own_connection(upstream, &connection, &context, &error.error)
        || !may_run_twice(upstream, &invocation)
    {
        return Err(error);
    }
    let connection = ready(upstream, &invocation, &context).await?;
    Box::pin(send(upstream, &connection, invocation, context)).await
}

/// Sends a task request over the connection that created the task, under the server's own task id. Returns `None`
/// if that connection is gone and any other can serve the request.
async fn send_to_task_connection(
    upstream: &Arc<UpstreamInner>,
    invocation: &mut Invocation,
    context: &CallContext,
) -> Option<Result<Raw, UpstreamError>> {
    let id = invocation.params.text("taskId").unwrap_or_default();
    let Some(task_address) = TaskAddress::read(&id) else {
        return Some(Err(Error::unknown_task().into()));
    };
    invocation.params.set("taskId", task_address.server_id.as_str());
    let lost = (!task_address.on_any_connection).then(|| Err(Error::unknown_task().into()));
    let Some(connection) = upstream.task_connections.of(&task_address) else { return lost };
    match send(upstream, &connection, invocation.clone(), context.clone()).await {
        Err(error) if error.ran_nothing() => lost,
        answer => Some(answer),
    }
}

/// Returns the live connection for this call.
async fn ready(
    upstream: &Arc<UpstreamInner>,
    invocation: &Invocation,
    context: &CallContext,
) -> Result<Arc<Connection>, UpstreamError> {
    let mut connection = ready::ready_for(upstream, invocation.method, context).await?;
    if capability::retire_if_exceeded(upstream, &connection, &context.session) {
        connection = ready::ready_for(upstream, invocation.method, context).await?;
    }
    // In revisions with sessions, a task is known only to the connection that created it.
    if is_task_request(invocation.method) && !connection.is_stateless() {
        return Err(Error::unknown_task().into());
    }
    Ok(connection)
}

async fn send(
    upstream: &Arc<UpstreamInner>,
    connection: &Arc<Connection>,
    invocation: Invocation,
    context: CallContext,
) -> Result<Raw, UpstreamError> {
    let _hold = connection.retirement.hold();
    // Boxed to keep it out of the future of a call to a server with sessions.
    if connection.is_stateless() {
        let could_ask = upstream.wants_session(&context);
        let answer = Box::pin(stateless::send(upstream, connection, invocation, context)).await;
        if could_ask && lacks_session(&answer) {
            lists::record_server_asks(upstream);
        }
        return answer;
    }
    let Invocation { method, mut params } = invocation;
    if context.accepts_input_required && method != SourceMethod::UpdateTask {
        rounds::strip(&mut params);
    }
    let unasked = matches!(connection.purpose, ConnectionPurpose::Shared) && context.session.client_capabilities.any();
    let answer = match method {
        SourceMethod::Subscribe => Box::pin(subscription::subscribe(connection, params, context)).await,
        SourceMethod::Unsubscribe => Box::pin(subscription::unsubscribe(connection, params, context)).await,
        SourceMethod::CallTool if connection.runs_tasks() || params.get("task").is_some() => {
            Box::pin(tasks::call_with_task(upstream, connection, params, context)).await
        }
        _ if is_task_request(method) => Box::pin(tasks::task_with_sessions(connection, method, params, context)).await,
        _ => connection.request(method.name(), Some(params), Some(context)).await,
    };
    if unasked && answer.as_ref().is_ok_and(lacks_capability) {
        lists::record_server_asks(upstream);
    }
    answer
}

/// Returns `true` if a call was refused because its server may not ask questions on the shared connection and the
/// client could answer them. The client then gets a connection of its own.
fn needs_own_connection(
    upstream: &UpstreamInner,
    connection: &Connection,
    context: &CallContext,
    error: &Error,
) -> bool {
    let unasked = matches!(connection.purpose, ConnectionPurpose::Shared) && context.session.client_capabilities.any();
    if unasked && requires_capability(error) && !connection.is_stateless() {
        lists::record_server_asks(upstream);
        return upstream.definition.share == ConnectionSharing::Auto;
    }
    false
}

/// Returns `true` if a request that may have begun to run may be sent again. A tool that fails halfway for a
/// missing capability returns the same error as one that never began.
fn may_run_twice(upstream: &UpstreamInner, invocation: &Invocation) -> bool {
    if invocation.method != SourceMethod::CallTool {
        return true;
    }
    let (name, listing) = (invocation.params.text("name"), upstream.lists.listing.load());
    let tools = listing.as_ref().map_or(&[][..], |listing| &listing.tools);
    let tool = tools.iter().find(|tool| Some(&*tool.name) == name.as_deref());
    tool.is_some_and(|tool| ToolHints::read(&tool.raw).is_safe_to_repeat())
}

/// Returns `true` for requests that go to the connection where the task runs.
fn is_task_request(method: SourceMethod) -> bool {
    matches!(method, SourceMethod::GetTask | SourceMethod::UpdateTask | SourceMethod::CancelTask)
}

/// Returns `true` if the error lists client capabilities that the server needs to ask its question.
fn requires_capability(error: &Error) -> bool {
    let required = || {
        let data = error.relayed.as_ref()?.object()?.get("data")?.object()?;
        data.get("requiredCapabilities")?.object()
    };
    revision::upstream_code(error) == Some(MISSING_CAPABILITY)
        && required().is_some_and(|required| ClientCapabilities::read(&required).any())
}

/// Returns `true` if a tool failed for a missing client capability, judged by the error texts of the public SDKs.
fn lacks_capability(result: &Raw) -> bool {
    let Some(object) = result.object() else { return false };
    if object.get("isError").is_none_or(|flag| flag.as_str() != "true") {
        return false;
    }
    let text = result.as_str().to_lowercase();
    text.contains("does not support") && ["sampling", "elicitation", "roots"].iter().any(|word| text.contains(word))
}

/// Returns `true` if a tool failed because the server cannot ask without a session, judged by the error texts of the
/// public SDKs.
fn lacks_session(answer: &Result<Raw, UpstreamError>) -> bool {
    let speaks_of_it = |text: &str| {
        text.contains("no back-channel for server-initiated requests")
            || text.contains("Server-to-client requests are not available")
    };
    match answer {
        Ok(result) => {
            let failed = |object: Object| object.get("isError").is_some_and(|flag| flag.as_str() == "true");
            result.object().is_some_and(failed) && speaks_of_it(&result.as_str())
        }
        Err(error) => speaks_of_it(&error.error.message),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_refusal_that_names_a_question_gets_another_connection() {
        let misses = |data: &str| {
            let text = format!(r#"{{"code":-32021,"message":"no","data":{data}}}"#);
            requires_capability(&Error::from_upstream(Raw::parse(text).expect("valid")))
        };
        assert!(misses(r#"{"requiredCapabilities":{"sampling":{}}}"#));
        assert!(misses(r#"{"requiredCapabilities":{"roots":{},"extensions":{}}}"#));
        for other in ["null", "{}", r#"{"requiredCapabilities":{"extensions":{}}}"#] {
            assert!(!misses(other), "{other}");
        }
        assert!(!misses(r#"{"requiredCapabilities":["sampling"]}"#));
    }
}
