//! Instructions per call, counted by callgrind: a figure that does not depend on load. The total is checked against a
//! bound, and the steps of a call are reported so that growth can be located.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::json;

use crate::rig::callgrind::{Callgrind, everything_on};
use crate::rig::process::{UpstreamChild, http_server};
use crate::rig::release::{self, BuildProfile};
use crate::rig::table::{ReportTable, TableCell};

/// Maximum instructions per call, including the later audit write. Lower it when a call costs less.
const BOUND: u64 = 275_000;

/// A busy machine wakes threads more often, which costs a call up to a seventh more. A count over the bound is repeated.
const RUNS_MAX: u32 = 3;
const WARM_UP: usize = 300;
const CALLS: u32 = 500;

/// Steps of a call, and the function of each, inclusive of its callees.
#[rustfmt::skip]
const STEPS: &[(&str, &str)] = &[
    ("HTTP request, from the parsed head to the response",  "hikite_server::connection::CountingService as tower_service::Service<http::request::Request<hyper::body::incoming::Incoming>>>::call::{{closure}}"),
    ("guard: Host, Origin, authentication, rate limit",     "hikite_server::guard::GuardLayer::pass::{{closure}}"),
    ("MCP request",                                         "hikite_server::mcp::session::ClientSession>::handle::{{closure}}"),
    ("MCP method, with its audit record",                   "hikite_server::mcp::method::dispatch::{{closure}}"),
    ("tool lookup and permission check",                    "hikite_gateway::executor::Executor::call::{{closure}}"),
    ("argument validation",                                 "hikite_core::check::ArgumentChecker::check"),
    ("queue, deadline, circuit breaker",                    "hikite_gateway::execute::run::{{closure}}"),
    ("upstream call",                                       "hikite_upstream::call::call::{{closure}}"),
    ("HTTP request to the upstream server",                 "hikite_egress::client::EgressClient::send::{{closure}}"),
    ("log line",                                            "tracing_core::event::Event::dispatch"),
    ("in the background: building the audit record",        "hikite_gateway::audit::entry::AuditEntry::record"),
    ("in the background: chaining audit records",           "hikite_gateway::audit::writer::AuditWriter::run::{{closure}}"),
    ("in the background: writing audit records",            "sqlx_sqlite::connection::execute::ExecuteIter as core::iter::traits::iterator::Iterator>::next"),
];

/// Name of a step, and its instructions per call.
type InstructionStep = (&'static str, Option<u64>);

struct InstructionOptions {
    binary: Option<PathBuf>,
    json: Option<PathBuf>,
}

pub(crate) fn run(words: &[&str]) -> Result<()> {
    let options = parse(words)?;
    let hikite = match &options.binary {
        Some(binary) => binary.clone(),
        None => match release::build(BuildProfile::Profiling, "instructions", words)? {
            Some(programs) => programs.join("hikite"),
            None => return Ok(()),
        },
    };
    let (mut total, mut steps) = measure(&hikite)?;
    for _ in 1..RUNS_MAX {
        if total <= BOUND {
            break;
        }
        (total, steps) = measure(&hikite)?;
    }
    let table = table(&steps);
    if steps.iter().any(|(_, cost)| cost.is_some()) {
        crate::print(&table.to_string());
    } else {
        crate::print(
            "the program has no function names: without `--binary` one is built that has, and each step is counted",
        );
    }
    crate::print(&format!("all of it: {total} instructions for a call, {BOUND} at most"));
    if let Some(file) = options.json {
        let report = json!({ "total": total, "bound": BOUND, "steps": table.json() });
        fs::write(&file, report.to_string()).with_context(|| format!("cannot write `{}`", file.display()))?;
    }
    ensure!(total <= BOUND, "a call costs more than it may; docs/performance.md says what its steps cost before");
    Ok(())
}

fn measure(hikite: &Path) -> Result<(u64, Vec<InstructionStep>)> {
    let folder = tempfile::tempdir()?;
    let profile = tokio::runtime::Runtime::new()?.block_on(record(hikite, folder.path()))?;
    read(&profile)
}

fn parse(words: &[&str]) -> Result<InstructionOptions> {
    let mut options = InstructionOptions { binary: None, json: None };
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let value = words.next().with_context(|| format!("`{word}` needs a value"))?;
        match *word {
            "--binary" => options.binary = Some(std::path::absolute(value)?),
            "--json" => options.json = Some(std::path::absolute(value)?),
            _ => bail!("`{word}` is not an option of instructions"),
        }
    }
    Ok(options)
}

/// Makes sequential calls through a hikite with all features on, counting until they are recorded.
async fn record(hikite: &Path, folder: &Path) -> Result<PathBuf> {
    let upstream = UpstreamChild::start()?;
    let config = everything_on(&json!({ "bench": http_server(upstream.address, 0) }));
    let callgrind = Callgrind::start(hikite, folder, &["--instr-atstart=no"], &config).await?;
    let mut client = callgrind.client().await?;
    callgrind.listed(&mut client).await?;
    for _ in 0..WARM_UP {
        client.echo("echo").await?;
    }
    callgrind.count("on")?;
    for _ in 0..CALLS {
        client.echo("echo").await?;
    }
    // The last ones are recorded by then.
    tokio::time::sleep(Duration::from_secs(2)).await;
    callgrind.count("off")?;
    callgrind.stop()
}

/// Returns the instructions per call, and of the steps that were found: the compiler may inline one.
fn read(profile: &Path) -> Result<(u64, Vec<InstructionStep>)> {
    let output = Command::new("callgrind_annotate")
        .args(["--inclusive=yes", "--threshold=100", "--show-percs=no"])
        .arg(profile)
        .output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let cost = |line: &str| line.split_whitespace().next()?.replace(',', "").parse::<u64>().ok();
    let find = |name: &str| text.lines().filter(|line| line.contains(name)).filter_map(cost).max();
    let per_call = |cost: u64| cost / u64::from(CALLS);
    let total = find("PROGRAM TOTALS").context("there is no total in the profile")?;
    ensure!(total > 0, "nothing was counted");
    Ok((per_call(total), STEPS.iter().map(|(step, name)| (*step, find(name).map(per_call))).collect()))
}

fn table(steps: &[InstructionStep]) -> ReportTable {
    #[expect(clippy::cast_precision_loss, reason = "far fewer instructions than a double counts exactly")]
    let cell =
        |cost: &Option<u64>| cost.map_or(TableCell::text("not told apart"), |cost| TableCell::Number(cost as f64, 0));
    ReportTable {
        name: "instructions",
        title: format!("instructions of one call with everything on, the mean of {CALLS}; each step with all below it"),
        columns: &["step", "instructions"],
        rows: steps.iter().map(|(step, cost)| vec![TableCell::text(*step), cell(cost)]).collect(),
    }
}
