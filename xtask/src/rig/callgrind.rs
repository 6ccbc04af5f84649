//! hikite under callgrind, and its clients.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use super::client::RigClient;
use super::process::GatewayChild;

/// Timeout; callgrind makes everything fifty times slower.
const TIMEOUT: Duration = Duration::from_secs(180);

pub(crate) struct Callgrind {
    gateway: GatewayChild,
    token: String,
    profile: PathBuf,
}

impl Callgrind {
    /// Starts it in its own folder, with callgrind options.
    pub(crate) async fn start(hikite: &Path, folder: &Path, options: &[&str], config: &Value) -> Result<Self> {
        fs::create_dir_all(folder)?;
        let profile = folder.join("profile");
        let mut valgrind = Command::new("valgrind");
        valgrind.arg("--tool=callgrind").args(options);
        valgrind.arg(format!("--callgrind-out-file={}", profile.display())).arg(hikite);
        let mut gateway = GatewayChild::launch(valgrind, folder, config).context("is valgrind installed?")?;
        let started = Instant::now();
        let token = loop {
            match fs::read_to_string(folder.join("data").join("token")) {
                Ok(token) => break token.trim().to_owned(),
                Err(_) if gateway.ended()?.is_some() || started.elapsed() > TIMEOUT => {
                    bail!("hikite does not start: {}", fs::read_to_string(folder.join("stderr.log"))?)
                }
                Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        };
        Ok(Self { gateway, token, profile })
    }

    /// Opens a client of the default surface.
    pub(crate) async fn client(&self) -> Result<RigClient> {
        RigClient::open_as(&self.gateway.target, Some(&self.token), TIMEOUT).await
    }

    /// Waits until tools are listed.
    pub(crate) async fn listed(&self, client: &mut RigClient) -> Result<()> {
        let started = Instant::now();
        while client.tools().await?.is_empty() {
            ensure!(started.elapsed() < TIMEOUT, "the tools are not listed");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Ok(())
    }

    /// Starts or stops counting.
    pub(crate) fn count(&self, word: &str) -> Result<()> {
        let pid = self.gateway.pid().to_string();
        let output = Command::new("callgrind_control").args(["--instr", word, &pid]).output()?;
        ensure!(output.status.success(), "callgrind_control: {}", String::from_utf8_lossy(&output.stderr));
        Ok(())
    }

    /// Stops it and returns the path of the profile.
    pub(crate) fn stop(self) -> Result<PathBuf> {
        self.gateway.stop()?;
        Ok(self.profile)
    }
}

/// Returns a config with all checks on and a log line for each call.
pub(crate) fn everything_on(servers: &Value) -> Value {
    json!({
        "auth": { "mode": "token" },
        "server": { "surface": ["direct"] },
        "telemetry": { "log": { "level": "info" } },
        "mcpServers": servers,
    })
}
