//! One-run comparisons on this machine: calls straight to an upstream against calls through hikite and over REST,
//! the time to the first list, what dead upstreams cost, pages of a long list, batches, the pages of the UI, and the parts of a call. Read ratios and
//! CPU seconds, not absolute times: the machine is shared and the sides are measured in turns.

mod batch;
mod calls;
mod client;
mod core;
mod dead;
mod load;
mod page;
mod process;
mod rest;
mod start;
mod table;
mod ui;
mod upstream;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use table::Table;

pub(crate) use upstream::serve as serve_upstream;

/// Tools that each upstream of the benchmark has.
const TOOLS: usize = 10;

struct Options {
    seconds: Duration,
    rounds: usize,
    only: Option<String>,
    json: Option<PathBuf>,
    against: Option<PathBuf>,
}

/// What is measured, and with what.
struct Bench {
    hikite: PathBuf,
    /// Another build of hikite, measured in the same rounds.
    against: Option<PathBuf>,
    seconds: Duration,
    rounds: usize,
}

pub(crate) fn run(words: &[&str]) -> Result<()> {
    let options = parse(words)?;
    let release = build()?;
    if cfg!(debug_assertions) {
        return run_optimised(&release, words);
    }
    let bench = Bench {
        hikite: release.join("hikite"),
        against: options.against,
        seconds: options.seconds,
        rounds: options.rounds,
    };
    let runtime = tokio::runtime::Runtime::new()?;
    let tables = runtime.block_on(measure(&bench, options.only.as_deref()))?;
    if let Some(file) = options.json {
        let all: serde_json::Map<_, _> =
            tables.iter().map(|table| (table.name.into(), table.json())).collect();
        std::fs::write(&file, serde_json::to_string_pretty(&all)?)
            .with_context(|| format!("cannot write `{}`", file.display()))?;
    }
    Ok(())
}

async fn measure(bench: &Bench, only: Option<&str>) -> Result<Vec<Table>> {
    let wanted = |name: &str| only.is_none_or(|only| only == name);
    let mut tables = Vec::new();
    if wanted("calls") {
        tables.push(show(calls::measure(bench).await?));
    }
    if wanted("start") {
        tables.push(show(start::measure(bench).await?));
    }
    if wanted("dead") {
        tables.push(show(dead::measure(bench).await?));
    }
    if wanted("core") {
        tables.extend(core::measure()?.into_iter().map(show));
    }
    if wanted("pages") {
        tables.push(show(page::measure(bench).await?));
    }
    if wanted("rest") {
        tables.push(show(rest::measure(bench).await?));
    }
    if wanted("batch") {
        tables.push(show(batch::measure(bench).await?));
    }
    if wanted("ui") {
        tables.push(show(ui::measure(bench).await?));
    }
    if tables.is_empty() {
        bail!("`--only` takes calls, start, dead, core, pages, rest, batch or ui");
    }
    Ok(tables)
}

fn show(table: Table) -> Table {
    crate::print(&format!("{table}"));
    table
}

fn parse(words: &[&str]) -> Result<Options> {
    let mut options =
        Options { seconds: Duration::from_secs(3), rounds: 3, only: None, json: None, against: None };
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let value = words.next().with_context(|| format!("`{word}` needs a value"))?;
        match *word {
            "--seconds" => options.seconds = Duration::try_from_secs_f64(value.parse()?)?,
            "--rounds" => options.rounds = value.parse::<usize>()?.max(1),
            "--only" => options.only = Some((*value).to_owned()),
            "--against" => options.against = Some(std::path::absolute(value)?),
            "--json" => options.json = Some(std::path::absolute(value)?),
            _ => bail!("`{word}` is not an option of bench"),
        }
    }
    Ok(options)
}

/// Builds the program and this very one with optimisation, and says where they are.
fn build() -> Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let root = crate::root()?;
    let built = Command::new(cargo)
        .args(["build", "--release", "-q", "-p", "hikite", "-p", "xtask"])
        .current_dir(&root)
        .status()?;
    if !built.success() {
        bail!("the release build failed");
    }
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    Ok(target.join("release"))
}

/// The generator of the load must not be slower than what it measures.
fn run_optimised(release: &Path, words: &[&str]) -> Result<()> {
    let status = Command::new(release.join("xtask")).arg("bench").args(words).status()?;
    if !status.success() {
        bail!("the benchmark failed");
    }
    Ok(())
}
