//! A started gateway: its address, its resource use, and its clients. It is its own process group, which is killed on
//! drop.

use std::fs::File;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use bytes::Bytes;
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Value, json};
use tokio::process::Child;
use tokio::sync::OnceCell;

use super::drive::{BenchRequest, once};
use super::pipe::StdioPipe;
use super::side::{CallFormat, GatewayFront, GatewayLaunch, LaunchContext, UpstreamKind};
use super::tree;
use crate::rig::client::{McpEndpoint, RigClient, is_result};
use crate::rig::rest::RestClient;

/// Timeout until a gateway lists its tools; the slowest creates its database first.
const TIMEOUT: Duration = Duration::from_secs(40);
/// Timeout of one request.
const REQUEST: Duration = Duration::from_secs(30);
const STOP: Duration = Duration::from_secs(5);

pub(super) struct RunningGateway {
    process: GatewayProcess,
    id: Option<u32>,
    front: GatewayFront,
    token: Option<String>,
    call_format: CallFormat,
    /// Client of a stdio server, initialized once.
    first: OnceCell<BenchClient>,
    pub(super) search: Option<(&'static str, &'static str)>,
    /// Time from process start to the first list.
    pub(super) start_ms: f64,
}

enum GatewayProcess {
    /// The upstream, which already runs.
    None,
    Server(Child),
    Pipe(Arc<StdioPipe>),
}

/// One client of a gateway.
pub(super) enum BenchClient {
    Http(RigClient),
    Pipe(Arc<StdioPipe>, Arc<AtomicU64>),
}

impl RunningGateway {
    pub(super) async fn start(launch: GatewayLaunch, place: &LaunchContext<'_>) -> Result<Self> {
        let started = Instant::now();
        let process = spawn(launch.command, &launch.front, place)?;
        let id = match &process {
            GatewayProcess::None => None,
            GatewayProcess::Server(child) => child.id(),
            GatewayProcess::Pipe(pipe) => pipe.id(),
        };
        let mut running = Self {
            process,
            id,
            front: launch.front,
            token: launch.token,
            call_format: launch.call_format,
            first: OnceCell::new(),
            search: launch.search,
            start_ms: 0.0,
        };
        if let Some((path, body)) = &launch.register {
            running.register(path, body, started).await?;
        }
        running.wait(launch.tools, started).await?;
        running.start_ms = started.elapsed().as_secs_f64() * 1000.0;
        if place.origin.kind != UpstreamKind::None {
            running.answer(started).await?;
        }
        Ok(running)
    }

    /// Waits until all tools are listed.
    async fn wait(&mut self, tools: usize, started: Instant) -> Result<()> {
        loop {
            let seen = match tokio::time::timeout(REQUEST, self.list()).await {
                Ok(seen) => seen.map(|list| list.len()),
                Err(_) => bail!("it does not answer"),
            };
            if seen.as_ref().is_ok_and(|count| *count >= tools) {
                return Ok(());
            }
            self.is_alive()?;
            if started.elapsed() > TIMEOUT {
                let count = seen.context("it does not become ready")?;
                bail!("{count} of {tools} tools are listed");
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    /// Waits until a first call succeeds: some gateways connect to their servers only then.
    async fn answer(&mut self, started: Instant) -> Result<()> {
        loop {
            let call = async {
                let ask = match self.search {
                    Some(call_wrapper) => BenchRequest::Search(call_wrapper),
                    None => BenchRequest::Echo(0, self.call_wrapper().await?),
                };
                once(&mut self.link().await?, &ask, "first").await
            };
            match tokio::time::timeout(REQUEST, call).await? {
                Ok(()) => return Ok(()),
                Err(error) if started.elapsed() > TIMEOUT => {
                    return Err(error.context("no call gets through"));
                }
                Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            }
            self.is_alive()?;
        }
    }

    async fn list(&self) -> Result<Vec<Value>> {
        let mut link = self.link().await?;
        let answer: Value = serde_json::from_slice(&link.request("tools/list", "{}").await?)?;
        Ok(answer["result"]["tools"].as_array().context("no tools in the answer")?.clone())
    }

    /// Registers the upstream once the gateway listens; a second time it is already known.
    async fn register(&mut self, path: &str, body: &str, started: Instant) -> Result<()> {
        let GatewayFront::Http(address, _) = self.front else { bail!("nothing to register at") };
        let token = self.token.clone().unwrap_or_default();
        loop {
            self.is_alive()?;
            let answer = async {
                let mut rest = RestClient::open(address).await?.with_token(&token)?;
                let known = rest.get(path).await?;
                if memchr::memmem::find(&known, b"\"bench\"").is_none() {
                    rest.post(path, body.to_owned()).await?;
                }
                anyhow::Ok(())
            };
            match answer.await {
                Ok(()) => return Ok(()),
                Err(error) if started.elapsed() > TIMEOUT => {
                    return Err(error.context("it cannot be registered"));
                }
                Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        }
    }

    fn is_alive(&mut self) -> Result<()> {
        let ended = match &mut self.process {
            GatewayProcess::Server(child) => child.try_wait()?,
            GatewayProcess::Pipe(pipe) => {
                ensure!(!pipe.is_over(), "it ended");
                None
            }
            GatewayProcess::None => None,
        };
        ensure!(ended.is_none(), "it ended: {}", ended.map(|status| status.to_string()).unwrap_or_default());
        Ok(())
    }

    /// Opens an initialized client.
    pub(super) async fn link(&self) -> Result<BenchClient> {
        let (address, path) = match (&self.front, &self.process) {
            (GatewayFront::Http(address, path), _) => (*address, *path),
            (GatewayFront::Pipe, GatewayProcess::Pipe(pipe)) => {
                let initialize = || BenchClient::Pipe(Arc::clone(pipe), Arc::new(AtomicU64::new(1))).initialize();
                let first = self.first.get_or_try_init(initialize).await?;
                return first.again().context("a pipe");
            }
            (GatewayFront::Pipe, _) => bail!("no pipe"),
        };
        let target = McpEndpoint { address, path };
        Ok(BenchClient::Http(RigClient::open_as(&target, self.token.as_deref(), Duration::ZERO).await?))
    }

    pub(super) fn has_sessions(&self) -> bool {
        matches!(self.front, GatewayFront::Http(..)) && self.id.is_some()
    }

    /// Returns the JSON before and after the arguments of an `echo` call.
    pub(super) async fn call_wrapper(&self) -> Result<(String, String)> {
        let suffix = match self.call_format {
            CallFormat::Wrapped(before, after) => return Ok((before.into(), after.into())),
            CallFormat::Listed(suffix) => suffix,
        };
        let list = self.list().await?;
        let mut names = list.iter().filter_map(|tool| tool["name"].as_str());
        let name = names.find(|name| name.ends_with(suffix)).context("no tool to call")?;
        Ok((format!(r#"{{"name":{},"arguments":"#, json!(name)), "}".into()))
    }

    /// Returns the CPU time; `None` for the upstream itself.
    pub(super) fn cpu_seconds(&self) -> Result<Option<f64>> {
        self.id.map(tree::cpu_seconds).transpose()
    }

    pub(super) fn memory_mb(&self) -> Result<Option<f64>> {
        self.id.map(tree::memory_mb).transpose()
    }

    /// Stops it with `SIGTERM`, then kills it.
    pub(super) async fn stop(mut self) {
        self.signal(Signal::TERM);
        if let GatewayProcess::Server(child) = &mut self.process {
            // It may ignore the signal.
            let _ = tokio::time::timeout(STOP, child.wait()).await;
        }
    }

    fn signal(&self, signal: Signal) {
        let group = self.id.and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        if let Some(group) = group {
            // It may already be gone.
            let _ = kill_process_group(group, signal);
        }
    }
}

impl Drop for RunningGateway {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}

impl BenchClient {
    async fn initialize(mut self) -> Result<Self> {
        let client = json!({ "name": "bench", "version": "1" });
        let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client });
        self.request("initialize", &params.to_string()).await?;
        if let Self::Pipe(pipe, _) = &self {
            pipe.tell("notifications/initialized")?;
        }
        Ok(self)
    }

    pub(super) async fn request(&mut self, method: &str, params: &str) -> Result<Bytes> {
        match self {
            Self::Http(client) => client.request(method, params).await,
            Self::Pipe(pipe, last) => {
                let id = last.fetch_add(1, Ordering::Relaxed);
                let answer = pipe.request(&id.to_string(), method, params).await?;
                ensure!(is_result(&answer, id), "{method}: {}", String::from_utf8_lossy(&answer));
                Ok(answer)
            }
        }
    }

    /// Returns another client of a stdio server, which shares its pipes.
    fn again(&self) -> Option<Self> {
        match self {
            Self::Http(_) => None,
            Self::Pipe(pipe, last) => Some(Self::Pipe(Arc::clone(pipe), Arc::clone(last))),
        }
    }
}

fn spawn(
    command: Option<tokio::process::Command>,
    front: &GatewayFront,
    place: &LaunchContext<'_>,
) -> Result<GatewayProcess> {
    let Some(mut command) = command else { return Ok(GatewayProcess::None) };
    let log = File::create(place.folder.join("log.txt"))?;
    command.process_group(0).stderr(log.try_clone()?);
    if matches!(front, GatewayFront::Pipe) {
        return Ok(GatewayProcess::Pipe(Arc::new(StdioPipe::start(command)?)));
    }
    let program = command.as_std().get_program().to_string_lossy().into_owned();
    let child = command.stdin(Stdio::null()).stdout(log).spawn();
    Ok(GatewayProcess::Server(child.with_context(|| format!("cannot start `{program}`"))?))
}
