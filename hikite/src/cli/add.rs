//! `hikite add`: adds a server to the config file or the store. The server is tried first; one that wants a login is
//! added, and the login follows.

mod ask;
mod entry;
mod trial;

use std::io::IsTerminal;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use hikite_config::{Config, edit};
use serde_json::{Value, json};

use self::entry::NewServer;
use self::trial::Trial;
use super::server_session::{self, ServerOrigin, config_file};
use super::{GlobalArgs, catalog, note, print, server_login};
use crate::progress;
use crate::runtime::TerminalServers;

#[derive(Debug, Args)]
pub(crate) struct AddArgs {
    /// The name of the server in hikite. Without any argument the command asks
    name: Option<String>,
    /// The address of a remote server: `https://…`
    url: Option<String>,
    /// The program and its arguments, after `--`
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
    /// A variable of the program: `NAME=VALUE`, or `NAME` for the variable of the same name in hikite's environment
    #[arg(long, value_name = "NAME[=VALUE]")]
    env: Vec<String>,
    /// A header for a remote server: `Name: value`
    #[arg(long, value_name = "HEADER")]
    header: Vec<String>,
    /// The purpose of the server in one line, for models
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
    /// Where the server is defined
    #[arg(long, value_enum, default_value = "file")]
    scope: ServerScope,
    /// Take the server from the catalog; see `hikite catalog search`
    #[arg(long, value_name = "NAME")]
    from: Option<String>,
    /// The kind of package to take from the catalog: `npm`, `pypi`, `oci` or `remote` [default: the first that runs]
    #[arg(long, value_name = "KIND", requires = "from")]
    package: Option<String>,
    /// Add the server without trying it
    #[arg(long)]
    no_check: bool,
    /// Replace a server of the same name
    #[arg(long)]
    force: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ServerScope {
    /// The config file, which keeps its comments
    File,
    /// The store, which all nodes share. A program starts only on machines where it is approved
    Store,
}

impl AddArgs {
    pub(crate) async fn run(mut self, common: &GlobalArgs) -> Result<ExitCode> {
        let config = server_session::load_or_default(common)?;
        if self.name.is_none() && self.url.is_none() && self.command.is_empty() && self.from.is_none() {
            ask::complete(&mut self)?;
        }
        let new = self.new_server(&config).await?;
        entry::check_name(&new.name)?;
        let place = config_file(common)?;
        self.refuse_taken(&config, &new.name).await?;
        let trial = if self.no_check {
            Trial::Skipped
        } else {
            progress::with_spinner("trying the server", trial::run(&new, &place)).await?
        };
        match self.scope {
            ServerScope::File => write_file(&place, &["mcpServers", &new.name], &new.entry)?,
            ServerScope::Store => add_to_store(&config, &new, self.force).await?,
        }
        self.tell(&new, &place, &trial);
        if config.file.is_none() && self.scope == ServerScope::File {
            note("note: The config file is new. A hikite that runs without one reads it after a restart.");
        }
        if !matches!(trial, Trial::NeedsLogin) {
            return Ok(ExitCode::SUCCESS);
        }
        if !std::io::stdin().is_terminal() {
            note(&format!("hint: It requires a login. Run `hikite login {}`.", new.name));
            return Ok(ExitCode::SUCCESS);
        }
        server_login::connect(&common.load()?, &new.name, true).await
    }

    async fn new_server(&self, config: &Config) -> Result<NewServer> {
        if let Some(from) = &self.from {
            let server = catalog::CatalogClient::of(config).show(from).await?;
            return entry::from_catalog(self, &server);
        }
        let Some(name) = self.name.clone() else {
            bail!(
                "The name of the server is missing.\nhint: Write `hikite add NAME https://…` or `hikite add NAME -- COMMAND`."
            );
        };
        entry::from_arguments(self, name)
    }

    async fn refuse_taken(&self, config: &Config, name: &str) -> Result<()> {
        match (ServerOrigin::of(config, name).await?, self.scope) {
            (None, _) => Ok(()),
            (Some(ServerOrigin::File), ServerScope::File) | (Some(ServerOrigin::Store), ServerScope::Store)
                if self.force =>
            {
                Ok(())
            }
            (Some(origin), _) => {
                let place = if origin == ServerOrigin::File { "config file" } else { "store" };
                bail!(
                    "There is a server `{name}` in the {place} already.\nhint: Choose another name, run `hikite remove \
                     {name}` first, or replace it with `--force` in the same scope."
                )
            }
        }
    }

    fn tell(&self, new: &NewServer, place: &Path, trial: &Trial) {
        let place = match self.scope {
            ServerScope::File => place.display().to_string(),
            ServerScope::Store => "the store".to_owned(),
        };
        if self.json {
            let tools = match trial {
                Trial::Tools(count) => json!(count),
                _ => Value::Null,
            };
            let needs_login = matches!(trial, Trial::NeedsLogin);
            print(&json!({ "name": new.name, "scope": self.scope.word(), "place": place, "tools": tools, "needsLogin": needs_login }).to_string());
            return;
        }
        let found = match trial {
            Trial::Tools(count) => format!(": {count} tool{}", if *count == 1 { "" } else { "s" }),
            Trial::NeedsLogin | Trial::Skipped => String::new(),
        };
        note(&format!("Added `{}` to {place}{found}.", new.name));
        for line in &new.notes {
            note(&format!("note: {line}"));
        }
    }
}

impl ServerScope {
    fn word(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Store => "store",
        }
    }
}

async fn add_to_store(config: &Config, new: &NewServer, replaces: bool) -> Result<()> {
    let runtime = server_session::start(config, replaces.then_some(&*new.name)).await?;
    let done = TerminalServers(&runtime).put(&new.name, &new.entry).await;
    runtime.stop().await;
    done
}

/// Sets a member of the config file and keeps the rest of its text.
pub(crate) fn write_file(file: &Path, path: &[&str], value: &Value) -> Result<()> {
    change_file(file, |text| edit::set(text, path, value))
}

/// Changes the text of the config file. A file that is missing is created.
pub(crate) fn change_file(
    file: &Path,
    change: impl FnOnce(&str) -> Result<String, hikite_config::jsonc::SyntaxError>,
) -> Result<()> {
    let shown = file.display().to_string();
    let before = match std::fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(error).with_context(|| format!("cannot read `{shown}`")),
    };
    let after = change(&before).map_err(|error| hikite_config::Problems::syntax(&shown, &before, &error))?;
    super::connect_file::replace(file, &after, 0o600)
}
