//! The programs under measurement: upstreams and hikite, on free loopback ports, ended when dropped.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::client::{Client, Target};

/// The longest that anything here takes to start or stop.
const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) struct Upstream {
    child: Child,
    pub(crate) address: SocketAddr,
}

impl Upstream {
    pub(crate) fn start() -> Result<Self> {
        Self::launch(&free_address()?, &[])
    }

    pub(crate) fn with_tools(count: usize) -> Result<Self> {
        Self::launch(&free_address()?, &["--tools", &count.to_string()])
    }

    /// Takes so many milliseconds for each call.
    pub(crate) fn with_delay(ms: u64) -> Result<Self> {
        Self::launch(&free_address()?, &["--delay", &ms.to_string()])
    }

    /// Takes requests at an address and never answers.
    pub(crate) fn silent(address: SocketAddr) -> Result<Self> {
        Self::launch(&address, &["--silent"])
    }

    pub(crate) fn again(address: SocketAddr) -> Result<Self> {
        Self::launch(&address, &[])
    }

    /// With options of its own.
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

    pub(crate) fn target(&self) -> Target {
        Target { address: self.address, path: "/mcp" }
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) struct Gateway {
    child: Child,
    pub(crate) target: Target,
}

impl Gateway {
    /// Starts hikite in a folder that keeps its config, its data and its log.
    pub(crate) fn start(program: &Path, folder: &Path, servers: &Value) -> Result<Self> {
        Self::start_with(program, folder, servers, &json!({}))
    }

    /// The same with limits of its own.
    pub(crate) fn start_with(program: &Path, folder: &Path, servers: &Value, limits: &Value) -> Result<Self> {
        let config = json!({
            "auth": { "mode": "none" },
            "server": { "surface": ["direct"] },
            "mcpServers": servers,
            "limits": limits,
        });
        Self::launch(Command::new(program), folder, &config)
    }

    /// The same with a whole config, by a command that ends in the program. Calls are logged only if the config says so.
    pub(crate) fn launch(mut program: Command, folder: &Path, config: &Value) -> Result<Self> {
        std::fs::write(folder.join("hikite.json"), config.to_string())?;
        let address = free_address()?;
        // Its memory is measured through `/proc`, which is closed where a process leaves no core dump.
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
        Ok(Self { child, target: Target { address, path: "/mcp?surface=direct" } })
    }

    pub(crate) async fn client(&self) -> Result<Client> {
        Client::open(&self.target, PATIENCE).await
    }

    /// Waits until so many tools are listed, and gives their names.
    pub(crate) async fn tools(&self, count: usize) -> Result<Vec<String>> {
        let started = Instant::now();
        let mut client = self.client().await?;
        loop {
            let tools = client.tools().await?;
            if tools.len() == count {
                return Ok(tools);
            }
            ensure!(started.elapsed() < PATIENCE, "{} of {count} tools are listed", tools.len());
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// CPU time so far, user and system.
    pub(crate) fn cpu_seconds(&self) -> Result<f64> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        // The program's name, in brackets, may hold spaces.
        let (_, fields) = stat.rsplit_once(')').context("an odd /proc/PID/stat")?;
        let ticks = fields.split_whitespace().skip(11).take(2).map(str::parse::<u32>);
        Ok(ticks.sum::<Result<u32, _>>().map(f64::from)? / 100.0)
    }

    /// Ends it as a service manager would.
    pub(crate) fn stop(mut self) -> Result<()> {
        self.signal(Signal::TERM)?;
        let started = Instant::now();
        while self.ended()?.is_none() {
            ensure!(started.elapsed() < PATIENCE, "hikite does not stop");
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }

    pub(crate) fn signal(&self, signal: Signal) -> Result<()> {
        let pid =
            i32::try_from(self.child.id()).ok().and_then(Pid::from_raw).context("a process has an id")?;
        Ok(kill_process(pid, signal)?)
    }

    /// How it ended; `None` while it runs.
    pub(crate) fn ended(&mut self) -> Result<Option<ExitStatus>> {
        Ok(self.child.try_wait()?)
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The entry of an upstream in hikite's config.
pub(crate) fn http_server(address: SocketAddr, index: usize) -> Value {
    json!({ "url": format!("http://{address}/{index}/mcp") })
}

pub(crate) fn stdio_server(index: usize) -> Result<Value> {
    // The index makes it a server of its own.
    let program = std::env::current_exe()?;
    Ok(
        json!({ "command": program, "args": ["upstream", "--stdio"], "env": { "BENCH_INDEX": index.to_string() } }),
    )
}

pub(crate) fn free_address() -> Result<SocketAddr> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?)
}
