//! Fault injection on the finished program: each row breaks something and checks the measured effect against a bound.
//! Every figure is printed, good or not.

mod ahead;
mod audit;
mod check;
mod child;
mod clock;
mod cutoff;
mod disk;
mod durability;
mod flood;
mod hang;
mod input;
mod kill;
mod many;
mod overload;
mod reload;
mod reset;
mod rogue;
mod settings;
mod slow;
mod soak;
mod stop;
mod store;
mod stream;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::rig::release::{self, BuildProfile};
use check::FaultCheck;
use settings::FaultSettings;

/// Name, whether it runs with `--short`, and what is done.
#[rustfmt::skip]
const ROWS: &[(&str, bool, &str)] = &[
    ("input",    true,  "an endless body, deep JSON, duplicate keys, invalid UTF-8, a gzip bomb"),
    ("slow",     true,  "clients that send headers or bodies slowly, or do not read their answers"),
    ("hang",     true,  "a server that hangs, falls silent, or answers without end"),
    ("flood",    true,  "a server that says without end that its lists changed"),
    ("reset",    true,  "connections to a server reset at every byte"),
    ("child",    false, "server processes that crash, talk nonsense, flood stderr and have children"),
    ("many",     true,  "200 stdio servers where 64 may run at once"),
    ("stream",   false, "streams that are open and idle"),
    ("stop",     true,  "SIGTERM while calls run"),
    ("kill",     true,  "SIGKILL while the store is written, and the start afterwards"),
    ("durability", true, "SIGKILL while 50 callers are answered: what the audit lacks, and what each setting costs"),
    ("reload",   true,  "another config every second while calls run"),
    ("store",    true,  "a disk that is full for a while"),
    ("cutoff",   true,  "a node that its PostgreSQL does not answer for a minute"),
    ("disk",     true,  "a small disk that is really full, and the end of hikite on it"),
    ("clock",    false,  "a wall clock that jumps by an hour (needs libfaketime)"),
    ("ahead",    false, "a clock a year ahead: on one of two nodes, and on the only one (needs libfaketime)"),
    ("audit",    true,  "an audit of a million records: filters, verify, doctor, and the space it gives back"),
    ("overload", false, "five times the calls that can be served"),
    ("soak",     false, "calls and faults of all kinds for a long time"),
];

struct FaultOptions {
    only: Vec<String>,
    short: bool,
    seconds: Option<Duration>,
    binary: Option<PathBuf>,
    json: Option<PathBuf>,
}

pub(crate) fn run(words: &[&str]) -> Result<()> {
    if words == ["--list"] {
        for (name, is_short, about) in ROWS {
            crate::print(&format!("{name:<10} {}  {about}", if *is_short { "short" } else { "long " }));
        }
        return Ok(());
    }
    let options = parse(words)?;
    let hikite = match &options.binary {
        Some(binary) => binary.clone(),
        None => match release::build(BuildProfile::Release, "faults", words)? {
            Some(programs) => programs.join("hikite"),
            None => return Ok(()),
        },
    };
    let stage = FaultSettings { hikite, is_short: options.short, seconds: options.seconds };
    let runtime = tokio::runtime::Runtime::new()?;
    let rows = runtime.block_on(run_rows(&stage, &options));
    let failed = rows.iter().filter(|(_, check)| !check.ok).count();
    crate::print(&format!("\n{}\n\n{}", settings::machine(), check::table(&rows)));
    if let Some(file) = &options.json {
        let checks: Vec<Value> = rows.iter().map(|(row, check)| check.json(row)).collect();
        let report = json!({ "machine": settings::machine(), "failed": failed, "checks": checks });
        std::fs::write(file, serde_json::to_string_pretty(&report)?)
            .with_context(|| format!("cannot write `{}`", file.display()))?;
    }
    if failed > 0 {
        bail!("{failed} of {} checks do not hold", rows.len());
    }
    Ok(())
}

async fn run_rows(stage: &FaultSettings, options: &FaultOptions) -> Vec<(&'static str, FaultCheck)> {
    let wanted = |name: &str, is_short: bool| {
        if options.only.is_empty() { is_short || !options.short } else { options.only.iter().any(|only| only == name) }
    };
    let mut rows = Vec::new();
    for (name, is_short, about) in ROWS {
        if !wanted(name, *is_short) {
            continue;
        }
        crate::print(&format!("{name}: {about}"));
        let started = Instant::now();
        // A row that cannot run proves nothing.
        let checks = row(name, stage)
            .await
            .unwrap_or_else(|error| vec![FaultCheck::that("it can be tried", "no error", format!("{error:#}"), false)]);
        for check in checks {
            crate::print(&format!("  {check}"));
            rows.push((*name, check));
        }
        crate::print(&format!("{name}: {:.0} s", started.elapsed().as_secs_f64()));
    }
    rows
}

async fn row(name: &str, stage: &FaultSettings) -> Result<Vec<FaultCheck>> {
    match name {
        "input" => input::run(stage).await,
        "slow" => slow::run(stage).await,
        "hang" => hang::run(stage).await,
        "flood" => flood::run(stage).await,
        "reset" => reset::run(stage).await,
        "child" => child::run(stage).await,
        "many" => many::run(stage).await,
        "stream" => stream::run(stage).await,
        "stop" => stop::run(stage).await,
        "kill" => kill::run(stage).await,
        "durability" => durability::run(stage).await,
        "reload" => reload::run(stage).await,
        "store" => store::run(stage).await,
        "cutoff" => cutoff::run(stage).await,
        "disk" => disk::run(stage).await,
        "clock" => clock::run(stage).await,
        "ahead" => ahead::run(stage).await,
        "audit" => audit::run(stage).await,
        "overload" => overload::run(stage).await,
        "soak" => soak::run(stage).await,
        _ => bail!("there is no such row"),
    }
}

fn parse(words: &[&str]) -> Result<FaultOptions> {
    let mut options = FaultOptions { only: Vec::new(), short: false, seconds: None, binary: None, json: None };
    let mut words = words.iter();
    while let Some(word) = words.next() {
        if *word == "--short" {
            options.short = true;
            continue;
        }
        let value = words.next().with_context(|| format!("`{word}` needs a value"))?;
        match *word {
            "--only" => {
                let known = ROWS.iter().any(|(name, ..)| name == value);
                anyhow::ensure!(known, "`--only` takes one of those that `--list` shows");
                options.only.push((*value).to_owned());
            }
            "--seconds" => options.seconds = Some(Duration::try_from_secs_f64(value.parse()?)?),
            "--binary" => options.binary = Some(std::path::absolute(value)?),
            "--json" => options.json = Some(std::path::absolute(value)?),
            _ => bail!("`{word}` is not an option of faults"),
        }
    }
    Ok(options)
}

/// Returns the error code of a call's response in either format; `None` on success.
fn code_of(answer: &Value) -> Option<String> {
    if let Some(error) = answer.get("error") {
        return Some(error["data"]["code"].as_str().map_or_else(|| error["code"].to_string(), Into::into));
    }
    let result = &answer["result"];
    if result["isError"] != true {
        return None;
    }
    let text = result["content"][0]["text"].as_str().unwrap_or_default();
    let told = result["structuredContent"]["error"]["code"].as_str();
    Some(told.map_or_else(|| text.split(':').next().unwrap_or_default().to_owned(), Into::into))
}
