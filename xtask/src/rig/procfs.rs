//! Kernel data about a running process: memory, open files, children.

use anyhow::{Context, Result};

/// Returns the current memory and its peak since the last `forget_peak`, in bytes.
pub(crate) fn memory(pid: u32) -> Result<(u64, u64)> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).context("an odd /proc/PID/status")?;
        let kib: u64 = line.trim().trim_end_matches("kB").trim().parse()?;
        anyhow::Ok(kib * 1024)
    };
    Ok((field("VmRSS:")?, field("VmHWM:")?))
}

/// Resets the peak to the current memory.
pub(crate) fn forget_peak(pid: u32) -> Result<()> {
    Ok(std::fs::write(format!("/proc/{pid}/clear_refs"), "5")?)
}

pub(crate) fn open_files(pid: u32) -> Result<usize> {
    Ok(std::fs::read_dir(format!("/proc/{pid}/fd"))?.count())
}

/// Returns the numbers of living descendants and of zombies.
pub(crate) fn process_tree(pid: u32) -> Result<(usize, usize)> {
    let all = descendant_states(pid)?;
    let dead = all.iter().filter(|(_, is_dead)| *is_dead).count();
    Ok((all.len() - dead, dead))
}

/// Returns all descendants.
pub(crate) fn descendants(pid: u32) -> Result<Vec<u32>> {
    Ok(descendant_states(pid)?.into_iter().map(|(pid, _)| pid).collect())
}

/// Returns `true` if the process exists and is not a zombie.
pub(crate) fn is_alive(pid: u32) -> bool {
    read(pid).is_some_and(|process| !process.is_dead)
}

/// Returns all descendants, and whether each is a zombie.
fn descendant_states(pid: u32) -> Result<Vec<(u32, bool)>> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir("/proc")?.flatten() {
        all.extend(entry.file_name().to_str().and_then(|name| read(name.parse().ok()?)));
    }
    let (mut line, mut found) = (vec![pid], Vec::new());
    while let Some(next) = line.pop() {
        for ProcStat { own, is_dead, .. } in all.iter().filter(|process| process.parent == next) {
            found.push((*own, *is_dead));
            line.push(*own);
        }
    }
    Ok(found)
}

struct ProcStat {
    own: u32,
    parent: u32,
    is_dead: bool,
}

fn read(pid: u32) -> Option<ProcStat> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The program's name, in parentheses, may contain spaces.
    let mut fields = stat.rsplit_once(") ")?.1.split(' ');
    let (state, parent) = (fields.next()?, fields.next()?);
    Some(ProcStat { own: pid, parent: parent.parse().ok()?, is_dead: state == "Z" })
}
