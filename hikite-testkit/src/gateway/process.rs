//! The process table, read from `/proc`. Processes of a gateway are recognized by an inherited environment variable,
//! which also finds those that left its process tree and group.

use std::path::Path;

use rustix::process::{Pid, Resource, Rlimit, Signal, prlimit};

/// One entry of the process table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessEntry {
    pub pid: u32,
    pub parent: u32,
    pub state: char,
    /// Command line, joined by spaces.
    pub command: String,
}

impl ProcessEntry {
    /// Returns `true` for the guard process between hikite and a stdio server.
    pub fn is_guard(&self) -> bool {
        self.command.contains("__guard")
    }
}

pub fn is_alive(pid: u32) -> bool {
    read(pid).is_some_and(|process| process.state != 'Z')
}

/// Sends `SIGKILL`.
pub fn kill(pid: u32) {
    signal(pid, Signal::KILL);
}

/// Sends `SIGHUP`.
pub fn hang_up(pid: u32) {
    signal(pid, Signal::HUP);
}

/// Sets a soft limit of another process.
pub(crate) fn limit(pid: u32, resource: Resource, soft: Option<u64>) {
    let pid = Pid::from_raw(pid.cast_signed());
    let hard = prlimit(pid, resource, Rlimit { current: soft, maximum: None });
    // Only root may raise the hard limit; otherwise it stays.
    if hard.is_err() {
        let maximum = rustix::process::getrlimit(resource).maximum;
        prlimit(pid, resource, Rlimit { current: soft, maximum }).expect("a limit");
    }
}

pub(crate) fn signal(pid: u32, signal: Signal) {
    if let Some(pid) = Pid::from_raw(pid.cast_signed()) {
        // Fails only if the process is already gone.
        let _ = rustix::process::kill_process(pid, signal);
    }
}

/// Returns the living processes with the folder's mark: hikite and everything it started there.
pub fn marked(folder: &Path) -> Vec<ProcessEntry> {
    let mark = super::mark(folder);
    let carries = |pid: u32| {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes())
    };
    all().filter(|pid| carries(*pid)).filter_map(read).filter(|process| process.state != 'Z').collect()
}

pub(crate) fn zombies_of(parent: u32) -> Vec<ProcessEntry> {
    all().filter_map(read).filter(|process| process.parent == parent && process.state == 'Z').collect()
}

fn all() -> impl Iterator<Item = u32> {
    let table = std::fs::read_dir("/proc").expect("a process table");
    table.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
}

fn read(pid: u32) -> Option<ProcessEntry> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // `pid (name) state parent …`; the name may contain spaces and parentheses.
    let mut fields = stat.rsplit_once(") ")?.1.split(' ');
    let state = fields.next()?.chars().next()?;
    let parent = fields.next()?.parse().ok()?;
    let command = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let command = String::from_utf8_lossy(&command).replace('\0', " ").trim_end().to_owned();
    Some(ProcessEntry { pid, parent, state, command })
}
