//! What the operating system says of this process. Where it says nothing, nothing is told.

use hikite_gateway::meter::{Metric, Point};

pub(super) fn reading() -> Vec<Metric> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let memory = |member: &str| kibibytes(&status, member).map(|kib| Point::alone(kib * 1024.0));
    let files =
        std::fs::read_dir("/proc/self/fd").ok().map(|all| u32::try_from(all.count()).unwrap_or(u32::MAX));
    let all = [
        memory("VmRSS:").map(|points| Metric::gauge("process.memory.usage", "By", "Memory in use.", points)),
        memory("VmSize:")
            .map(|points| Metric::gauge("process.memory.virtual", "By", "Memory that is set aside.", points)),
        files.map(|files| {
            let points = Point::alone(f64::from(files));
            Metric::gauge("process.unix.file_descriptor.count", "{file_descriptor}", "Open files.", points)
        }),
    ];
    all.into_iter().flatten().collect()
}

fn kibibytes(status: &str, member: &str) -> Option<f64> {
    let line = status.lines().find_map(|line| line.strip_prefix(member))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_of_the_status_is_found() {
        let status = "VmSize:\t  2000 kB\nVmRSS:\t     128 kB\n";
        assert_eq!(kibibytes(status, "VmRSS:"), Some(128.0));
        assert_eq!(kibibytes(status, "VmSwap:"), None);
    }
}
