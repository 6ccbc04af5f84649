//! How far an answer may run ahead of its record on the disk: not at all (`strict`), or by a bounded number of records
//! (`group`). Also whether the store takes records at the moment, which decides between waiting and refusing.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hikite_core::error::{Error, Kind};
use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot};

use super::queue::{Auditor, Job, Queue, WhenFull};

/// In `group`: answered calls whose records are not on the disk yet, at most, while the store takes records.
pub const UNWRITTEN: usize = 256;
/// With so many records waiting the writer begins at once.
pub(super) const ENOUGH: usize = UNWRITTEN / 2;
/// When a store that refuses records is worth another try.
const LATER: Duration = Duration::from_secs(5);
/// In `strict`: the longest that an answer waits for its commit.
const PATIENCE: Duration = Duration::from_secs(10);

/// The relation between an answer and the commit of its record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// Answers go out at once; records are committed many at a time, a bounded number behind.
    #[default]
    Group,
    /// An answer waits until its record is committed; callers share commits.
    Strict,
}

impl Durability {
    /// The word in the config.
    pub fn name(self) -> &'static str {
        match self {
            Self::Group => "group",
            Self::Strict => "strict",
        }
    }
}

/// How the audit is doing, for `/readyz`, the API and the pages.
#[derive(Clone, Debug)]
pub struct AuditState {
    pub durability: Durability,
    pub when_full: WhenFull,
    /// Records that are not on the disk yet.
    pub waiting: usize,
    /// Why the store takes no records at the moment.
    pub trouble: Option<Arc<str>>,
    /// Nothing more can be recorded, so that every call is refused.
    pub is_full: bool,
}

/// Whether the store takes records, and a bell that rings when that changes or records were written.
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

    /// Records were written, or given up.
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

    /// Waits until it holds; looked at again whenever something changed.
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
    /// Waits until the answer whose record was just handed over may go out. An error means that the record is not known
    /// to be on the disk where that was demanded.
    pub(super) async fn settle(&self, patience: Duration) -> Result<(), Error> {
        let Some(queue) = self.queue() else { return Ok(()) };
        match queue.rules.durability {
            Durability::Group if queue.may_answer() => Ok(()),
            Durability::Group => {
                Box::pin(queue.health.until(|| queue.may_answer())).await;
                Ok(())
            }
            Durability::Strict => Box::pin(queue.committed(patience)).await,
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

impl Queue {
    /// A store that takes nothing must not hold up answers: what waits for it has places of its own.
    fn may_answer(&self) -> bool {
        self.waiting.load(Ordering::Acquire) <= UNWRITTEN || self.health.is_down()
    }

    /// True if a call would be refused now because nothing can be recorded.
    pub(super) fn refuses(&self) -> bool {
        self.rules.when_full == WhenFull::Block
            && self.health.is_down()
            && (self.rules.durability == Durability::Strict || self.is_out_of_places())
    }

    /// Everything handed over so far is on the disk when this succeeds.
    async fn committed(&self, patience: Duration) -> Result<(), Error> {
        let (tell, told) = oneshot::channel();
        let sent = self.send(Job::Tell(tell));
        match tokio::time::timeout(patience.min(PATIENCE), told).await {
            Ok(Ok(true)) if sent => Ok(()),
            // Where calls may run without a record, their answers go out without one too.
            _ if self.rules.when_full == WhenFull::DropAndCount => Ok(()),
            _ => Err(Error::new(Kind::ToolExecution, "this was done, but its audit record could not be written")
                .hint("do not repeat it before looking at its effect; the answer is withheld because `audit.durability` is `strict`")),
        }
    }
}

/// A call that is refused because nothing can be recorded.
pub(super) fn refusal() -> Error {
    Error::new(Kind::Overloaded, "this cannot be recorded now, and is not done")
        .hint("try again later; the audit's store is full, too slow or away, and the log of hikite says why")
        .after(LATER)
}
