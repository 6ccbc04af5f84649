//! Where records wait to be written: bounded, and with a stated policy for when it is full. A place is taken before a
//! call runs, so that its record never lacks one.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use hikite_core::error::{Error, Kind};
use hikite_store::{ClockJump, Retention, Store};
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::entry::Entry;
use super::writer::Writer;
use crate::people::Names;

/// For everything written so far to be seen.
const FLUSH: Duration = Duration::from_secs(2);

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
    jobs: mpsc::UnboundedSender<Job>,
    /// Records between their call's end and the disk.
    pub(super) waiting: AtomicUsize,
    /// Lost since the last record that says so.
    pub(super) lost: AtomicU64,
    dropped: AtomicU64,
    pub(super) written: AtomicU64,
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
    /// Answered once everything before it is written.
    Tell(oneshot::Sender<()>),
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

impl Auditor {
    /// From now on everything is recorded; once, before the first request.
    pub(crate) fn start(&self, store: Store, names: Names, (rules, places): (AuditRules, usize)) {
        // Not bounded by itself: nothing is put in without a place.
        let (jobs, waiting) = mpsc::unbounded_channel();
        let queue = Arc::new(Queue {
            rules,
            room: Arc::new(Semaphore::new(places.min(Semaphore::MAX_PERMITS))),
            jobs,
            waiting: AtomicUsize::new(0),
            lost: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
            written: AtomicU64::new(0),
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
            queue.tasks.spawn(writer.run());
        }
    }

    /// A place for one record.
    pub(super) async fn place(&self, patience: Duration) -> Result<Place, Error> {
        let Some(queue) = self.queue.get() else { return Ok(Place::Off) };
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
                queue.waiting.fetch_add(1, Ordering::Relaxed);
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

    /// Writes everything that waits, within the limit, and ends the writer.
    pub(crate) async fn stop(&self, limit: Duration) {
        let Some(queue) = self.queue.get() else { return };
        queue.closing.cancel();
        queue.tasks.close();
        if tokio::time::timeout(limit, queue.tasks.wait()).await.is_err() {
            queue.giving_up.cancel();
            queue.tasks.wait().await;
        }
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
            self.waiting.fetch_sub(1, Ordering::Relaxed);
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

    async fn wait(&self, patience: Duration) -> Result<Place, Error> {
        let room = Arc::clone(&self.room).acquire_owned();
        match tokio::time::timeout(patience, room).await {
            Ok(Ok(permit)) => Ok(Place::Kept(permit)),
            _ => {
                self.lose(1);
                let error = Error::new(Kind::Overloaded, "this cannot be recorded now, and is not done");
                Err(error.hint("try again in a moment; if it stays so, the store is too slow or away"))
            }
        }
    }

    pub(super) fn lose(&self, count: u64) {
        self.lost.fetch_add(count, Ordering::Relaxed);
        self.dropped.fetch_add(count, Ordering::Relaxed);
    }
}
