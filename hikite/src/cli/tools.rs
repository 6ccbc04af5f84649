//! `hikite tools`: the same engine, from a terminal.

use std::fmt::Write;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, Subcommand};
use hikite_core::catalog::Tool;
use hikite_core::search;
use hikite_core::view::View;
use serde_json::{Value, json};

use super::register::{Register, Switch, Unregister};
use super::{Common, call, print, program};
use crate::house::House;
use crate::progress;

#[derive(Debug, Subcommand)]
pub(crate) enum Tools {
    /// List all tools
    List(List),
    /// Find tools by words
    Search(Search),
    /// Show one tool with its input schema
    Describe(Describe),
    /// Call a tool and print its result
    Call(Call),
    /// Register a tool that is an HTTP request; a running hikite sees it by itself
    Register(Register),
    /// Remove a registered tool
    Unregister(Unregister),
    /// Switch a tool on
    Enable(Switch),
    /// Switch a tool off, for every client
    Disable(Switch),
}

#[derive(Debug, Args)]
pub(crate) struct List {
    /// Only the tools of this module
    #[arg(long)]
    module: Option<String>,
    /// Also tools that are switched off
    #[arg(long)]
    all: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Search {
    /// The words to look for
    #[arg(required = true)]
    query: Vec<String>,
    /// How many tools at most
    #[arg(long, default_value_t = 10)]
    limit: usize,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Describe {
    /// `module:tool`, or the name alone where it is the only one
    tool: String,
    /// Print the definition as one line of JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Call {
    /// `module:tool`, or the name alone where it is the only one
    tool: String,
    /// The arguments as a JSON object
    arguments: Option<String>,
    /// One argument; the value is JSON where it reads as such, else text
    #[arg(long = "param", value_name = "NAME=VALUE")]
    params: Vec<String>,
    /// Print the whole result as JSON
    #[arg(long)]
    json: bool,
}

impl Tools {
    pub(crate) async fn run(mut self, common: &Common) -> Result<ExitCode> {
        if let Self::Register(register) = &mut self {
            register.read()?;
        }
        let house = House::start(&common.load()?, program()?).await?;
        let outcome = self.act(&house).await;
        house.stop().await;
        outcome
    }

    async fn act(self, house: &House) -> Result<ExitCode> {
        if self.needs_all_lists() {
            progress::wait_for_all(&house.gateway, house.limits.start_timeout).await;
        }
        let view = house.gateway.owner_view();
        match self {
            Self::List(list) => list.print(&view),
            Self::Search(search) => search.print(&view),
            Self::Describe(describe) => describe.print(&view)?,
            Self::Call(call) => return call.run(house).await,
            Self::Register(register) => register.run(house).await?,
            Self::Unregister(unregister) => unregister.run(house).await?,
            Self::Enable(switch) => switch.run(house, true).await?,
            Self::Disable(switch) => switch.run(house, false).await?,
        }
        Ok(ExitCode::SUCCESS)
    }

    /// What names a module waits for that one alone.
    fn needs_all_lists(&self) -> bool {
        match self {
            Self::List(_) | Self::Search(_) | Self::Describe(_) => true,
            Self::Enable(switch) | Self::Disable(switch) => !switch.names_module(),
            Self::Call(_) | Self::Register(_) | Self::Unregister(_) => false,
        }
    }
}

impl List {
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

impl Search {
    fn print(&self, view: &View) {
        let tools: Vec<(&Tool, String)> =
            view.enabled_tools().map(|tool| (tool, description(tool))).collect();
        let documents = tools.iter().map(|(tool, text)| (&*tool.name, text.as_str()));
        let mut found = search::rank(&self.query.join(" "), documents);
        found.truncate(self.limit);
        if self.json {
            let best = found.first().map_or(1.0, |(_, score)| *score);
            let rows = found.iter().map(|(index, score)| {
                let mut row = summary(tools[*index].0);
                row["relevance"] = json!((score / best * 1000.0).round() / 1000.0);
                row
            });
            print(&rows.collect::<Value>().to_string());
        } else {
            let rows: Vec<&Tool> = found.iter().map(|(index, _)| tools[*index].0).collect();
            print(&table(&rows));
        }
    }
}

impl Describe {
    fn print(&self, view: &View) -> Result<()> {
        let tool = view.tool(&self.tool)?;
        let definition = tool.definition.value();
        print(&if self.json { definition.to_string() } else { format!("{}\n{definition:#}", tool.key) });
        Ok(())
    }
}

impl Call {
    async fn run(self, house: &House) -> Result<ExitCode> {
        let arguments = call::arguments(self.arguments.as_deref(), &self.params)?;
        call::call(house, &self.tool, arguments, self.json).await
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

/// Keys and the first line of what they do.
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
