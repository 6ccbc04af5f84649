//! The programs under measurement: upstreams and hikite, on free loopback ports, stopped on drop.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::client::{McpEndpoint, RigClient};

/// Timeout for starting or stopping.
const TIMEOUT: Duration = Duration::from_secs(20);

pub(crate) struct UpstreamChild {
    child: Child,
    pub(crate) address: SocketAddr,
}

impl UpstreamChild {
    pub(crate) fn start() -> Result<Self> {
        Self::launch(&free_address()?, &[])
    }

    pub(crate) fn with_tools(count: usize) -> Result<Self> {
        Self::launch(&free_address()?, &["--tools", &count.to_string()])
    }

    /// Starts an upstream that delays each call by `ms` milliseconds.
    pub(crate) fn with_delay(ms: u64) -> Result<Self> {
        Self::launch(&free_address()?, &["--delay", &ms.to_string()])
    }

    /// Starts an upstream that accepts requests at an address and never answers.
    pub(crate) fn silent(address: SocketAddr) -> Result<Self> {
        Self::launch(&address, &["--silent"])
    }

    pub(crate) fn again(address: SocketAddr) -> Result<Self> {
        Self::launch(&address, &[])
    }

    /// Starts an upstream with extra options.
    pub(crate) fn with(options: &[&str]) -> Result<Self> {
        Self::launch(&free_address()?, options)
    }

    fn launch(address: &SocketAddr, options: &[&str]) -> Result<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(["upstream", "--http", &address.to_string()])
            .args(options)
            .stdout(Stdio::piped())
            .spawn()?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().context("piped")?).read_line(&mut line)?;
        ensure!(!line.is_empty(), "the upstream did not start on {address}");
        Ok(Self { child, address: *address })
    }

    pub(crate) fn target(&self) -> McpEndpoint {
        McpEndpoint { address: self.address, path: "/mcp" }
    }
}

impl Drop for UpstreamChild {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) struct GatewayChild {
    child: Child,
    pub(crate) target: McpEndpoint,
}

impl GatewayChild {
    /// Starts hikite in a folder that holds its config, data and log.
    pub(crate) fn start(program: &Path, folder: &Path, servers: &Value) -> Result<Self> {
        Self::start_with(program, folder, servers, &json!({}))
    }

    /// Starts hikite with its own limits.
    pub(crate) fn start_with(program: &Path, folder: &Path, servers: &Value, limits: &Value) -> Result<Self> {
        let config = json!({
            "auth": { "mode": "none" },
            "server": { "surface": ["direct"] },
            "mcpServers": servers,
            "limits": limits,
        });
        Self::launch(Command::new(program), folder, &config)
    }

    /// Starts hikite with a complete config, by a command that ends in the program. Calls are logged only if the config
    /// says so.
    pub(crate) fn launch(mut program: Command, folder: &Path, config: &Value) -> Result<Self> {
        std::fs::write(folder.join("hikite.json"), config.to_string())?;
        let address = free_address()?;
        // Its memory is read from `/proc`, which is closed for processes that are not dumpable.
        program.env("HIKITE_DUMPABLE", "1").args(["serve", "--listen", &address.to_string()]);
        if config.pointer("/telemetry/log").is_none() {
            program.args(["--log", "warn"]);
        }
        let child = program
            .arg("--config")
            .arg(folder.join("hikite.json"))
            .arg("--data")
            .arg(folder.join("data"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(folder.join("stderr.log"))?)
            .spawn()
            .with_context(|| format!("cannot start `{}`", program.get_program().display()))?;
        Ok(Self { child, target: McpEndpoint { address, path: "/mcp?surface=direct" } })
    }

    pub(crate) async fn client(&self) -> Result<RigClient> {
        RigClient::open(&self.target, TIMEOUT).await
    }

    /// Waits until this many tools are listed, and returns their names.
    pub(crate) async fn tools(&self, count: usize) -> Result<Vec<String>> {
        let started = Instant::now();
        let mut client = self.client().await?;
        loop {
            let tools = client.tools().await?;
            if tools.len() == count {
                return Ok(tools);
            }
            ensure!(started.elapsed() < TIMEOUT, "{} of {count} tools are listed", tools.len());
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Returns the CPU time so far, user and system.
    pub(crate) fn cpu_seconds(&self) -> Result<f64> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        // The program's name, in parentheses, may contain spaces.
        let (_, fields) = stat.rsplit_once(')').context("an odd /proc/PID/stat")?;
        let ticks = fields.split_whitespace().skip(11).take(2).map(str::parse::<u32>);
        Ok(ticks.sum::<Result<u32, _>>().map(f64::from)? / 100.0)
    }

    /// Stops it with `SIGTERM`.
    pub(crate) fn stop(mut self) -> Result<()> {
        self.signal(Signal::TERM)?;
        let started = Instant::now();
        while self.ended()?.is_none() {
            ensure!(started.elapsed() < TIMEOUT, "hikite does not stop");
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }

    pub(crate) fn signal(&self, signal: Signal) -> Result<()> {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw).context("a process has an id")?;
        Ok(kill_process(pid, signal)?)
    }

    /// Returns the exit status; `None` while it runs.
    pub(crate) fn ended(&mut self) -> Result<Option<ExitStatus>> {
        Ok(self.child.try_wait()?)
    }
}

impl Drop for GatewayChild {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the config entry of an HTTP upstream.
pub(crate) fn http_server(address: SocketAddr, index: usize) -> Value {
    json!({ "url": format!("http://{address}/{index}/mcp") })
}

pub(crate) fn stdio_server(index: usize) -> Result<Value> {
    // The index makes it a distinct server.
    let program = std::env::current_exe()?;
    Ok(json!({ "command": program, "args": ["upstream", "--stdio"], "env": { "BENCH_INDEX": index.to_string() } }))
}

pub(crate) fn free_address() -> Result<SocketAddr> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?)
}
