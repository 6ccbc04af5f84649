//! One thread that starts all processes. A death signal is tied to the thread that started a process, not to
//! the program: started from a passing worker thread, a server would be told that we died when only that
//! thread ended.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc;

use rustix::process::{Pid, Signal};
use tokio::process::{Child, Command};
use tokio::sync::oneshot;

mod room;
mod turn;

pub(crate) use room::{Claim, Room};
pub(crate) use turn::{Turn, Turns};

type Job = (Command, oneshot::Sender<io::Result<Child>>);

#[derive(Clone, Debug)]
pub struct Spawner {
    jobs: mpsc::Sender<Job>,
    guard: Arc<PathBuf>,
    pub(crate) room: Arc<Room>,
    pub(crate) turns: Arc<Turns>,
}

/// How many processes there may be.
#[derive(Clone, Copy, Debug)]
pub struct ProcessLimits {
    /// Servers that run at once.
    pub running: usize,
    /// Of them, those that start at a time; zero means twice the processors, at least four.
    pub starting: usize,
}

impl Spawner {
    /// `guard` is the hikite program itself. Must be called inside a tokio runtime.
    pub fn start(guard: PathBuf, processes: ProcessLimits) -> io::Result<Self> {
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
        let (room, turns) = (Room::new(processes.running), Turns::new(processes.starting));
        Ok(Self { jobs, guard: Arc::new(guard), room, turns })
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
