//! Converts the raw file to the checked config. Shared by all sections: variable expansion, secrets from files, and
//! problems with a position.

use std::io;
use std::path::{Path as FilePath, PathBuf};
use std::sync::Arc;

use hikite_core::limits::Limits;
use hikite_core::permission::Permissions;
use hikite_gateway::{IssuerRule, LoginRule};

use super::auth::AuthFile;
use super::file::ConfigFile;
use super::position::ConfigPath;
use super::problem::ProblemCollector;
use super::tool_request::literal;
use super::{
    AuthSection, Config, OauthSection, audit, auth, category, egress, expand, issuer, limits, modules, project,
    provider, search, server, store, telemetry, tool, upstream, vault,
};

/// The environment and file system as the config sees them, so that loading depends only on its arguments.
#[derive(Clone, Copy)]
pub struct ConfigEnvironment<'a> {
    pub env: &'a dyn Fn(&str) -> Option<String>,
    pub read: &'a dyn Fn(&FilePath) -> io::Result<String>,
}

impl std::fmt::Debug for ConfigEnvironment<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ConfigEnvironment")
    }
}

pub(crate) struct ConfigChecker<'a, 'r> {
    pub(crate) report: &'a mut ProblemCollector<'r>,
    pub(crate) environment: ConfigEnvironment<'a>,
    /// Base folder of relative paths in the file.
    pub(crate) folder: &'a FilePath,
}

/// The settings that the `auth` section yields.
struct CheckedAuth {
    auth: AuthSection,
    oauth: Option<OauthSection>,
    issuers: Vec<IssuerRule>,
    logins: Vec<LoginRule>,
    default_permissions: Option<Arc<Permissions>>,
}

impl ConfigChecker<'_, '_> {
    /// Checks the file. Invalid values are reported and replaced by defaults: the result is used only if nothing was
    /// reported.
    pub(crate) fn file(&mut self, file: &ConfigFile) -> Config {
        let pins = file.pins.unwrap_or_default();
        let raw_servers = file.mcp_servers.clone().unwrap_or_default();
        let (servers, disabled) = upstream::check(self, &ConfigPath::ROOT.key("mcpServers"), &raw_servers, pins);
        let raw_categories = file.categories.clone().unwrap_or_default();
        let names = category::ServerNames { all: self.server_names(), disabled: &disabled };
        let categories = category::check(self, &ConfigPath::ROOT.key("categories"), &raw_categories, &names);
        let server = file.server.clone().unwrap_or_default();
        let (raw_store, store_path) = (file.store.clone().unwrap_or_default(), ConfigPath::ROOT.key("store"));
        let CheckedAuth { auth, oauth, issuers, logins, default_permissions } = self.auth(file.auth.as_ref());
        Config {
            file: None,
            server: server::check(self, &ConfigPath::ROOT.key("server"), &server, !categories.is_empty()),
            servers,
            disabled,
            categories,
            tools: tool::check(self, &ConfigPath::ROOT.key("tools"), &file.tools.clone().unwrap_or_default()),
            projects: project::check(
                self,
                &ConfigPath::ROOT.key("projects"),
                &file.projects.clone().unwrap_or_default(),
            ),
            modules: modules::check(self, &ConfigPath::ROOT.key("modules"), &file.modules.clone().unwrap_or_default()),
            providers: provider::check(
                self,
                &ConfigPath::ROOT.key("providers"),
                &file.providers.clone().unwrap_or_default(),
            ),
            egress: egress::check(self, &ConfigPath::ROOT.key("egress"), &file.egress.clone().unwrap_or_default()),
            pins: pins.into(),
            audit: audit::check(self, &ConfigPath::ROOT.key("audit"), &file.audit.clone().unwrap_or_default()),
            auth,
            oauth,
            issuers,
            logins,
            default_permissions,
            search: search::check(self, &ConfigPath::ROOT.key("search"), &file.search.clone().unwrap_or_default()),
            limits: Limits {
                max_staleness: store::max_staleness(self, &store_path, &raw_store),
                ..limits::check(self, &ConfigPath::ROOT.key("limits"), &file.limits.clone().unwrap_or_default())
            },
            store: store::check(self, &store_path, &raw_store),
            vault: vault::check(self, &ConfigPath::ROOT.key("vault"), &file.vault.clone().unwrap_or_default()),
            telemetry: telemetry::check(
                self,
                &ConfigPath::ROOT.key("telemetry"),
                &file.telemetry.clone().unwrap_or_default(),
            ),
            data: self.data(file.data.as_deref()),
            warnings: Vec::new(),
        }
    }

    fn auth(&mut self, raw: Option<&AuthFile>) -> CheckedAuth {
        let raw = raw.cloned().unwrap_or_default();
        let path = ConfigPath::ROOT.key("auth");
        let (auth, oauth) = auth::check(self, &path, &raw);
        CheckedAuth {
            auth,
            oauth,
            issuers: issuer::issuers(self, &path.key("issuers"), raw.issuers.as_deref()),
            logins: issuer::logins(self, &path.key("login"), raw.login.as_ref()),
            default_permissions: auth::default_permissions(
                self,
                &path.key("default_permissions"),
                raw.default_permissions.as_ref(),
            ),
        }
    }

    /// Expands the variables of a text; `None` if that failed and was reported.
    pub(crate) fn expand(&mut self, path: &ConfigPath<'_>, text: &str) -> Option<String> {
        match expand::expand(text, self.environment.env) {
            Ok(text) => Some(text),
            Err(error) => self.fail(path, error.to_string(), error.hint()),
        }
    }

    /// Expands the variables of a template; braces in their values are escaped.
    pub(crate) fn expand_literally(&mut self, path: &ConfigPath<'_>, text: &str) -> Option<String> {
        let env = self.environment.env;
        match expand::expand(text, &|name| env(name).as_deref().map(literal)) {
            Ok(text) => Some(text),
            Err(error) => self.fail(path, error.to_string(), error.hint()),
        }
    }

    /// Reads a file that holds one secret, without the trailing line break.
    pub(crate) fn secret_file(&mut self, path: &ConfigPath<'_>, name: &str) -> Option<String> {
        let name = self.expand(path, name)?;
        let file = self.resolve(&name);
        match (self.environment.read)(&file) {
            Ok(text) => Some(text.trim_end_matches(['\r', '\n']).to_owned()),
            Err(error) => {
                let hint = "Relative paths start at the folder of the config file.";
                self.fail(path, format!("cannot read `{}`: {error}", file.display()), hint)
            }
        }
    }

    /// Resolves a path: `~/` is the home folder, and relative paths start at the config file's folder.
    pub(crate) fn resolve(&self, written: &str) -> PathBuf {
        match written.strip_prefix("~/").zip((self.environment.env)("HOME")) {
            Some((rest, home)) => PathBuf::from(home).join(rest),
            None => self.folder.join(written),
        }
    }

    /// Reports an error and returns `None`.
    pub(crate) fn fail<T>(&mut self, path: &ConfigPath<'_>, message: String, hint: impl Into<String>) -> Option<T> {
        self.report.error(path, message, Some(hint.into()));
        None
    }

    /// Returns all server names, including invalid servers, so that a category naming one is not reported too.
    fn server_names(&self) -> Vec<Arc<str>> {
        let root = self.report.tree().object();
        let servers = root.and_then(|root| root.get("mcpServers")).and_then(|member| member.node.object());
        servers.into_iter().flat_map(|servers| &servers.members).map(|member| member.name.as_str().into()).collect()
    }

    fn data(&mut self, written: Option<&str>) -> PathBuf {
        let path = ConfigPath::ROOT.key("data");
        match written.and_then(|written| self.expand(&path, written)) {
            Some(folder) => self.resolve(&folder),
            None => super::user_folder(self.environment.env, "XDG_DATA_HOME", ".local/share")
                .map_or_else(|| "hikite-data".into(), |folder| folder.join("hikite")),
        }
    }
}
