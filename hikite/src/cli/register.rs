//! `hikite tools register`, `unregister`, `enable` and `disable`: manage registered tools in the store. A hikite that
//! runs on the same store picks up the changes.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::Args;
use hikite_config::{TextPosition, jsonc};
use hikite_core::caller::Caller;
use hikite_core::error::Error;
use hikite_core::json::{Object, Raw};

use super::store_session::at_terminal;
use super::{note, print};
use crate::runtime::Runtime;

#[derive(Debug, Args)]
pub(crate) struct ToolRegisterArgs {
    /// The file with the tool definition, JSON with or without comments; `-` reads stdin
    file: PathBuf,
    /// Replace a registered tool of the same name
    #[arg(long)]
    overwrite: bool,
    /// Print the tool as JSON
    #[arg(long)]
    json: bool,
    #[arg(skip)]
    form: Object,
}

#[derive(Debug, Args)]
pub(crate) struct ToolUnregisterArgs {
    /// `module:tool`, or only the name if it is unique
    tool: String,
}

#[derive(Debug, Args)]
pub(crate) struct ToolSwitchArgs {
    /// `module:tool`, or only the name if it is unique
    tool: String,
    /// Print the tool as JSON
    #[arg(long)]
    json: bool,
}

impl ToolRegisterArgs {
    /// Reads the tool description before anything is started.
    pub(crate) fn read(&mut self) -> Result<()> {
        let text = if self.file == Path::new("-") {
            std::io::read_to_string(std::io::stdin()).context("cannot read stdin")?
        } else {
            std::fs::read_to_string(&self.file).with_context(|| format!("cannot read `{}`", self.file.display()))?
        };
        self.form = form(&text).with_context(|| format!("`{}` is not a tool definition", self.file.display()))?;
        if self.overwrite {
            self.form.set("overwrite", Raw::of(&true));
        }
        Ok(())
    }

    pub(crate) async fn run(self, runtime: &Runtime) -> Result<()> {
        let name = self.form.text("name").unwrap_or_default();
        let tool =
            recorded(runtime, "tool.register", &name, runtime.gateway.admin().tools.register(&self.form)).await?;
        tell(&tool, self.json, "is registered");
        Ok(())
    }
}

impl ToolUnregisterArgs {
    pub(crate) async fn run(self, runtime: &Runtime) -> Result<()> {
        recorded(runtime, "tool.unregister", &self.tool, runtime.gateway.admin().tools.unregister(&self.tool)).await?;
        note(&format!("`{}` is no longer registered.", self.tool));
        Ok(())
    }
}

impl ToolSwitchArgs {
    pub(crate) fn names_module(&self) -> bool {
        self.tool.contains(':')
    }

    pub(crate) async fn run(self, runtime: &Runtime, enabled: bool) -> Result<()> {
        let action = if enabled { "tool.enable" } else { "tool.disable" };
        let tool =
            recorded(runtime, action, &self.tool, runtime.gateway.admin().tools.switch(&self.tool, enabled)).await?;
        tell(&tool, self.json, if enabled { "is enabled" } else { "is disabled" });
        Ok(())
    }
}

/// Runs the work and records it in the audit log, with the owner as actor.
async fn recorded<T>(
    runtime: &Runtime,
    action: &'static str,
    tool: &str,
    work: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    runtime.gateway.auditor().record_admin((&Caller::owner(), &at_terminal("hikite tools")), action, tool, work).await
}

fn form(text: &str) -> Result<Object> {
    let tree = match jsonc::parse(text) {
        Ok(tree) => tree,
        Err(error) => {
            let hint = error.hint.map(|hint| format!("\nhint: {hint}")).unwrap_or_default();
            bail!("{}: {}{hint}", TextPosition::of(text, error.at), error.message);
        }
    };
    let form = Raw::from(tree.json()).object();
    form.context("it is not an object\nhint: Write `{\"name\": …, \"description\": …, \"http\": {\"url\": …}}`.")
}

/// Prints the tool as JSON on request, or else a sentence.
fn tell(tool: &Raw, json: bool, what: &str) {
    if json {
        return print(&tool.as_str());
    }
    let members = tool.object().unwrap_or_default();
    let key = members.text("key").or_else(|| members.text("name")).unwrap_or_default();
    note(&format!("`{key}` {what}."));
}
