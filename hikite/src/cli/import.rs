//! `hikite import`: takes the servers of other clients into the config file, and with `--replace` puts hikite in their
//! place.

use std::collections::HashSet;
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::Args;
use hikite_config::client::ENTRY;
use hikite_config::import::{ImportedServers, import, unset_variables};
use hikite_config::{self as config, CLIENTS, McpClient};
use serde_json::{Map, Value};

use super::connect::{EntryArgs, PlannedEntry, undo};
use super::connect_file::{ClientFile, Confirmation, replace};
use super::store_session::StoreSession;
use super::{GlobalArgs, note, print};

#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    /// The client or the file to read [default: the config files of all clients on this machine]
    #[arg(value_name = "CLIENT|FILE")]
    source: Option<String>,
    /// The client of the file; detected from its content by default
    #[arg(long, value_name = "CLIENT", value_parser = known)]
    from: Option<&'static McpClient>,
    /// Write the servers into the config file instead of printing it
    #[arg(long)]
    write: bool,
    /// Write the servers into the config file and put hikite in their place in the client's own file
    #[arg(long)]
    replace: bool,
    #[command(flatten)]
    confirmation: Confirmation,
    /// Restore the client's file as it was before `--replace`
    #[arg(long, conflicts_with_all = ["write", "replace"])]
    undo: bool,
}

fn known(word: &str) -> Result<&'static McpClient, String> {
    let names: Vec<&str> = CLIENTS.iter().map(|client| client.name).collect();
    McpClient::named(word).ok_or_else(|| format!("not one of: {}", names.join(", ")))
}

/// A file to read, and its client if it is known.
struct ImportSource {
    client: Option<&'static McpClient>,
    path: PathBuf,
}

impl ImportArgs {
    pub(crate) async fn run(self, common: &GlobalArgs) -> Result<ExitCode> {
        if self.undo {
            self.restore(common).await?;
            return Ok(ExitCode::SUCCESS);
        }
        let sources = self.sources()?;
        let mut servers = Map::new();
        let mut taken = Vec::new();
        for source in &sources {
            match read(source) {
                Ok(imported) => taken.push((imported.client, collect(&mut servers, imported))),
                Err(error) if sources.len() == 1 => return Err(error),
                // One file that cannot be read does not stop the others.
                Err(error) => note(&format!("note: {}", format!("{error:#}").trim_start_matches("error: "))),
            }
        }
        let env = |name: &str| std::env::var(name).ok();
        for (name, server) in &servers {
            for variable in unset_variables(server, &env) {
                note(&format!("note: {name}: `${{{variable}}}` is not set; set it in the environment of hikite"));
            }
        }
        let target = config::find(common.config.as_deref(), &env).unwrap_or_else(|| "hikite.json".into());
        let before = fs::read_to_string(&target).ok();
        let merged = config::merge(&target.display().to_string(), before.as_deref(), &servers)?;
        for name in &merged.unchanged {
            note(&format!("note: `{name}` is already in {} and is not changed", target.display()));
        }
        let wrote = format!("wrote {}: {} servers added", target.display(), merged.added.len());
        if self.replace {
            let config = config::Config { file: Some(target.clone()), ..common.load()? };
            let plans = plans(taken, &config)?;
            let session = if plans.iter().any(PlannedEntry::needs_store) {
                Some(StoreSession::open(common).await?)
            } else {
                None
            };
            let mut changes = vec![format!("+++ {}: {}", target.display(), merged.added.join(", "))];
            for plan in plans.iter().filter(|plan| !plan.is_done(session.as_ref())) {
                changes.push(plan.diff()?);
            }
            if self.confirmation.given(&changes)? {
                // Imported entries may contain secrets.
                replace(&target, &merged.text, 0o600)?;
                note(&wrote);
                for plan in plans.iter().filter(|plan| !plan.is_done(session.as_ref())) {
                    plan.apply(session.as_ref()).await?;
                }
            }
            if let Some(session) = session {
                session.close().await;
            }
        } else if self.write && !self.confirmation.dry_run {
            replace(&target, &merged.text, 0o600)?;
            note(&wrote);
        } else {
            print(merged.text.trim_end());
            note("hint: Use `--write` to write this file.");
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Undoes `--replace` in the named client, or in every client that hikite has changed.
    async fn restore(&self, common: &GlobalArgs) -> Result<()> {
        let named = self.source.as_deref().map(|name| known(name).map_err(anyhow::Error::msg)).transpose()?;
        let clients =
            CLIENTS.iter().filter(|client| client.can_connect() && named.is_none_or(|named| *named == **client));
        let mut is_any = false;
        for client in clients {
            let file = ClientFile::open(client)?;
            if named.is_some() || file.is_changed() {
                undo(&file, self.confirmation, common).await?;
                is_any = true;
            }
        }
        if !is_any {
            note("There is nothing to undo.");
        }
        Ok(())
    }

    fn sources(&self) -> Result<Vec<ImportSource>> {
        let named = self.source.as_deref().and_then(McpClient::named);
        if let (Some(file), None) = (&self.source, named) {
            if self.replace {
                bail!("`--replace` needs the name of a client, not a file.\nhint: `hikite import CLIENT --replace`.");
            }
            return Ok(vec![ImportSource { client: self.from, path: file.into() }]);
        }
        let found = installed(named.or(self.from), self.replace)?;
        if found.is_empty() {
            bail!("No config of a known client was found.\nhint: Give the file: `hikite import FILE`.");
        }
        Ok(found)
    }
}

/// Returns the files of clients that exist here: of one or of all, and only those of the user if servers are replaced.
fn installed(one: Option<&'static McpClient>, only_own: bool) -> Result<Vec<ImportSource>> {
    let env = |name: &str| std::env::var(name).ok();
    let mut found: Vec<ImportSource> = Vec::new();
    let mut seen = HashSet::new();
    for client in CLIENTS.iter().filter(|client| one.is_none_or(|one| one == *client)) {
        let files = client.files(&env, std::env::consts::OS).context("`HOME` is not set")?;
        let count = if only_own { usize::from(client.can_connect()) } else { files.len() };
        // In the home folder, the file of the folder is the user's own.
        let mut is_new = |path: &PathBuf| fs::canonicalize(path).is_ok_and(|path| seen.insert(path));
        let files: Vec<PathBuf> = files.into_iter().take(count).filter(&mut is_new).collect();
        found.extend(files.into_iter().map(|path| ImportSource { client: Some(client), path }));
    }
    Ok(found)
}

fn read(source: &ImportSource) -> Result<ImportedServers> {
    let shown = source.path.display().to_string();
    let text = fs::read_to_string(&source.path).with_context(|| format!("cannot read `{shown}`"))?;
    let imported = import(source.client, &shown, &text)?;
    for line in &imported.notes {
        note(&format!("note: {line}"));
    }
    note(&format!("{shown}: {} servers ({})", imported.servers.len(), imported.client.title));
    Ok(imported)
}

/// Adds the servers and returns their paths in the client's file. A name that another client has given to a different
/// server gets the client's name at its end.
fn collect(servers: &mut Map<String, Value>, imported: ImportedServers) -> Vec<Vec<String>> {
    for (name, server) in imported.servers {
        let name = match servers.get(&name) {
            Some(other) if *other != server => {
                let new = format!("{name}-{}", imported.client.name);
                note(&format!("note: {name}: another client has a server of this name; imported as `{new}`"));
                new
            }
            _ => name,
        };
        servers.insert(name, server);
    }
    imported.taken
}

/// Plans hikite in place of the imported servers in the file of each client.
fn plans(taken: Vec<(&'static McpClient, Vec<Vec<String>>)>, config: &config::Config) -> Result<Vec<PlannedEntry>> {
    let mut plans = Vec::new();
    for (client, removed) in taken {
        let mut plan = PlannedEntry::plan(ClientFile::open(client)?, &EntryArgs::default(), config)?;
        plan.removed = removed;
        plans.push(plan);
    }
    Ok(plans)
}

/// Describes the clients on this machine whose servers could be imported; `None` if there are none. For a first start
/// without a config.
pub(crate) fn found_here() -> Option<String> {
    let mut lines = Vec::new();
    for source in installed(None, false).ok()? {
        let shown = source.path.display().to_string();
        let imported = fs::read_to_string(&source.path).ok().and_then(|text| import(source.client, &shown, &text).ok());
        if let Some(imported) = imported.filter(|imported| !imported.servers.is_empty()) {
            let names: Vec<&str> = imported.servers.keys().map(String::as_str).filter(|name| *name != ENTRY).collect();
            lines.push(format!("  {} ({shown}): {}", imported.client.title, names.join(", ")));
        }
    }
    let hint = "Take them over with `hikite import --write`; `--replace` also puts hikite in their place.";
    (!lines.is_empty()).then(|| format!("MCP servers of other clients on this machine:\n{}\n{hint}", lines.join("\n")))
}
