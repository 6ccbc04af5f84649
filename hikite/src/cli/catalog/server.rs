//! A server of the catalog, as the MCP registry's API describes it, and the command line of its packages.

use std::collections::BTreeMap;

use anyhow::{Result, bail};
use serde::Deserialize;

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct CatalogServer {
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) description: String,
    #[serde(default)]
    pub(crate) version: String,
    pub(crate) repository: Option<SourceRepository>,
    #[serde(default)]
    pub(crate) packages: Vec<CatalogPackage>,
    #[serde(default)]
    pub(crate) remotes: Vec<CatalogRemote>,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct SourceRepository {
    #[serde(default)]
    pub(crate) url: String,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CatalogPackage {
    pub(crate) registry_type: String,
    pub(crate) identifier: String,
    pub(crate) version: Option<String>,
    pub(crate) transport: Option<PackageTransport>,
    #[serde(default)]
    pub(crate) runtime_arguments: Vec<CatalogField>,
    #[serde(default)]
    pub(crate) package_arguments: Vec<CatalogField>,
    #[serde(default)]
    pub(crate) environment_variables: Vec<CatalogField>,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct PackageTransport {
    #[serde(rename = "type")]
    pub(crate) kind: String,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct CatalogRemote {
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) url: String,
    #[serde(default)]
    pub(crate) headers: Vec<CatalogField>,
    #[serde(default)]
    pub(crate) variables: BTreeMap<String, CatalogField>,
}

/// A variable, header or argument.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct CatalogField {
    /// Empty for a positional argument.
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) is_required: bool,
    pub(crate) is_secret: bool,
    pub(crate) value: Option<String>,
    pub(crate) default: Option<String>,
    pub(crate) value_hint: Option<String>,
    pub(crate) choices: Vec<String>,
}

/// The kinds of packages that hikite can run, and the program that runs each.
const RUNTIMES: [(&str, &str); 3] = [("npm", "npx"), ("pypi", "uvx"), ("oci", "docker")];

impl CatalogServer {
    /// Chooses the wanted kind; without one a package whose program is on this machine, then an address, then any
    /// package.
    pub(crate) fn choose(&self, kind: Option<&str>) -> Result<(Option<&CatalogPackage>, Option<&CatalogRemote>)> {
        let mut usable = self.packages.iter().filter(|package| package.runtime().is_some());
        let remote = self.remotes.iter().find(|remote| matches!(&*remote.kind, "streamable-http" | "sse"));
        match kind {
            Some("remote") if remote.is_some() => Ok((None, remote)),
            Some(kind) => match usable.find(|package| package.registry_type == kind) {
                Some(package) => Ok((Some(package), None)),
                None => bail!(
                    "`{}` has no `{kind}` that hikite can use.\nhint: See `hikite catalog show {}`.",
                    self.name,
                    self.name
                ),
            },
            None => {
                let installed = usable.clone().find(|package| package.runtime().is_some_and(is_on_path));
                let any = installed.or_else(|| if remote.is_none() { usable.next() } else { None });
                Ok((any, remote))
            }
        }
    }
}

impl CatalogPackage {
    /// Returns the program that runs the package, if hikite can use it.
    pub(crate) fn runtime(&self) -> Option<&'static str> {
        let speaks_stdio = self.transport.as_ref().is_none_or(|transport| transport.kind == "stdio");
        let runtime = RUNTIMES.iter().find(|(kind, _)| *kind == self.registry_type).map(|(_, program)| *program);
        runtime.filter(|_| speaks_stdio && !self.identifier.starts_with('-'))
    }

    /// Returns the identifier with its version, as the program of the package expects it.
    pub(crate) fn versioned(&self) -> String {
        let separator = if self.registry_type == "oci" { ':' } else { '@' };
        let is_complete =
            self.registry_type == "oci" && self.identifier.rsplit('/').next().is_some_and(|last| last.contains(':'));
        match &self.version {
            Some(version) if !is_complete => format!("{}{separator}{version}", self.identifier),
            _ => self.identifier.clone(),
        }
    }

    /// Returns the program and its arguments. The program is ours, never one that the catalog names.
    pub(crate) fn command_line<'a>(
        &self,
        runtime_arguments: Vec<String>,
        env: impl Iterator<Item = &'a String>,
        arguments: Vec<String>,
    ) -> Result<(&'static str, Vec<String>)> {
        let Some(runtime) = self.runtime() else {
            bail!("hikite cannot run a package of the kind `{}`.", self.registry_type)
        };
        let mut line: Vec<String> = match runtime {
            "npx" => vec!["-y".into()],
            "docker" => {
                let fixed = ["run", "-i", "--rm"].map(str::to_owned);
                fixed.into_iter().chain(env.flat_map(|name| ["-e".to_owned(), name.clone()])).collect()
            }
            _ => Vec::new(),
        };
        let new: Vec<String> = runtime_arguments.into_iter().filter(|argument| !line.contains(argument)).collect();
        line.extend(new);
        line.push(self.versioned());
        line.extend(arguments);
        Ok((runtime, line))
    }
}

impl CatalogField {
    /// Returns the description for a message: ` (secret): text`.
    pub(crate) fn told(&self) -> String {
        let secret = if self.is_secret { " (secret)" } else { "" };
        let choices = if self.choices.is_empty() { String::new() } else { format!(" [{}]", self.choices.join(", ")) };
        let text = if self.description.is_empty() { String::new() } else { format!(": {}", self.description) };
        format!("{secret}{choices}{text}")
    }
}

/// Returns `true` if a program of this name is on the `PATH`.
fn is_on_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(package: serde_json::Value, expected: Option<&str>) {
        let package: CatalogPackage = serde_json::from_value(package).expect("a package");
        let env = ["K".to_owned()];
        let line = package.command_line(Vec::new(), env.iter(), vec!["x".into()]).ok();
        let line = line.map(|(program, arguments)| format!("{program} {}", arguments.join(" ")));
        assert_eq!(line.as_deref(), expected);
    }

    #[test]
    fn each_kind_of_package_has_its_command_line() {
        check(json!({ "registryType": "npm", "identifier": "@a/b", "version": "1.0.0" }), Some("npx -y @a/b@1.0.0 x"));
        check(json!({ "registryType": "pypi", "identifier": "b", "version": "2" }), Some("uvx b@2 x"));
        check(
            json!({ "registryType": "oci", "identifier": "docker.io/a/b:3" }),
            Some("docker run -i --rm -e K docker.io/a/b:3 x"),
        );
    }

    #[test]
    fn packages_that_are_options_or_of_another_kind_are_refused() {
        check(json!({ "registryType": "npm", "identifier": "--call=evil" }), None);
        check(json!({ "registryType": "mcpb", "identifier": "https://x.example/a.mcpb", "runtimeHint": "sh" }), None);
        check(
            json!({ "registryType": "npm", "identifier": "a", "transport": { "type": "sse", "url": "http://x" } }),
            None,
        );
    }
}
