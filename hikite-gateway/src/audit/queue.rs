//! Where records wait to be written: bounded, and with a stated policy for when it is full. A place is taken before a
//! call runs, so that its record never lacks one.

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

/// For everything written so far to be seen.
const FLUSH: Duration = Duration::from_secs(2);
/// At the end: for calls that were just cut off to hand over their records.
const CUT_OFF: Duration = Duration::from_secs(2);
const LOOK: Duration = Duration::from_millis(10);
/// And for a store that took nothing when the end came.
const DOWN: Duration = Duration::from_secs(3);

/// What becomes of a call whose record finds no place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WhenFull {
    /// It waits, and is refused in the end: nothing runs unrecorded.
    #[default]
    Block,
    /// It runs, and how many records were lost is counted and recorded.
    DropAndCount,
}

/// What the config says of the audit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuditRules {
    /// How far an answer may run ahead of its record.
    pub durability: Durability,
    pub when_full: WhenFull,
    /// Records are kept for so long.
    pub retention: Duration,
    /// And never more of them than this.
    pub max_records: Option<u64>,
}

/// The gateway's side of the queue. Without rules nothing is recorded.
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
    /// Records between their call's end and the disk.
    pub(super) waiting: AtomicUsize,
    /// Lost since the last record that says so.
    pub(super) lost: AtomicU64,
    dropped: AtomicU64,
    pub(super) written: AtomicU64,
    /// Records that the store had not taken when time was over.
    pub(super) left: AtomicU64,
    /// Where those are kept instead.
    pub(super) kept_in: Mutex<Option<PathBuf>>,
    pub(super) trimmed: AtomicU64,
    /// Nothing is trimmed for its age while this machine's clock is in doubt.
    pub(super) paused: Mutex<Option<ClockJump>>,
    /// Somebody waits for what is in the queue.
    pub(super) hurry: Notify,
    /// What is too old is to be looked for now.
    pub(super) look: Notify,
    pub(super) closing: CancellationToken,
    /// Whatever cannot be written now is lost.
    pub(super) giving_up: CancellationToken,
    tasks: TaskTracker,
}

pub(super) enum Job {
    Write(Place, Box<Entry>),
    /// The same, once nothing of a large request is kept any more.
    Lighten(JoinHandle<(Place, Box<Entry>)>),
    /// Answered once everything before it is written, or given up: whether it is on the disk.
    Tell(oneshot::Sender<bool>),
}

/// A record's place in the queue.
#[derive(Debug)]
pub(super) enum Place {
    /// Nothing is recorded.
    Off,
    /// Given back when the record is on the disk.
    Kept(#[expect(dead_code, reason = "held, not looked at")] OwnedSemaphorePermit),
    /// There was one, and it is left to others: the record goes in beyond the places. Never more of these wait than
    /// ran when the places ran out, because each had a place when it began.
    Lent,
    /// There was none.
    Lost,
}

impl Place {
    /// For what only ends once others have had places: it must not hold up what it waits for.
    pub(super) fn lent(self) -> Self {
        match self {
            Self::Kept(_) => Self::Lent,
            other => other,
        }
    }
}

/// What the queue counts.
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

/// What the audit does not have when it ends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unwritten {
    /// Records that the store did not take in time, and calls that were cut off before they had one.
    pub records: u64,
    /// The file that keeps them instead.
    pub kept_in: Option<PathBuf>,
}

impl Auditor {
    /// From now on everything is recorded; once, before the first request. What the store does not take until the end
    /// is kept in `spill`.
    pub(crate) fn start(
        &self,
        store: Store,
        names: Names,
        (rules, places): (AuditRules, usize),
        spill: Option<PathBuf>,
    ) {
        // Not bounded by itself: nothing is put in without a place.
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

    /// A place for one record.
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

    /// Hands the entry over. Nothing here waits.
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

    /// Waits until everything recorded so far is written, but not for long.
    pub(crate) async fn flush(&self) {
        let Some(queue) = self.queue.get() else { return };
        let (tell, told) = oneshot::channel();
        if queue.jobs.send(Job::Tell(tell)).is_ok() {
            queue.hurry.notify_one();
            let _ = tokio::time::timeout(FLUSH, told).await;
        }
    }

    /// Writes everything that waits, within the limit, and ends the writer. Tells what could not be written.
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
        // What is known to be away is not waited for as long as what is slow.
        let limit = if queue.health.is_down() { limit.min(DOWN) } else { limit };
        if tokio::time::timeout(limit, queue.tasks.wait()).await.is_err() {
            queue.giving_up.cancel();
            queue.tasks.wait().await;
        }
        let records = queue.left.load(Ordering::Relaxed).saturating_add(cut_off);
        Unwritten { records, kept_in: queue.kept_in.lock().clone() }
    }

    /// Looks for what is too old without waiting for its turn.
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

    /// A store that is away for long must not keep large requests in memory. The record keeps its turn.
    fn send_lightened(&self, place: Place, mut entry: Box<Entry>) {
        let work = move || {
            entry.lighten();
            (place, entry)
        };
        // What is dropped with its runtime has nobody else to do it.
        match Handle::try_current() {
            Ok(runtime) => self.hand_over(Job::Lighten(runtime.spawn_blocking(work))),
            Err(_) => {
                let (place, entry) = work();
                self.hand_over(Job::Write(place, entry));
            }
        }
    }

    /// Waits for a place; a store that takes nothing ends the wait, because no place will become free.
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

    /// Whether it was taken.
    pub(super) fn send(&self, job: Job) -> bool {
        self.jobs.send(job).is_ok()
    }

    pub(super) fn is_out_of_places(&self) -> bool {
        self.room.available_permits() == 0
    }

    /// Calls that hold a place and have not handed over their record.
    fn running(&self) -> usize {
        let taken = self.places.saturating_sub(self.room.available_permits());
        taken.saturating_sub(self.waiting.load(Ordering::Acquire))
    }

    pub(super) fn lose(&self, count: u64) {
        self.lost.fetch_add(count, Ordering::Relaxed);
        self.dropped.fetch_add(count, Ordering::Relaxed);
    }
}
