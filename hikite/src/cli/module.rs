//! `hikite module`: manages service modules described in files. It calls no tool and fetches nothing.

mod check;
mod import;
mod list;
mod new;

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::Subcommand;
use hikite_core::risk::Risk;
use hikite_modules::Service;

use super::{GlobalArgs, print};

#[derive(Debug, Subcommand)]
pub(crate) enum ModuleCommand {
    /// List the modules of the config, or the tools of one
    List(list::ModuleListArgs),
    /// Check module files and report all problems
    Check(check::CheckFiles),
    /// Create a small module file to start from
    New(new::ModuleNewArgs),
    /// Create a module file from operations of an OpenAPI description
    ImportOpenapi(import::ImportOpenapi),
    /// Print the JSON Schema of module files
    Schema,
}

impl ModuleCommand {
    pub(crate) fn run(self, common: &GlobalArgs) -> Result<ExitCode> {
        match self {
            Self::List(list) => list.run(common)?,
            Self::Check(check) => return Ok(check.run()),
            Self::New(new) => new.run()?,
            Self::ImportOpenapi(import) => import.run()?,
            Self::Schema => print(hikite_modules::SCHEMA.trim_end()),
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Writes a file that must not exist yet.
fn write_new(path: &Path, text: &str) -> Result<()> {
    let shown = path.display();
    match OpenOptions::new().write(true).create_new(true).open(path) {
        Ok(mut file) => file.write_all(text.as_bytes()).with_context(|| format!("cannot write `{shown}`")),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            bail!("`{shown}` already exists.\nhint: Choose another name, or move the file away.")
        }
        Err(error) => Err(error).with_context(|| format!("cannot write `{shown}`")),
    }
}

/// Formats counts as `12 tools (8 read, 3 write, 1 destructive), 1 resource, 2 prompts`.
fn counted(service: &Service) -> String {
    let risks = service.risks();
    let each = Risk::ALL.iter().zip(risks).filter(|(_, count)| *count > 0);
    let each = each.map(|(risk, count)| format!("{count} {}", risk.name())).collect::<Vec<_>>().join(", ");
    let (resources, prompts) = service.extras();
    let tools = many(risks.iter().sum(), "tool");
    format!("{tools} ({each}), {}, {}", many(resources, "resource"), many(prompts, "prompt"))
}

fn many(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// Returns `true` if a module may have this name.
fn is_name(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_lowercase())
        && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
}

/// Parses a module name from a flag.
fn name(word: &str) -> Result<String, String> {
    let wrong = "a name may contain lowercase letters, digits and `_`, and starts with a letter";
    is_name(word).then(|| word.to_owned()).ok_or_else(|| wrong.to_owned())
}
