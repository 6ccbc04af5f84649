//! The path of one call: picks a connection, sends the request in its protocol revision, and retries on another
//! connection if the first one refused it before running anything.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use hikite_core::call_policy::ToolHints;
use hikite_core::caller::ClientCapabilities;
use hikite_core::error::Error;
use hikite_core::json::{Object, Raw};
use hikite_core::source::{CallContext, Invocation, SourceMethod};
use hikite_wire::stateless::MISSING_CAPABILITY;

use crate::connection::{Connection, ConnectionPurpose};
use crate::definition::ConnectionSharing;
use crate::error::{FailureReason, UpstreamError};
use crate::retire::RetireReason;
use crate::revision;
use crate::rounds;
use crate::tasks::task_address::TaskAddress;
use crate::upstream::UpstreamInner;

/// Interval between progress notifications to a client that waits for a server start.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(2);

impl UpstreamInner {
    pub(crate) async fn call(
        self: &Arc<Self>,
        mut invocation: Invocation,
        context: CallContext,
    ) -> Result<Raw, UpstreamError> {
        if invocation.method == SourceMethod::SetLevel {
            Box::pin(self.set_level(&invocation.params, &context.session)).await;
            return Ok(Raw::empty_object());
        }
        let _counted = CountGuard::new(&self.calls);
        if is_task_request(invocation.method)
            && let Some(answer) = Box::pin(self.send_to_task_connection(&mut invocation, &context)).await
        {
            return answer;
        }
        let connection = self.ready(&invocation, &context).await?;
        let error = match self.send(&connection, invocation.clone(), context.clone()).await {
            Ok(answer) => return Ok(answer),
            Err(error) => error,
        };
        if connection.is_stateless() || matches!(error.reason, FailureReason::RevisionChanged) {
            self.invalidate(&connection, &error);
        }
        // Refused before anything ran, so another connection may take it.
        if error.ran_nothing() {
            // Retired rather than closed: other calls on it may still succeed.
            connection.retire(RetireReason::Invalidated);
        } else if !self.needs_own_connection(&connection, &context, &error.error) || !self.may_run_twice(&invocation) {
            return Err(error);
        }
        let connection = self.ready(&invocation, &context).await?;
        Box::pin(self.send(&connection, invocation, context)).await
    }

    /// Sends a task request over the connection that created the task, under the server's own task id. Returns `None`
    /// if that connection is gone and any other can serve the request.
    async fn send_to_task_connection(
        self: &Arc<Self>,
        invocation: &mut Invocation,
        context: &CallContext,
    ) -> Option<Result<Raw, UpstreamError>> {
        let id = invocation.params.text("taskId").unwrap_or_default();
        let Some(task_address) = TaskAddress::read(&id) else {
            return Some(Err(Error::unknown_task().into()));
        };
        invocation.params.set("taskId", task_address.server_id.as_str());
        let lost = (!task_address.on_any_connection).then(|| Err(Error::unknown_task().into()));
        let Some(connection) = self.task_connections.of(&task_address) else { return lost };
        match self.send(&connection, invocation.clone(), context.clone()).await {
            Err(error) if error.ran_nothing() => lost,
            answer => Some(answer),
        }
    }

    /// Returns the live connection for this call.
    async fn ready(
        self: &Arc<Self>,
        invocation: &Invocation,
        context: &CallContext,
    ) -> Result<Arc<Connection>, UpstreamError> {
        let mut connection = self.ready_for(invocation.method, context).await?;
        if self.retire_if_capabilities_exceeded(&connection, &context.session) {
            connection = self.ready_for(invocation.method, context).await?;
        }
        // In revisions with sessions, a task is known only to the connection that created it.
        if is_task_request(invocation.method) && !connection.is_stateless() {
            return Err(Error::unknown_task().into());
        }
        Ok(connection)
    }

    async fn ready_for(
        self: &Arc<Self>,
        method: SourceMethod,
        context: &CallContext,
    ) -> Result<Arc<Connection>, UpstreamError> {
        let mut slot = self.slot_for(method, context);
        if slot.live().is_none() {
            let started = Box::pin(self.report_start(context, self.connection(&slot, Some(context)))).await;
            // Another call of the session may have learned first that it shares its connection.
            if started.is_err() && !slot.is_superseded() {
                return started;
            }
            // The start may have shown that the server needs to ask its clients, or that it is stateless and all
            // sessions share one connection.
            let first = std::mem::replace(&mut slot, self.slot_for(method, context));
            if matches!((&first.purpose, &slot.purpose), (ConnectionPurpose::Owned(_), ConnectionPurpose::Shared)) {
                self.drop_owned(context.session.id);
            }
        }
        self.connection(&slot, Some(context)).await
    }

    /// Waits for `start` and reports its state to the client as progress. Progress extends the call's deadline, so it
    /// is sent repeatedly only while the start is queued behind others; once the server is starting, the start timeout
    /// applies.
    async fn report_start<T>(&self, context: &CallContext, start: impl Future<Output = T>) -> T {
        let mut start = pin!(start);
        let (mut reports, mut starts) = (0_u32, false);
        loop {
            if let Ok(started) = tokio::time::timeout(PROGRESS_INTERVAL, &mut start).await {
                return started;
            }
            let queued = self.queued.load(Ordering::Relaxed) > 0;
            if !queued && std::mem::replace(&mut starts, true) {
                continue;
            }
            reports += 1;
            let how = if queued { "is waiting to start" } else { "is starting" };
            let message = format!("`{}` {how}.", self.definition.name);
            // Small steps, so that progress from the server itself is always greater.
            let step = Raw::of(&(f64::from(reports) / 1000.0));
            context.back.progress(Object::default().with("progress", step).with("message", message.as_str()));
        }
    }

    async fn send(
        self: &Arc<Self>,
        connection: &Arc<Connection>,
        invocation: Invocation,
        context: CallContext,
    ) -> Result<Raw, UpstreamError> {
        let _hold = connection.hold();
        // Boxed to keep it out of the future of a call to a server with sessions.
        if connection.is_stateless() {
            let could_ask = self.wants_session(&context);
            let answer = Box::pin(self.send_stateless(connection, invocation, context)).await;
            if could_ask && lacks_session(&answer) {
                self.record_server_asks();
            }
            return answer;
        }
        let Invocation { method, mut params } = invocation;
        if context.accepts_input_required && method != SourceMethod::UpdateTask {
            rounds::strip(&mut params);
        }
        let unasked =
            matches!(connection.purpose, ConnectionPurpose::Shared) && context.session.client_capabilities.any();
        let answer = match method {
            SourceMethod::Subscribe => Box::pin(connection.subscribe(params, context)).await,
            SourceMethod::Unsubscribe => Box::pin(connection.unsubscribe(params, context)).await,
            SourceMethod::CallTool if connection.runs_tasks() || params.get("task").is_some() => {
                Box::pin(self.call_with_task(connection, params, context)).await
            }
            _ if is_task_request(method) => {
                Box::pin(self.task_with_sessions(connection, method, params, context)).await
            }
            _ => connection.request(method.name(), Some(params), Some(context)).await,
        };
        if unasked && answer.as_ref().is_ok_and(lacks_capability) {
            self.record_server_asks();
        }
        answer
    }

    /// Returns `true` if a call was refused because its server may not ask questions on the shared connection and the
    /// client could answer them. The client then gets a connection of its own.
    fn needs_own_connection(&self, connection: &Connection, context: &CallContext, error: &Error) -> bool {
        let unasked =
            matches!(connection.purpose, ConnectionPurpose::Shared) && context.session.client_capabilities.any();
        if unasked && requires_capability(error) && !connection.is_stateless() {
            self.record_server_asks();
            return self.definition.share == ConnectionSharing::Auto;
        }
        false
    }

    /// Returns `true` if a request that may have begun to run may be sent again. A tool that fails halfway for a
    /// missing capability returns the same error as one that never began.
    fn may_run_twice(&self, invocation: &Invocation) -> bool {
        if invocation.method != SourceMethod::CallTool {
            return true;
        }
        let (name, listing) = (invocation.params.text("name"), self.listing.load());
        let tools = listing.as_ref().map_or(&[][..], |listing| &listing.tools);
        let tool = tools.iter().find(|tool| Some(&*tool.name) == name.as_deref());
        tool.is_some_and(|tool| ToolHints::read(&tool.raw).is_safe_to_repeat())
    }

    /// Invalidates the connection if the error shows that the server changed its protocol revision, and returns `true`
    /// if it does. The next connection performs a new handshake.
    pub(crate) fn invalidate(&self, connection: &Arc<Connection>, error: &UpstreamError) -> bool {
        if !revision::is_revision_change(error) {
            return false;
        }
        // The first of several failing calls is enough: the next connection may already be open.
        if connection.retire(RetireReason::Invalidated) {
            tracing::info!(
                module = &*self.definition.name,
                "it may use another protocol revision now: {}",
                error.log_text()
            );
            self.forget_revision();
            self.stale.notify_one();
        }
        true
    }

    /// Forgets the cached revision, so that the next handshake probes for it.
    pub(crate) fn forget_revision(&self) {
        if !self.revision.forget() {
            return;
        }
        if let Some(listing) = self.listing.load_full() {
            self.store_listing((*listing).clone());
        }
    }
}

/// Guard that counts a running operation until it is dropped.
pub(crate) struct CountGuard<'a>(&'a AtomicUsize);

impl<'a> CountGuard<'a> {
    pub(crate) fn new(calls: &'a AtomicUsize) -> Self {
        calls.fetch_add(1, Ordering::Relaxed);
        Self(calls)
    }
}

impl Drop for CountGuard<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
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
