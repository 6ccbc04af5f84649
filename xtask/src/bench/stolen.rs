//! Stolen CPU time: a virtual machine shares its processors, and measurements made while others use them say little.

/// Ticks of all processors since boot.
#[derive(Clone, Copy)]
pub(super) struct CpuTicks {
    stolen: u64,
    all: u64,
}

impl CpuTicks {
    /// Reads the counters; `None` if the system does not provide them.
    pub(super) fn now() -> Option<Self> {
        Self::read(&std::fs::read_to_string("/proc/stat").ok()?)
    }

    fn read(stat: &str) -> Option<Self> {
        // User, nice, system, idle, iowait, irq, softirq, steal; the rest is part of the first two.
        let fields = stat.lines().next()?.strip_prefix("cpu ")?.split_whitespace().take(8);
        let ticks = fields.map(str::parse).collect::<Result<Vec<u64>, _>>().ok()?;
        Some(Self { stolen: *ticks.get(7)?, all: ticks.iter().sum() })
    }

    /// Returns the share stolen since `before`.
    #[expect(clippy::cast_precision_loss, reason = "far fewer ticks than a double counts exactly")]
    pub(super) fn stolen_since(self, before: Self) -> f64 {
        let all = self.all.saturating_sub(before.all).max(1);
        self.stolen.saturating_sub(before.stolen) as f64 / all as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_of_others_is_read() {
        let before = CpuTicks::read("cpu  10 0 10 70 0 0 0 10 3 0\ncpu0 1 2\n").expect("ticks");
        let after = CpuTicks::read("cpu  60 0 10 90 0 0 0 40 9 0\n").expect("ticks");
        assert!((after.stolen_since(before) - 0.3).abs() < 1e-9);
        assert!(before.stolen_since(before).abs() < 1e-9);
        assert!(CpuTicks::read("cpu  1 2 3\n").is_none());
    }
}
