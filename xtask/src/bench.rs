//! One-run comparisons on this machine: calls straight to an upstream against calls through hikite and over REST,
//! the time to the first list, what dead upstreams cost, pages of a long list, batches, the pages of the UI, and the parts of a call. Read ratios and
//! CPU seconds, not absolute times: the machine is shared and the sides are measured in turns.

mod batch;
mod calls;
mod core;
mod dead;
mod page;
mod rest;
mod start;
mod ui;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::rig::release;
use crate::rig::table::Table;

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
    let Some(release) = release::build("bench", words)? else { return Ok(()) };
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
