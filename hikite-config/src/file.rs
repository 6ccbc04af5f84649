//! The config file as written: the root of the raw types, which generate the JSON Schema for editors and for our own
//! validation. The type of each section is beside its check.

use hikite_modules::NamedMap;
use schemars::JsonSchema;
use serde::Deserialize;

use super::audit::AuditFile;
use super::auth::AuthFile;
use super::catalog::CatalogFile;
use super::category::CategoryFile;
use super::egress::EgressFile;
use super::limits::LimitsFile;
use super::modules::ModulesFile;
use super::pins::PinsWord;
use super::project::ProjectFile;
use super::provider::ProviderFile;
use super::search::SearchFile;
use super::server::ServerFile;
use super::store::StoreFile;
use super::telemetry::TelemetryFile;
use super::tool::HttpToolFile;
use super::upstream::UpstreamFile;
use super::vault::VaultFile;

/// The configuration of hikite. A plain `mcpServers` block, pasted from another client, is a whole file.
#[derive(Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "hikite configuration")]
pub(crate) struct ConfigFile {
    /// The address of this schema, for editors.
    #[serde(rename = "$schema")]
    #[expect(dead_code, reason = "accepted for editors, of no meaning here")]
    pub(crate) schema: Option<String>,
    /// How hikite listens and what it shows to clients.
    pub(crate) server: Option<ServerFile>,
    /// The upstream MCP servers by name.
    #[serde(rename = "mcpServers")]
    pub(crate) mcp_servers: Option<NamedMap<UpstreamFile>>,
    /// Named selections of tools, opened one at a time.
    pub(crate) categories: Option<NamedMap<CategoryFile>>,
    /// Tools that are HTTP requests, by name.
    pub(crate) tools: Option<NamedMap<HttpToolFile>>,
    /// Boundaries between callers, by name: who belongs to them and which tools there are.
    pub(crate) projects: Option<NamedMap<ProjectFile>>,
    /// Which services are there: those that come with hikite, and those of module files.
    pub(crate) modules: Option<ModulesFile>,
    /// The accounts with which services are called, by provider: `notion`, `github`, `atlassian`, …
    pub(crate) providers: Option<NamedMap<ProviderFile>>,
    /// Where requests may go whose address did not come from this file.
    pub(crate) egress: Option<EgressFile>,
    /// Handling of servers' tools whose definition nobody approved.
    #[schemars(extend("default" = "tofu"))]
    pub(crate) pins: Option<PinsWord>,
    /// Authentication and authorization of clients.
    pub(crate) auth: Option<AuthFile>,
    /// Audit records of calls, and how long they are kept.
    pub(crate) audit: Option<AuditFile>,
    /// Where registered tools, switches and cached lists are kept.
    pub(crate) store: Option<StoreFile>,
    /// Where the key is kept that opens the secrets in the store.
    pub(crate) vault: Option<VaultFile>,
    /// How tools are found by what they do.
    pub(crate) search: Option<SearchFile>,
    /// Where `hikite catalog` and `hikite add --from` find servers.
    pub(crate) catalog: Option<CatalogFile>,
    /// Every limit of the program. What is left out keeps its default.
    pub(crate) limits: Option<LimitsFile>,
    /// Logs, traces and metrics.
    pub(crate) telemetry: Option<TelemetryFile>,
    /// The folder for what is kept between runs. Default: `hikite` in the user's data folder.
    pub(crate) data: Option<String>,
}

/// Returns the JSON Schema of the config file. The committed file is read, because generating it would slow down
/// every start.
pub fn schema() -> serde_json::Value {
    serde_json::from_str(SCHEMA).unwrap_or_default()
}

const SCHEMA: &str = include_str!("../../config.schema.json");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_committed_schema_is_the_one_the_types_make() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../config.schema.json");
        let made = serde_json::to_string_pretty(&schemars::schema_for!(ConfigFile)).expect("a schema is JSON") + "\n";
        if std::env::var_os("HIKITE_UPDATE").is_some_and(|value| value == "1") {
            std::fs::write(path, &made).expect("config.schema.json can be written");
        }
        let committed = std::fs::read_to_string(path).unwrap_or_default();
        assert!(made == committed, "config.schema.json is stale: run the tests with HIKITE_UPDATE=1");
    }
}
