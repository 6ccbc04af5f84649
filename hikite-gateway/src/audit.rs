//! Audit records, one per invocation whatever its outcome: the guard hands the parts to the writer when it is closed or
//! dropped. Nothing is formatted, hashed or written on the path of a call. Argument values never enter a record.

mod admin;
mod auth_event;
mod durability;
mod entry;
mod guard;
mod queue;
mod read;
mod search;
mod spill;
#[cfg(test)]
mod tests;
mod writer;

use std::sync::Arc;

use hikite_core::caller::Scopes;
use hikite_core::error::{Error, ErrorKind};
use hikite_core::json::{Object, Raw};
use hikite_core::key::ToolKey;
use hikite_core::source::{CallContext, SourceMethod};

use crate::command::{Command, ToolTarget};
use crate::meter::{ModuleMeter, TOOL_ERROR};
use crate::surface::TranslationError;
use entry::{AuditActor, AuditEntry, AuditedRequest};
use guard::RecordGuard;

pub use admin::record_admin;
pub use auth_event::AuthEvent;
pub use durability::{AuditState, Durability, UNWRITTEN};
pub(crate) use entry::milliseconds;
pub(crate) use queue::AuditCounts;
pub use queue::{AuditRules, AuditSettings, Auditor, QueueFullPolicy, UnwrittenRecords};
pub use spill::UNWRITTEN_FILE;

pub(crate) const OK: &str = "ok";
/// Outcome of a request whose caller disconnected or cancelled it.
pub(crate) const CANCELLED: &str = "cancelled";

/// Kind of the record that covers a whole batch; each of its tasks has a record as well.
const BATCH: &str = "batch";

/// The audit guard of one invocation.
#[derive(Debug)]
pub(crate) struct Audit<'a> {
    guard: RecordGuard<'a>,
    /// Meter of the module whose source runs the request.
    meter: Option<(Arc<ModuleMeter>, SourceMethod)>,
    /// Private cause of the failure, for the log only.
    cause: Option<Box<str>>,
    pub(crate) details: CallDetails,
}

/// Details of a call besides its outcome.
#[derive(Debug, Default)]
pub(crate) struct CallDetails {
    /// Number of requests sent to the source.
    pub(crate) attempts: u32,
    /// `true` if the result came from the cache or from a concurrent identical call.
    pub(crate) cached: bool,
    /// `true` if the result is marked `isError`.
    pub(crate) tool_error: bool,
}

impl Auditor {
    /// Opens the record of a command before any decision is made. Waits for a queue slot where every record must be
    /// kept, and fails without one, so that nothing runs unrecorded.
    pub(crate) async fn open<'a>(
        &'a self,
        surface: &'static str,
        command: &Command,
        context: &CallContext,
    ) -> Result<Audit<'a>, Error> {
        let guard = match AuditedRequest::of(command) {
            Some(request) => self.guard(request, surface, context).await?,
            None => RecordGuard::unrecorded(AuditEntry::new(
                AuditActor::InSession(Arc::clone(&context.session)),
                &context.origin,
            )),
        };
        Ok(Audit { guard, meter: None, cause: None, details: CallDetails::default() })
    }

    /// Opens the record of a call.
    pub(crate) async fn open_call<'a>(
        &'a self,
        surface: &'static str,
        (target, params): (&ToolTarget, &Object),
        context: &CallContext,
    ) -> Result<Audit<'a>, Error> {
        let guard = self.guard(AuditedRequest::of_call(target, params), surface, context).await?;
        Ok(Audit { guard, meter: None, cause: None, details: CallDetails::default() })
    }

    /// Closes the record of a command and returns the outcome that the caller gets.
    pub(crate) async fn close(
        &self,
        audit: Audit<'_>,
        outcome: Result<Raw, Error>,
        scopes: Scopes,
    ) -> Result<Raw, Error> {
        let is_recorded = audit.is_recorded();
        audit.close(&outcome);
        let outcome = if is_recorded { self.release(outcome).await } else { outcome };
        if scopes.contains(Scopes::READ) { outcome } else { outcome.map_err(without_name_hints) }
    }

    /// Records a `tools/call` that could not be parsed into a command.
    pub(crate) async fn record_misread(&self, misread: &TranslationError, context: &CallContext) -> Result<(), Error> {
        let request = AuditedRequest::misread(&misread.params);
        let mut guard = self.guard(request, misread.failure.surface(), context).await?;
        guard.outcome(word(&misread.error));
        drop(guard);
        self.release(Ok(())).await
    }

    /// Delays the outcome of a request just recorded as `audit.durability` demands. A failed outcome stays as it is.
    pub(crate) async fn release<T>(&self, outcome: Result<T, Error>) -> Result<T, Error> {
        let settled = self.settle().await;
        outcome.and_then(|outcome| settled.map(|()| outcome))
    }

    async fn guard(
        &self,
        request: AuditedRequest,
        surface: &'static str,
        context: &CallContext,
    ) -> Result<RecordGuard<'_>, Error> {
        let mut slot = self.slot().await?;
        if request.kind == BATCH {
            slot = slot.release_early();
        }
        let entry = AuditEntry::new(AuditActor::InSession(Arc::clone(&context.session)), &context.origin);
        Ok(RecordGuard::new(self, slot, AuditEntry { surface, request, ..entry }))
    }
}

impl Audit<'_> {
    /// Records the tool that the request resolved to, whether or not the call is allowed.
    pub(crate) fn found(&mut self, key: &ToolKey) {
        self.guard.with(|entry| {
            entry.module = Some(Arc::clone(&key.module));
            entry.tool = Some(Arc::clone(&key.tool));
        });
    }

    /// Records the account whose credentials the call uses.
    pub(crate) fn with_account(&mut self, account: String) {
        self.guard.with(|entry| entry.account = account);
    }

    /// Returns the tool that the request resolved to, if any.
    pub(crate) fn tool(&self) -> Option<ToolKey> {
        self.guard.tool()
    }

    /// Meters a result that was rendered in another form: its size before and after.
    pub(crate) fn presented(&self, before: usize, after: usize) {
        if let Some((meter, _)) = &self.meter {
            meter.presented(before, after);
        }
    }

    /// Records that the request is allowed and is sent to a source.
    pub(crate) fn runs(&mut self, meter: &Arc<ModuleMeter>, module: &Arc<str>, method: SourceMethod, what: String) {
        meter.begin_call();
        self.meter = Some((Arc::clone(meter), method));
        self.guard.with(|entry| {
            entry.allowed = true;
            entry.module = Some(Arc::clone(module));
            entry.what = what;
        });
    }

    /// Records that a request is allowed which goes to no single source. An empty `what` falls back to the requested
    /// name.
    pub(crate) fn allowed(&mut self, what: String) {
        self.guard.with(|entry| {
            entry.allowed = true;
            entry.what = what;
        });
    }

    /// Returns the surface that the request came through.
    pub(crate) fn surface(&self) -> &'static str {
        self.guard.surface()
    }

    /// Returns `true` if this invocation leaves a record.
    pub(crate) fn is_recorded(&self) -> bool {
        self.guard.is_recorded()
    }

    pub(crate) fn close(mut self, outcome: &Result<Raw, Error>) {
        match outcome {
            Ok(result) => {
                self.guard.outcome(if self.details.tool_error { TOOL_ERROR } else { OK });
                self.guard.with(|entry| entry.bytes_out = result.bytes().len());
            }
            Err(error) => {
                self.guard.outcome(word(error));
                self.cause.clone_from(&error.cause);
            }
        }
    }
}

impl Drop for Audit<'_> {
    fn drop(&mut self) {
        let (meter, cause) = (self.meter.take(), self.cause.take());
        let CallDetails { attempts, cached, .. } = self.details;
        self.guard.end();
        self.guard.with(|entry| {
            (entry.attempts, entry.cached) = (attempts, cached);
            if let Some((meter, method)) = meter {
                meter.end_call(method, entry.outcome, entry.elapsed);
                log(entry, cause.as_deref());
            }
        });
    }
}

fn log(entry: &AuditEntry, cause: Option<&str>) {
    tracing::info!(
        target: "hikite::call",
        request_id = entry.origin.request_id.as_deref(),
        trace_id = entry.origin.trace_id(),
        caller = &*entry.actor.caller().subject,
        session = entry.actor.session(),
        module = entry.module.as_deref(),
        call = entry.what,
        outcome = entry.outcome,
        ms = milliseconds(entry.elapsed),
        bytes = entry.bytes_out,
        attempts = entry.attempts,
        cached = entry.cached,
        cause,
    );
}

/// Removes hints that name tools or resources, for callers without the read scope.
fn without_name_hints(error: Error) -> Error {
    let of_a_name = matches!(error.kind, ErrorKind::ToolNotFound | ErrorKind::NotFound | ErrorKind::Validation);
    Error { hint: error.hint.filter(|_| !of_a_name), ..error }
}

/// Returns the audit outcome of an error.
fn word(error: &Error) -> &'static str {
    if error.kind == ErrorKind::Cancelled { CANCELLED } else { error.code() }
}

/// Returns the size of all members of an object. A slice of a request keeps the whole request buffer in memory.
fn bytes_of(params: &Object) -> usize {
    params.iter().map(|(_, value)| value.bytes().len()).sum()
}
