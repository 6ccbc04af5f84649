//! Bounded queue of audit records with a stated policy for when it is full. A slot is reserved before a call runs, so
//! that every call which runs has room for its record.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use hikite_core::error::Error;
use hikite_store::{ClockJump, Retention, Store};
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::durability::{Durability, ENOUGH, StoreHealth, refusal};
use super::entry::Entry;
use super::spill::Spill;
use super::writer::Writer;
use crate::people::Names;

/// Longest wait of a read for records that are still queued.
const FLUSH: Duration = Duration::from_secs(2);
/// Wait at shutdown for cancelled calls to hand over their records.
const CUT_OFF: Duration = Duration::from_secs(2);
const LOOK: Duration = Duration::from_millis(10);
/// Wait at shutdown for a store that accepted nothing when shutdown began.
const DOWN: Duration = Duration::from_secs(3);

/// Policy for a call whose record finds no free slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WhenFull {
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
    pub when_full: WhenFull,
    /// Age at which records are removed.
    pub retention: Duration,
    /// Largest number of records retained.
    pub max_records: Option<u64>,
}

/// The gateway's side of the queue. Records nothing before `start`.
#[derive(Debug, Default)]
pub(crate) struct Auditor {
    queue: OnceLock<Arc<Queue>>,
}

#[derive(Debug)]
pub(super) struct Queue {
    pub(super) rules: AuditRules,
    room: Arc<Semaphore>,
    places: usize,
    pub(super) health: StoreHealth,
    jobs: mpsc::UnboundedSender<Job>,
    /// Records between the end of their call and the commit.
    pub(super) waiting: AtomicUsize,
    /// Records lost since the last record that reports a loss.
    pub(super) lost: AtomicU64,
    dropped: AtomicU64,
    pub(super) written: AtomicU64,
    /// Records that the store had not accepted when time ran out.
    pub(super) left: AtomicU64,
    /// File that holds those records instead.
    pub(super) kept_in: Mutex<Option<PathBuf>>,
    pub(super) trimmed: AtomicU64,
    /// Clock jump that suspends trimming by age.
    pub(super) paused: Mutex<Option<ClockJump>>,
    /// Wakes the writer because a caller waits for queued records.
    pub(super) hurry: Notify,
    /// Wakes the writer to trim old records now.
    pub(super) look: Notify,
    pub(super) closing: CancellationToken,
    /// Makes the writer give up on whatever cannot be written now.
    pub(super) giving_up: CancellationToken,
    tasks: TaskTracker,
}

pub(super) enum Job {
    Write(Place, Box<Entry>),
    /// An entry whose large request buffer is being released.
    Lighten(JoinHandle<(Place, Box<Entry>)>),
    /// Answered once everything before it is written or given up, with `true` if it is committed.
    Tell(oneshot::Sender<bool>),
}

/// A record's slot in the queue.
#[derive(Debug)]
pub(super) enum Place {
    /// Auditing is disabled.
    Off,
    /// A slot that is returned once the record is committed.
    Kept(#[expect(dead_code, reason = "held, not looked at")] OwnedSemaphorePermit),
    /// The slot was returned early: the record is queued beyond the limit. Their number is bounded by the calls that
    /// ran when the slots ran out, because each had a slot when it started.
    Lent,
    /// No slot was free.
    Lost,
}

impl Place {
    /// Returns the slot early. A batch ends only after its tasks had slots, so it must not hold one that they wait for.
    pub(super) fn lent(self) -> Self {
        match self {
            Self::Kept(_) => Self::Lent,
            other => other,
        }
    }
}

/// Counters of the queue.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
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
pub struct Unwritten {
    /// Records that the store did not accept in time, and calls cancelled before they had one.
    pub records: u64,
    /// File that holds the records instead.
    pub kept_in: Option<PathBuf>,
}

impl Auditor {
    /// Starts recording; called once, before the first request. Records that the store has not accepted at shutdown go
    /// to a file in `spill`.
    pub(crate) fn start(
        &self,
        store: Store,
        names: Names,
        (rules, places): (AuditRules, usize),
        spill: Option<PathBuf>,
    ) {
        // Bounded by the slots: nothing is queued without one.
        let (jobs, waiting) = mpsc::unbounded_channel();
        let places = places.min(Semaphore::MAX_PERMITS);
        let queue = Arc::new(Queue {
            rules,
            room: Arc::new(Semaphore::new(places)),
            places,
            health: StoreHealth::default(),
            jobs,
            waiting: AtomicUsize::new(0),
            lost: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
            written: AtomicU64::new(0),
            left: AtomicU64::new(0),
            kept_in: Mutex::default(),
            trimmed: AtomicU64::new(0),
            paused: Mutex::default(),
            hurry: Notify::new(),
            look: Notify::new(),
            closing: CancellationToken::new(),
            giving_up: CancellationToken::new(),
            tasks: TaskTracker::new(),
        });
        if self.queue.set(Arc::clone(&queue)).is_ok() {
            let writer = Writer::new(Arc::clone(&queue), store, waiting, names);
            let writer = writer.spilling_to(Spill::new(spill));
            queue.tasks.spawn(writer.run());
        }
    }

    pub(super) fn queue(&self) -> Option<&Queue> {
        self.queue.get().map(|queue| &**queue)
    }

    /// Reserves a slot for one record.
    pub(super) async fn place(&self, patience: Duration) -> Result<Place, Error> {
        let Some(queue) = self.queue.get() else { return Ok(Place::Off) };
        if queue.refuses() {
            queue.lose(1);
            return Err(refusal());
        }
        match (Arc::clone(&queue.room).try_acquire_owned(), queue.rules.when_full) {
            (Ok(permit), _) => Ok(Place::Kept(permit)),
            (Err(_), WhenFull::DropAndCount) => Ok(Place::Lost),
            (Err(_), WhenFull::Block) => queue.wait(patience).await,
        }
    }

    /// Queues the entry without waiting.
    pub(super) fn put(&self, place: Place, entry: Box<Entry>) {
        let Some(queue) = self.queue.get() else { return };
        match place {
            Place::Off => {}
            Place::Lost => queue.lose(1),
            Place::Kept(_) | Place::Lent => {
                if queue.waiting.fetch_add(1, Ordering::AcqRel) + 1 == ENOUGH {
                    queue.hurry.notify_one();
                }
                if entry.is_heavy() {
                    queue.send_lightened(place, entry);
                } else {
                    queue.hand_over(Job::Write(place, entry));
                }
            }
        }
    }

    /// Waits until everything recorded so far is written, for two seconds at most.
    pub(crate) async fn flush(&self) {
        let Some(queue) = self.queue.get() else { return };
        let (tell, told) = oneshot::channel();
        if queue.jobs.send(Job::Tell(tell)).is_ok() {
            queue.hurry.notify_one();
            let _ = tokio::time::timeout(FLUSH, told).await;
        }
    }

    /// Writes everything queued within the limit, ends the writer and returns what could not be written.
    pub(crate) async fn stop(&self, limit: Duration) -> Unwritten {
        let Some(queue) = self.queue.get() else { return Unwritten::default() };
        let begin = Instant::now();
        while queue.running() > 0 && begin.elapsed() < CUT_OFF {
            tokio::time::sleep(LOOK).await;
        }
        let cut_off = u64::try_from(queue.running()).unwrap_or(u64::MAX);
        queue.lose(cut_off);
        queue.closing.cancel();
        queue.tasks.close();
        // A store known to be down gets less time than a slow one.
        let limit = if queue.health.is_down() { limit.min(DOWN) } else { limit };
        if tokio::time::timeout(limit, queue.tasks.wait()).await.is_err() {
            queue.giving_up.cancel();
            queue.tasks.wait().await;
        }
        let records = queue.left.load(Ordering::Relaxed).saturating_add(cut_off);
        Unwritten { records, kept_in: queue.kept_in.lock().clone() }
    }

    /// Trims old records now, ahead of schedule.
    pub(crate) fn trim_soon(&self) {
        if let Some(queue) = self.queue.get() {
            queue.look.notify_one();
        }
    }

    pub(crate) fn counts(&self) -> Counts {
        let read = |queue: &Arc<Queue>| Counts {
            waiting: queue.waiting.load(Ordering::Relaxed),
            written: queue.written.load(Ordering::Relaxed),
            dropped: queue.dropped.load(Ordering::Relaxed),
            trimmed: queue.trimmed.load(Ordering::Relaxed),
            paused: *queue.paused.lock(),
        };
        self.queue.get().map(read).unwrap_or_default()
    }
}

impl Queue {
    fn hand_over(&self, job: Job) {
        if self.jobs.send(job).is_err() {
            self.waiting.fetch_sub(1, Ordering::AcqRel);
            self.health.progressed();
            self.lose(1);
        }
    }

    /// Releases the request buffer before queueing, so that a long outage of the store does not keep large requests in
    /// memory. The record keeps its position.
    fn send_lightened(&self, place: Place, mut entry: Box<Entry>) {
        let work = move || {
            entry.lighten();
            (place, entry)
        };
        // An entry dropped together with its runtime has no thread pool left.
        match Handle::try_current() {
            Ok(runtime) => self.hand_over(Job::Lighten(runtime.spawn_blocking(work))),
            Err(_) => {
                let (place, entry) = work();
                self.hand_over(Job::Write(place, entry));
            }
        }
    }

    /// Waits for a slot. A store that is down ends the wait, because no slot will become free.
    async fn wait(&self, patience: Duration) -> Result<Place, Error> {
        let room = Arc::clone(&self.room).acquire_owned();
        let permit = tokio::select! {
            biased;
            permit = room => permit.ok(),
            () = self.health.until(|| self.health.is_down()) => None,
            () = tokio::time::sleep(patience) => None,
        };
        permit.map(Place::Kept).ok_or_else(|| {
            self.lose(1);
            refusal()
        })
    }

    /// Returns `true` if the writer accepted the job.
    pub(super) fn send(&self, job: Job) -> bool {
        self.jobs.send(job).is_ok()
    }

    pub(super) fn is_out_of_places(&self) -> bool {
        self.room.available_permits() == 0
    }

    /// Returns the number of calls that hold a slot and have not handed over their record.
    fn running(&self) -> usize {
        let taken = self.places.saturating_sub(self.room.available_permits());
        taken.saturating_sub(self.waiting.load(Ordering::Acquire))
    }

    pub(super) fn lose(&self, count: u64) {
        self.lost.fetch_add(count, Ordering::Relaxed);
        self.dropped.fetch_add(count, Ordering::Relaxed);
    }
}
