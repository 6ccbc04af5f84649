//! A dedicated thread that starts all processes. The parent-death signal is tied to the thread that started a process:
//! if a short-lived worker thread started a server, the server would be killed when that thread ends.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc;

use rustix::process::{Pid, Signal};
use tokio::process::{Child, Command};
use tokio::sync::oneshot;

mod capacity;
mod start_permit;

pub(crate) use capacity::{CapacityReservation, ProcessCapacity};
pub(crate) use start_permit::{StartLimiter, StartPermit};

type SpawnJob = (Command, oneshot::Sender<io::Result<Child>>);

#[derive(Clone, Debug)]
pub struct Spawner {
    jobs: mpsc::Sender<SpawnJob>,
    guard: Arc<PathBuf>,
    pub(crate) capacity: Arc<ProcessCapacity>,
    pub(crate) start_limiter: Arc<StartLimiter>,
}

/// Limits on server processes.
#[derive(Clone, Copy, Debug)]
pub struct ProcessLimits {
    /// Maximum number of running servers.
    pub running: usize,
    /// Maximum number of servers starting at once. Zero means twice the processors, at least four.
    pub starting: usize,
}

impl Spawner {
    /// Starts the spawner thread. `guard` is the hikite binary. Must be called inside a tokio runtime.
    pub fn start(guard: PathBuf, processes: ProcessLimits) -> io::Result<Self> {
        let (jobs, queue) = mpsc::channel::<SpawnJob>();
        let runtime = tokio::runtime::Handle::current();
        std::thread::Builder::new().name("hikite-spawner".into()).spawn(move || {
            let _context = runtime.enter();
            for (mut command, answer) in queue {
                if let Err(Ok(child)) = answer.send(command.spawn()) {
                    // The caller is gone, and the server may already be running.
                    end_group(&child);
                }
            }
        })?;
        let (capacity, start_limiter) =
            (ProcessCapacity::new(processes.running), StartLimiter::new(processes.starting));
        Ok(Self { jobs, guard: Arc::new(guard), capacity, start_limiter })
    }

    pub(crate) fn guard(&self) -> &PathBuf {
        &self.guard
    }

    pub(crate) async fn spawn(&self, command: Command) -> io::Result<Child> {
        let (answer, spawned) = oneshot::channel();
        let gone = || io::Error::other("the spawner has stopped");
        self.jobs.send((command, answer)).map_err(|_| gone())?;
        spawned.await.map_err(|_| gone())?
    }
}

fn end_group(child: &Child) {
    if let Some(group) = child.id().and_then(|id| Pid::from_raw(id.cast_signed())) {
        let _ = rustix::process::kill_process_group(group, Signal::KILL);
    }
}
