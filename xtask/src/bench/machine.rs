//! Description of the machine that produced the figures.

use std::fs;
use std::process::Command;

/// Machine description, read before and after a run.
pub(super) struct Machine {
    processor: String,
    cores: usize,
    memory_gb: String,
    kernel: String,
    load: String,
}

impl Machine {
    pub(super) fn read() -> Self {
        let text = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let processors = text("/proc/cpuinfo");
        let model = processors.lines().find_map(|line| line.strip_prefix("model name"));
        let model = model.map_or("an unknown processor", |model| model.trim_start_matches([' ', '\t', ':']));
        let memory = text("/proc/meminfo");
        let kilobytes = memory.split_whitespace().nth(1).and_then(|number| number.parse::<f64>().ok());
        Self {
            processor: model.to_owned(),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            memory_gb: format!("{:.0}", kilobytes.unwrap_or(0.0) / 1024.0 / 1024.0),
            kernel: text("/proc/sys/kernel/osrelease").trim().to_owned(),
            load: text("/proc/loadavg").split_whitespace().take(3).collect::<Vec<_>>().join(" "),
        }
    }

    pub(super) fn told(&self, after: &Self) -> String {
        let Self { processor, cores, memory_gb, kernel, load } = self;
        format!(
            "{processor}, {cores} cores that client, gateway and upstream share, {memory_gb} GB, Linux {kernel}. Load \
             average {load} before and {} after.",
            after.load
        )
    }
}

/// Returns the current date in UTC.
pub(super) fn today() -> String {
    let output = Command::new("date").args(["-u", "+%Y-%m-%d"]).output();
    output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()).unwrap_or_default()
}
