//! The programs that are compared, each in front of the same upstream: the upstream itself as the limit, the minimal
//! relay, hikite and other gateways. Each entry describes how it is started and called, or why it cannot be started.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use tokio::process::Command;

use super::{own, peer};
use crate::rig::process::UpstreamChild;

/// Transport of an upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UpstreamKind {
    Json,
    Sse,
    Stdio,
    /// No upstream at all.
    None,
}

/// The upstream behind all gateways.
pub(super) struct BenchUpstream {
    pub(super) kind: UpstreamKind,
    pub(super) tools: usize,
    http: Option<UpstreamChild>,
}

/// Environment in which a gateway is started.
pub(super) struct LaunchContext<'a> {
    pub(super) origin: &'a BenchUpstream,
    /// Folder of this gateway, reused in every round.
    pub(super) folder: &'a Path,
    pub(super) listen: SocketAddr,
    pub(super) hikite: &'a Path,
    /// Offer search instead of all tools.
    pub(super) searches: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GatewayRole {
    Limit,
    Floor,
    Hikite,
    HikiteOpen,
    Peer,
    /// A well-known program that is not an MCP gateway.
    Reference,
}

pub(super) struct GatewayUnderTest {
    pub(super) name: &'static str,
    pub(super) role: GatewayRole,
    /// Takes milliseconds per call, so it gets fewer of the largest calls.
    pub(super) is_slow: bool,
    pub(super) install: Option<peer::Install>,
    pub(super) plan: fn(&LaunchContext<'_>) -> Result<LaunchPlan>,
}

pub(super) enum LaunchPlan {
    Start(Box<GatewayLaunch>),
    /// Reason why there is nothing to start.
    Absent(&'static str),
}

impl LaunchPlan {
    pub(super) fn start(launch: GatewayLaunch) -> Self {
        Self::Start(Box::new(launch))
    }
}

/// Start command and call format of a gateway.
pub(super) struct GatewayLaunch {
    /// `None` if the upstream itself is measured.
    pub(super) command: Option<Command>,
    pub(super) front: GatewayFront,
    pub(super) token: Option<String>,
    pub(super) call_format: CallFormat,
    /// Number of tools it lists when ready.
    pub(super) tools: usize,
    /// JSON before and after the query of a search.
    pub(super) search: Option<(&'static str, &'static str)>,
    /// Registration request, sent once it listens: path and body.
    pub(super) register: Option<(&'static str, String)>,
}

pub(super) enum GatewayFront {
    Http(SocketAddr, &'static str),
    Pipe,
}

/// Format of a call.
#[derive(Clone)]
pub(super) enum CallFormat {
    /// A listed tool whose name ends like this.
    Listed(&'static str),
    /// A tool that calls tools: the JSON before and after the arguments.
    Wrapped(&'static str, &'static str),
}

impl GatewayLaunch {
    /// Creates the launch of a gateway that lists and calls all upstream tools by name.
    pub(super) fn new(command: Command, front: GatewayFront, place: &LaunchContext<'_>) -> Self {
        Self {
            command: Some(command),
            front,
            token: None,
            call_format: CallFormat::Listed("echo"),
            tools: place.origin.tools,
            search: None,
            register: None,
        }
    }
}

impl BenchUpstream {
    pub(super) fn start(kind: UpstreamKind, tools: usize) -> Result<Self> {
        let count = tools.to_string();
        let options = ["--threads", "2", "--tools", &count];
        let http = match kind {
            UpstreamKind::Json => Some(UpstreamChild::with(&options)?),
            UpstreamKind::Sse => Some(UpstreamChild::with(&[&options[..], &["--sse"]].concat())?),
            UpstreamKind::Stdio | UpstreamKind::None => None,
        };
        Ok(Self { kind, tools, http })
    }

    pub(super) fn address(&self) -> Option<SocketAddr> {
        self.http.as_ref().map(|upstream| upstream.address)
    }

    pub(super) fn url(&self) -> Option<String> {
        self.address().map(|address| format!("http://{address}/mcp"))
    }

    /// Returns the command of a stdio upstream.
    pub(super) fn program(&self) -> Result<Vec<String>> {
        let program = std::env::current_exe()?.into_os_string().into_string().ok().context("an odd path")?;
        Ok([&program, "upstream", "--stdio", "--tools", &self.tools.to_string()].map(Into::into).into())
    }
}

impl LaunchContext<'_> {
    /// Writes a file into the gateway's folder.
    pub(super) fn write(&self, name: &str, text: &str) -> Result<PathBuf> {
        let file = self.folder.join(name);
        std::fs::write(&file, text).with_context(|| format!("cannot write `{}`", file.display()))?;
        Ok(file)
    }

    pub(super) fn front(&self, path: &'static str) -> GatewayFront {
        GatewayFront::Http(self.listen, path)
    }
}

/// Returns all entries; other gateways are filtered by name prefix.
pub(super) fn sides(wanted: Option<&[String]>) -> Vec<GatewayUnderTest> {
    let is_wanted = |name: &str| wanted.is_none_or(|wanted| wanted.iter().any(|w| name.starts_with(w)));
    let peers = peer::all().into_iter().filter(|side| is_wanted(side.name));
    own::all().into_iter().chain(peers).collect()
}
