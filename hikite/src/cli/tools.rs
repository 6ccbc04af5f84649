//! `hikite tools`: the same engine, from a terminal.

use std::fmt::Write;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result, anyhow, bail};
use clap::{Args, Subcommand};
use hikite_core::caller::{Abilities, Caller, Session, SessionId};
use hikite_core::catalog::Tool;
use hikite_core::json::{Object, Raw};
use hikite_core::search;
use hikite_core::source::{Backchannel, BoxFuture, CallContext, Origin, Question};
use hikite_core::view::View;
use hikite_gateway::{CallOptions, Command, Target};
use serde_json::{Value, json};

use super::{Common, note, print, program};
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
    pub(crate) async fn run(self, common: &Common) -> Result<ExitCode> {
        let house = House::start(&common.load()?, program()?).await?;
        let outcome = self.act(&house).await;
        house.stop().await;
        outcome
    }

    async fn act(self, house: &House) -> Result<ExitCode> {
        // A call waits only for the module it names.
        if !matches!(self, Self::Call(_)) {
            progress::wait_for_all(&house.gateway, house.limits.start_timeout).await;
        }
        let view = house.gateway.view();
        match self {
            Self::List(list) => list.print(&view),
            Self::Search(search) => search.print(&view),
            Self::Describe(describe) => describe.print(&view)?,
            Self::Call(call) => return call.run(house).await,
        }
        Ok(ExitCode::SUCCESS)
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
        let params = Object::default().with("name", self.tool.as_str()).with("arguments", self.arguments()?);
        let session = Session { id: SessionId(0), caller: Caller::owner(), abilities: Abilities::default() };
        let context = CallContext {
            session: Arc::new(session),
            back: Arc::new(Terminal),
            origin: Origin::default(),
            takes_rounds: false,
        };
        let command = Command::Call {
            target: Target::Named(self.tool.clone()),
            params,
            options: CallOptions::default(),
        };
        let result = house.gateway.dispatch(command, context).await?;
        let members =
            result.object().ok_or_else(|| anyhow!("the tool answered with something else than a result"))?;
        print(&if self.json { result.as_str().into_owned() } else { text_of(&members) });
        let failed = members.get("isError").is_some_and(|flag| flag.as_str() == "true");
        Ok(ExitCode::from(u8::from(failed)))
    }

    fn arguments(&self) -> Result<Object> {
        let mut arguments = match &self.arguments {
            Some(text) => Raw::parse(text.clone()).ok().and_then(|raw| raw.object()).with_context(|| {
                format!("`{text}` is not a JSON object\nhint: quote it like '{{\"path\": \".\"}}'")
            })?,
            None => Object::default(),
        };
        for param in &self.params {
            let Some((name, value)) = param.split_once('=') else {
                bail!("`{param}` is not NAME=VALUE");
            };
            arguments.set(name, Raw::parse(value.to_owned()).unwrap_or_else(|_| Raw::from(value)));
        }
        Ok(arguments)
    }
}

/// The terminal as the client of a call: it sees progress, and answers no questions.
struct Terminal;

impl Backchannel for Terminal {
    fn progress(&self, params: Object) {
        let number = |name: &str| params.get(name).map(|value| value.as_str().into_owned());
        let total = number("total").map(|total| format!("/{total}")).unwrap_or_default();
        let message = params.text("message").unwrap_or_default();
        note(&format!("{}{total} {message}", number("progress").unwrap_or_default()));
    }

    fn log(&self, params: Raw) {
        tracing::info!("{}", params.as_str());
    }

    fn ask(&self, _: Question) -> BoxFuture<'static, Result<Raw, Raw>> {
        let refused = Object::default()
            .with("code", Raw::of(&hikite_core::error::Kind::MethodNotFound.face().rpc))
            .with("message", "a terminal call answers no questions");
        Box::pin(async move { Err(refused.raw()) })
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

/// The text of a result; other blocks by their kind.
fn text_of(result: &Object) -> String {
    let blocks = result.get("content").and_then(Raw::items).unwrap_or_default();
    let lines = blocks.iter().filter_map(Raw::object).map(|block| {
        block.text("text").unwrap_or_else(|| format!("[{}]", block.text("type").unwrap_or_default()))
    });
    let text = lines.collect::<Vec<_>>().join("\n");
    match result.get("structuredContent") {
        Some(structured) if text.is_empty() => format!("{:#}", structured.value()),
        _ => text,
    }
}
