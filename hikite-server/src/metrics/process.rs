//! Process metrics from `/proc`. Omitted where the operating system does not provide them.

use hikite_gateway::meter::{Metric, Point};

/// `USER_HZ`, which is 100 on all current Linux systems.
const TICKS_PER_SECOND: f64 = 100.0;

pub(super) fn reading() -> Vec<Metric> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let memory = |member: &str| kibibytes(&status, member).map(|kib| Point::single(kib * 1024.0));
    let files = std::fs::read_dir("/proc/self/fd").ok().map(|all| u32::try_from(all.count()).unwrap_or(u32::MAX));
    let cpu = std::fs::read_to_string("/proc/self/stat").ok().and_then(|stat| cpu_seconds(&stat));
    let all = [
        cpu.map(|seconds| {
            // Prometheus' own name, without OpenTelemetry's `time`.
            Metric::counter("process.cpu", "s", "CPU time used, user and system.", Point::single(seconds))
        }),
        memory("VmRSS:").map(|points| Metric::gauge("process.memory.usage", "By", "Memory in use.", points)),
        memory("VmSize:").map(|points| Metric::gauge("process.memory.virtual", "By", "Reserved memory.", points)),
        files.map(|files| {
            let points = Point::single(f64::from(files));
            Metric::gauge("process.unix.file_descriptor.count", "{file_descriptor}", "Open files.", points)
        }),
    ];
    all.into_iter().flatten().collect()
}

/// Returns user plus system time from `/proc/self/stat`, in units of `USER_HZ`.
fn cpu_seconds(stat: &str) -> Option<f64> {
    // The program name, in parentheses, may contain spaces.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut ticks = fields.split_whitespace().skip(11).map(str::parse::<f64>);
    Some((ticks.next()?.ok()? + ticks.next()?.ok()?) / TICKS_PER_SECOND)
}

fn kibibytes(status: &str, member: &str) -> Option<f64> {
    let line = status.lines().find_map(|line| line.strip_prefix(member))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cpu_time_is_found_whatever_the_program_is_called() {
        let stat = "7 (a ) b) S 1 7 7 0 -1 4194304 1 0 0 0 250 50 0 0 20 0 4 0 9 1 1";
        assert_eq!(cpu_seconds(stat), Some(3.0));
        assert_eq!(cpu_seconds("nonsense"), None);
    }

    #[test]
    fn a_member_of_the_status_is_found() {
        let status = "VmSize:\t  2000 kB\nVmRSS:\t     128 kB\n";
        assert_eq!(kibibytes(status, "VmRSS:"), Some(128.0));
        assert_eq!(kibibytes(status, "VmSwap:"), None);
    }
}
