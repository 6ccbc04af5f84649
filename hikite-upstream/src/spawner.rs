//! One thread that starts all processes. A death signal is tied to the thread that started a process, not to
//! the program: started from a passing worker thread, a server would be told that we died when only that
//! thread ended.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

use rustix::process::{Pid, Signal};
use tokio::process::{Child, Command};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

type Job = (Command, oneshot::Sender<io::Result<Child>>);

#[derive(Clone, Debug)]
pub struct Spawner {
    jobs: mpsc::Sender<Job>,
    guard: Arc<PathBuf>,
    places: Arc<Semaphore>,
    all: usize,
    claimed: Arc<AtomicUsize>,
}

/// A place that a process of one session is about to take.
#[derive(Debug)]
pub(crate) struct Claim(Arc<AtomicUsize>);

impl Drop for Claim {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Spawner {
    /// `guard` is the hikite program itself; at most `processes` servers run at once. Must be called inside a
    /// tokio runtime.
    pub fn start(guard: PathBuf, processes: usize) -> io::Result<Self> {
        let (jobs, queue) = mpsc::channel::<Job>();
        let runtime = tokio::runtime::Handle::current();
        std::thread::Builder::new().name("hikite-spawner".into()).spawn(move || {
            let _context = runtime.enter();
            for (mut command, answer) in queue {
                if let Err(Ok(child)) = answer.send(command.spawn()) {
                    // Nobody waits for it any more, and its server may be running already.
                    end_group(&child);
                }
            }
        })?;
        let all = processes.min(Semaphore::MAX_PERMITS);
        let places = Arc::new(Semaphore::new(all));
        Ok(Self { jobs, guard: Arc::new(guard), places, all, claimed: Arc::default() })
    }

    pub(crate) fn guard(&self) -> &PathBuf {
        &self.guard
    }

    /// A place for a session's own process, as long as a quarter of all stays free for those that serve everybody.
    pub(crate) fn claim_own(&self) -> Option<Claim> {
        // Counted before it is looked, so that of many at once not all find the same place free.
        let claimed = self.claimed.fetch_add(1, Ordering::AcqRel) + 1;
        let claim = Claim(Arc::clone(&self.claimed));
        leaves_a_quarter(self.all, self.places.available_permits(), claimed).then_some(claim)
    }

    /// A place for one more process, held while it runs.
    pub(crate) fn place(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.places).try_acquire_owned().ok()
    }

    pub(crate) async fn spawn(&self, command: Command) -> io::Result<Child> {
        let (answer, spawned) = oneshot::channel();
        let gone = || io::Error::other("the spawner has stopped");
        self.jobs.send((command, answer)).map_err(|_| gone())?;
        spawned.await.map_err(|_| gone())?
    }
}

fn leaves_a_quarter(all: usize, free: usize, claimed: usize) -> bool {
    free.checked_sub(claimed).is_some_and(|left| left >= all.div_ceil(4))
}

fn end_group(child: &Child) {
    if let Some(group) = child.id().and_then(|id| Pid::from_raw(id.cast_signed())) {
        let _ = rustix::process::kill_process_group(group, Signal::KILL);
    }
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
