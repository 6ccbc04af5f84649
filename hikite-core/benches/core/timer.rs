//! Nanoseconds of one run, as the median of many batches: the machine is shared, and now and then it is away.

use std::hint::black_box;
use std::time::{Duration, Instant};

const BATCHES: usize = 101;
/// Long against the clock's own cost, short against the pauses of the machine.
const BATCH: Duration = Duration::from_micros(200);

#[derive(Clone, Copy)]
pub(crate) struct Timer {
    /// Else everything runs once and nothing is timed.
    pub(crate) measures: bool,
}

impl Timer {
    pub(crate) fn nanoseconds<T>(self, mut work: impl FnMut() -> T) -> f64 {
        if !self.measures {
            black_box(work());
            return 0.0;
        }
        let mut runs = 1_u32;
        while batch(runs, &mut work) < BATCH {
            runs = runs.saturating_mul(2);
        }
        let mut times: Vec<f64> =
            (0..BATCHES).map(|_| batch(runs, &mut work).as_secs_f64() * 1e9 / f64::from(runs)).collect();
        times.sort_by(f64::total_cmp);
        times[BATCHES / 2]
    }
}

fn batch<T>(runs: u32, work: &mut impl FnMut() -> T) -> Duration {
    let started = Instant::now();
    for _ in 0..runs {
        black_box(work());
    }
    started.elapsed()
}
