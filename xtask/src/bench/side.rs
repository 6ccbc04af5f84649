//! The programs that are compared, each in front of the same upstream: the upstream itself as the limit, the floor, hikite
//! and its peers. A side says how it is started and spoken to, or why there is nothing to start.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use tokio::process::Command;

use super::{own, peer};
use crate::rig::process::Upstream;

/// How an upstream is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Json,
    Sse,
    Stdio,
    /// There is no upstream at all.
    None,
}

/// What all sides stand in front of.
pub(super) struct Origin {
    pub(super) kind: Kind,
    pub(super) tools: usize,
    http: Option<Upstream>,
}

/// Where a side is started.
pub(super) struct Place<'a> {
    pub(super) origin: &'a Origin,
    /// Its own, kept from round to round.
    pub(super) folder: &'a Path,
    pub(super) listen: SocketAddr,
    pub(super) hikite: &'a Path,
    /// Whether it should offer its search instead of all tools.
    pub(super) searches: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Limit,
    Floor,
    Hikite,
    HikiteOpen,
    Peer,
    /// No gateway for MCP, but something that people know.
    Reference,
}

pub(super) struct Side {
    pub(super) name: &'static str,
    pub(super) role: Role,
    /// Takes milliseconds for a call: gets fewer of the largest.
    pub(super) is_slow: bool,
    pub(super) install: Option<peer::Install>,
    pub(super) plan: fn(&Place<'_>) -> Result<Plan>,
}

pub(super) enum Plan {
    Start(Box<Launch>),
    /// Why there is nothing to start.
    Absent(&'static str),
}

impl Plan {
    pub(super) fn start(launch: Launch) -> Self {
        Self::Start(Box::new(launch))
    }
}

/// How it is started and spoken to.
pub(super) struct Launch {
    /// Nothing where the upstream itself is the side.
    pub(super) command: Option<Command>,
    pub(super) front: Front,
    pub(super) token: Option<String>,
    pub(super) wording: Wording,
    /// How many tools it lists when it is ready.
    pub(super) tools: usize,
    /// The parameters of a search, around its question.
    pub(super) search: Option<(&'static str, &'static str)>,
    /// Sent once it listens: the path and the body.
    pub(super) register: Option<(&'static str, String)>,
}

pub(super) enum Front {
    Http(SocketAddr, &'static str),
    Pipe,
}

/// What a call looks like.
#[derive(Clone)]
pub(super) enum Wording {
    /// As a tool that is listed under a name that ends so.
    Listed(&'static str),
    /// As a tool that calls tools: what stands around the arguments.
    Wrapped(&'static str, &'static str),
}

impl Launch {
    /// A side that lists all tools of the upstream and is called by their names.
    pub(super) fn new(command: Command, front: Front, place: &Place<'_>) -> Self {
        Self {
            command: Some(command),
            front,
            token: None,
            wording: Wording::Listed("echo"),
            tools: place.origin.tools,
            search: None,
            register: None,
        }
    }
}

impl Origin {
    pub(super) fn start(kind: Kind, tools: usize) -> Result<Self> {
        let count = tools.to_string();
        let options = ["--threads", "2", "--tools", &count];
        let http = match kind {
            Kind::Json => Some(Upstream::with(&options)?),
            Kind::Sse => Some(Upstream::with(&[&options[..], &["--sse"]].concat())?),
            Kind::Stdio | Kind::None => None,
        };
        Ok(Self { kind, tools, http })
    }

    pub(super) fn address(&self) -> Option<SocketAddr> {
        self.http.as_ref().map(|upstream| upstream.address)
    }

    pub(super) fn url(&self) -> Option<String> {
        self.address().map(|address| format!("http://{address}/mcp"))
    }

    /// The program and its arguments, where the upstream is one.
    pub(super) fn program(&self) -> Result<Vec<String>> {
        let program = std::env::current_exe()?.into_os_string().into_string().ok().context("an odd path")?;
        Ok([&program, "upstream", "--stdio", "--tools", &self.tools.to_string()].map(Into::into).into())
    }
}

impl Place<'_> {
    /// Writes a file into the side's folder.
    pub(super) fn write(&self, name: &str, text: &str) -> Result<PathBuf> {
        let file = self.folder.join(name);
        std::fs::write(&file, text).with_context(|| format!("cannot write `{}`", file.display()))?;
        Ok(file)
    }

    pub(super) fn front(&self, path: &'static str) -> Front {
        Front::Http(self.listen, path)
    }
}

/// All sides; of the peers those whose name begins with a wanted one.
pub(super) fn sides(wanted: Option<&[String]>) -> Vec<Side> {
    let is_wanted = |name: &str| wanted.is_none_or(|wanted| wanted.iter().any(|w| name.starts_with(w)));
    let peers = peer::all().into_iter().filter(|side| is_wanted(side.name));
    own::all().into_iter().chain(peers).collect()
}
