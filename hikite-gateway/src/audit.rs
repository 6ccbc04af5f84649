//! One record per invocation, whatever becomes of it: the guard hands its parts to the writer when it is closed or
//! dropped. On the path of a call nothing is formatted, hashed or written. Argument values are never in a record.

mod admin;
mod deed;
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

use hikite_core::error::{Error, Kind};
use hikite_core::json::{Object, Raw};
use hikite_core::key::ToolKey;
use hikite_core::source::{CallContext, Method};

use crate::command::Command;
use crate::gateway::Gateway;
use crate::meter::{ModuleMeter, TOOL_ERROR};
use crate::surface::Misread;
use entry::{Asked, Entry, Who};
use guard::Guard;

pub use admin::record_admin;
pub use deed::Deed;
pub use durability::{AuditState, Durability, UNWRITTEN};
pub(crate) use entry::milliseconds;
pub use queue::{AuditRules, Unwritten, WhenFull};
pub(crate) use queue::{Auditor, Counts};
pub use spill::UNWRITTEN_FILE;

pub(crate) const OK: &str = "ok";
/// The caller went away, or withdrew what it asked.
pub(crate) const CANCELLED: &str = "cancelled";

/// The kind of a record that stands beside those of its tasks.
const BATCH: &str = "batch";

/// The guard of one invocation.
#[derive(Debug)]
pub(crate) struct Audit<'a> {
    guard: Guard<'a>,
    /// Of the module whose source is asked.
    meter: Option<(Arc<ModuleMeter>, Method)>,
    /// Why it failed, in words that are for the log alone.
    cause: Option<Box<str>>,
    pub(crate) course: Course,
}

/// How a call went, besides its outcome.
#[derive(Debug, Default)]
pub(crate) struct Course {
    /// How often the source was asked.
    pub(crate) attempts: u32,
    /// The result is one that was given before, or another call's.
    pub(crate) cached: bool,
    /// The result says of its own accord that it is none.
    pub(crate) tool_error: bool,
}

impl Gateway {
    /// Opens the record of a command before anything is decided. Where every record must be kept this waits for its
    /// place, and without one nothing is done.
    pub(crate) async fn audit<'a>(
        &'a self,
        surface: &'static str,
        command: &Command,
        context: &CallContext,
    ) -> Result<Audit<'a>, Error> {
        let guard = match Asked::of(command) {
            Some(asked) => self.guard(asked, surface, context).await?,
            None => Guard::aside(Entry::new(Who::In(Arc::clone(&context.session)), &context.origin)),
        };
        Ok(Audit { guard, meter: None, cause: None, course: Course::default() })
    }

    /// The record of a `tools/call` that is not even a command.
    pub(crate) async fn audit_misread(&self, misread: &Misread, context: &CallContext) -> Result<(), Error> {
        let asked = Asked::misread(&misread.params);
        let mut guard = self.guard(asked, misread.failure.surface(), context).await?;
        guard.outcome(word(&misread.error));
        drop(guard);
        self.release(Ok(())).await
    }

    /// Holds back the outcome of what was just recorded as long as `audit.durability` says. A failure stays what it is.
    pub(crate) async fn release<T>(&self, outcome: Result<T, Error>) -> Result<T, Error> {
        let settled = self.auditor.settle(self.limits.call_timeout).await;
        outcome.and_then(|outcome| settled.map(|()| outcome))
    }

    async fn guard(
        &self,
        asked: Asked,
        surface: &'static str,
        context: &CallContext,
    ) -> Result<Guard<'_>, Error> {
        let mut place = self.auditor.place(self.limits.call_timeout).await?;
        if asked.kind == BATCH {
            place = place.lent();
        }
        let entry = Entry::new(Who::In(Arc::clone(&context.session)), &context.origin);
        Ok(Guard::new(&self.auditor, place, Entry { surface, asked, ..entry }))
    }
}

impl Audit<'_> {
    /// The tool that is meant, whether or not it may be called like this.
    pub(crate) fn found(&mut self, key: &ToolKey) {
        self.guard.with(|entry| {
            entry.module = Some(Arc::clone(&key.module));
            entry.tool = Some(Arc::clone(&key.tool));
        });
    }

    /// Whose credentials it goes with.
    pub(crate) fn with_account(&mut self, account: String) {
        self.guard.with(|entry| entry.account = account);
    }

    /// The tool that was found, if one was.
    pub(crate) fn tool(&self) -> Option<ToolKey> {
        self.guard.tool()
    }

    /// A result that was asked for in another form: its size as the tool gave it, and as it goes out.
    pub(crate) fn presented(&self, before: usize, after: usize) {
        if let Some((meter, _)) = &self.meter {
            meter.presented(before, after);
        }
    }

    /// It is allowed, and runs.
    pub(crate) fn runs(&mut self, meter: &Arc<ModuleMeter>, module: &Arc<str>, method: Method, what: String) {
        meter.call_begins();
        self.meter = Some((Arc::clone(meter), method));
        self.guard.with(|entry| {
            entry.allowed = true;
            entry.module = Some(Arc::clone(module));
            entry.what = what;
        });
    }

    /// The same for what is no request to one source. Without a word for it, it is called what it was asked as.
    pub(crate) fn allowed(&mut self, what: String) {
        self.guard.with(|entry| {
            entry.allowed = true;
            entry.what = what;
        });
    }

    /// Where it came from.
    pub(crate) fn surface(&self) -> &'static str {
        self.guard.surface()
    }

    /// Whether it leaves a record at all.
    pub(crate) fn is_recorded(&self) -> bool {
        self.guard.is_recorded()
    }

    pub(crate) fn close(mut self, outcome: &Result<Raw, Error>) {
        match outcome {
            Ok(result) => {
                self.guard.outcome(if self.course.tool_error { TOOL_ERROR } else { OK });
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
        let Course { attempts, cached, .. } = self.course;
        self.guard.end();
        self.guard.with(|entry| {
            (entry.attempts, entry.cached) = (attempts, cached);
            if let Some((meter, method)) = meter {
                meter.call_ends(method, entry.outcome, entry.elapsed);
                log(entry, cause.as_deref());
            }
        });
    }
}

fn log(entry: &Entry, cause: Option<&str>) {
    tracing::info!(
        target: "hikite::call",
        request_id = entry.origin.request_id.as_deref(),
        trace_id = entry.origin.trace_id(),
        caller = &*entry.who.caller().subject,
        session = entry.who.session(),
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

/// The outcome of what failed.
fn word(error: &Error) -> &'static str {
    if error.kind == Kind::Cancelled { CANCELLED } else { error.code() }
}

/// What all members of an object hold; a part of a request keeps the whole of it in memory.
fn bytes_of(params: &Object) -> usize {
    params.iter().map(|(_, value)| value.bytes().len()).sum()
}
