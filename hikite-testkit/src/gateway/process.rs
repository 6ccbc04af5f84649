//! The process table, read through `/proc`. What a gateway started is known by a variable in its environment
//! that hikite passes on, so that not even a process that left its family and its group is overlooked.

use std::path::Path;

use rustix::process::{Pid, Resource, Rlimit, Signal, prlimit};

/// One line of the process table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    pub pid: u32,
    pub parent: u32,
    pub state: char,
    /// The command line, its parts separated by blanks.
    pub command: String,
}

impl Process {
    /// Whether it stands between hikite and a server.
    pub fn is_guard(&self) -> bool {
        self.command.contains("__guard")
    }
}

pub fn is_alive(pid: u32) -> bool {
    read(pid).is_some_and(|process| process.state != 'Z')
}

/// `SIGKILL`.
pub fn kill(pid: u32) {
    signal(pid, Signal::KILL);
}

/// `SIGHUP`.
pub fn hang_up(pid: u32) {
    signal(pid, Signal::HUP);
}

/// Sets a soft limit of a process of ours.
pub(crate) fn limit(pid: u32, resource: Resource, soft: Option<u64>) {
    let pid = Pid::from_raw(pid.cast_signed());
    let hard = prlimit(pid, resource, Rlimit { current: soft, maximum: None });
    // The hard limit may be raised by root alone; then it stays what it is.
    if hard.is_err() {
        let maximum = rustix::process::getrlimit(resource).maximum;
        prlimit(pid, resource, Rlimit { current: soft, maximum }).expect("a limit");
    }
}

pub(crate) fn signal(pid: u32, signal: Signal) {
    if let Some(pid) = Pid::from_raw(pid.cast_signed()) {
        // Fails only if it is gone already.
        let _ = rustix::process::kill_process(pid, signal);
    }
}

/// The live processes that carry the mark of the folder: hikite itself and all that it started there.
pub fn marked(folder: &Path) -> Vec<Process> {
    let mark = super::mark(folder);
    let carries = |pid: u32| {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes())
    };
    all().filter(|pid| carries(*pid)).filter_map(read).filter(|process| process.state != 'Z').collect()
}

pub(crate) fn zombies_of(parent: u32) -> Vec<Process> {
    all().filter_map(read).filter(|process| process.parent == parent && process.state == 'Z').collect()
}

fn all() -> impl Iterator<Item = u32> {
    let table = std::fs::read_dir("/proc").expect("a process table");
    table.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
}

fn read(pid: u32) -> Option<Process> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // `pid (name) state parent …`; the name may hold blanks and parentheses.
    let mut fields = stat.rsplit_once(") ")?.1.split(' ');
    let state = fields.next()?.chars().next()?;
    let parent = fields.next()?.parse().ok()?;
    let command = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let command = String::from_utf8_lossy(&command).replace('\0', " ").trim_end().to_owned();
    Some(Process { pid, parent, state, command })
}
