//! Performance targets of hikite, and whether they were met. A target without figures counts as not measured, never as
//! met.

use super::results::{BenchCase, BenchResults};
use super::side::{GatewayRole, GatewayUnderTest};
use super::suite::{SMALL, call_case, plain_case};
use crate::rig::table::{ReportTable, TableCell};

const CPU: &str = "CPU s/10k";
const RATE: &str = "req/s";

pub(super) struct BenchTargets<'a> {
    pub(super) results: &'a BenchResults,
    pub(super) sides: &'a [GatewayUnderTest],
    /// In-process lexical search: number of tools, and microseconds.
    pub(super) words_us: &'a [(usize, f64)],
}

/// A target: its subject, the bound, the measured value, and the test of the value.
struct TargetRow {
    what: String,
    bound: String,
    measured: Option<(f64, usize, &'static str)>,
    is_met: fn(f64) -> bool,
}

impl BenchTargets<'_> {
    pub(super) fn table(&self) -> ReportTable {
        let rows = self.rows().into_iter().map(|row| {
            let (measured, kept) = match row.measured {
                Some((value, decimals, unit)) => {
                    (format!("{value:.decimals$}{unit}"), if (row.is_met)(value) { "yes" } else { "no" })
                }
                None => ("not measured".to_owned(), "-"),
            };
            vec![
                TableCell::text(row.what),
                TableCell::text(row.bound),
                TableCell::text(measured),
                TableCell::text(kept),
            ]
        });
        let title = "Bounds of hikite with everything on".to_owned();
        ReportTable { name: "bounds", title, columns: &["what", "bound", "seen", "ok"], rows: rows.collect() }
    }

    fn rows(&self) -> Vec<TargetRow> {
        let busy = call_case("http", SMALL, 64);
        let alone = call_case("http", SMALL, 1);
        let list = plain_case("list");
        let (hikite, floor, direct) =
            (self.name(GatewayRole::Hikite), self.name(GatewayRole::Floor), self.name(GatewayRole::Limit));
        let (peer, lister) = (self.fastest(&busy), self.fastest(&list));
        let ratio = |case: &BenchCase, other: Option<&'static str>, figure, unit| {
            let ratio = self.results.ratio(case, (hikite, other?), figure)?;
            Some((ratio, 2, unit))
        };
        let median = |case: &BenchCase, side, figure| self.results.median(case, side, figure);
        let added = median(&alone, hikite, "p50 ms")
            .zip(median(&alone, direct, "p50 ms"))
            .map(|(own, direct)| ((own - direct) * 1000.0, 0, " µs"));
        let named = |peer: Option<&'static str>| peer.unwrap_or("none");
        let cpu = "CPU seconds per 10,000 calls at 64 clients";
        let rate = "requests per second at 64 clients";
        let idle = median(&plain_case("idle"), hikite, "idle MB").map(|value| (value, 1, " MB"));
        let cold = median(&plain_case("cold"), hikite, "ms").map(|value| (value, 1, " ms"));
        let words = self.words_us.iter().find(|(count, _)| *count == 1000);
        let words = words.map(|(_, us)| (us / 1000.0, 3, " ms"));
        let row = |what: &str, bound: &str, measured, is_met| TargetRow {
            what: what.into(),
            bound: bound.into(),
            measured,
            is_met,
        };
        let fastest = format!("the fastest peer ({})", named(peer));
        let listing = format!("10 × the fastest peer that lists them ({})", named(lister));
        vec![
            row(cpu, "≤ 2.5 × floor", ratio(&busy, Some(floor), CPU, " ×"), |measured| measured <= 2.5),
            row(cpu, &format!("≤ half of {fastest}"), ratio(&busy, peer, CPU, " ×"), |measured| measured <= 0.5),
            row(rate, &format!("≥ 2 × {fastest}"), ratio(&busy, peer, RATE, " ×"), |measured| measured >= 2.0),
            row(rate, "≥ 0.6 × floor", ratio(&busy, Some(floor), RATE, " ×"), |measured| measured >= 0.6),
            row("p50 at one client, more than direct", "≤ 100 µs", added, |measured| measured <= 100.0),
            row("memory when idle, no upstreams", "≤ 25 MB", idle, |measured| measured <= 25.0),
            row("cold start to first answer", "≤ 50 ms", cold, |measured| measured <= 50.0),
            row(
                "tools/list of 1,000 tools per second",
                &format!("≥ {listing}"),
                ratio(&list, lister, RATE, " ×"),
                |measured| measured >= 10.0,
            ),
            row("search by words over 1,000 tools, in process", "≤ 0.1 ms", words, |measured| measured <= 0.1),
        ]
    }

    fn name(&self, role: GatewayRole) -> &'static str {
        self.sides.iter().find(|side| side.role == role).map_or("", |side| side.name)
    }

    /// Returns the gateway of others with the most requests per second.
    fn fastest(&self, case: &BenchCase) -> Option<&'static str> {
        let peers = self.sides.iter().filter(|side| side.role == GatewayRole::Peer);
        let measured = peers.filter_map(|side| Some((side.name, self.results.median(case, side.name, RATE)?)));
        measured.max_by(|(_, one), (_, other)| one.total_cmp(other)).map(|(name, _)| name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::side::sides;

    #[test]
    fn what_was_not_measured_is_not_met() {
        let (results, sides) = (BenchResults::default(), sides(None));
        let table = BenchTargets { results: &results, sides: &sides, words_us: &[] }.table();
        assert!(table.rows.iter().all(|row| row[2].to_string() == "not measured" && row[3].to_string() == "-"));
    }

    #[test]
    fn a_missed_bound_is_told() {
        let (mut results, sides) = (BenchResults::default(), sides(None));
        let case = call_case("http", SMALL, 64);
        for (side, rate) in [("hikite", 3000.0), ("floor", 10_000.0), ("modular-mcp", 1000.0), ("FastMCP proxy", 50.0)]
        {
            results.note(&case, side, RATE, 0, rate);
        }
        let table = BenchTargets { results: &results, sides: &sides, words_us: &[(1000, 250.0)] }.table();
        let told = |at: usize| table.rows[at].iter().map(ToString::to_string).collect::<Vec<_>>();
        assert!(told(2)[1].contains("modular-mcp"));
        assert_eq!(told(2)[2..], ["3.00 ×", "yes"]);
        assert_eq!(told(3)[2..], ["0.30 ×", "no"]);
        assert_eq!(told(8)[2..], ["0.250 ms", "no"]);
    }
}
