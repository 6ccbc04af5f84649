//! Guard process between hikite and a stdio server, run from the same binary. It outlives hikite just long enough to
//! end the server and all its descendants, so that no process is orphaned, even when hikite is killed.

use std::ffi::OsString;
use std::io::Write;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitOptions};
use tokio::process::{Child, Command};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::Instant;

/// Time between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_secs(2);

/// Runs `command` until it exits, a signal arrives, or the parent process is gone, and returns the exit code. Must be
/// called in a process group leader; the server joins that group, with `files` as its limit of open files.
pub async fn guard(parent: u32, files: Option<u64>, command: OsString, args: Vec<OsString>) -> u8 {
    if let Some(files) = files {
        crate::files::set(files);
    }
    if let Err(error) = watch_parent(parent) {
        write_stderr(&format!("the guard cannot watch its parent process: {error}"));
        return 125;
    }
    let (Ok(mut term), Ok(mut interrupt)) = (signal(SignalKind::terminate()), signal(SignalKind::interrupt())) else {
        return 125;
    };
    let mut child = match Command::new(&command).args(args).stdin(Stdio::inherit()).spawn() {
        Ok(child) => child,
        Err(error) => {
            write_stderr(&format!("cannot start `{}`: {error}", command.to_string_lossy()));
            return if error.kind() == std::io::ErrorKind::NotFound { 127 } else { 126 };
        }
    };
    let status = tokio::select! {
        status = child.wait() => status.ok(),
        _ = term.recv() => end(&mut child).await,
        _ = interrupt.recv() => end(&mut child).await,
        () = parent_gone(parent) => end(&mut child).await,
    };
    end_orphans().await;
    code(status)
}

/// Writes to stderr, which hikite reads.
fn write_stderr(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

#[cfg(target_os = "linux")]
fn watch_parent(parent: u32) -> std::io::Result<()> {
    rustix::process::set_parent_process_death_signal(Some(Signal::TERM))?;
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    // The parent may have died before the death signal was set.
    if is_parent(parent) { Ok(()) } else { Err(std::io::Error::other("the parent process has already exited")) }
}

#[cfg(not(target_os = "linux"))]
fn watch_parent(_: u32) -> std::io::Result<()> {
    Ok(())
}

fn is_parent(parent: u32) -> bool {
    rustix::process::getppid().is_some_and(|pid| pid.as_raw_nonzero().get().cast_unsigned() == parent)
}

/// Waits until the parent is gone, by polling. A fallback on Linux, which has a parent-death signal.
async fn parent_gone(parent: u32) {
    while is_parent(parent) {
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

async fn end(child: &mut Child) -> Option<ExitStatus> {
    signal_group(Signal::TERM);
    match tokio::time::timeout(GRACE, child.wait()).await {
        Ok(status) => status.ok(),
        Err(_) => {
            let _ = child.kill().await;
            None
        }
    }
}

fn signal_group(signal: Signal) {
    let group = rustix::process::getpgrp();
    // A process group that is not ours (started by hand from a shell) is left alone.
    if group == rustix::process::getpid() {
        let _ = rustix::process::kill_process_group(group, signal);
    }
}

/// Ends all processes that the server left behind. As the subreaper we inherit orphans, even those that left the group.
async fn end_orphans() {
    let started = Instant::now();
    let mut term_sent = false;
    loop {
        while let Ok(Some(_)) = rustix::process::waitpid(None, WaitOptions::NOHANG) {}
        let orphans = children();
        if orphans.is_empty() {
            return;
        }
        let last = started.elapsed() > GRACE / 2;
        for orphan in orphans {
            if last || !term_sent {
                let _ = rustix::process::kill_process(orphan, if last { Signal::KILL } else { Signal::TERM });
            }
        }
        term_sent = true;
        if started.elapsed() > GRACE * 2 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Returns our direct children from the process table.
fn children() -> Vec<Pid> {
    let own = rustix::process::getpid().as_raw_nonzero().get();
    let Ok(table) = std::fs::read_dir("/proc") else { return Vec::new() };
    table
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok())
        .filter(|pid| parent_of(*pid) == Some(own))
        .filter_map(Pid::from_raw)
        .collect()
}

fn parent_of(pid: i32) -> Option<i32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // `pid (name) state parent …`; the name may contain spaces and parentheses.
    let after = stat.rsplit_once(") ")?.1;
    after.split(' ').nth(1)?.parse().ok()
}

fn code(status: Option<ExitStatus>) -> u8 {
    use std::os::unix::process::ExitStatusExt;
    let Some(status) = status else { return 137 };
    let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    u8::try_from(code).unwrap_or(1)
}
