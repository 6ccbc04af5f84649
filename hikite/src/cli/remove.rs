//! `hikite remove`, `enable`, `disable` and `restart`: one server or module at a time.

use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::Args;
use hikite_api::Module;
use hikite_config::{Config, edit};

use super::add::change_file;
use super::running_server::RunningServer;
use super::serve::listen_flag;
use super::server_session::{self, ServerOrigin, config_file};
use super::{GlobalArgs, note};
use crate::runtime::TerminalServers;

#[derive(Debug, Args)]
pub(crate) struct RemoveArgs {
    /// The name of the server
    name: String,
}

#[derive(Debug, Args)]
pub(crate) struct SwitchArgs {
    /// The name of the server or module
    name: String,
}

#[derive(Debug, Args)]
pub(crate) struct RestartArgs {
    /// The name of the server
    name: String,
    /// The address of hikite [default: from the config]
    #[arg(long, value_name = "ADDR", env = "HIKITE_LISTEN", value_parser = listen_flag)]
    listen: Option<std::net::SocketAddr>,
}

impl RemoveArgs {
    pub(crate) async fn run(self, common: &GlobalArgs) -> Result<ExitCode> {
        let (config, name) = (common.load()?, self.name.as_str());
        match ServerOrigin::of(&config, name).await? {
            Some(ServerOrigin::File) => {
                let file = config_file(common)?;
                change_file(&file, |text| edit::remove(text, &["mcpServers", name]))?;
                note(&format!("Removed `{name}` from {}.", file.display()));
            }
            Some(ServerOrigin::Store) => {
                let runtime = server_session::start(&config, None).await?;
                let removed = TerminalServers(&runtime).remove(name).await;
                runtime.stop().await;
                removed?;
                note(&format!("Removed `{name}` from the store."));
            }
            None => return Err(unknown(&config, name)),
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl SwitchArgs {
    pub(crate) async fn run(self, common: &GlobalArgs, enabled: bool) -> Result<ExitCode> {
        let (config, name) = (common.load()?, self.name.as_str());
        if let Some(entry) = config.invalid.iter().find(|entry| &*entry.id.name == name) {
            bail!("{entry}");
        }
        let is_disabled_in_file = config.disabled.iter().any(|disabled| &**disabled == name);
        if is_disabled_in_file && !enabled {
            note(&format!("`{name}` is disabled in the config file already."));
            return Ok(ExitCode::SUCCESS);
        }
        if is_disabled_in_file {
            let file = config_file(common)?;
            change_file(&file, |text| {
                let text = edit::remove(text, &["mcpServers", name, "disabled"])?;
                edit::remove(&text, &["mcpServers", name, "enabled"])
            })?;
        }
        let config = common.load()?;
        let runtime = server_session::start(&config, Some(name)).await?;
        let switched = runtime.gateway.admin().modules.switch(name, enabled).await;
        runtime.stop().await;
        switched?;
        note(&format!("`{name}` is {}.", if enabled { "enabled" } else { "disabled" }));
        Ok(ExitCode::SUCCESS)
    }
}

impl RestartArgs {
    pub(crate) async fn run(self, common: &GlobalArgs) -> Result<ExitCode> {
        let server = RunningServer::of(&common.load()?, self.listen)?;
        let path = format!("/v1/modules/{}/restart", hikite_core::uri::encode(&self.name));
        let module: Module = server.ask("POST", &path, None).await?;
        note(&format!("`{}` restarts.", module.name));
        Ok(ExitCode::SUCCESS)
    }
}

fn unknown(config: &Config, name: &str) -> anyhow::Error {
    let near = hikite_core::suggestion::did_you_mean(name, config.server_names.iter().map(|known| &**known));
    let hint = near.unwrap_or_else(|| "`hikite server list` shows all servers.".into());
    anyhow::anyhow!("There is no server `{name}`.\nhint: {hint}")
}
