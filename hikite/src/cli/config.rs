//! `hikite config`: the subcommands check, show, schema and import.

use std::fs;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};
use hikite_config::{self as config, import};

use super::{GlobalArgs, note, print};
use crate::exposure;

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Check the config file and report problems
    Check,
    /// Print the effective config with secrets hidden
    Show,
    /// Print the JSON Schema of the config file
    Schema,
    /// Import the servers from another client's config
    Import(ConfigImportArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ConfigImportArgs {
    /// The file to read [default: the config files of the clients on this machine]
    file: Option<PathBuf>,
    /// The client of the file; detected from its content by default
    #[arg(long, value_name = "CLIENT", value_parser = kind)]
    from: Option<import::ClientKind>,
    /// Write the servers into the config file instead of printing it
    #[arg(long)]
    write: bool,
}

fn kind(word: &str) -> Result<import::ClientKind, String> {
    let known = import::ClientKind::all().map(import::ClientKind::word).collect::<Vec<_>>().join(", ");
    import::ClientKind::parse(word).ok_or_else(|| format!("not one of: {known}"))
}

impl ConfigCommand {
    pub(crate) fn run(self, common: &GlobalArgs) -> Result<ExitCode> {
        match self {
            Self::Check => check(common)?,
            Self::Show => print(&format!("{:#}", config::show(&common.load()?))),
            Self::Schema => print(&format!("{:#}", config::schema())),
            Self::Import(import) => import.run(common)?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn check(common: &GlobalArgs) -> Result<()> {
    let config = config::Config::load(common.config.as_deref(), &|name| std::env::var(name).ok())?;
    let file = config.file.as_deref().map_or_else(|| "no file, defaults".into(), |file| file.display().to_string());
    for warning in &config.warnings {
        note(&format!("warning: {warning}"));
    }
    config.check_entries()?;
    exposure::check(&config)?;
    print(&format!("ok: {file}: {} servers, {} categories", config.servers.len(), config.categories.len()));
    Ok(())
}

impl ConfigImportArgs {
    fn run(self, common: &GlobalArgs) -> Result<()> {
        let mut servers = serde_json::Map::new();
        for (kind, path) in self.sources()? {
            let shown = path.display().to_string();
            let text = fs::read_to_string(&path).with_context(|| format!("cannot read `{shown}`"))?;
            let imported = import::import(kind, &shown, &text)?;
            for line in &imported.notes {
                note(&format!("note: {line}"));
            }
            note(&format!("{shown}: {} servers ({})", imported.servers.len(), imported.kind.title()));
            for (name, server) in imported.servers {
                servers.entry(name).or_insert(server);
            }
        }
        let env = |name: &str| std::env::var(name).ok();
        let target = config::find(common.config.as_deref(), &env).unwrap_or_else(|| "hikite.json".into());
        let before = fs::read_to_string(&target).ok();
        let merged = config::merge(&target.display().to_string(), before.as_deref(), &servers)?;
        for name in &merged.unchanged {
            note(&format!("note: `{name}` is already in {} and is not changed", target.display()));
        }
        if self.write {
            write(&target, &merged.text)?;
            note(&format!("wrote {}: {} servers added", target.display(), merged.added.len()));
        } else {
            print(merged.text.trim_end());
            note("hint: Use `--write` to write this file.");
        }
        Ok(())
    }

    fn sources(&self) -> Result<Vec<(Option<import::ClientKind>, PathBuf)>> {
        if let Some(file) = &self.file {
            return Ok(vec![(self.from, file.clone())]);
        }
        let home = std::env::var_os("HOME").map(PathBuf::from).context("`HOME` is not set")?;
        let known = config::known_locations(&home, std::env::consts::OS);
        let found: Vec<_> = known
            .into_iter()
            .filter(|(kind, path)| self.from.is_none_or(|from| from == *kind) && path.exists())
            .map(|(kind, path)| (Some(kind), path))
            .collect();
        if found.is_empty() {
            bail!("No config of a known client was found.\nhint: Give the file: `hikite config import FILE`.");
        }
        Ok(found)
    }
}

/// Writes a temporary file and renames it. Only the owner can read it, because imported entries may contain secrets.
pub(super) fn write(target: &Path, text: &str) -> Result<()> {
    let beside = target.with_extension("json.new");
    let shown = || format!("cannot write `{}`", target.display());
    let mut options = fs::OpenOptions::new();
    let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(&beside).with_context(shown)?;
    file.write_all(text.as_bytes()).with_context(shown)?;
    fs::rename(&beside, target).with_context(shown)
}
