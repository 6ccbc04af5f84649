//! Writes queued records, many per transaction, and trims old ones. Retries a failing store until shutdown runs out of
//! time.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use hikite_core::audit::AuditRecord;
use hikite_core::time::rfc3339;
use hikite_store::{AuditBatch, ClockJump, Store};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::durability::{Durability, WRITE_NOW_AT};
use super::entry::{AuditEntry, ClientNameCache};
use super::queue::{AuditQueue, QueueSlot, WriterJob};
use super::spill::SpillFile;
use hikite_identity::SubjectNames;
use hikite_store::clock::{machine_clock, now_ms};

/// Records per transaction.
const RECORDS_PER_TRANSACTION: usize = 500;
/// Delay in `group` mode in which further records join a transaction. In `strict` mode the records that arrive during
/// one commit share the next.
const GROUP_DELAY: Duration = Duration::from_millis(20);
/// Duration after which a running attempt marks the store as down.
const SLOW_AFTER: Duration = Duration::from_secs(5);
/// Longest wait for a connection that does not answer.
const STUCK_AFTER: Duration = Duration::from_secs(60);
/// First delay before a retry; doubled each time.
const PAUSE: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(5);
/// Bounds of the interval between trims, which is a tenth of the retention time.
const TRIM_INTERVAL_MIN: Duration = Duration::from_secs(1);
const TRIM_INTERVAL_MAX: Duration = Duration::from_secs(3600);

pub(super) struct AuditWriter {
    queue: Arc<AuditQueue>,
    store: Store,
    jobs: mpsc::UnboundedReceiver<WriterJob>,
    names: SubjectNames,
    spill: SpillFile,
    /// `true` if the last operation of the store succeeded.
    is_healthy: bool,
    /// Time of the next trim.
    trim_due: Instant,
}

/// Entries that are written in one transaction.
#[derive(Default)]
struct WriteGroup {
    entries: Vec<AuditEntry>,
    /// Released once the records are committed.
    slots: Vec<QueueSlot>,
    tell: Vec<oneshot::Sender<bool>>,
}

impl AuditWriter {
    pub(super) fn new(
        queue: Arc<AuditQueue>,
        store: Store,
        jobs: mpsc::UnboundedReceiver<WriterJob>,
        names: SubjectNames,
    ) -> Self {
        // Early, so that a clock jump during downtime is reported at once.
        let trim_due = Instant::now() + TRIM_INTERVAL_MIN;
        Self { queue, store, jobs, names, spill: SpillFile::default(), is_healthy: true, trim_due }
    }

    pub(super) fn spilling_to(self, spill: SpillFile) -> Self {
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
                () = tokio::time::sleep_until(self.trim_due), if !closed => self.trim().await,
                () = queue.trim_due.notified(), if !closed => self.trim().await,
            }
        }
        // The last record reports how many records were lost.
        self.commit(Vec::new()).await;
        self.report_unwritten();
    }

    async fn write(&mut self, first: WriterJob) {
        let mut gathered = WriteGroup::default();
        self.take(first, &mut gathered).await;
        // Under load there are enough records at once.
        let is_group = self.queue.rules.durability == Durability::Group;
        if is_group && gathered.tell.is_empty() && self.jobs.len() < WRITE_NOW_AT {
            let wake_writer = self.queue.wake_writer.notified();
            let closing = self.queue.closing.cancelled();
            tokio::select! {
                () = tokio::time::sleep(GROUP_DELAY) => {}
                () = wake_writer => {}
                () = closing => {}
            }
        }
        while gathered.entries.len() < RECORDS_PER_TRANSACTION
            && let Ok(job) = self.jobs.try_recv()
        {
            self.take(job, &mut gathered).await;
        }
        let WriteGroup { entries, slots, tell } = gathered;
        let count = entries.len();
        let mut records = build_records(entries).await;
        for record in &mut records {
            if let Some((id, name)) = self.names.of(&record.subject) {
                (record.user_id, record.user) = (id.to_string(), name.to_string());
            }
        }
        self.queue.lose(u64::try_from(count.saturating_sub(records.len())).unwrap_or(u64::MAX));
        let is_written = self.commit(records).await;
        self.queue.waiting.fetch_sub(count, Ordering::AcqRel);
        drop(slots);
        self.queue.health.progressed();
        for sender in tell {
            // The receiver may be gone.
            let _ = sender.send(is_written);
        }
    }

    async fn take(&self, job: WriterJob, gathered: &mut WriteGroup) {
        let (slot, entry) = match job {
            WriterJob::Write(slot, entry) => (slot, entry),
            WriterJob::Flush(sender) => return gathered.tell.push(sender),
            WriterJob::ReleaseRequest(work) => match work.await {
                Ok(light) => light,
                Err(_) => {
                    self.queue.waiting.fetch_sub(1, Ordering::Relaxed);
                    return self.queue.lose(1);
                }
            },
        };
        gathered.slots.push(slot);
        gathered.entries.push(*entry);
    }

    /// Retries until the records are committed or time runs out. Returns `true` if they are committed.
    async fn commit(&mut self, mut records: Vec<AuditRecord>) -> bool {
        let lost = self.queue.lost.swap(0, Ordering::Relaxed);
        if lost > 0 {
            records.push(loss_record(lost));
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
                self.spill_records(&batch);
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
                self.spill_records(&batch);
                return false;
            }
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }

    /// Makes one attempt. A slow one marks the store as down, so that callers stop waiting for it.
    async fn attempt(&self, batch: &mut AuditBatch) -> Result<(), String> {
        let health = &self.queue.health;
        let log = self.store.audit();
        let appending = log.append(batch);
        tokio::pin!(appending);
        let outcome = tokio::select! {
            outcome = &mut appending => outcome,
            () = tokio::time::sleep(SLOW_AFTER) => {
                health.set(Some("does not respond".into()));
                match tokio::time::timeout(STUCK_AFTER, appending).await {
                    Ok(outcome) => outcome,
                    Err(_) => return Err("the store does not respond".into()),
                }
            }
        };
        outcome.map_err(|error| {
            health.set(Some(error.fault.words().into()));
            error.to_string()
        })
    }

    /// Hands records to the spill file after the store did not accept them in time.
    fn spill_records(&mut self, batch: &AuditBatch) {
        let count = u64::try_from(batch.len()).unwrap_or(u64::MAX);
        self.queue.unwritten.fetch_add(count, Ordering::Relaxed);
        self.spill.append(batch.records());
    }

    fn report_unwritten(&mut self) {
        let records = self.queue.unwritten.load(Ordering::Relaxed);
        if records == 0 {
            return;
        }
        match self.spill.finish() {
            Ok(file) => {
                tracing::error!(
                    records,
                    file = %file.display(),
                    "the store did not accept the last audit records; they are saved in a file next to it"
                );
                *self.queue.spill_file.lock() = Some(file);
            }
            Err(error) => {
                tracing::error!(records, %error, "audit records are lost: neither the store nor a file accepts them");
            }
        }
    }

    async fn trim(&mut self) {
        let rules = self.queue.rules;
        let trimmed = self.store.audit().trim(rules.retention(), &machine_clock()).await;
        self.tell(trimmed.as_ref().err().map(ToString::to_string).as_ref());
        if let Ok(trimmed) = &trimmed {
            self.queue.trimmed.fetch_add(trimmed.records, Ordering::Relaxed);
            log_trim_pause(std::mem::replace(&mut *self.queue.paused.lock(), trimmed.paused), trimmed.paused);
        }
        let more = trimmed.is_ok_and(|trimmed| trimmed.more);
        // Queued records are written between two trims.
        self.trim_due = Instant::now() + if more { Duration::ZERO } else { interval(rules.retention) };
    }

    /// Logs a change of state once, not with every attempt.
    fn tell(&mut self, error: Option<&String>) {
        match error {
            Some(error) if self.is_healthy => {
                tracing::warn!("audit records cannot be written and are queued: {error}");
            }
            None if !self.is_healthy => tracing::info!("audit records are written again"),
            _ => {}
        }
        self.is_healthy = error.is_none();
    }
}

/// Builds the records of the entries on a blocking thread, because arguments may be large.
async fn build_records(entries: Vec<AuditEntry>) -> Vec<AuditRecord> {
    if entries.is_empty() {
        return Vec::new();
    }
    let now = (now_ms(), Instant::now());
    let make = move || {
        let mut clients = ClientNameCache::default();
        entries.iter().map(|entry| entry.record(now, &mut clients)).collect()
    };
    tokio::task::spawn_blocking(make).await.unwrap_or_default()
}

/// Logs the start and the end of a trim suspension.
fn log_trim_pause(before: Option<ClockJump>, now: Option<ClockJump>) {
    match now {
        Some(jump) if before.is_none() => tracing::warn!(
            expected = rfc3339(jump.expected),
            found = rfc3339(jump.found),
            "the clock of this machine jumped by more than a day; no records are deleted by age until you confirm \
             the clock with `hikite audit resume-trim`"
        ),
        None if before.is_some() => tracing::info!("old audit records are deleted again"),
        _ => {}
    }
}

fn loss_record(lost: u64) -> AuditRecord {
    AuditRecord { at: now_ms(), kind: "lost", decision: "allowed", outcome: super::OK, lost, ..AuditRecord::default() }
}

fn interval(retention: Duration) -> Duration {
    (retention / 10).clamp(TRIM_INTERVAL_MIN, TRIM_INTERVAL_MAX)
}
