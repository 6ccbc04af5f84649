//! `hikite catalog`: finds servers in the official MCP registry, in a mirror of it, or in a file. Answers are cached in
//! the data folder, and used when the registry does not answer.

mod server;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use clap::{Args, Subcommand};
use hikite_config::{CatalogLocation, Config};
use hikite_core::uri::encode;
use hikite_egress::{EgressClient, RequestBody, read};
use hikite_gateway::now_ms;
use http::Request;
use http::header::ACCEPT;
use serde_json::Value;

pub(crate) use self::server::{CatalogField, CatalogPackage, CatalogRemote, CatalogServer};
use super::store_session::table;
use super::{GlobalArgs, note, print};
use crate::token;

const TIMEOUT: Duration = Duration::from_secs(20);
const ANSWER_BYTES: usize = 8 << 20;
/// Age up to which a cached answer is used without a request: one hour.
const FRESH_MS: u64 = 3_600_000;
/// Longest file name of a cached answer; a longer address is not cached.
const CACHE_NAME_MAX: usize = 200;

#[derive(Debug, Subcommand)]
pub(crate) enum CatalogCommand {
    /// Find servers by a part of their name
    Search(CatalogSearchArgs),
    /// Show a server: its packages, addresses, and the variables that it needs
    Show(CatalogShowArgs),
}

#[derive(Debug, Args)]
pub(crate) struct CatalogSearchArgs {
    /// A part of the name
    words: String,
    /// Print at most this many servers
    #[arg(long, default_value_t = 30)]
    limit: u32,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CatalogShowArgs {
    /// The name in the catalog, such as `io.github.example/server`
    name: String,
    /// Print the entry of the catalog as JSON
    #[arg(long)]
    json: bool,
}

impl CatalogCommand {
    pub(crate) async fn run(self, common: &GlobalArgs) -> Result<ExitCode> {
        let catalog = CatalogClient::of(&common.load()?);
        match self {
            Self::Search(search) => search.run(&catalog).await?,
            Self::Show(show) => show.run(&catalog).await?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl CatalogSearchArgs {
    async fn run(self, catalog: &CatalogClient) -> Result<()> {
        let found = catalog.search(&self.words, self.limit).await?;
        if self.json {
            print(&Value::Array(found).to_string());
            return Ok(());
        }
        let servers: Vec<CatalogServer> =
            found.into_iter().filter_map(|one| serde_json::from_value(one).ok()).collect();
        let row = |server: &CatalogServer| {
            let line: String = server.description.lines().next().unwrap_or_default().chars().take(80).collect();
            vec![server.name.clone(), server.version.clone(), line]
        };
        if !servers.is_empty() {
            print(&table(&servers.iter().map(row).collect::<Vec<_>>()));
        }
        note(&format!("{} server{}", servers.len(), if servers.len() == 1 { "" } else { "s" }));
        Ok(())
    }
}

impl CatalogShowArgs {
    async fn run(self, catalog: &CatalogClient) -> Result<()> {
        let found = catalog.entry(&self.name).await?;
        if self.json {
            print(&found.to_string());
            return Ok(());
        }
        let server: CatalogServer = serde_json::from_value(found).context("the entry of the catalog cannot be read")?;
        print(&shown(&server));
        note(&format!("hint: Add it with `hikite add --from {}`.", server.name));
        Ok(())
    }
}

fn shown(server: &CatalogServer) -> String {
    let mut lines = vec![format!("{} {}", server.name, server.version), server.description.clone()];
    lines.extend(server.repository.as_ref().map(|repository| format!("repository: {}", repository.url)));
    let input = |kind: &str, input: &CatalogField| {
        let need = if input.is_required { "required" } else { "optional" };
        let label = if input.name.is_empty() { input.value_hint.as_deref().unwrap_or("value") } else { &input.name };
        let default = input.default.as_ref().map(|default| format!(" (default `{default}`)")).unwrap_or_default();
        format!("    {kind} {label}, {need}{}{default}", input.told())
    };
    for package in &server.packages {
        let runtime =
            package.runtime().map_or_else(|| "hikite cannot run it".into(), |program| format!("runs with {program}"));
        lines.push(format!("  {} {} ({runtime})", package.registry_type, package.versioned()));
        lines.extend(package.environment_variables.iter().map(|one| input("variable", one)));
        lines.extend(package.package_arguments.iter().map(|one| input("argument", one)));
    }
    for remote in &server.remotes {
        lines.push(format!("  remote {} ({})", remote.url, remote.kind));
        lines.extend(remote.headers.iter().map(|one| input("header", one)));
        let named = remote.variables.iter().map(|(name, one)| CatalogField { name: name.clone(), ..one.clone() });
        lines.extend(named.map(|one| input("variable", &one)));
    }
    lines.join("\n")
}

/// The catalog that the config names.
pub(crate) struct CatalogClient {
    location: CatalogLocation,
    cache: PathBuf,
    client: EgressClient,
}

impl CatalogClient {
    pub(crate) fn of(config: &Config) -> Self {
        let client = EgressClient::new();
        client.set_min_tls(config.egress.min_tls);
        Self { location: config.catalog.clone(), cache: config.data.join("catalog"), client }
    }

    /// Returns the newest version of the server with this name.
    pub(crate) async fn show(&self, name: &str) -> Result<CatalogServer> {
        serde_json::from_value(self.entry(name).await?).context("the entry of the catalog cannot be read")
    }

    async fn search(&self, words: &str, limit: u32) -> Result<Vec<Value>> {
        let list = match &self.location {
            CatalogLocation::File(file) => {
                let wanted = words.to_lowercase();
                let is_match = |server: &Value| name_of(server).to_lowercase().contains(&wanted);
                return Ok(of_file(file)?.into_iter().filter(is_match).take(limit as usize).collect());
            }
            CatalogLocation::Url(base) => {
                self.get(&format!("{base}/v0.1/servers?search={}&limit={limit}&version=latest", encode(words))).await?
            }
        };
        let list = list.context("the catalog has no such address\nhint: Check `catalog.url` in the config.")?;
        Ok(servers(&list))
    }

    async fn entry(&self, name: &str) -> Result<Value> {
        let unknown = || {
            anyhow!("There is no server `{name}` in the catalog.\nhint: Find its name with `hikite catalog search`.")
        };
        match &self.location {
            CatalogLocation::File(file) => {
                of_file(file)?.into_iter().find(|server| name_of(server) == name).ok_or_else(unknown)
            }
            CatalogLocation::Url(base) => {
                let url = format!("{base}/v0.1/servers/{}/versions/latest", encode(name));
                Ok(server_of(&self.get(&url).await?.ok_or_else(unknown)?))
            }
        }
    }

    /// Returns the answer at an address, from the cache if it is fresh or the catalog is away; `None` for a 404.
    async fn get(&self, url: &str) -> Result<Option<Value>> {
        let cached = self.cached(url);
        if let Some((value, age)) = &cached
            && *age < FRESH_MS
        {
            return Ok(Some(value.clone()));
        }
        match (self.fetch(url).await, cached) {
            (Ok(Some(value)), _) => {
                self.remember(url, &value);
                Ok(Some(value))
            }
            (Ok(None), _) => Ok(None),
            (Err(error), Some((value, age))) => {
                note(&format!("note: {error:#}; this answer is {} minutes old", age / 60_000));
                Ok(Some(value))
            }
            (Err(error), None) => Err(error),
        }
    }

    async fn fetch(&self, url: &str) -> Result<Option<Value>> {
        let request = Request::get(url).header(ACCEPT, "application/json").body(RequestBody::default())?;
        let exchange = async {
            let answer = self.client.send(request).await?;
            let status = answer.status();
            Ok::<_, hikite_egress::SendError>((status, read(answer.into_body(), ANSWER_BYTES).await?))
        };
        let answer = tokio::time::timeout(TIMEOUT, exchange).await.context("the catalog does not respond")?;
        let (status, body) = answer.context("the catalog cannot be reached")?;
        match status.as_u16() {
            200 => Ok(Some(serde_json::from_slice(&body).context("the answer of the catalog is not JSON")?)),
            404 => Ok(None),
            other => bail!("the catalog answered with status {other}"),
        }
    }

    fn place(&self, url: &str) -> Option<PathBuf> {
        let name = format!("{}.json", encode(url));
        (name.len() <= CACHE_NAME_MAX).then(|| self.cache.join(name))
    }

    /// Returns a cached answer and its age in milliseconds.
    fn cached(&self, url: &str) -> Option<(Value, u64)> {
        let text = fs::read_to_string(self.place(url)?).ok()?;
        let saved: Value = serde_json::from_str(&text).ok()?;
        Some((saved.get("answer")?.clone(), now_ms().saturating_sub(saved.get("at")?.as_u64()?)))
    }

    /// Caches an answer; a failure only means another request next time.
    fn remember(&self, url: &str, value: &Value) {
        let Some(place) = self.place(url) else { return };
        let saved = serde_json::json!({ "at": now_ms(), "answer": value }).to_string();
        let _ = self.cache.parent().map(token::make_folder);
        let _ = fs::create_dir_all(&self.cache).and_then(|()| fs::write(place, saved));
    }
}

fn of_file(file: &Path) -> Result<Vec<Value>> {
    let shown = || format!("cannot read the catalog `{}`", file.display());
    let text = fs::read_to_string(file).with_context(shown)?;
    Ok(servers(&serde_json::from_str(&text).with_context(shown)?))
}

/// Returns the servers of a list.
fn servers(list: &Value) -> Vec<Value> {
    list["servers"].as_array().into_iter().flatten().map(server_of).collect()
}

/// Returns the server without the metadata of the registry.
fn server_of(answer: &Value) -> Value {
    answer.get("server").unwrap_or(answer).clone()
}

fn name_of(server: &Value) -> &str {
    server["name"].as_str().unwrap_or_default()
}
