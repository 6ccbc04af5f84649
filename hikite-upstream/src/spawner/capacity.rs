//! Limit on running processes. If it is reached, the least recently used idle process is stopped. A busy process is
//! never stopped.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use hikite_core::error::{Error, ErrorKind};
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use crate::connection::{Connection, ConnectionPurpose};

/// Timeout for a process slot to become free.
const SLOT_TIMEOUT: Duration = Duration::from_secs(10);
/// Poll interval.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// A process used this recently is not stopped: it is probably used again at once.
const RECENT_USE: Duration = Duration::from_millis(200);

#[derive(Debug)]
pub(crate) struct ProcessCapacity {
    all: usize,
    process_slots: Arc<Semaphore>,
    running: Mutex<Vec<Weak<Connection>>>,
    claimed: Arc<AtomicUsize>,
    /// Starts that wait for a slot.
    waiting: AtomicUsize,
}

/// Reservation of a slot for a session's own process.
#[derive(Debug)]
pub(crate) struct CapacityReservation(Arc<AtomicUsize>);

impl Drop for CapacityReservation {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Guard that counts a waiting start until it is dropped.
struct WaitingStart<'a>(&'a AtomicUsize);

impl Drop for WaitingStart<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl ProcessCapacity {
    pub(crate) fn new(processes: usize) -> Arc<Self> {
        let all = processes.min(Semaphore::MAX_PERMITS);
        Arc::new(Self {
            all,
            process_slots: Arc::new(Semaphore::new(all)),
            running: Mutex::default(),
            claimed: Arc::default(),
            waiting: AtomicUsize::new(0),
        })
    }

    /// Reserves a slot for a session's own process, as long as a quarter of all slots stays free for shared ones.
    pub(crate) fn reserve(&self) -> Option<CapacityReservation> {
        // Counted before the check, so that concurrent reservations do not take the same slot.
        let claimed = self.claimed.fetch_add(1, Ordering::AcqRel) + 1;
        let reservation = CapacityReservation(Arc::clone(&self.claimed));
        let free = self.process_slots.available_permits() + self.idle_shared();
        leaves_a_quarter(self.all, free, claimed).then_some(reservation)
    }

    /// Acquires a slot for the process of a connection, held while it runs. Waits for another process to stop if
    /// necessary.
    pub(crate) async fn process_slot(&self, connection: &Arc<Connection>) -> Result<OwnedSemaphorePermit, Error> {
        self.waiting.fetch_add(1, Ordering::AcqRel);
        let _waits = WaitingStart(&self.waiting);
        let until = Instant::now() + SLOT_TIMEOUT;
        loop {
            let free = Arc::clone(&self.process_slots);
            let free = match free.try_acquire_owned() {
                Ok(process_slot) => Some(process_slot),
                Err(_) if !self.free_slots() || Instant::now() >= until => None,
                Err(_) => {
                    let freed = Arc::clone(&self.process_slots).acquire_owned();
                    match tokio::time::timeout(POLL_INTERVAL, freed).await {
                        Ok(Ok(process_slot)) => Some(process_slot),
                        _ => continue,
                    }
                }
            };
            let Some(process_slot) = free else { return Err(self.no_capacity(&connection.name)) };
            let mut running = self.running.lock();
            running.retain(|one| one.strong_count() > 0);
            running.push(Arc::downgrade(connection));
            drop(running);
            return Ok(process_slot);
        }
    }

    /// Stops idle processes for waiting starts, least recently used first. Returns `true` if a slot may become free
    /// soon: a process is stopping, starting, or only recently used.
    fn free_slots(&self) -> bool {
        let mut running: Vec<Arc<Connection>> = {
            let mut all = self.running.lock();
            all.retain(|one| one.upgrade().is_some_and(|one| !one.process_exited.is_cancelled()));
            all.iter().filter_map(Weak::upgrade).collect()
        };
        let mut leaving = running.iter().filter(|one| !one.is_open()).count();
        running.retain(|one| one.is_open() && one.is_idle() && !one.has_session_listing());
        running.sort_by_key(|one| one.last_used());
        let at_rest = !running.is_empty();
        let Some(before) = Instant::now().checked_sub(RECENT_USE) else { return true };
        let waiting = self.waiting.load(Ordering::Acquire);
        for one in running {
            if leaving >= waiting {
                break;
            }
            if one.close_if_idle(before) {
                tracing::debug!(module = &*one.name, "stopped because another server needs its slot");
                leaving += 1;
            }
        }
        leaving > 0 || at_rest || self.some_are_starting()
    }

    fn some_are_starting(&self) -> bool {
        let running = self.running.lock();
        running
            .iter()
            .filter_map(Weak::upgrade)
            .any(|one| one.is_open() && !one.is_in_use() && !one.has_session_listing())
    }

    /// Returns the number of idle shared processes.
    fn idle_shared(&self) -> usize {
        let running = self.running.lock();
        let shared = |one: &Arc<Connection>| matches!(one.purpose, ConnectionPurpose::Shared) && one.is_open();
        running.iter().filter_map(Weak::upgrade).filter(|one| shared(one) && one.is_idle()).count()
    }

    fn no_capacity(&self, name: &str) -> Error {
        let message = format!("`{name}` cannot start because all {} server processes are busy.", self.all);
        Error::new(ErrorKind::Overloaded, message)
            .hint("Try again when some of their calls have finished, or raise `limits.stdio_processes`.")
            .after(Duration::from_secs(1))
    }
}

fn leaves_a_quarter(all: usize, free: usize, claimed: usize) -> bool {
    free.checked_sub(claimed).is_some_and(|left| left >= all.div_ceil(4))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quarter_of_all_places_is_nobodys_own() {
        assert!(leaves_a_quarter(64, 64, 48) && !leaves_a_quarter(64, 64, 49));
        assert!(leaves_a_quarter(64, 17, 1) && !leaves_a_quarter(64, 16, 1));
        assert!(leaves_a_quarter(2, 2, 1) && !leaves_a_quarter(2, 1, 1));
        assert!(!leaves_a_quarter(1, 1, 1) && !leaves_a_quarter(64, 0, 1));
    }
}
