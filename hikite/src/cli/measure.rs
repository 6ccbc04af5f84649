//! `hikite measure`: measures what tools and their results cost a model, with and without hikite.

#[cfg(test)]
mod document;
mod recorded_runtime;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result};
use clap::Args;
use hikite_gateway::Surfaces;
use hikite_measure::{self as measure, MeasureReport, RecordedResult};

use super::{GlobalArgs, note, print, program};
use crate::progress;
use crate::runtime::Runtime;
use recorded_runtime::start_recorded;

#[derive(Debug, Args)]
pub(crate) struct Measure {
    /// Measure the recorded tool lists of a folder instead of the servers of the config: one JSON file per server with
    /// `tools` and, if known, `server`, `description`, `instructions`
    #[arg(long, value_name = "FOLDER")]
    lists: Option<PathBuf>,
    /// Also measure recorded results: `MODULE/TOOL*.json` or `MODULE.TOOL*.json`, each the result of a tool, and
    /// `shapes.json` with the fields worth reading, such as `{"github:list_issues": "number,title,user.login"}`
    #[arg(long, value_name = "FOLDER")]
    answers: Option<PathBuf>,
    /// Also call every read-only tool that needs no arguments, and measure its result
    #[arg(long = "try", conflicts_with = "lists")]
    attempt: bool,
    /// The number of the largest definitions to list
    #[arg(long, value_name = "N", default_value_t = 10)]
    top: usize,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Also write the figures as an SVG chart
    #[arg(long, value_name = "FILE")]
    chart: Option<PathBuf>,
    /// Also write the figures as Markdown; the rest of an existing page is kept
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
}

impl Measure {
    pub(crate) async fn run(self, common: &GlobalArgs) -> Result<ExitCode> {
        let (runtime, shown) = self.runtime(common).await?;
        let outcome = self.report(&runtime, shown).await;
        runtime.stop().await;
        let report = outcome?;
        if let Some(file) = &self.chart {
            write(file, &measure::chart(&report))?;
        }
        if let Some(file) = &self.markdown {
            measure::write_page(file, &report)?;
            note(&format!("wrote {}", file.display()));
        }
        print(&if self.json { measure::object(&report).to_string() } else { measure::text(&report) });
        Ok(ExitCode::SUCCESS)
    }

    /// Starts the runtime to measure, waits for its tool lists, and returns it with the surfaces of its clients.
    async fn runtime(&self, common: &GlobalArgs) -> Result<(Arc<Runtime>, Surfaces)> {
        if let Some(folder) = &self.lists {
            return Ok((start_recorded(folder, program()?).await?, Surfaces::of(measure::DEFAULT_SURFACES)));
        }
        let config = common.load()?;
        let runtime = Runtime::start(&config, program()?).await?;
        progress::wait_for_all(&runtime.gateway, runtime.limits.start_timeout).await;
        Ok((runtime, Surfaces::of(config.server.surfaces)))
    }

    async fn report(&self, runtime: &Runtime, shown: Surfaces) -> Result<MeasureReport> {
        let mut samples: Vec<RecordedResult> = Vec::new();
        if let Some(folder) = &self.answers {
            let view = runtime.gateway.catalogs().owner_view();
            let known: Vec<String> = view.enabled_tools().map(|tool| tool.key.to_string()).collect();
            samples.extend(measure::read_answers(folder, &known)?);
        }
        if self.attempt {
            samples.extend(measure::attempt(&runtime.gateway).await);
        }
        MeasureReport::new(&runtime.gateway, shown, &samples, self.top).await
    }
}

fn write(file: &Path, text: &str) -> Result<()> {
    std::fs::write(file, text).with_context(|| format!("cannot write {}", file.display()))?;
    note(&format!("wrote {}", file.display()));
    Ok(())
}
