//! Durability of audit records: an answer waits for the commit of its record (`strict`) or may precede it by a bounded
//! number of records (`group`). Also tracks whether the store accepts records, which decides between waiting and
//! refusing.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hikite_core::error::{Error, ErrorKind};
use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot};

use super::queue::{AuditQueue, Auditor, QueueFullPolicy, WriterJob};

/// Limit in `group` mode on answered calls whose records are not committed, while the store accepts records.
pub const UNWRITTEN: usize = 256;
/// Number of queued records at which the writer starts a transaction at once.
pub(super) const WRITE_NOW_AT: usize = UNWRITTEN / 2;
/// Retry delay reported to callers while the store refuses records.
const RETRY_AFTER: Duration = Duration::from_secs(5);
/// Longest wait of an answer for its commit in `strict` mode.
const COMMIT_WAIT_MAX: Duration = Duration::from_secs(10);

/// The relation between an answer and the commit of its record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// Answers go out at once; records are committed in groups, a bounded number behind.
    #[default]
    Group,
    /// An answer waits until its record is committed; callers share commits.
    Strict,
}

impl Durability {
    /// Returns the config value.
    pub fn name(self) -> &'static str {
        match self {
            Self::Group => "group",
            Self::Strict => "strict",
        }
    }
}

/// State of the audit, for `/readyz`, the API and the UI.
#[derive(Clone, Debug)]
pub struct AuditState {
    pub durability: Durability,
    pub when_full: QueueFullPolicy,
    /// Number of records not committed yet.
    pub waiting: usize,
    /// Reason why the store accepts no records now.
    pub trouble: Option<Arc<str>>,
    /// `true` if nothing more can be recorded, so that every call is refused.
    pub is_full: bool,
}

/// Tracks whether the store accepts records and notifies waiters when that changes or records were written.
#[derive(Debug, Default)]
pub(super) struct StoreHealth {
    is_down: AtomicBool,
    why: Mutex<Option<Arc<str>>>,
    changed: Notify,
}

impl StoreHealth {
    pub(super) fn is_down(&self) -> bool {
        self.is_down.load(Ordering::Acquire)
    }

    /// Notifies waiters that records were written or given up.
    pub(super) fn progressed(&self) {
        self.changed.notify_waiters();
    }

    pub(super) fn set(&self, trouble: Option<String>) {
        let is_down = trouble.is_some();
        *self.why.lock() = trouble.map(Into::into);
        self.is_down.store(is_down, Ordering::Release);
        self.changed.notify_waiters();
    }

    fn trouble(&self) -> Option<Arc<str>> {
        self.why.lock().clone()
    }

    /// Waits until the condition holds; it is evaluated again after every change.
    pub(super) async fn until(&self, mut holds: impl FnMut() -> bool) {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if holds() {
                return;
            }
            changed.await;
        }
    }
}

impl Auditor {
    /// Waits until the answer whose record was just queued may go out. Fails if a commit is required and not confirmed.
    pub(super) async fn settle(&self, wait_max: Duration) -> Result<(), Error> {
        let Some(queue) = self.queue() else { return Ok(()) };
        match queue.rules.durability {
            Durability::Group if queue.may_answer() => Ok(()),
            Durability::Group => {
                Box::pin(queue.health.until(|| queue.may_answer())).await;
                Ok(())
            }
            Durability::Strict => Box::pin(queue.committed(wait_max)).await,
        }
    }

    pub(crate) fn state(&self) -> Option<AuditState> {
        let queue = self.queue()?;
        Some(AuditState {
            durability: queue.rules.durability,
            when_full: queue.rules.when_full,
            waiting: queue.waiting.load(Ordering::Relaxed),
            trouble: queue.health.trouble(),
            is_full: queue.refuses(),
        })
    }
}

impl AuditQueue {
    /// Returns `true` if answers need not wait. A store that accepts nothing must not delay answers; its records have
    /// queue slots of their own.
    fn may_answer(&self) -> bool {
        self.waiting.load(Ordering::Acquire) <= UNWRITTEN || self.health.is_down()
    }

    /// Returns `true` if a call would be refused now because nothing can be recorded.
    pub(super) fn refuses(&self) -> bool {
        self.rules.when_full == QueueFullPolicy::Block
            && self.health.is_down()
            && (self.rules.durability == Durability::Strict || self.has_no_free_slot())
    }

    /// Waits until everything queued so far is committed.
    async fn committed(&self, wait_max: Duration) -> Result<(), Error> {
        let (tell, told) = oneshot::channel();
        let sent = self.send(WriterJob::Flush(tell));
        match tokio::time::timeout(wait_max.min(COMMIT_WAIT_MAX), told).await {
            Ok(Ok(true)) if sent => Ok(()),
            // A policy that lets calls run without a record also lets their answers out without one.
            _ if self.rules.when_full == QueueFullPolicy::DropAndCount => Ok(()),
            _ => Err(Error::new(
                ErrorKind::ToolExecution,
                "The call was executed, but its audit record could not be written.",
            )
            .hint(
                "Check its effect before you repeat it. The result is withheld because `audit.durability` is \
                 `strict`.",
            )),
        }
    }
}

/// Builds the error of a call that is refused because it cannot be recorded.
pub(super) fn refusal() -> Error {
    Error::new(ErrorKind::Overloaded, "The call was not executed because its audit record cannot be written.")
        .hint("Try again later. The audit store is full, too slow or unreachable; the log of hikite has the reason.")
        .after(RETRY_AFTER)
}
