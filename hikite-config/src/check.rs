//! Converts the raw file to the checked config.

use std::path::PathBuf;
use std::sync::Arc;

use hikite_core::limits::Limits;
use hikite_core::permission::Permissions;
use hikite_identity::{IssuerRule, LoginRule};

use super::auth::AuthFile;
use super::checker::ConfigChecker;
use super::file::ConfigFile;
use super::position::ConfigPath;
use super::{
    AuthSection, Config, OauthSection, audit, auth, catalog, category, egress, issuer, limits, modules, project,
    provider, search, server, store, telemetry, tool, upstream, user_folder, vault,
};

/// The settings that the `auth` section yields.
struct CheckedAuth {
    auth: AuthSection,
    oauth: Option<OauthSection>,
    issuers: Vec<IssuerRule>,
    logins: Vec<LoginRule>,
    default_permissions: Option<Arc<Permissions>>,
}

/// Checks the file. Invalid values are reported and replaced by defaults: the result is used only if nothing was
/// reported.
pub(crate) fn file(check: &mut ConfigChecker<'_, '_>, file: &ConfigFile) -> Config {
    let pins = file.pins.unwrap_or_default();
    let raw_servers = file.mcp_servers.clone().unwrap_or_default();
    let (servers, disabled) = upstream::check(check, &ConfigPath::ROOT.key("mcpServers"), &raw_servers, pins);
    let raw_categories = file.categories.clone().unwrap_or_default();
    let server_names = server_names(check);
    let names = category::ServerNames { all: server_names.clone(), disabled: &disabled };
    let categories = category::check(check, &ConfigPath::ROOT.key("categories"), &raw_categories, &names);
    let server = file.server.clone().unwrap_or_default();
    let (raw_store, store_path) = (file.store.clone().unwrap_or_default(), ConfigPath::ROOT.key("store"));
    let CheckedAuth { auth, oauth, issuers, logins, default_permissions } = auth(check, file.auth.as_ref());
    Config {
        file: None,
        server: server::check(check, &ConfigPath::ROOT.key("server"), &server, !categories.is_empty()),
        servers,
        disabled,
        server_names,
        invalid: Vec::new(),
        categories,
        tools: tool::check(check, &ConfigPath::ROOT.key("tools"), &file.tools.clone().unwrap_or_default()),
        projects: project::check(check, &ConfigPath::ROOT.key("projects"), &file.projects.clone().unwrap_or_default()),
        modules: modules::check(check, &ConfigPath::ROOT.key("modules"), &file.modules.clone().unwrap_or_default()),
        providers: provider::check(
            check,
            &ConfigPath::ROOT.key("providers"),
            &file.providers.clone().unwrap_or_default(),
        ),
        egress: egress::check(check, &ConfigPath::ROOT.key("egress"), &file.egress.clone().unwrap_or_default()),
        pins: pins.into(),
        audit: audit::check(check, &ConfigPath::ROOT.key("audit"), &file.audit.clone().unwrap_or_default()),
        auth,
        oauth,
        issuers,
        logins,
        default_permissions,
        search: search::check(check, &ConfigPath::ROOT.key("search"), &file.search.clone().unwrap_or_default()),
        catalog: catalog::check(check, &ConfigPath::ROOT.key("catalog"), &file.catalog.clone().unwrap_or_default()),
        limits: Limits {
            max_staleness: store::max_staleness(check, &store_path, &raw_store),
            ..limits::check(check, &ConfigPath::ROOT.key("limits"), &file.limits.clone().unwrap_or_default())
        },
        store: store::check(check, &store_path, &raw_store),
        vault: vault::check(check, &ConfigPath::ROOT.key("vault"), &file.vault.clone().unwrap_or_default()),
        telemetry: telemetry::check(
            check,
            &ConfigPath::ROOT.key("telemetry"),
            &file.telemetry.clone().unwrap_or_default(),
        ),
        data: data(check, file.data.as_deref()),
        warnings: Vec::new(),
    }
}

fn auth(check: &mut ConfigChecker<'_, '_>, raw: Option<&AuthFile>) -> CheckedAuth {
    let raw = raw.cloned().unwrap_or_default();
    let path = ConfigPath::ROOT.key("auth");
    let (auth, oauth) = auth::check(check, &path, &raw);
    CheckedAuth {
        auth,
        oauth,
        issuers: issuer::issuers(check, &path.key("issuers"), raw.issuers.as_deref()),
        logins: issuer::logins(check, &path.key("login"), raw.login.as_ref()),
        default_permissions: auth::default_permissions(
            check,
            &path.key("default_permissions"),
            raw.default_permissions.as_ref(),
        ),
    }
}

/// Returns all server names, including invalid servers, so that a category naming one is not reported too.
fn server_names(check: &ConfigChecker<'_, '_>) -> Vec<Arc<str>> {
    let root = check.report.tree().object();
    let servers = root.and_then(|root| root.get("mcpServers")).and_then(|member| member.node.object());
    servers.into_iter().flat_map(|servers| &servers.members).map(|member| member.name.as_str().into()).collect()
}

fn data(check: &mut ConfigChecker<'_, '_>, written: Option<&str>) -> PathBuf {
    let path = ConfigPath::ROOT.key("data");
    match written.and_then(|written| check.expand(&path, written)) {
        Some(folder) => check.resolve(&folder),
        None => user_folder(check.environment.env, "XDG_DATA_HOME", ".local/share")
            .map_or_else(|| "hikite-data".into(), |folder| folder.join("hikite")),
    }
}
