//! `hikite module list`: lists modules with their origin and state.

use anyhow::{Result, bail};
use clap::Args;
use hikite_core::risk::Risk;
use hikite_core::source::{Source, State};
use hikite_core::suggest::did_you_mean;
use hikite_modules::{About, Service};
use serde_json::{Map, Value, json};

use super::super::people::table;
use super::super::{Common, note, print};
use super::many;
use crate::services::{self, Given};

#[derive(Debug, Args)]
pub(crate) struct List {
    /// Show the tools of this module
    name: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl List {
    pub(super) fn run(&self, common: &Common) -> Result<()> {
        let config = common.load()?;
        let settings = services::settings(Some(&config));
        let all = services::given(&config, &settings);
        let Some(name) = &self.name else {
            self.modules(&all);
            return Ok(());
        };
        let read =
            all.iter().filter_map(|given| Some((given.read.as_ref().ok()?, given.hidden_by.is_some())));
        let mut found: Vec<(&Service, bool)> = read.filter(|(service, _)| *service.name == **name).collect();
        found.sort_by_key(|(_, is_hidden)| *is_hidden);
        let Some((service, _)) = found.first() else {
            let names = all.iter().filter_map(|given| Some(&*given.read.as_ref().ok()?.name));
            let hint = did_you_mean(name, names);
            let hint = hint.unwrap_or_else(|| "`hikite module list` shows those there are".into());
            bail!("there is no module `{name}`\nhint: {hint}");
        };
        self.tools(&service.about(config.modules.language).collect::<Vec<_>>());
        Ok(())
    }

    fn modules(&self, all: &[Given]) {
        if self.json {
            return print(&all.iter().map(object).collect::<Value>().to_string());
        }
        if !all.is_empty() {
            print(&table(&all.iter().map(row).collect::<Vec<_>>()));
        }
        for given in all {
            if let (Err(faults), Some(file)) = (&given.read, &given.file) {
                note(&format!("error: {}", services::shown(file, faults).replace('\n', "\nerror: ")));
            }
        }
        note(&many(all.len(), "module"));
    }

    fn tools(&self, tools: &[About<'_>]) {
        if self.json {
            let object = |tool: &About<'_>| json!({ "name": tool.name, "risk": tool.risk.name(), "description": tool.description, "pages": tool.pages, "forms": tool.forms });
            return print(&tools.iter().map(object).collect::<Value>().to_string());
        }
        let row = |tool: &About<'_>| vec![tool.name.into(), tool.risk.name().into(), tool.description.into()];
        print(&table(&tools.iter().map(row).collect::<Vec<_>>()));
        note(&many(tools.len(), "tool"));
    }
}

/// Returns the state of a module in words.
fn state(given: &Given) -> String {
    match (&given.read, &given.hidden_by) {
        (Err(_), _) => "wrong".into(),
        (Ok(_), Some(by)) => format!("hidden by {by}"),
        (Ok(service), None) => match service.state() {
            State::NeedsLogin { .. } => "needs login".into(),
            _ if service.provider().is_none() => "ready".into(),
            _ => "connected".into(),
        },
    }
}

fn from(given: &Given) -> &str {
    given.file.as_deref().unwrap_or("built-in")
}

/// Returns name, tool count, provider, state, title and origin.
fn row(given: &Given) -> Vec<String> {
    let (name, tools, provider, title) = match &given.read {
        Ok(service) => (
            service.name.to_string(),
            many(service.risks().iter().sum(), "tool"),
            service.provider().unwrap_or("-").to_owned(),
            service.title().to_owned(),
        ),
        Err(faults) => ("-".into(), many(faults.len(), "fault"), "-".into(), "-".into()),
    };
    vec![name, tools, provider, state(given), title, from(given).to_owned()]
}

fn object(given: &Given) -> Value {
    let mut object = Map::new();
    if let Ok(service) = &given.read {
        let risks = Risk::ALL.iter().zip(service.risks());
        let risks: Map<String, Value> =
            risks.map(|(risk, count)| (risk.name().to_owned(), json!(count))).collect();
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
    object.insert("state".into(), json!(state(given)));
    object.insert("from".into(), json!(from(given)));
    if let Err(faults) = &given.read {
        object.insert("faults".into(), super::check::objects(faults));
    }
    Value::Object(object)
}
