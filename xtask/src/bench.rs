//! Benchmarks on this machine, each a comparison within one run. Without `--only`: hikite beside other gateways and the
//! bare upstream. By name: calls against another build, time to the first list, dead upstreams, pages of a long list,
//! batches, UI pages, changes among many projects, hostile input, and the parts of a call. Read ratios and CPU seconds,
//! not absolute times.

mod batch;
mod calls;
mod chart;
mod compare;
mod core;
mod dead;
mod drive;
pub(crate) mod floor;
mod hostile;
mod machine;
mod network_namespace;
mod own;
mod page;
mod peer;
mod pipe;
mod projects;
mod report;
mod rest;
mod results;
mod running;
mod side;
mod start;
mod stolen;
mod suite;
mod target;
mod tree;
mod ui;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Map, Value};
use tokio::signal::unix::{SignalKind, signal};

use crate::rig::release::{self, BuildProfile};
use crate::rig::table::ReportTable;
use compare::BenchComparison;
use machine::Machine;
use network_namespace::NetworkNamespace;
use report::BenchReport;
use side::GatewayRole;

/// Tables that can be measured on their own.
const SINGLE: &[&str] = &["calls", "start", "dead", "core", "pages", "rest", "batch", "ui", "projects", HOSTILE];

/// The table with its own section on the page.
const HOSTILE: &str = "hostile";

#[derive(Default)]
struct BenchOptions {
    seconds: Option<Duration>,
    rounds: Option<usize>,
    only: Option<String>,
    json: Option<PathBuf>,
    against: Option<PathBuf>,
    binary: Option<PathBuf>,
    peers: Option<Vec<String>>,
    installs_peers: bool,
    writes: bool,
}

/// Settings of a benchmark run.
struct BenchRun {
    hikite: PathBuf,
    /// Another build of hikite, measured in the same rounds.
    against: Option<PathBuf>,
    seconds: Duration,
    rounds: usize,
}

impl BenchRun {
    /// Returns the total time of all rounds.
    fn whole(&self) -> Result<Duration> {
        Ok(self.seconds * u32::try_from(self.rounds)?)
    }
}

pub(crate) fn run(words: &[&str]) -> Result<()> {
    let options = parse(words)?;
    if options.installs_peers {
        let sides = side::sides(options.peers.as_deref());
        let peers = sides.iter().filter_map(|side| Some((side.name, side.install?)));
        return peer::install(peers.chain(batch::clients()));
    }
    let is_hostile = matches!(options.only.as_deref(), Some(HOSTILE | "projects"));
    let (built, binary) = match &options.binary {
        // A debug build shows growth just as well.
        Some(binary) if is_hostile => (Some(PathBuf::new()), Some(binary.clone())),
        Some(binary) => (release::build_xtask(BuildProfile::Dist, "bench", words)?, Some(binary.clone())),
        None => (release::build(BuildProfile::Dist, "bench", words)?, None),
    };
    let Some(programs) = built else { return Ok(()) };
    let hikite = binary.unwrap_or_else(|| programs.join("hikite"));
    let rounds = options.rounds.unwrap_or(3);
    if options.only.as_deref().is_none_or(|only| !SINGLE.contains(&only)) {
        return compare(&options, words, &hikite, rounds);
    }
    let seconds = options.seconds.unwrap_or(Duration::from_secs(3));
    let bench = BenchRun { hikite, against: options.against, seconds, rounds };
    let runtime = tokio::runtime::Runtime::new()?;
    let before = Machine::read();
    let tables = runtime.block_on(measure(&bench, options.only.as_deref().unwrap_or_default()))?;
    if options.writes {
        report::write_hostile(&tables, &before.told(&Machine::read()))?;
    }
    match options.json {
        Some(file) => write_json(&file, &as_map(&tables)),
        None => Ok(()),
    }
}

/// Compares hikite with other gateways and the bare upstream.
fn compare(options: &BenchOptions, words: &[&str], hikite: &std::path::Path, rounds: usize) -> Result<()> {
    let mut sides = side::sides(options.peers.as_deref());
    match network_namespace::enter(words)? {
        NetworkNamespace::Yes => {}
        NetworkNamespace::Done => return Ok(()),
        NetworkNamespace::No => {
            crate::print_error("no peers: this machine cannot keep them from the network (`unshare --net`)");
            sides.retain(|side| side.role != GatewayRole::Peer);
        }
    }
    let only = options.only.as_deref();
    let known = suite::SUITES.iter().map(|suite| suite.name).chain(["search", "words"]);
    if only.is_some_and(|only| !known.clone().any(|name| name == only)) {
        bail!("`--only` takes {} or {}", known.collect::<Vec<_>>().join(", "), SINGLE.join(", "));
    }
    let words_us = if only.is_none_or(|only| only == "words") { core::search() } else { Ok(Vec::new()) };
    let words_us = words_us.unwrap_or_else(|error| {
        crate::print_error(&format!("search in process is not measured: {error:#}"));
        Vec::new()
    });
    // Longer would be steadier; shorter would be lost in the clock's 10 ms ticks.
    let duration = options.seconds.unwrap_or(Duration::from_millis(500));
    let comparison = BenchComparison { hikite, sides: &sides, only, rounds, duration };
    let before = Machine::read();
    let book = tokio::runtime::Runtime::new()?.block_on(until_terminated(comparison.run()))?;
    let machine = before.told(&Machine::read());
    let report = BenchReport { results: &book, sides: &sides, words_us: &words_us, rounds, duration, machine };
    let tables = report.tables();
    for table in &tables {
        crate::print(&format!("{table}"));
    }
    crate::print(&report.told());
    if let Some(file) = &options.json {
        let mut all = as_map(&tables);
        all.insert("seen".into(), book.json());
        write_json(file, &all)?;
    }
    if options.writes { report.write() } else { Ok(()) }
}

/// Runs until done or terminated. On termination the gateways, which are their own process groups, are stopped too.
async fn until_terminated<T>(run: impl Future<Output = Result<T>>) -> Result<T> {
    let mut term = signal(SignalKind::terminate())?;
    tokio::select! {
        done = run => done,
        _ = tokio::signal::ctrl_c() => bail!("interrupted"),
        _ = term.recv() => bail!("told to end"),
    }
}

async fn measure(bench: &BenchRun, only: &str) -> Result<Vec<ReportTable>> {
    Ok(match only {
        "calls" => vec![show(calls::measure(bench).await?)],
        "start" => vec![show(start::measure(bench).await?)],
        "dead" => vec![show(dead::measure(bench).await?)],
        "core" => core::measure()?.into_iter().map(show).collect(),
        "pages" => vec![show(page::measure(bench).await?)],
        "rest" => vec![show(rest::measure(bench).await?)],
        "batch" => vec![show(batch::measure(bench).await?)],
        "projects" => vec![show(projects::measure(bench).await?)],
        HOSTILE => vec![show(hostile::measure(bench).await?)],
        _ => vec![show(ui::measure(bench).await?)],
    })
}

fn show(table: ReportTable) -> ReportTable {
    crate::print(&format!("{table}"));
    table
}

fn as_map(tables: &[ReportTable]) -> Map<String, Value> {
    tables.iter().map(|table| (table.name.to_owned(), table.json())).collect()
}

fn write_json(file: &std::path::Path, all: &Map<String, Value>) -> Result<()> {
    std::fs::write(file, serde_json::to_string_pretty(all)?)
        .with_context(|| format!("cannot write `{}`", file.display()))
}

fn parse(words: &[&str]) -> Result<BenchOptions> {
    let mut options = BenchOptions::default();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let mut value = || words.next().with_context(|| format!("`{word}` needs a value"));
        match *word {
            "--seconds" => options.seconds = Some(Duration::try_from_secs_f64(value()?.parse()?)?),
            "--rounds" => options.rounds = Some(value()?.parse::<usize>()?.max(1)),
            "--only" => options.only = Some((*value()?).to_owned()),
            "--against" => options.against = Some(std::path::absolute(value()?)?),
            "--json" => options.json = Some(std::path::absolute(value()?)?),
            "--binary" => options.binary = Some(std::path::absolute(value()?)?),
            "--peers" => options.peers = Some(value()?.split(',').map(Into::into).collect()),
            "--install-peers" => options.installs_peers = true,
            "--write" => options.writes = true,
            _ => bail!("`{word}` is not an option of bench"),
        }
    }
    let has_place = options.only.as_deref().is_none_or(|only| only == HOSTILE);
    ensure!(!options.writes || has_place, "`--write` writes the whole page: leave `--only` out");
    Ok(options)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_and_a_part_is_never_written_as_the_page() {
        let options = parse(&["--rounds", "0", "--peers", "a,b", "--write"]).expect("options");
        assert!(options.rounds == Some(1) && options.writes && options.peers.is_some_and(|peers| peers.len() == 2));
        assert!(parse(&["--only", "http", "--write"]).is_err());
        assert!(parse(&["--only", "hostile", "--write"]).is_ok());
        assert!(parse(&["--only"]).is_err() && parse(&["--fast"]).is_err());
    }
}
