//! Bounded queue of audit records with a stated policy for when it is full. A slot is reserved before a call runs, so
//! that every call which runs has room for its record.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use hikite_core::error::Error;
use hikite_core::limits::Limits;
use hikite_store::{ClockJump, Retention, Store};
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::durability::{Durability, StoreHealth, WRITE_NOW_AT, refusal};
use super::entry::AuditEntry;
use super::spill::SpillFile;
use super::writer::AuditWriter;
use hikite_identity::SubjectNames;

/// Longest wait of a read for records that are still queued.
const FLUSH_WAIT_MAX: Duration = Duration::from_secs(2);
/// Wait at shutdown for cancelled calls to hand over their records.
const CANCELLED_CALL_WAIT_MAX: Duration = Duration::from_secs(2);
const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// Wait at shutdown for a store that accepted nothing when shutdown began.
const STORE_DOWN_WAIT_MAX: Duration = Duration::from_secs(3);

/// Policy for a call whose record finds no free slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QueueFullPolicy {
    /// The call waits and is finally refused: nothing runs unrecorded.
    #[default]
    Block,
    /// The call runs; the number of lost records is counted and recorded.
    DropAndCount,
}

/// Audit settings of the config.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuditRules {
    /// Limit on answers that precede their records.
    pub durability: Durability,
    pub when_full: QueueFullPolicy,
    /// Age at which records are removed.
    pub retention: Duration,
    /// Largest number of records retained.
    pub max_records: Option<u64>,
}

/// How records are written, and where those go that the store has not accepted at shutdown.
#[derive(Clone, Debug)]
pub struct AuditSettings {
    pub rules: AuditRules,
    /// Folder of the file with unwritten records.
    pub folder: Option<PathBuf>,
}

/// Records what callers and administrators do, and reads the records.
#[derive(Debug)]
pub struct Auditor {
    pub(super) store: Store,
    /// Longest wait for a free slot, and for a commit that an answer requires.
    pub(super) wait_max: Duration,
    /// `None` if auditing is disabled.
    queue: Option<Arc<AuditQueue>>,
}

#[derive(Debug)]
pub(super) struct AuditQueue {
    pub(super) rules: AuditRules,
    free_slots: Arc<Semaphore>,
    capacity: usize,
    pub(super) health: StoreHealth,
    jobs: mpsc::UnboundedSender<WriterJob>,
    /// Records between the end of their call and the commit.
    pub(super) waiting: AtomicUsize,
    /// Records lost since the last record that reports a loss.
    pub(super) lost: AtomicU64,
    dropped: AtomicU64,
    pub(super) written: AtomicU64,
    /// Records that the store had not accepted when time ran out.
    pub(super) unwritten: AtomicU64,
    /// File that holds those records instead.
    pub(super) spill_file: Mutex<Option<PathBuf>>,
    pub(super) trimmed: AtomicU64,
    /// Clock jump that suspends trimming by age.
    pub(super) paused: Mutex<Option<ClockJump>>,
    /// Wakes the writer because a caller waits for queued records.
    pub(super) wake_writer: Notify,
    /// Wakes the writer to trim old records now.
    pub(super) trim_due: Notify,
    pub(super) closing: CancellationToken,
    /// Makes the writer give up on whatever cannot be written now.
    pub(super) giving_up: CancellationToken,
    tasks: TaskTracker,
}

pub(super) enum WriterJob {
    Write(QueueSlot, Box<AuditEntry>),
    /// An entry whose large request buffer is being released.
    ReleaseRequest(JoinHandle<(QueueSlot, Box<AuditEntry>)>),
    /// Answered once everything before it is written or given up, with `true` if it is committed.
    Flush(oneshot::Sender<bool>),
}

/// A record's slot in the queue.
#[derive(Debug)]
pub(super) enum QueueSlot {
    /// Auditing is disabled.
    Disabled,
    /// A slot that is returned once the record is committed.
    Held(#[expect(dead_code, reason = "held, not looked at")] OwnedSemaphorePermit),
    /// The slot was returned early: the record is queued beyond the limit. Their number is bounded by the calls that
    /// ran when the slots ran out, because each had a slot when it started.
    ReleasedEarly,
    /// No slot was free.
    Missing,
}

impl QueueSlot {
    /// Returns the slot early. A batch ends only after its tasks had slots, so it must not hold one that they wait for.
    pub(super) fn release_early(self) -> Self {
        match self {
            Self::Held(_) => Self::ReleasedEarly,
            other => other,
        }
    }
}

/// Counters of the queue.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct AuditCounts {
    pub(crate) waiting: usize,
    pub(crate) written: u64,
    pub(crate) dropped: u64,
    pub(crate) trimmed: u64,
    pub(crate) paused: Option<ClockJump>,
}

impl AuditRules {
    pub(super) fn retention(self) -> Retention {
        Retention { keep: self.retention, max_records: self.max_records }
    }
}

/// Records missing from the store at shutdown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnwrittenRecords {
    /// Records that the store did not accept in time, and calls cancelled before they had one.
    pub records: u64,
    /// File that holds the records instead.
    pub spill_file: Option<PathBuf>,
}

impl Auditor {
    /// Starts the writer, unless `settings` is `None`.
    pub(crate) fn new(store: Store, names: SubjectNames, limits: &Limits, settings: Option<AuditSettings>) -> Self {
        let queue = settings.map(|settings| AuditQueue::start(store.clone(), names, limits.audit_queue, settings));
        Self { store, wait_max: limits.call_timeout, queue }
    }

    pub(super) fn queue(&self) -> Option<&AuditQueue> {
        self.queue.as_deref()
    }

    /// Reserves a slot for one record.
    pub(super) async fn slot(&self) -> Result<QueueSlot, Error> {
        let Some(queue) = &self.queue else { return Ok(QueueSlot::Disabled) };
        if queue.refuses() {
            queue.lose(1);
            return Err(refusal());
        }
        match (Arc::clone(&queue.free_slots).try_acquire_owned(), queue.rules.when_full) {
            (Ok(permit), _) => Ok(QueueSlot::Held(permit)),
            (Err(_), QueueFullPolicy::DropAndCount) => Ok(QueueSlot::Missing),
            (Err(_), QueueFullPolicy::Block) => queue.wait(self.wait_max).await,
        }
    }

    /// Queues the entry without waiting.
    pub(super) fn put(&self, slot: QueueSlot, entry: Box<AuditEntry>) {
        let Some(queue) = &self.queue else { return };
        match slot {
            QueueSlot::Disabled => {}
            QueueSlot::Missing => queue.lose(1),
            QueueSlot::Held(_) | QueueSlot::ReleasedEarly => {
                if queue.waiting.fetch_add(1, Ordering::AcqRel) + 1 == WRITE_NOW_AT {
                    queue.wake_writer.notify_one();
                }
                if entry.is_large() {
                    queue.send_released(slot, entry);
                } else {
                    queue.enqueue(WriterJob::Write(slot, entry));
                }
            }
        }
    }

    /// Waits until everything recorded so far is written, for two seconds at most.
    pub(super) async fn flush(&self) {
        let Some(queue) = &self.queue else { return };
        let (tell, told) = oneshot::channel();
        if queue.jobs.send(WriterJob::Flush(tell)).is_ok() {
            queue.wake_writer.notify_one();
            let _ = tokio::time::timeout(FLUSH_WAIT_MAX, told).await;
        }
    }

    /// Writes everything queued within the limit, ends the writer and returns what could not be written.
    pub(super) async fn stop_within(&self, limit: Duration) -> UnwrittenRecords {
        let Some(queue) = &self.queue else { return UnwrittenRecords::default() };
        let begin = Instant::now();
        while queue.running() > 0 && begin.elapsed() < CANCELLED_CALL_WAIT_MAX {
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        let cut_off = u64::try_from(queue.running()).unwrap_or(u64::MAX);
        queue.lose(cut_off);
        queue.closing.cancel();
        queue.tasks.close();
        // A store known to be down gets less time than a slow one.
        let limit = if queue.health.is_down() { limit.min(STORE_DOWN_WAIT_MAX) } else { limit };
        if tokio::time::timeout(limit, queue.tasks.wait()).await.is_err() {
            queue.giving_up.cancel();
            queue.tasks.wait().await;
        }
        let records = queue.unwritten.load(Ordering::Relaxed).saturating_add(cut_off);
        UnwrittenRecords { records, spill_file: queue.spill_file.lock().clone() }
    }

    /// Trims old records now, ahead of schedule.
    pub(super) fn trim_soon(&self) {
        if let Some(queue) = &self.queue {
            queue.trim_due.notify_one();
        }
    }

    pub(crate) fn counts(&self) -> AuditCounts {
        let read = |queue: &Arc<AuditQueue>| AuditCounts {
            waiting: queue.waiting.load(Ordering::Relaxed),
            written: queue.written.load(Ordering::Relaxed),
            dropped: queue.dropped.load(Ordering::Relaxed),
            trimmed: queue.trimmed.load(Ordering::Relaxed),
            paused: *queue.paused.lock(),
        };
        self.queue.as_ref().map(read).unwrap_or_default()
    }
}

impl AuditQueue {
    fn start(
        store: Store,
        names: SubjectNames,
        capacity: usize,
        AuditSettings { rules, folder }: AuditSettings,
    ) -> Arc<Self> {
        // Bounded by the slots: nothing is queued without one.
        let (jobs, waiting) = mpsc::unbounded_channel();
        let capacity = capacity.min(Semaphore::MAX_PERMITS);
        let queue = Arc::new(Self {
            rules,
            free_slots: Arc::new(Semaphore::new(capacity)),
            capacity,
            health: StoreHealth::default(),
            jobs,
            waiting: AtomicUsize::new(0),
            lost: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
            written: AtomicU64::new(0),
            unwritten: AtomicU64::new(0),
            spill_file: Mutex::default(),
            trimmed: AtomicU64::new(0),
            paused: Mutex::default(),
            wake_writer: Notify::new(),
            trim_due: Notify::new(),
            closing: CancellationToken::new(),
            giving_up: CancellationToken::new(),
            tasks: TaskTracker::new(),
        });
        let writer = AuditWriter::new(Arc::clone(&queue), store, waiting, names);
        let writer = writer.spilling_to(SpillFile::new(folder));
        queue.tasks.spawn(writer.run());
        queue
    }

    fn enqueue(&self, job: WriterJob) {
        if self.jobs.send(job).is_err() {
            self.waiting.fetch_sub(1, Ordering::AcqRel);
            self.health.progressed();
            self.lose(1);
        }
    }

    /// Releases the request buffer before queueing, so that a long outage of the store does not keep large requests in
    /// memory. The record keeps its position.
    fn send_released(&self, slot: QueueSlot, mut entry: Box<AuditEntry>) {
        let work = move || {
            entry.release_request();
            (slot, entry)
        };
        // An entry dropped together with its runtime has no thread pool left.
        match Handle::try_current() {
            Ok(runtime) => self.enqueue(WriterJob::ReleaseRequest(runtime.spawn_blocking(work))),
            Err(_) => {
                let (slot, entry) = work();
                self.enqueue(WriterJob::Write(slot, entry));
            }
        }
    }

    /// Waits for a slot. A store that is down ends the wait, because no slot will become free.
    async fn wait(&self, wait_max: Duration) -> Result<QueueSlot, Error> {
        let free_slots = Arc::clone(&self.free_slots).acquire_owned();
        let permit = tokio::select! {
            biased;
            permit = free_slots => permit.ok(),
            () = self.health.until(|| self.health.is_down()) => None,
            () = tokio::time::sleep(wait_max) => None,
        };
        permit.map(QueueSlot::Held).ok_or_else(|| {
            self.lose(1);
            refusal()
        })
    }

    /// Returns `true` if the writer accepted the job.
    pub(super) fn send(&self, job: WriterJob) -> bool {
        self.jobs.send(job).is_ok()
    }

    pub(super) fn has_no_free_slot(&self) -> bool {
        self.free_slots.available_permits() == 0
    }

    /// Returns the number of calls that hold a slot and have not handed over their record.
    fn running(&self) -> usize {
        let taken = self.capacity.saturating_sub(self.free_slots.available_permits());
        taken.saturating_sub(self.waiting.load(Ordering::Acquire))
    }

    pub(super) fn lose(&self, count: u64) {
        self.lost.fetch_add(count, Ordering::Relaxed);
        self.dropped.fetch_add(count, Ordering::Relaxed);
    }
}
