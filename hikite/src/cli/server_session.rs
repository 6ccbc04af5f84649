//! A runtime for commands that manage one server. It starts at most that server, and nothing else of the config or the
//! store. A hikite that runs on the same store picks up the changes.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use hikite_config::{self as config, Config, ConfigEnvironment, ServerConfig};
use hikite_gateway::now_ms;
use hikite_store::Store;

use super::{GlobalArgs, program};
use crate::runtime::{Runtime, UPSTREAM};
use crate::token;

/// Where a server is defined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ServerOrigin {
    File,
    Store,
}

impl ServerOrigin {
    /// Returns where the server is defined; `None` if there is no server of this name.
    pub(crate) async fn of(config: &Config, name: &str) -> Result<Option<Self>> {
        if config.server_names.iter().any(|known| &**known == name) {
            return Ok(Some(Self::File));
        }
        let stored = stored_names(config).await?;
        Ok(stored.iter().any(|known| known == name).then_some(Self::Store))
    }
}

/// Starts a runtime with at most the server `name`.
pub(crate) async fn start(config: &Config, name: Option<&str>) -> Result<Arc<Runtime>> {
    let mut config = config.clone();
    let is_other = |other: &str| name != Some(other);
    let others = config.servers.iter().filter(|server| is_other(&server.name)).map(|server| Arc::clone(&server.name));
    let stored = stored_names(&config).await?.into_iter().filter(|stored| is_other(stored)).map(Arc::from);
    // Disabled names are not started from the store either.
    let disabled: Vec<Arc<str>> = others.chain(stored).collect();
    config.servers.retain(|server: &ServerConfig| !is_other(&server.name));
    config.disabled.extend(disabled);
    Runtime::start(&config, program()?).await
}

/// Returns the names of the servers in the store.
pub(crate) async fn stored_names(config: &Config) -> Result<Vec<String>> {
    if config.store.is_none() {
        token::make_folder(&config.data)?;
    }
    let store = Store::open_with_backup(&config.store_url(), &config.data).await?;
    let entries = store.documents().all(UPSTREAM, None, now_ms()).await;
    store.close().await;
    Ok(entries?.into_iter().map(|entry| entry.id).collect())
}

/// Loads the config, or the defaults if the named file does not exist yet.
pub(crate) fn load_or_default(common: &GlobalArgs) -> Result<Config> {
    let env = |name: &str| std::env::var(name).ok();
    let Some(file) = config::find(common.config.as_deref(), &env).filter(|file| !file.exists()) else {
        return common.load();
    };
    let read = |path: &Path| std::fs::read_to_string(path);
    let mut config = Config::parse("{}", &file, ConfigEnvironment { env: &env, read: &read })?;
    if let Some(data) = &common.data {
        config.data = std::path::absolute(data).context("`--data` is not a folder")?;
    }
    Ok(config)
}

/// Returns the config file that commands change: the one in use, else `hikite.json` in the user's config folder.
pub(crate) fn config_file(common: &GlobalArgs) -> Result<PathBuf> {
    let env = |name: &str| std::env::var(name).ok();
    if let Some(file) = config::find(common.config.as_deref(), &env) {
        return Ok(file);
    }
    let folder = config::user_folder(&env, "XDG_CONFIG_HOME", ".config");
    Ok(folder.context("`HOME` is not set\nhint: Name the config file with `--config`.")?.join("hikite/hikite.json"))
}
