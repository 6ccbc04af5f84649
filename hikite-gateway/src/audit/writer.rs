//! Writes queued records, many per transaction, and trims old ones. Retries a failing store until shutdown runs out of
//! time.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use hikite_core::audit::Record;
use hikite_core::time::rfc3339;
use hikite_store::{AuditBatch, ClockJump, Store};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::durability::{Durability, ENOUGH};
use super::entry::{Clients, Entry};
use super::queue::{Job, Place, Queue};
use super::spill::Spill;
use crate::clock::{machine_clock, now_ms};
use crate::people::Names;

/// Records per transaction.
const AT_ONCE: usize = 500;
/// Delay in `group` mode in which further records join a transaction. In `strict` mode the records that arrive during
/// one commit share the next.
const GATHER: Duration = Duration::from_millis(20);
/// Duration after which a running attempt marks the store as down.
const SLOW: Duration = Duration::from_secs(5);
/// Longest wait for a connection that does not answer.
const STUCK: Duration = Duration::from_secs(60);
/// First delay before a retry; doubled each time.
const PAUSE: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(5);
/// Bounds of the interval between trims, which is a tenth of the retention time.
const LOOK_MIN: Duration = Duration::from_secs(1);
const LOOK_MAX: Duration = Duration::from_secs(3600);

pub(super) struct Writer {
    queue: Arc<Queue>,
    store: Store,
    jobs: mpsc::UnboundedReceiver<Job>,
    names: Names,
    spill: Spill,
    /// `true` if the last operation of the store succeeded.
    well: bool,
    /// Time of the next trim.
    look: Instant,
}

/// Entries that are written in one transaction.
#[derive(Default)]
struct Gathered {
    entries: Vec<Entry>,
    /// Released once the records are committed.
    places: Vec<Place>,
    tell: Vec<oneshot::Sender<bool>>,
}

impl Writer {
    pub(super) fn new(
        queue: Arc<Queue>,
        store: Store,
        jobs: mpsc::UnboundedReceiver<Job>,
        names: Names,
    ) -> Self {
        // Early, so that a clock jump during downtime is reported at once.
        let look = Instant::now() + LOOK_MIN;
        Self { queue, store, jobs, names, spill: Spill::default(), well: true, look }
    }

    pub(super) fn spilling_to(self, spill: Spill) -> Self {
        Self { spill, ..self }
    }

    pub(super) async fn run(mut self) {
        let queue = Arc::clone(&self.queue);
        let mut closed = false;
        loop {
            tokio::select! {
                biased;
                job = self.jobs.recv() => match job {
                    Some(job) => self.write(job).await,
                    None => break,
                },
                () = queue.closing.cancelled(), if !closed => {
                    self.jobs.close();
                    closed = true;
                }
                () = tokio::time::sleep_until(self.look), if !closed => self.trim().await,
                () = queue.look.notified(), if !closed => self.trim().await,
            }
        }
        // The last record reports how many records were lost.
        self.commit(Vec::new()).await;
        self.say_what_is_left();
    }

    async fn write(&mut self, first: Job) {
        let mut gathered = Gathered::default();
        self.take(first, &mut gathered).await;
        // Under load there are enough records at once.
        let is_group = self.queue.rules.durability == Durability::Group;
        if is_group && gathered.tell.is_empty() && self.jobs.len() < ENOUGH {
            let hurry = self.queue.hurry.notified();
            let closing = self.queue.closing.cancelled();
            tokio::select! {
                () = tokio::time::sleep(GATHER) => {}
                () = hurry => {}
                () = closing => {}
            }
        }
        while gathered.entries.len() < AT_ONCE
            && let Ok(job) = self.jobs.try_recv()
        {
            self.take(job, &mut gathered).await;
        }
        let Gathered { entries, places, tell } = gathered;
        let count = entries.len();
        let mut records = made(entries).await;
        for record in &mut records {
            if let Some((id, name)) = self.names.of(&record.subject) {
                (record.user_id, record.user) = (id.to_string(), name.to_string());
            }
        }
        self.queue.lose(u64::try_from(count.saturating_sub(records.len())).unwrap_or(u64::MAX));
        let is_written = self.commit(records).await;
        self.queue.waiting.fetch_sub(count, Ordering::AcqRel);
        drop(places);
        self.queue.health.progressed();
        for who in tell {
            // The receiver may be gone.
            let _ = who.send(is_written);
        }
    }

    async fn take(&self, job: Job, gathered: &mut Gathered) {
        let (place, entry) = match job {
            Job::Write(place, entry) => (place, entry),
            Job::Tell(who) => return gathered.tell.push(who),
            Job::Lighten(work) => match work.await {
                Ok(light) => light,
                Err(_) => {
                    self.queue.waiting.fetch_sub(1, Ordering::Relaxed);
                    return self.queue.lose(1);
                }
            },
        };
        gathered.places.push(place);
        gathered.entries.push(*entry);
    }

    /// Retries until the records are committed or time runs out. Returns `true` if they are committed.
    async fn commit(&mut self, mut records: Vec<Record>) -> bool {
        let lost = self.queue.lost.swap(0, Ordering::Relaxed);
        if lost > 0 {
            records.push(of_lost(lost));
        }
        if records.is_empty() {
            return true;
        }
        let count = u64::try_from(records.len()).unwrap_or(u64::MAX);
        let mut batch = AuditBatch::new(records);
        let mut pause = PAUSE;
        let giving_up = self.queue.giving_up.clone();
        loop {
            let Some(written) = giving_up.run_until_cancelled(self.attempt(&mut batch)).await else {
                self.keep_aside(&batch);
                return false;
            };
            self.tell(written.as_ref().err());
            if written.is_ok() {
                self.queue.health.set(None);
                self.queue.written.fetch_add(count, Ordering::Relaxed);
                return true;
            }
            let waiting = self.queue.giving_up.run_until_cancelled(tokio::time::sleep(pause));
            if waiting.await.is_none() {
                self.keep_aside(&batch);
                return false;
            }
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }

    /// Makes one attempt. A slow one marks the store as down, so that callers stop waiting for it.
    async fn attempt(&self, batch: &mut AuditBatch) -> Result<(), String> {
        let health = &self.queue.health;
        let appending = self.store.append_audit(batch);
        tokio::pin!(appending);
        let outcome = tokio::select! {
            outcome = &mut appending => outcome,
            () = tokio::time::sleep(SLOW) => {
                health.set(Some("does not answer".into()));
                match tokio::time::timeout(STUCK, appending).await {
                    Ok(outcome) => outcome,
                    Err(_) => return Err("the store does not answer".into()),
                }
            }
        };
        outcome.map_err(|error| {
            health.set(Some(error.fault.words().into()));
            error.to_string()
        })
    }

    /// Hands records to the spill file after the store did not accept them in time.
    fn keep_aside(&mut self, batch: &AuditBatch) {
        let count = u64::try_from(batch.len()).unwrap_or(u64::MAX);
        self.queue.left.fetch_add(count, Ordering::Relaxed);
        self.spill.keep(batch.records());
    }

    fn say_what_is_left(&mut self) {
        let records = self.queue.left.load(Ordering::Relaxed);
        if records == 0 {
            return;
        }
        match self.spill.finish() {
            Ok(file) => {
                tracing::error!(
                    records,
                    file = %file.display(),
                    "the store did not take the last records of the audit: they are kept in a file beside it"
                );
                *self.queue.kept_in.lock() = Some(file);
            }
            Err(error) => {
                tracing::error!(records, %error, "records of the audit are lost: neither the store nor a file takes them");
            }
        }
    }

    async fn trim(&mut self) {
        let rules = self.queue.rules;
        let trimmed = self.store.trim_audit(rules.retention(), &machine_clock()).await;
        self.tell(trimmed.as_ref().err().map(ToString::to_string).as_ref());
        if let Ok(trimmed) = &trimmed {
            self.queue.trimmed.fetch_add(trimmed.records, Ordering::Relaxed);
            tell_pause(std::mem::replace(&mut *self.queue.paused.lock(), trimmed.paused), trimmed.paused);
        }
        let more = trimmed.is_ok_and(|trimmed| trimmed.more);
        // Queued records are written between two trims.
        self.look = Instant::now() + if more { Duration::ZERO } else { interval(rules.retention) };
    }

    /// Logs a change of state once, not with every attempt.
    fn tell(&mut self, error: Option<&String>) {
        match error {
            Some(error) if self.well => tracing::warn!("the audit cannot be written, and waits: {error}"),
            None if !self.well => tracing::info!("the audit is written again"),
            _ => {}
        }
        self.well = error.is_none();
    }
}

/// Builds the records of the entries on a blocking thread, because arguments may be large.
async fn made(entries: Vec<Entry>) -> Vec<Record> {
    if entries.is_empty() {
        return Vec::new();
    }
    let now = (now_ms(), Instant::now());
    let make = move || {
        let mut clients = Clients::default();
        entries.iter().map(|entry| entry.record(now, &mut clients)).collect()
    };
    tokio::task::spawn_blocking(make).await.unwrap_or_default()
}

/// Logs the start and the end of a trim suspension.
fn tell_pause(before: Option<ClockJump>, now: Option<ClockJump>) {
    match now {
        Some(jump) if before.is_none() => tracing::warn!(
            expected = rfc3339(jump.expected),
            found = rfc3339(jump.found),
            "the clock of this machine jumped by more than a day: nothing is removed for its age; \
             if the clock is right, confirm it with `hikite audit resume-trim`"
        ),
        None if before.is_some() => tracing::info!("records that are too old are removed again"),
        _ => {}
    }
}

fn of_lost(lost: u64) -> Record {
    Record { at: now_ms(), kind: "lost", decision: "allowed", outcome: super::OK, lost, ..Record::default() }
}

fn interval(retention: Duration) -> Duration {
    (retention / 10).clamp(LOOK_MIN, LOOK_MAX)
}
