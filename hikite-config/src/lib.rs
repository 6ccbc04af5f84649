//! The configuration: one JSONC file, parsed, validated against its schema and checked as a whole. Loading depends
//! only on the text and `ConfigEnvironment`, so that a reload is the same call again. All problems are reported at once, each
//! with its line, path and fix. An invalid server, provider or service is left out; any other fault rejects the file.

mod access;
mod audit;
mod auth;
mod catalog;
mod category;
mod check;
mod checker;
pub mod client;
mod cors;
pub mod edit;
mod egress;
mod expand;
mod file;
pub mod import;
mod invalid_entry;
mod issuer;
pub mod jsonc;
mod limits;
pub mod log;
mod merge;
mod modules;
mod one_or_many;
mod otel;
mod pins;
mod policy;
mod position;
mod problem;
mod project;
mod provider;
mod providers;
mod rate;
mod schema_check;
mod search;
mod secret;
mod server;
mod show;
mod store;
mod telemetry;
mod tls;
mod tool;
mod tool_request;
mod tools;
mod transport;
mod unit;
mod upstream;
mod url;
mod variable;
mod vault;

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use hikite_core::category::CategoryRule;
use hikite_core::limits::Limits;
use hikite_core::permission::Permissions;
use hikite_core::pin::Pinning;
use hikite_identity::{IssuerRule, LoginRule, Project};
use hikite_store::StoreUrl;

pub use access::{AccessConfig, GrantWord};
pub use audit::AuditSection;
pub use auth::{AuthSection, OauthSection};
pub use catalog::CatalogLocation;
pub use checker::ConfigEnvironment;
pub use client::{CLIENTS, ClientFormat, ClientTransport, McpClient};
pub use cors::Cors;
pub use egress::EgressSection;
pub use file::schema;
pub use invalid_entry::{EntryId, EntryKind, InvalidEntry};
pub use merge::{MergedConfig, merge};
pub use modules::ModulesSection;
pub use otel::OtlpSection;
pub use position::TextPosition;
pub use problem::{Problem, Problems};
pub use provider::{OauthConfig, ProviderConfig, TokenLocation};
pub use providers::providers;
pub use search::{SearchModel, SearchSection, SearchServiceConfig, TOP};
pub use secret::masked_url;
pub use server::{DEFAULT_PORT, ServerSection, is_loopback_host, listen_hint, node_fault, parse_listen, url_fault};
pub use show::show;
pub use telemetry::{LogSection, TelemetrySection};
pub use tls::TlsSection;
pub use tool::ToolConfig;
pub use transport::TransportConfig;
pub use upstream::{ServerConfig, ShareMode};
pub use vault::{KeyLocation, VaultSection};

#[derive(Clone, Debug)]
pub struct Config {
    /// File it was read from; `None` for the defaults.
    pub file: Option<PathBuf>,
    pub server: ServerSection,
    /// Enabled upstream servers, in file order.
    pub servers: Vec<ServerConfig>,
    /// Names of disabled servers. Categories may name them: they count as servers that are not running.
    pub disabled: Vec<Arc<str>>,
    /// Names of all servers of the file, in its order.
    pub server_names: Vec<Arc<str>>,
    /// Servers, providers and services that are left out because they are invalid.
    pub invalid: Vec<InvalidEntry>,
    pub categories: Vec<Arc<CategoryRule>>,
    /// Tools described in the file.
    pub tools: Vec<ToolConfig>,
    /// Projects described in the file.
    pub projects: Vec<Arc<Project>>,
    /// Enabled service modules.
    pub modules: ModulesSection,
    /// Provider accounts that services are called with.
    pub providers: Vec<ProviderConfig>,
    pub egress: EgressSection,
    /// Default handling of unapproved tools, where their server sets none.
    pub pins: Pinning,
    pub auth: AuthSection,
    /// OAuth settings; `None` where OAuth is disabled.
    pub oauth: Option<OauthSection>,
    /// Identity providers whose tokens are accepted.
    pub issuers: Vec<IssuerRule>,
    /// Identity providers offered for login.
    pub logins: Vec<LoginRule>,
    /// Permissions of users who have none of their own.
    pub default_permissions: Option<Arc<Permissions>>,
    pub audit: AuditSection,
    /// The configured store; `None` for the default.
    pub store: Option<StoreUrl>,
    /// Location of the vault's master key.
    pub vault: VaultSection,
    pub search: SearchSection,
    /// Where `hikite catalog` finds servers.
    pub catalog: CatalogLocation,
    pub limits: Limits,
    pub telemetry: TelemetrySection,
    /// Data folder; it may not exist yet.
    pub data: PathBuf,
    /// Warnings as `file:line:column: path: message`.
    pub warnings: Vec<String>,
}

impl Config {
    /// Reads the file that `find` returns, or the defaults if there is none. Invalid entries are left out.
    pub fn load(path: Option<&Path>, env: &dyn Fn(&str) -> Option<String>) -> Result<Self, Problems> {
        let read = |path: &Path| std::fs::read_to_string(path);
        let environment = ConfigEnvironment { env, read: &read };
        let Some(path) = find(path, env) else {
            return Self::parse("{}", Path::new("defaults"), environment);
        };
        let text = read(&path).map_err(|error| {
            let hint = "Check `--config` and `HIKITE_CONFIG`.";
            Problems::whole(&path.display().to_string(), format!("cannot be read: {error}"), Some(hint))
        })?;
        let config = Self::parse_valid_entries(&text, &path, environment)?;
        Ok(Self { file: Some(path), ..config })
    }

    /// Parses a config without faults. `path` names the file in messages; relative paths start at its folder.
    pub fn parse(text: &str, path: &Path, environment: ConfigEnvironment<'_>) -> Result<Self, Problems> {
        let config = Self::parse_valid_entries(text, path, environment)?;
        config.check_entries()?;
        Ok(config)
    }

    /// Parses a config and leaves out invalid servers, providers and services, which `invalid` then names.
    pub fn parse_valid_entries(text: &str, path: &Path, environment: ConfigEnvironment<'_>) -> Result<Self, Problems> {
        let name = path.display().to_string();
        let tree = jsonc::parse(text).map_err(|error| Problems::syntax(&name, text, &error))?;
        let mut report = problem::ProblemCollector::new(&name, text, &tree);
        let shaped = schema_check::check(&mut report, &schema()).unwrap_or_default();
        let file: file::ConfigFile = if shaped.is_null() {
            file::ConfigFile::default()
        } else {
            serde_json::from_value(shaped).unwrap_or_else(|error| {
                report.error(&position::ConfigPath::ROOT, error.to_string(), None);
                file::ConfigFile::default()
            })
        };
        let folder = path.parent().unwrap_or(Path::new(""));
        let mut checker = checker::ConfigChecker { report: &mut report, environment, folder };
        let config = check::file(&mut checker, &file);
        let (warnings, invalid) = report.finish()?;
        Ok(Self { warnings, ..config.without(invalid) })
    }

    /// Returns advice that needs no attention at every start: servers and categories without a description.
    pub fn advice(&self) -> Option<String> {
        let servers = self.servers.iter().filter(|server| server.description.trim().is_empty());
        let categories = self.categories.iter().filter(|category| category.description.trim().is_empty());
        let names: Vec<&str> = servers.map(|one| &*one.name).chain(categories.map(|one| &*one.name)).collect();
        let names = names.join("`, `");
        (!names.is_empty()).then(|| format!("no `description` for `{names}`: one line each helps a model to choose"))
    }

    /// Returns the configured store, or a SQLite file in the data folder, which a flag may override.
    pub fn store_url(&self) -> StoreUrl {
        self.store.clone().unwrap_or_else(|| StoreUrl::file(self.data.join("hikite.db")))
    }
}

/// Returns the config file: the given one, `HIKITE_CONFIG`, or `hikite.json` in the working directory or the user's
/// config folder.
pub fn find(explicit: Option<&Path>, env: &dyn Fn(&str) -> Option<String>) -> Option<PathBuf> {
    let named = explicit
        .map(Path::to_owned)
        .or_else(|| env("HIKITE_CONFIG").filter(|path| !path.is_empty()).map(PathBuf::from));
    named.or_else(|| {
        let user = user_folder(env, "XDG_CONFIG_HOME", ".config").map(|folder| folder.join("hikite/hikite.json"));
        [Some(PathBuf::from("hikite.json")), user].into_iter().flatten().find(|path| path.exists())
    })
}

/// Returns a folder of the XDG base directory specification, which says to ignore relative values.
pub fn user_folder(env: &dyn Fn(&str) -> Option<String>, variable: &str, below_home: &str) -> Option<PathBuf> {
    let named = env(variable).map(PathBuf::from).filter(|folder| folder.is_absolute());
    named.or_else(|| {
        let home = env("HOME").or_else(|| env("USERPROFILE"))?;
        Some(PathBuf::from(home).join(below_home))
    })
}
