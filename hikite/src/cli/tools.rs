//! `hikite tools`: lists, searches, describes, calls and registers tools from a terminal.

use std::fmt::Write;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use clap::{Args, Subcommand};
use hikite_core::caller::Caller;
use hikite_core::catalog::Tool;
use hikite_core::json::Raw;
use hikite_core::source::CallOrigin;
use hikite_core::view::View;
use hikite_gateway::ToolFilter;
use serde_json::{Value, json};

use super::register::{ToolRegisterArgs, ToolSwitchArgs, ToolUnregisterArgs};
use super::{GlobalArgs, call, print, program};
use crate::progress;
use crate::runtime::Runtime;

#[derive(Debug, Subcommand)]
pub(crate) enum ToolsCommand {
    /// List all tools
    List(ToolListArgs),
    /// Search for tools
    Search(ToolSearchArgs),
    /// Show one tool with its input schema
    Describe(ToolDescribeArgs),
    /// Call a tool and print its result
    Call(ToolCallArgs),
    /// Register a tool that makes an HTTP request; a running hikite picks it up
    Register(ToolRegisterArgs),
    /// Remove a registered tool
    Unregister(ToolUnregisterArgs),
    /// Enable a tool
    Enable(ToolSwitchArgs),
    /// Disable a tool for all clients
    Disable(ToolSwitchArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ToolListArgs {
    /// Only the tools of this module
    #[arg(long)]
    module: Option<String>,
    /// Also list disabled tools
    #[arg(long)]
    all: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ToolSearchArgs {
    /// The search query
    #[arg(required = true)]
    query: Vec<String>,
    /// The maximum number of tools
    #[arg(long, default_value_t = 10)]
    limit: usize,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Time limit for encoding tools whose vectors are not stored yet.
const ENCODE_TIMEOUT: Duration = Duration::from_secs(20);

#[derive(Debug, Args)]
pub(crate) struct ToolDescribeArgs {
    /// `module:tool`, or only the name if it is unique
    tool: String,
    /// Print the definition as one line of JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ToolCallArgs {
    /// `module:tool`, or only the name if it is unique
    tool: String,
    /// The arguments as a JSON object
    arguments: Option<String>,
    /// One argument; the value is JSON if it parses, otherwise text
    #[arg(long = "param", value_name = "NAME=VALUE")]
    params: Vec<String>,
    /// Print the whole result as JSON
    #[arg(long)]
    json: bool,
}

impl ToolsCommand {
    pub(crate) async fn run(mut self, common: &GlobalArgs) -> Result<ExitCode> {
        if let Self::Register(register) = &mut self {
            register.read()?;
        }
        let runtime = Runtime::start(&common.load()?, program()?).await?;
        let outcome = self.execute(&runtime).await;
        runtime.stop().await;
        outcome
    }

    async fn execute(self, runtime: &Runtime) -> Result<ExitCode> {
        if self.needs_all_lists() {
            progress::wait_for_all(&runtime.gateway, runtime.limits.start_timeout).await;
        }
        let view = runtime.gateway.catalogs().owner_view();
        match self {
            Self::List(list) => list.print(&view),
            Self::Search(search) => search.print(runtime).await?,
            Self::Describe(describe) => describe.print(&view)?,
            Self::Call(call) => return call.run(runtime).await,
            Self::Register(register) => register.run(runtime).await?,
            Self::Unregister(unregister) => unregister.run(runtime).await?,
            Self::Enable(switch) => switch.run(runtime, true).await?,
            Self::Disable(switch) => switch.run(runtime, false).await?,
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Returns `true` if the command needs all tool lists; one that names a module waits for that module only.
    fn needs_all_lists(&self) -> bool {
        match self {
            Self::List(_) | Self::Search(_) | Self::Describe(_) => true,
            Self::Enable(switch) | Self::Disable(switch) => !switch.names_module(),
            Self::Call(_) | Self::Register(_) | Self::Unregister(_) => false,
        }
    }
}

impl ToolListArgs {
    fn print(&self, view: &View) {
        let modules = view.modules().iter();
        let chosen = modules.filter(|module| self.module.as_deref().is_none_or(|name| name == &*module.name));
        let tools: Vec<&Tool> =
            chosen.flat_map(|module| &module.tools).filter(|tool| tool.is_enabled() || self.all).collect();
        if self.json {
            print(&tools.into_iter().map(summary).collect::<Value>().to_string());
        } else {
            print(&table(&tools));
        }
    }
}

impl ToolSearchArgs {
    async fn print(&self, runtime: &Runtime) -> Result<()> {
        let filter = ToolFilter { enabled: Some(true), ..ToolFilter::default() };
        let (owner, query) = (Caller::owner(), self.query.join(" "));
        progress::with_spinner("reading the tools", runtime.gateway.search().wait_for_index(ENCODE_TIMEOUT)).await;
        let found = runtime
            .gateway
            .discovery()
            .find_tools((&owner, &CallOrigin::default()), &query, &filter, self.limit)
            .await?;
        let rows: Vec<Value> = found.items.iter().map(Raw::value).collect();
        if self.json {
            let members = ["key", "name", "module", "enabled", "description", "relevance", "explanation"];
            let row = |tool: &Value| -> Value {
                let shown = members.iter().filter_map(|name| Some(((*name).to_owned(), tool.get(*name)?.clone())));
                shown.collect::<serde_json::Map<String, Value>>().into()
            };
            print(&rows.iter().map(row).collect::<Value>().to_string());
            return Ok(());
        }
        let view = runtime.gateway.catalogs().view_of(&owner);
        let tools = rows.iter().filter_map(|tool| view.tool(tool["key"].as_str()?).ok());
        print(&table(&tools.collect::<Vec<&Tool>>()));
        Ok(())
    }
}

impl ToolDescribeArgs {
    fn print(&self, view: &View) -> Result<()> {
        let tool = view.tool(&self.tool)?;
        let definition = tool.definition.value();
        print(&if self.json { definition.to_string() } else { format!("{}\n{definition:#}", tool.key) });
        Ok(())
    }
}

impl ToolCallArgs {
    async fn run(self, runtime: &Runtime) -> Result<ExitCode> {
        let arguments = call::arguments(self.arguments.as_deref(), &self.params)?;
        call::call(runtime, &self.tool, arguments, self.json).await
    }
}

fn summary(tool: &Tool) -> Value {
    json!({
        "key": tool.key.to_string(),
        "name": &*tool.name,
        "module": &*tool.key.module,
        "enabled": tool.is_enabled(),
        "description": description(tool),
    })
}

fn description(tool: &Tool) -> String {
    tool.definition.object().and_then(|definition| definition.text("description")).unwrap_or_default()
}

/// Formats tools as their key and the first line of their description.
fn table(tools: &[&Tool]) -> String {
    let keys: Vec<String> = tools.iter().map(|tool| tool.key.to_string()).collect();
    let width = keys.iter().map(|key| key.chars().count()).max().unwrap_or(0);
    let mut text = String::new();
    for (tool, key) in tools.iter().zip(&keys) {
        let off = if tool.is_enabled() { "" } else { "(off) " };
        let description = description(tool);
        let line: String = description.trim().lines().next().unwrap_or_default().chars().take(80).collect();
        let _ = writeln!(text, "{key:width$}  {off}{line}");
    }
    let _ = write!(text, "{} tool{}", tools.len(), if tools.len() == 1 { "" } else { "s" });
    text
}
