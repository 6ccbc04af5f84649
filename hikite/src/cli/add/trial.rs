//! Tries a server before it is added, in a runtime that leaves nothing on the disk.

use std::path::Path;

use anyhow::{Result, anyhow};
use hikite_config::{Config, ConfigEnvironment};
use hikite_core::source::{Source, SourceState};
use hikite_store::StoreUrl;
use serde_json::json;

use super::entry::NewServer;
use crate::cli::program;
use crate::runtime::Runtime;

/// Lines of a program's error output that an error shows.
const STDERR_LINES: usize = 5;

/// The outcome of a trial.
#[derive(Debug)]
pub(super) enum Trial {
    Tools(usize),
    NeedsLogin,
    Skipped,
}

/// Starts the server, or connects to it, and reads its tools. `file` is where relative paths start.
pub(super) async fn run(new: &NewServer, file: &Path) -> Result<Trial> {
    let text = json!({ "mcpServers": { &*new.name: new.entry } }).to_string();
    let env = |name: &str| std::env::var(name).ok();
    let read = |path: &Path| std::fs::read_to_string(path);
    let mut config = Config::parse(&text, file, ConfigEnvironment { env: &env, read: &read })?;
    config.store = Some(StoreUrl::memory());
    config.audit.enabled = false;
    config.modules.builtin.clear();
    let runtime = Runtime::start(&config, program()?).await?;
    let outcome = outcome(&runtime, &new.name).await;
    runtime.stop().await;
    outcome
}

async fn outcome(runtime: &Runtime, name: &str) -> Result<Trial> {
    let upstream = runtime.upstream(name).ok_or_else(|| anyhow!("`{name}` cannot be started."))?;
    upstream.first_listing().await;
    match (upstream.state(), upstream.listing()) {
        (SourceState::NeedsLogin { .. }, _) => Ok(Trial::NeedsLogin),
        (_, Some(listing)) => Ok(Trial::Tools(listing.tools.len())),
        (state, None) => {
            let reason = state.trouble().unwrap_or_else(|| "it did not return its tools in time".into());
            let stderr = runtime.stderr_of(name);
            let last =
                stderr.iter().rev().take(STDERR_LINES).rev().fold(String::new(), |last, line| last + "\n  " + line);
            Err(anyhow!(
                "`{name}` was not added: {reason}{last}\nhint: Correct it, or add it anyway with `--no-check`."
            ))
        }
    }
}
