//! Usage of one resource in numbers: taken places, largest holders, refusals and evictions. Current holders appear by
//! name; in totals only the first few dozen do.

use std::collections::HashMap;
use std::sync::Arc;

use super::Shares;

/// Maximum number of callers counted by name; later ones are counted together.
const NAMES: usize = 64;
const OTHERS: &str = "(others)";

/// Maximum number of named holders.
const TOP: usize = 20;

/// Event counts by caller, sorted by name.
pub type CallerCounts = Vec<(Arc<str>, u64)>;

/// Usage of one resource at one moment.
#[derive(Clone, Debug)]
pub struct SlotUsage {
    pub resource: &'static str,
    pub all: usize,
    pub taken: usize,
    /// Largest holders with their slots.
    pub top: Vec<(Arc<str>, usize)>,
    pub refused: CallerCounts,
    pub evicted: CallerCounts,
}

impl SlotUsage {
    pub fn of<V>(resource: &'static str, shares: &Shares<V>, (refused, evicted): (&CallerTally, &CallerTally)) -> Self {
        Self {
            resource,
            all: shares.allowance().all,
            taken: shares.total(),
            top: shares.top(TOP),
            refused: refused.sorted(),
            evicted: evicted.sorted(),
        }
    }
}

/// Event counts by caller.
#[derive(Debug, Default)]
pub struct CallerTally(HashMap<Arc<str>, u64>);

impl CallerTally {
    pub fn count(&mut self, name: &Arc<str>) {
        let is_known = self.0.contains_key(name) || self.0.len() < NAMES;
        let name = if is_known { Arc::clone(name) } else { Arc::from(OTHERS) };
        *self.0.entry(name).or_default() += 1;
    }

    fn sorted(&self) -> CallerCounts {
        let mut all: CallerCounts = self.0.iter().map(|(name, count)| (Arc::clone(name), *count)).collect();
        all.sort();
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_counted_have_an_end() {
        let mut tally = CallerTally::default();
        for number in 0..NAMES * 3 {
            tally.count(&Arc::from(number.to_string()));
        }
        assert_eq!(tally.0.len(), NAMES + 1);
        assert_eq!(tally.0.get(OTHERS), Some(&(NAMES as u64 * 2)));
    }
}
