//! `hikite search`: lists and clears the search memory, the queries that led to successful calls.

use std::fmt::Write;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, Subcommand};
use hikite_config::Config;
use hikite_core::time::rfc3339;
use hikite_gateway::{decayed, now_ms};
use hikite_store::{SearchMemoryRow, Store};
use serde_json::{Value, json};

use super::{GlobalArgs, print};

#[derive(Debug, Subcommand)]
pub(crate) enum SearchCommand {
    /// Queries that led to a successful call
    #[command(subcommand)]
    Memory(MemoryCommand),
}

#[derive(Debug, Subcommand)]
pub(crate) enum MemoryCommand {
    /// List the pairs of query and tool, strongest first
    List(MemoryListArgs),
    /// Delete them, also in a running hikite
    Clear(MemoryClearArgs),
}

#[derive(Debug, Args)]
pub(crate) struct MemoryListArgs {
    /// Only this project; an empty name selects pairs without a project
    #[arg(long)]
    project: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct MemoryClearArgs {
    /// Only this project; an empty name selects pairs without a project
    #[arg(long)]
    project: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl SearchCommand {
    pub(crate) async fn run(self, common: &GlobalArgs) -> Result<ExitCode> {
        let config = common.load()?;
        let store = Store::open_with_backup(&config.store_url(), &config.data).await?;
        let Self::Memory(memory) = self;
        let outcome = match memory {
            MemoryCommand::List(list) => list.run(&store, &config).await,
            MemoryCommand::Clear(clear) => clear.run(&store).await,
        };
        store.close().await;
        outcome.map(|()| ExitCode::SUCCESS)
    }
}

/// A remembered pair with its weight after decay.
struct MemoryRow {
    pair: SearchMemoryRow,
    weight: f32,
}

impl MemoryListArgs {
    async fn run(&self, store: &Store, config: &Config) -> Result<()> {
        let now = now_ms();
        let half_life = config.search.memory.half_life;
        let pairs = store.search().remembered(self.project.as_deref()).await?;
        let weight = |pair: &SearchMemoryRow| decayed(pair.weight, pair.used_at, now, half_life);
        let mut rows: Vec<MemoryRow> =
            pairs.into_iter().map(|pair| MemoryRow { weight: weight(&pair), pair }).collect();
        rows.sort_by(|a, b| {
            let order = b.weight.total_cmp(&a.weight);
            order.then_with(|| (&a.pair.project, &a.pair.key).cmp(&(&b.pair.project, &b.pair.key)))
        });
        print(&if self.json { rows.iter().map(shown).collect::<Value>().to_string() } else { table(&rows) });
        Ok(())
    }
}

impl MemoryClearArgs {
    async fn run(&self, store: &Store) -> Result<()> {
        let count = store.search().forget(self.project.as_deref()).await?;
        print(&if self.json {
            json!({ "forgotten": count }).to_string()
        } else {
            format!("{count} pair{} forgotten", if count == 1 { "" } else { "s" })
        });
        Ok(())
    }
}

fn shown(row: &MemoryRow) -> Value {
    let mut shown = json!({
        "project": (!row.pair.project.is_empty()).then_some(&row.pair.project),
        "tool": row.pair.key.to_string(),
        "weight": (f64::from(row.weight) * 1000.0).round() / 1000.0,
        "lastUse": rfc3339(row.pair.used_at),
        "query": row.pair.query,
    });
    if let Some(text) = &row.pair.text {
        shown["text"] = text.as_str().into();
    }
    shown
}

fn table(rows: &[MemoryRow]) -> String {
    let keys: Vec<String> = rows.iter().map(|row| row.pair.key.to_string()).collect();
    let width = keys.iter().map(|key| key.chars().count()).max().unwrap_or(0);
    let mut text = String::new();
    for (row, key) in rows.iter().zip(&keys) {
        let project = if row.pair.project.is_empty() { "-" } else { &row.pair.project };
        // Without the query text, the hash tells two queries apart.
        let asked = row.pair.text.as_deref().unwrap_or(&row.pair.query[..row.pair.query.len().min(12)]);
        let used = rfc3339(row.pair.used_at);
        let _ = writeln!(text, "{key:width$}  {:>5.2}  {used}  {project}  {asked}", row.weight);
    }
    let _ = write!(text, "{} pair{}", rows.len(), if rows.len() == 1 { "" } else { "s" });
    text
}
