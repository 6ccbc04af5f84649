//! Benchmark results: a number for each gateway, case, figure and round, and the failures.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::rig::table::median;

/// A suite and one of its cases, such as `http` and `100 B, 64 clients`.
pub(super) type BenchCase = (&'static str, String);

/// Name of the figure for stolen CPU time.
pub(super) const STOLEN: &str = "stolen";

/// A case, a gateway, and the name of the measured figure.
type BenchFigure = (BenchCase, &'static str, &'static str);

#[derive(Default)]
pub(super) struct BenchResults {
    /// Values by round, for each case, gateway and figure.
    figures: BTreeMap<BenchFigure, Vec<(usize, f64)>>,
    /// Last failure of each case and gateway.
    failures: BTreeMap<(BenchCase, &'static str), String>,
}

impl BenchResults {
    pub(super) fn note(
        &mut self,
        case: &BenchCase,
        side: &'static str,
        figure: &'static str,
        round: usize,
        value: f64,
    ) {
        self.figures.entry((case.clone(), side, figure)).or_default().push((round, value));
    }

    pub(super) fn fail(&mut self, case: &BenchCase, side: &'static str, error: &str) {
        let line = error.lines().next().unwrap_or_default();
        self.failures.insert((case.clone(), side), line.chars().take(160).collect());
    }

    pub(super) fn values(&self, case: &BenchCase, side: &'static str, figure: &'static str) -> Vec<f64> {
        let values = self.figures.get(&(case.clone(), side, figure));
        values.into_iter().flatten().map(|(_, value)| *value).collect()
    }

    pub(super) fn median(&self, case: &BenchCase, side: &'static str, figure: &'static str) -> Option<f64> {
        let values = self.values(case, side, figure);
        (!values.is_empty()).then(|| median(values))
    }

    /// Returns the median of the ratios within each round: the machine may be slower in the next.
    pub(super) fn ratio(
        &self,
        case: &BenchCase,
        (side, other): (&'static str, &'static str),
        figure: &'static str,
    ) -> Option<f64> {
        let of = |side| self.figures.get(&(case.clone(), side, figure));
        let (own, others) = (of(side)?, of(other)?);
        let within = |(round, value): &(usize, f64)| {
            let other = others.iter().find(|(other, _)| other == round)?;
            (other.1 > 0.0).then(|| value / other.1)
        };
        let ratios: Vec<f64> = own.iter().filter_map(within).collect();
        (!ratios.is_empty()).then(|| median(ratios))
    }

    /// Returns the spread of the rounds: largest minus smallest value, relative to the median.
    pub(super) fn spread(&self, case: &BenchCase, side: &'static str, figure: &'static str) -> Option<f64> {
        let values = self.values(case, side, figure);
        let largest = values.iter().copied().reduce(f64::max)?;
        let smallest = values.iter().copied().reduce(f64::min)?;
        let middle = median(values);
        (middle > 0.0).then(|| (largest - smallest) / middle)
    }

    /// Returns how many measurements had more stolen CPU time than `most`, and how many there are.
    pub(super) fn disturbed(&self, most: f64) -> (usize, usize) {
        let shares = || {
            let figures = self.figures.iter().filter(|((_, _, figure), _)| *figure == STOLEN);
            figures.flat_map(|(_, values)| values)
        };
        (shares().filter(|(_, share)| *share > most).count(), shares().count())
    }

    pub(super) fn failure(&self, case: &BenchCase, side: &'static str) -> Option<&str> {
        self.failures.get(&(case.clone(), side)).map(String::as_str)
    }

    pub(super) fn failures(&self) -> impl Iterator<Item = (&BenchCase, &'static str, &str)> {
        self.failures.iter().map(|((case, side), error)| (case, *side, error.as_str()))
    }

    /// Returns every value of every round.
    pub(super) fn json(&self) -> Value {
        let figures = self.figures.iter().map(|(((suite, case), side, figure), values)| {
            json!({ "suite": suite, "case": case, "side": side, "figure": figure, "values": values })
        });
        let failures = self
            .failures()
            .map(|((suite, case), side, error)| json!({ "suite": suite, "case": case, "side": side, "error": error }));
        json!({ "figures": figures.collect::<Vec<_>>(), "failures": failures.collect::<Vec<_>>() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_taken_within_a_round() {
        let (mut results, case) = (BenchResults::default(), ("http", "c".to_owned()));
        for (round, own, limit) in [(0, 10.0, 20.0), (1, 30.0, 40.0), (2, 8.0, 10.0)] {
            results.note(&case, "own", "req/s", round, own);
            results.note(&case, "limit", "req/s", round, limit);
        }
        results.note(&case, "own", "req/s", 3, 1.0);
        let close = |seen: Option<f64>, value: f64| assert!((seen.expect("a value") - value).abs() < 1e-9);
        close(results.ratio(&case, ("own", "limit"), "req/s"), 0.75);
        close(results.spread(&case, "limit", "req/s"), 1.5);
        assert!(results.median(&case, "other", "req/s").is_none());
        assert!(results.ratio(&case, ("own", "other"), "req/s").is_none());
    }

    #[test]
    fn disturbed_measurements_are_counted() {
        let (mut results, case) = (BenchResults::default(), ("http", "c".to_owned()));
        for (round, share) in [(0, 0.0), (1, 0.3), (2, 0.02)] {
            results.note(&case, "own", STOLEN, round, share);
            results.note(&case, "own", "req/s", round, 1.0);
        }
        assert_eq!(results.disturbed(0.02), (1, 3));
    }
}
