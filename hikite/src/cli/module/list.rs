//! `hikite module list`: lists modules with their origin and state.

use anyhow::{Result, bail};
use clap::Args;
use hikite_core::risk::Risk;
use hikite_core::source::{Source, SourceState};
use hikite_core::suggestion::did_you_mean;
use hikite_modules::{Service, ToolSummary};
use serde_json::{Map, Value, json};

use super::super::store_session::table;
use super::super::{GlobalArgs, note, print};
use super::many;
use crate::services::{self, ConfiguredModule};

#[derive(Debug, Args)]
pub(crate) struct ModuleListArgs {
    /// Show the tools of this module
    name: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl ModuleListArgs {
    pub(super) fn run(&self, common: &GlobalArgs) -> Result<()> {
        let config = common.load()?;
        let settings = services::settings(Some(&config));
        let all = services::configured(&config, &settings);
        let Some(name) = &self.name else {
            self.modules(&all);
            return Ok(());
        };
        let read =
            all.iter().filter_map(|configured| Some((configured.read.as_ref().ok()?, configured.hidden_by.is_some())));
        let mut found: Vec<(&Service, bool)> = read.filter(|(service, _)| *service.name == **name).collect();
        found.sort_by_key(|(_, is_hidden)| *is_hidden);
        let Some((service, _)) = found.first() else {
            let names = all.iter().filter_map(|configured| Some(&*configured.read.as_ref().ok()?.name));
            let hint = did_you_mean(name, names);
            let hint = hint.unwrap_or_else(|| "Run `hikite module list` to see all modules.".into());
            bail!("There is no module `{name}`.\nhint: {hint}");
        };
        self.tools(&service.about(config.modules.language).collect::<Vec<_>>());
        Ok(())
    }

    fn modules(&self, all: &[ConfiguredModule]) {
        if self.json {
            return print(&all.iter().map(object).collect::<Value>().to_string());
        }
        if !all.is_empty() {
            print(&table(&all.iter().map(row).collect::<Vec<_>>()));
        }
        for configured in all {
            if let (Err(faults), Some(file)) = (&configured.read, &configured.file) {
                note(&format!("error: {}", services::shown(file, faults).replace('\n', "\nerror: ")));
            }
        }
        note(&many(all.len(), "module"));
    }

    fn tools(&self, tools: &[ToolSummary<'_>]) {
        if self.json {
            let object = |tool: &ToolSummary<'_>| json!({ "name": tool.name, "risk": tool.risk.name(), "description": tool.description, "pages": tool.pages, "forms": tool.forms });
            return print(&tools.iter().map(object).collect::<Value>().to_string());
        }
        let row = |tool: &ToolSummary<'_>| vec![tool.name.into(), tool.risk.name().into(), tool.description.into()];
        print(&table(&tools.iter().map(row).collect::<Vec<_>>()));
        note(&many(tools.len(), "tool"));
    }
}

/// Returns the state of a module in words.
fn state(configured: &ConfiguredModule) -> String {
    match (&configured.read, &configured.hidden_by) {
        (Err(_), _) => "wrong".into(),
        (Ok(_), Some(by)) => format!("hidden by {by}"),
        (Ok(service), None) => match service.state() {
            SourceState::NeedsLogin { .. } => "needs login".into(),
            _ if service.provider().is_none() => "ready".into(),
            _ => "connected".into(),
        },
    }
}

fn from(configured: &ConfiguredModule) -> &str {
    configured.file.as_deref().unwrap_or("built-in")
}

/// Returns name, tool count, provider, state, title and origin.
fn row(configured: &ConfiguredModule) -> Vec<String> {
    let (name, tools, provider, title) = match &configured.read {
        Ok(service) => (
            service.name.to_string(),
            many(service.risks().iter().sum(), "tool"),
            service.provider().unwrap_or("-").to_owned(),
            service.title().to_owned(),
        ),
        Err(faults) => ("-".into(), many(faults.len(), "fault"), "-".into(), "-".into()),
    };
    vec![name, tools, provider, state(configured), title, from(configured).to_owned()]
}

fn object(configured: &ConfiguredModule) -> Value {
    let mut object = Map::new();
    if let Ok(service) = &configured.read {
        let risks = Risk::ALL.iter().zip(service.risks());
        let risks: Map<String, Value> = risks.map(|(risk, count)| (risk.name().to_owned(), json!(count))).collect();
        let (resources, prompts) = service.extras();
        let about = [
            ("name", json!(&*service.name)),
            ("title", json!(service.title())),
            ("description", json!(service.description())),
            ("provider", json!(service.provider())),
            ("tools", json!(service.risks().iter().sum::<usize>())),
            ("risks", Value::Object(risks)),
            ("resources", json!(resources)),
            ("prompts", json!(prompts)),
        ];
        object.extend(about.map(|(key, value)| (key.to_owned(), value)));
    }
    object.insert("state".into(), json!(state(configured)));
    object.insert("from".into(), json!(from(configured)));
    if let Err(faults) = &configured.read {
        object.insert("faults".into(), super::check::objects(faults));
    }
    Value::Object(object)
}
