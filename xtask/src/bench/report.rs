//! The figures as tables, on the terminal and in `docs/benchmarks.md`, whose other text is preserved.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use anyhow::{Context, Result};

use super::chart;
use super::drive::{DISTURBED, TRIES};
use super::machine::today;
use super::results::{BenchCase, BenchResults};
use super::side::{GatewayRole, GatewayUnderTest};
use super::suite::{CLIENTS, SIZES, SMALL, call_case, plain_case};
use super::target::BenchTargets;
use crate::rig::table::{ReportTable, TableCell};

const BEGIN: &str = "<!-- measured: what stands up to the end is made by `cargo xtask bench --write` -->";
const PICTURE: &str = "![Requests per second and CPU seconds of hikite and its peers](benchmarks.svg)";
const END: &str = "<!-- measured: end -->";
const HOSTILE_BEGIN: &str =
    "<!-- hostile: what stands up to the end is made by `cargo xtask bench --only hostile --write` -->";
const HOSTILE_END: &str = "<!-- hostile: end -->";

pub(super) struct BenchReport<'a> {
    pub(super) results: &'a BenchResults,
    pub(super) sides: &'a [GatewayUnderTest],
    pub(super) words_us: &'a [(usize, f64)],
    pub(super) rounds: usize,
    pub(super) duration: Duration,
    pub(super) machine: String,
}

/// Tables of calls: the suite, the title, and a name for each size.
const CALLS: &[(&str, &str, [&str; 3])] = &[
    ("http", "upstream over HTTP, answers as JSON", ["http-100", "http-10k", "http-1m"]),
    ("sse", "upstream over HTTP, answers as SSE", ["sse-100", "sse-10k", "sse-1m"]),
    ("stdio", "upstream that is a program", ["stdio-100", "stdio-10k", "stdio-1m"]),
];
const SIZE_NAMES: [&str; 3] = ["100 B", "10 kB", "1 MB"];

impl BenchReport<'_> {
    pub(super) fn tables(&self) -> Vec<ReportTable> {
        let bounds = BenchTargets { results: self.results, sides: self.sides, words_us: self.words_us };
        let mut tables = vec![bounds.table()];
        for (suite, title, names) in CALLS {
            for ((size, told), name) in SIZES.iter().zip(SIZE_NAMES).zip(names) {
                tables.extend(self.calls(suite, *size, name, format!("tools/call, {told}, {title}")));
            }
        }
        tables.extend(self.repeated("list", "tools/list of 1,000 tools, 4 clients"));
        tables.extend(self.repeated("search-1000", "search over 1,000 tools by the gateway's own tool, 4 clients"));
        tables.extend(self.repeated("search-10000", "search over 10,000 tools by the gateway's own tool, 4 clients"));
        tables.extend(self.words());
        tables.extend(self.resting());
        tables
    }

    /// Returns the notes that accompany the tables.
    pub(super) fn told(&self) -> String {
        let versions =
            self.sides.iter().filter_map(|side| Some(format!("{} {}", side.name, side.install.as_ref()?.version)));
        let (disturbed, all) = self.results.disturbed(DISTURBED);
        let mut text = format!(
            "{}, hikite {}. {}\n\nMedians of {} rounds of {} s for each figure; *spread* is the largest less the smallest of \
             the rounds, of their median. *Of direct* is the median of the ratios within each round. Who else uses the \
             processors of a rented machine is not ours to say: load was measured up to {TRIES} times, until others had no \
             more than {:.0} % of their time, and the least disturbed counts; in {disturbed} of {all} they had more.\n\n\
             Peers: {}.",
            today(),
            env!("CARGO_PKG_VERSION"),
            self.machine,
            self.rounds,
            self.duration.as_secs_f64(),
            DISTURBED * 100.0,
            versions.collect::<Vec<_>>().join(", "),
        );
        let mut failures: BTreeMap<(&str, &str), Vec<String>> = BTreeMap::new();
        for ((suite, case), side, error) in self.results.failures() {
            let what = if case.is_empty() { (*suite).to_owned() } else { format!("{suite} ({case})") };
            failures.entry((side, error)).or_default().push(what);
        }
        if !failures.is_empty() {
            text.push_str("\n\nNot measured:\n");
        }
        for ((side, error), what) in failures {
            let _ = write!(text, "\n- {side}: {} ({})", error.replace(['<', '>'], ""), what.join(", "));
        }
        text
    }

    /// Writes the page and its chart.
    pub(super) fn write(&self) -> Result<()> {
        let docs = crate::root()?.join("docs");
        let file = docs.join("benchmarks.md");
        let old = std::fs::read_to_string(&file).unwrap_or_default();
        let (before, rest) = old.split_once(BEGIN).context("docs/benchmarks.md has no place for the figures")?;
        let (_, after) = rest.split_once(END).context("the place for the figures has no end")?;
        let tables: Vec<String> = self.tables().iter().map(markdown).collect();
        let figures = format!("## Figures\n\n{PICTURE}\n\n{}\n\n{}", self.told(), tables.join("\n\n"));
        std::fs::write(&file, format!("{before}{BEGIN}\n\n{figures}\n\n{END}{after}"))?;
        let chart = chart::chart(&[
            ("Requests per second at 64 clients, more is better", self.bars("req/s")),
            ("CPU seconds of the gateway for 10,000 calls, less is better", self.bars("CPU s/10k")),
        ]);
        Ok(std::fs::write(docs.join("benchmarks.svg"), chart)?)
    }

    fn bars(&self, figure: &'static str) -> Vec<(&'static str, GatewayRole, f64)> {
        let case = call_case("http", SMALL, 64);
        let bar =
            |side: &GatewayUnderTest| Some((side.name, side.role, self.results.median(&case, side.name, figure)?));
        self.sides.iter().filter_map(bar).collect()
    }

    fn calls(&self, suite: &'static str, size: usize, name: &'static str, title: String) -> Option<ReportTable> {
        let case = |clients| call_case(suite, size, clients);
        let direct = self.limit();
        let mut rows = Vec::new();
        for side in self.sides {
            let mut row = vec![TableCell::text(side.name)];
            for clients in CLIENTS {
                let case = case(*clients);
                row.push(self.number(&case, side, "req/s", 0));
                row.push(cell(self.results.ratio(&case, (side.name, direct), "req/s"), 3));
            }
            row.push(self.number(&case(1), side, "p50 ms", 3));
            row.push(self.number(&case(64), side, "p99 ms", 1));
            row.push(self.number(&case(16), side, "CPU s/10k", 2));
            row.push(self.number(&case(64), side, "CPU s/10k", 2));
            row.push(self.widest(CLIENTS.iter().map(|clients| case(*clients)), side));
            rows.push(self.with_failure(row, side, suite));
        }
        let columns = &[
            "side",
            "c=1 req/s",
            "of direct",
            "c=16 req/s",
            "of direct",
            "c=64 req/s",
            "of direct",
            "p50 ms, c=1",
            "p99 ms, c=64",
            "CPU s/10k, c=16",
            "CPU s/10k, c=64",
            "spread",
        ];
        nonempty(ReportTable { name, title, columns, rows })
    }

    fn repeated(&self, suite: &'static str, title: &str) -> Option<ReportTable> {
        let case = plain_case(suite);
        let rows = self.sides.iter().map(|side| {
            let row = vec![
                TableCell::text(side.name),
                self.number(&case, side, "req/s", 1),
                cell(self.results.ratio(&case, (side.name, self.limit()), "req/s"), 3),
                self.number(&case, side, "p50 ms", 2),
                self.number(&case, side, "p99 ms", 2),
                self.number(&case, side, "CPU s/10k", 2),
                self.widest([case.clone()].into_iter(), side),
            ];
            self.with_failure(row, side, suite)
        });
        let columns = &["side", "req/s", "of direct", "p50 ms", "p99 ms", "CPU s/10k", "spread"];
        nonempty(ReportTable { name: suite, title: title.into(), columns, rows: rows.collect() })
    }

    fn words(&self) -> Option<ReportTable> {
        let rows = self
            .words_us
            .iter()
            .map(|(count, us)| vec![TableCell::text(count.to_string()), TableCell::Number(us / 1000.0, 3)]);
        let title = "search by words inside hikite, no network".to_owned();
        nonempty(ReportTable { name: "words", title, columns: &["tools", "ms"], rows: rows.collect() })
    }

    fn resting(&self) -> Option<ReportTable> {
        let (cold, sessions, idle) = (plain_case("cold"), plain_case("sessions"), plain_case("idle"));
        let rows = self.sides.iter().map(|side| {
            let row = vec![
                TableCell::text(side.name),
                self.number(&cold, side, "ms", 1),
                self.number(&idle, side, "idle MB", 1),
                self.number(&sessions, side, "idle MB", 1),
                self.number(&sessions, side, "100 sessions MB", 1),
                self.number(&sessions, side, "1000 sessions MB", 1),
            ];
            self.with_failure(row, side, "sessions")
        });
        let columns =
            &["side", "cold start ms", "MB, no upstream", "MB, one upstream", "MB, 100 sessions", "MB, 1,000 sessions"];
        let title = "start to first list, and memory".to_owned();
        nonempty(ReportTable { name: "resting", title, columns, rows: rows.collect() })
    }

    fn limit(&self) -> &'static str {
        self.sides.iter().find(|side| side.role == GatewayRole::Limit).map_or("", |side| side.name)
    }

    fn number(&self, case: &BenchCase, side: &GatewayUnderTest, figure: &'static str, decimals: usize) -> TableCell {
        cell(self.results.median(case, side.name, figure), decimals)
    }

    /// Returns the widest spread of the requests per second.
    fn widest(&self, cases: impl Iterator<Item = BenchCase>, side: &GatewayUnderTest) -> TableCell {
        let spreads = cases.filter_map(|case| self.results.spread(&case, side.name, "req/s"));
        spreads
            .reduce(f64::max)
            .map_or(TableCell::text("-"), |spread| TableCell::text(format!("{:.0} %", spread * 100.0)))
    }

    /// Puts the reason of failure into the first cell of a row without figures.
    fn with_failure(&self, mut row: Vec<TableCell>, side: &GatewayUnderTest, suite: &'static str) -> Vec<TableCell> {
        let is_empty = row.iter().skip(1).all(|cell| matches!(cell, TableCell::Text(text) if text == "-"));
        if let Some(why) = self.results.failure(&plain_case(suite), side.name).filter(|_| is_empty) {
            row[1] = TableCell::text(why.chars().take(40).collect::<String>());
        }
        row
    }
}

/// Writes the table of hostile inputs into its section of the page.
pub(super) fn write_hostile(tables: &[ReportTable], machine: &str) -> Result<()> {
    let file = crate::root()?.join("docs/benchmarks.md");
    let old = std::fs::read_to_string(&file)?;
    let (before, rest) = old.split_once(HOSTILE_BEGIN).context("docs/benchmarks.md has no place for hostile input")?;
    let (_, after) = rest.split_once(HOSTILE_END).context("the place for hostile input has no end")?;
    let figures: Vec<String> = tables.iter().map(markdown).collect();
    let told = format!("{}, hikite {}. {machine}", today(), env!("CARGO_PKG_VERSION"));
    let figures = figures.join("\n\n");
    Ok(std::fs::write(&file, format!("{before}{HOSTILE_BEGIN}\n\n{told}\n\n{figures}\n\n{HOSTILE_END}{after}"))?)
}

fn cell(value: Option<f64>, decimals: usize) -> TableCell {
    value.map_or(TableCell::text("-"), |value| TableCell::Number(value, decimals))
}

/// Returns the table if it has any measured value.
fn nonempty(table: ReportTable) -> Option<ReportTable> {
    let is_number = |cell: &TableCell| matches!(cell, TableCell::Number(..));
    table.rows.iter().flatten().any(is_number).then_some(table)
}

fn markdown(table: &ReportTable) -> String {
    let mut text = format!("### {}\n\n| {} |\n|---|", table.title, table.columns.join(" | "));
    text.push_str(&"---:|".repeat(table.columns.len() - 1));
    for row in &table.rows {
        let cells: Vec<String> = row.iter().map(|cell| cell.to_string().replace('|', "/")).collect();
        let _ = write!(text, "\n| {} |", cells.join(" | "));
    }
    text
}
