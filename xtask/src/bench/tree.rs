//! Resource use of a process and all its descendants, excluding our own upstreams.

use std::collections::HashMap;
use std::fs;

use anyhow::{Context, Result};

/// Returns the CPU time of all living members so far, user and system.
pub(super) fn cpu_seconds(root: u32) -> Result<f64> {
    let mut ticks = 0;
    for id in members(root)? {
        let Ok(stat) = fs::read_to_string(format!("/proc/{id}/stat")) else { continue };
        ticks += fields(&stat)?.skip(11).take(2).filter_map(|field| field.parse::<u32>().ok()).sum::<u32>();
    }
    Ok(f64::from(ticks) / 100.0)
}

/// Returns resident memory in units of 1024 kB. Shared pages count twice.
pub(super) fn memory_mb(root: u32) -> Result<f64> {
    let mut kilobytes = 0;
    for id in members(root)? {
        let Ok(status) = fs::read_to_string(format!("/proc/{id}/status")) else { continue };
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let number = line.and_then(|line| line.split_whitespace().next());
        kilobytes += number.and_then(|number| number.parse::<u32>().ok()).unwrap_or(0);
    }
    Ok(f64::from(kilobytes) / 1024.0)
}

fn members(root: u32) -> Result<Vec<u32>> {
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    for entry in fs::read_dir("/proc")? {
        let Some(id) = entry?.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        let Ok(stat) = fs::read_to_string(format!("/proc/{id}/stat")) else { continue };
        let parent = fields(&stat)?.nth(1).and_then(|field| field.parse().ok());
        children.entry(parent.context("an odd /proc/PID/stat")?).or_default().push(id);
    }
    let own = std::env::current_exe()?;
    let (mut members, mut next) = (Vec::new(), vec![root]);
    while let Some(id) = next.pop() {
        let command = fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
        let mut words = command.split(|byte| *byte == 0);
        let is_ours = words.next() == Some(own.as_os_str().as_encoded_bytes());
        if is_ours && words.next() == Some(b"upstream") {
            continue;
        }
        members.push(id);
        next.extend(children.remove(&id).unwrap_or_default());
    }
    Ok(members)
}

/// Returns the fields after the program's name, which is in parentheses and may contain spaces.
fn fields(stat: &str) -> Result<impl Iterator<Item = &str>> {
    let (_, fields) = stat.rsplit_once(')').context("an odd /proc/PID/stat")?;
    Ok(fields.split_whitespace())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_very_program_takes_memory() {
        assert!(memory_mb(std::process::id()).expect("proc") > 0.5);
        assert!(cpu_seconds(std::process::id()).is_ok());
        assert_eq!(fields("1 (a b) c) S 7").expect("fields").nth(1), Some("7"));
    }
}
