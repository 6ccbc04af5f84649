//! Pins as a running hikite knows them or, if none runs, as this process learns them from the servers. Only a running
//! hikite knows tools that a server offers to one session alone.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Result, anyhow};
use hikite_config::AuthSection;
use hikite_core::caller::Caller;
use hikite_core::json::{Object, Raw};
use hikite_core::uri;
use hikite_gateway::PinFilter;

use crate::cli::running_server::RunningServer;
use crate::cli::store_session::at_terminal;
use crate::cli::{GlobalArgs, program};
use crate::progress;
use crate::runtime::Runtime;

pub(super) enum Pins {
    Running(RunningServer),
    Own(Arc<Runtime>),
}

impl Pins {
    pub(super) async fn open(common: &GlobalArgs, listen: Option<SocketAddr>) -> Result<Self> {
        let config = common.load()?;
        // Without a token, whatever listens at the default address may belong to another config.
        if listen.is_some() || !matches!(config.auth, AuthSection::None) {
            let server = RunningServer::of(&config, listen)?;
            if server.accepts("/v1/pins?state=blocked").await {
                return Ok(Self::Running(server));
            }
        }
        let runtime = Runtime::start(&config, program()?).await?;
        progress::wait_for_all(&runtime.gateway, runtime.limits.start_timeout).await;
        Ok(Self::Own(runtime))
    }

    pub(super) async fn list(&self, filter: &PinFilter) -> Result<Vec<Object>> {
        let pins = match self {
            Self::Own(runtime) => runtime.gateway.admin().pins.list(filter),
            Self::Running(server) => {
                let state = filter.state.map(|state| format!("state={}", state.word()));
                let module = filter.module.as_deref().map(|module| format!("module={}", uri::encode(module)));
                let query: Vec<String> = state.into_iter().chain(module).collect();
                let answer: Raw = server.ask("GET", &format!("/v1/pins?{}", query.join("&")), None).await?;
                answer.object().and_then(|answer| answer.get("pins")?.items()).unwrap_or_default()
            }
        };
        Ok(pins.iter().filter_map(Raw::object).collect())
    }

    /// Returns the pin of `module:tool`, or of a tool name that is unique.
    pub(super) async fn get(&self, name: &str) -> Result<Object> {
        let pin: Raw = match self {
            Self::Own(runtime) => runtime.gateway.admin().pins.get(name).await?,
            Self::Running(server) => server.ask("GET", &path(name, ""), None).await?,
        };
        pin.object().ok_or_else(|| anyhow!("`{name}` has no pin"))
    }

    pub(super) async fn approve(&self, key: &str, hash: &str) -> Result<()> {
        match self {
            Self::Own(runtime) => {
                let pins = &runtime.gateway.admin().pins;
                let one = [(pins.key(key)?, hash.into())];
                let who = (&Caller::owner(), &at_terminal("hikite pin"));
                runtime.gateway.auditor().record_admin(who, "pin.approve", key, pins.approve_all(&one)).await?;
            }
            Self::Running(server) => {
                let form = Object::default().with("hash", hash);
                let _: Raw = server.ask("POST", &path(key, "/approve"), Some(&form.raw())).await?;
            }
        }
        Ok(())
    }

    pub(super) async fn block(&self, key: &str) -> Result<()> {
        match self {
            Self::Own(runtime) => {
                let one = [key.to_owned()];
                let work = runtime.gateway.admin().pins.block_all(&one);
                let who = (&Caller::owner(), &at_terminal("hikite pin"));
                runtime.gateway.auditor().record_admin(who, "pin.block", key, work).await?;
            }
            Self::Running(server) => {
                let _: Raw = server.ask("POST", &path(key, "/block"), None).await?;
            }
        }
        Ok(())
    }

    pub(super) async fn close(self) {
        if let Self::Own(runtime) = self {
            runtime.stop().await;
        }
    }
}

fn path(name: &str, action: &str) -> String {
    format!("/v1/pins/{}{action}", uri::encode(name))
}
