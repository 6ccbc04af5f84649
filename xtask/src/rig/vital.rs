//! What the kernel says of a running process: memory, open files, children.

use anyhow::{Context, Result};

/// Memory in use now and the most there was since the last `forget_peak`, in bytes.
pub(crate) fn memory(pid: u32) -> Result<(u64, u64)> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let field = |name: &str| {
        let line =
            status.lines().find_map(|line| line.strip_prefix(name)).context("an odd /proc/PID/status")?;
        let kib: u64 = line.trim().trim_end_matches("kB").trim().parse()?;
        anyhow::Ok(kib * 1024)
    };
    Ok((field("VmRSS:")?, field("VmHWM:")?))
}

/// The most there was begins with what there is now.
pub(crate) fn forget_peak(pid: u32) -> Result<()> {
    Ok(std::fs::write(format!("/proc/{pid}/clear_refs"), "5")?)
}

pub(crate) fn open_files(pid: u32) -> Result<usize> {
    Ok(std::fs::read_dir(format!("/proc/{pid}/fd"))?.count())
}

/// Children, theirs and so on, that live, and those of them that are dead and were not taken notice of.
pub(crate) fn family(pid: u32) -> Result<(usize, usize)> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir("/proc")?.flatten() {
        let Ok(stat) = std::fs::read_to_string(entry.path().join("stat")) else { continue };
        let (Some((own, _)), Some((_, rest))) = (stat.split_once(' '), stat.rsplit_once(") ")) else {
            continue;
        };
        let mut fields = rest.split(' ');
        let (state, parent) = (fields.next().unwrap_or_default(), fields.next().unwrap_or_default());
        if let (Ok(own), Ok(parent)) = (own.parse::<u32>(), parent.parse::<u32>()) {
            all.push((own, parent, state == "Z"));
        }
    }
    let (mut line, mut alive, mut dead) = (vec![pid], 0, 0);
    while let Some(next) = line.pop() {
        for (own, _, is_dead) in all.iter().filter(|(_, parent, _)| *parent == next) {
            *(if *is_dead { &mut dead } else { &mut alive }) += 1;
            line.push(*own);
        }
    }
    Ok((alive, dead))
}
