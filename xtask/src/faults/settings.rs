//! Setup of the rows: a separate hikite for each, with a healthy server behind it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::check::FaultCheck;
use crate::rig::TOOLS;
use crate::rig::process::{GatewayChild, UpstreamChild, http_server};
use crate::rig::procfs;

/// Attempts to reach a starting database, five per second.
const STORE_ATTEMPTS: u32 = 150;

pub(super) struct FaultSettings {
    pub(super) hikite: PathBuf,
    pub(super) is_short: bool,
    /// Duration of the long rows.
    pub(super) seconds: Option<Duration>,
}

/// One hikite and the healthy server `well` behind it.
pub(super) struct FaultRun {
    pub(super) gateway: GatewayChild,
    pub(super) folder: TempDir,
    /// Name of the tool of `well`, as clients call it.
    pub(super) echo: String,
    _upstream: UpstreamChild,
}

impl FaultSettings {
    /// Returns the first number, or the second in a short run.
    pub(super) fn count(&self, usual: usize, short: usize) -> usize {
        if self.is_short { short } else { usual }
    }

    /// Returns a time bound, five times as wide in a short run, where many tests share the machine: there it finds
    /// hangs, and the long run produces the figures.
    pub(super) fn within(&self, bound: f64) -> f64 {
        if self.is_short { 5.0 * bound } else { bound }
    }

    /// Returns a bound for one call or the slowest of a few: it may wait for a processor among many tests, but not as
    /// long as a starved one.
    pub(super) fn at_worst(&self, bound: f64) -> f64 {
        if self.is_short { 20.0 * bound } else { bound }
    }

    /// Returns a duration: the requested one, or a default in seconds.
    pub(super) fn lasts(&self, usual: u64, short: u64) -> Duration {
        self.seconds.unwrap_or(Duration::from_secs(if self.is_short { short } else { usual }))
    }

    /// Starts it with limits and other servers beside the healthy one; `listed` is the number of their tools.
    pub(super) async fn open(&self, limits: &Value, others: &[(&str, Value)], listed: usize) -> Result<FaultRun> {
        self.open_by(Command::new(&self.hikite), limits, others, listed).await
    }

    /// Starts it with a command that ends in the program.
    pub(super) async fn open_by(
        &self,
        program: Command,
        limits: &Value,
        others: &[(&str, Value)],
        listed: usize,
    ) -> Result<FaultRun> {
        let upstream = UpstreamChild::start()?;
        let folder = tempfile::tempdir()?;
        let config = config(&upstream, limits, others);
        let gateway = GatewayChild::launch(program, folder.path(), &config)?;
        let tools = gateway.tools(TOOLS + listed).await?;
        let echo = tools.iter().find(|tool| tool.ends_with("echo") && !tool.starts_with("bad")).cloned();
        Ok(FaultRun { gateway, folder, echo: echo.context("no tool of the healthy server")?, _upstream: upstream })
    }
}

impl FaultSettings {
    /// Waits until a starting database accepts hikite, and creates its tables.
    pub(super) async fn prepare_store(&self, url: &str) -> Result<()> {
        let folder = tempfile::tempdir()?;
        let file = folder.path().join("hikite.json");
        std::fs::write(&file, json!({ "store": { "url": url } }).to_string())?;
        for _ in 0..STORE_ATTEMPTS {
            let mut program = Command::new(&self.hikite);
            program.args(["store", "migrate", "--config"]).arg(&file).arg("--data").arg(folder.path());
            if program.output()?.status.success() {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        anyhow::bail!("the database does not let hikite in")
    }
}

impl FaultRun {
    /// Checks that nothing panicked.
    pub(super) fn no_panic(&self) -> Result<FaultCheck> {
        let log = std::fs::read_to_string(self.folder.path().join("stderr.log"))?;
        let panics = log.lines().filter(|line| line.contains("panicked")).count();
        Ok(FaultCheck::that("panics in the log", "0", panics.to_string(), panics == 0))
    }

    /// Returns the peak memory growth since `before`, in MiB.
    pub(super) fn growth(&self, before: u64) -> Result<f64> {
        Ok(mib(procfs::memory(self.gateway.pid())?.1.saturating_sub(before)))
    }

    /// Returns the current memory and resets the peak.
    pub(super) fn memory(&self) -> Result<u64> {
        procfs::forget_peak(self.gateway.pid())?;
        Ok(procfs::memory(self.gateway.pid())?.0)
    }

    pub(super) fn config_file(&self) -> PathBuf {
        self.folder.path().join("hikite.json")
    }
}

pub(super) fn config(upstream: &UpstreamChild, limits: &Value, others: &[(&str, Value)]) -> Value {
    let mut servers = json!({ "well": http_server(upstream.address, 0) });
    for (name, server) in others {
        servers[*name] = server.clone();
    }
    json!({
        "auth": { "mode": "none" },
        "server": { "surface": ["direct"] },
        "modules": { "builtin": false },
        "mcpServers": servers,
        "limits": limits,
    })
}

#[expect(clippy::cast_precision_loss, reason = "far fewer bytes than a double counts exactly")]
pub(super) fn mib(bytes: u64) -> f64 {
    bytes as f64 / 1024.0 / 1024.0
}

/// Converts a small count to a float.
#[expect(clippy::cast_precision_loss, reason = "far fewer than a double counts exactly")]
pub(super) fn number(count: usize) -> f64 {
    count as f64
}

/// Returns a description of the machine.
pub(super) fn machine() -> String {
    let read = |path: &str| std::fs::read_to_string(Path::new(path)).unwrap_or_default();
    let cpus = read("/proc/cpuinfo");
    let count = cpus.lines().filter(|line| line.starts_with("processor")).count();
    let model = cpus.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or_default();
    let memory = read("/proc/meminfo");
    let kib: u64 = memory.split_whitespace().nth(1).and_then(|word| word.parse().ok()).unwrap_or_default();
    let kernel = read("/proc/sys/kernel/osrelease");
    let load = read("/proc/loadavg");
    let busy: Vec<&str> = load.split(' ').take(3).collect();
    format!(
        "{count} CPUs ({}), {:.0} GiB, Linux {}, load {}",
        model.trim_start_matches([' ', '\t', ':']),
        mib(kib * 1024) / 1024.0,
        kernel.trim(),
        busy.join(" ")
    )
}
