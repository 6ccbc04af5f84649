//! Function order of a release build: `hikite/order.txt` names the functions that a start runs and those that calls
//! run, as seen by callgrind, and the build places each group together. This reduces memory use and page faults.

mod symbol;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use crate::rig::callgrind::{Callgrind, everything_on};
use crate::rig::process::{UpstreamChild, http_server};
use crate::rig::release;

const FILE: &str = "hikite/order.txt";
const HEAD: &str = "\
# The functions that a start runs and those that calls run, by how the linker knows them. `cargo xtask order` makes this file;
# it fits less and less as the program changes, and nothing else is lost.
";
const CALLS: usize = 20;
const REST: Duration = Duration::from_secs(5);
/// Maximum share of names that a build may lack: inlining differs between builds.
const UNKNOWN_PERCENT: usize = 15;

type SymbolNames = BTreeSet<String>;

pub(crate) fn run(words: &[&str]) -> Result<()> {
    let (check, binary) = match words {
        [] => (false, None),
        ["--check"] => (true, None),
        ["--binary", file] => (false, Some(file)),
        ["--check", "--binary", file] => (true, Some(file)),
        _ => bail!("order takes `--check` and `--binary FILE`"),
    };
    let hikite = match binary {
        Some(file) => std::path::absolute(file)?,
        None => match release::build("order", words)? {
            Some(release) => release.join("hikite"),
            None => return Ok(()),
        },
    };
    let file = crate::root()?.join(FILE);
    if check { verify(&file, &hikite) } else { make(&file, &hikite) }
}

fn make(file: &Path, hikite: &Path) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let runtime = tokio::runtime::Runtime::new()?;
    let mut start = SymbolNames::new();
    for (name, config) in [("usual", json!({})), ("everything", everything_on(&json!({})))] {
        let profile = runtime.block_on(self::start(hikite, &folder.path().join(name), &config))?;
        start.append(&mut names(&profile, hikite)?);
    }
    let calls = names(&runtime.block_on(calls(hikite, &folder.path().join("calls")))?, hikite)?;
    let calls: SymbolNames = calls.difference(&start).cloned().collect();
    let part =
        |name: &str, names: &SymbolNames| names.iter().fold(format!("[{name}]\n"), |text, name| text + name + "\n");
    fs::write(file, format!("{HEAD}{}{}", part("start", &start), part("calls", &calls)))?;
    crate::print(&format!("{FILE}: {} names of a start, {} more of calls", start.len(), calls.len()));
    Ok(())
}

/// Profiles a start, a first response and an idle period.
async fn start(hikite: &Path, folder: &Path, config: &Value) -> Result<PathBuf> {
    let callgrind = Callgrind::start(hikite, folder, &["--demangle=no"], config).await?;
    callgrind.client().await?.tools().await?;
    tokio::time::sleep(REST).await;
    callgrind.stop()
}

/// Profiles calls in each of the ways clients make them.
async fn calls(hikite: &Path, folder: &Path) -> Result<PathBuf> {
    let upstream = UpstreamChild::start()?;
    let config = everything_on(&json!({ "bench": http_server(upstream.address, 0) }));
    let callgrind = Callgrind::start(hikite, folder, &["--demangle=no"], &config).await?;
    let mut direct = callgrind.client().await?;
    callgrind.listed(&mut direct).await?;
    let mut modules = callgrind.client_at("/mcp?surface=modules").await?;
    modules.tools().await?;
    let task = json!({ "id": "a", "module": "bench", "tool": "echo", "params": { "text": "here" } });
    let asked = [
        ("get_module_schema", json!({ "modules": ["bench"] })),
        ("call", json!({ "module": "bench", "tool": "echo", "params": { "text": "here" } })),
        ("batch", json!({ "commands": [task] })),
    ];
    for _ in 0..CALLS {
        direct.echo("echo").await?;
        for (tool, arguments) in &asked {
            answered(&modules.call(tool, arguments).await?)?;
        }
    }
    callgrind.stop()
}

fn answered(answer: &Value) -> Result<()> {
    let is_result = answer.get("result").is_some_and(|result| result["isError"] != true);
    ensure!(is_result, "a wrong answer: {answer}");
    Ok(())
}

/// Returns the program's functions in a profile.
fn names(profile: &Path, hikite: &Path) -> Result<SymbolNames> {
    let text = fs::read_to_string(profile)?;
    let names: SymbolNames = symbol::executed(&text, &hikite.display().to_string()).map(symbol::pattern).collect();
    ensure!(!names.is_empty(), "no function of the program is in the profile: was it stripped?");
    Ok(names)
}

/// Checks that the file still fits the program.
fn verify(file: &Path, hikite: &Path) -> Result<()> {
    let text = fs::read_to_string(file).with_context(|| format!("cannot read `{FILE}`"))?;
    let output = Command::new("nm").arg(hikite).output().context("is nm installed?")?;
    let symbols = String::from_utf8_lossy(&output.stdout);
    let symbols: BTreeSet<&str> = symbols.lines().filter_map(|line| line.split_whitespace().last()).collect();
    let patterns: Vec<&str> = text.lines().filter(|line| !line.starts_with(['#', '['])).collect();
    let unknown = patterns.iter().filter(|pattern| !symbol::is_known(pattern, &symbols)).count();
    crate::print(&format!("{FILE}: {unknown} of {} names are unknown", patterns.len()));
    ensure!(
        !patterns.is_empty() && unknown * 100 <= patterns.len() * UNKNOWN_PERCENT,
        "more than {UNKNOWN_PERCENT} % of the names are unknown: run `cargo xtask order`"
    );
    Ok(())
}
