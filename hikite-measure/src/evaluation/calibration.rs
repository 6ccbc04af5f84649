//! Calibration of relevance: of the hits with a relevance near 0.7, seven in ten should be right.

const BINS: usize = 10;

/// Hits by relevance.
#[derive(Clone, Debug, Default)]
pub(crate) struct CalibrationBins {
    bins: [RelevanceBin; BINS],
}

#[derive(Clone, Copy, Debug, Default)]
struct RelevanceBin {
    count: f64,
    relevance: f64,
    right: f64,
}

impl CalibrationBins {
    pub(crate) fn record(&mut self, relevance: f64, is_right: bool) {
        let at = (1..BINS).take_while(|bin| relevance >= share(*bin)).count();
        let bin = &mut self.bins[at];
        bin.count += 1.0;
        bin.relevance += relevance;
        bin.right += f64::from(u8::from(is_right));
    }

    /// Returns the expected calibration error: the mean distance of relevance from the share of right hits, over the
    /// bins and weighted by their size.
    pub(crate) fn error(&self) -> f64 {
        let total: f64 = self.bins.iter().map(|bin| bin.count).sum();
        let distance: f64 = self.bins.iter().map(|bin| (bin.relevance - bin.right).abs()).sum();
        if total > 0.0 { distance / total } else { 0.0 }
    }
}

#[expect(clippy::cast_precision_loss, reason = "ten bins")]
fn share(bin: usize) -> f64 {
    bin as f64 / BINS as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_is_the_distance_from_the_share_of_right_hits() {
        let mut bins = CalibrationBins::default();
        assert!(bins.error() < 1e-9);
        for is_right in [true, true, true, false] {
            bins.record(0.75, is_right);
        }
        assert!(bins.error() < 1e-9, "three of four are right");
        for _ in 0..4 {
            bins.record(1.0, false);
        }
        assert!((bins.error() - 0.5).abs() < 1e-9, "{}", bins.error());
    }
}
