//! `hikite eval`: measures search on labelled queries.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use hikite_core::caller::Caller;
use hikite_core::search::encoder::Encoder;
use hikite_core::search::provider::Embedder;
use hikite_egress::EgressClient;
use hikite_encoder::SentenceEncoder;
use hikite_measure::evaluation::{
    self, EmbeddedTexts, EvaluationProvider, LabelledSet, LabelledTools, QUESTIONS, SearchEvaluation, folders,
};

use super::{GlobalArgs, print, program};
use crate::progress;
use crate::runtime::Runtime;
use crate::search;

#[derive(Debug, Args)]
pub(crate) struct Eval {
    /// Queries, one JSON object per line with `query`, `relevant` (the keys of the right tools) and, if some are better
    /// than others, `grades`; or a folder with `queries.jsonl` and `tools.jsonl`, or of such folders
    #[arg(value_name = "FILE|FOLDER")]
    questions: PathBuf,
    /// The tools to search, one JSON object per line with `id`, `server`, `name`, `description` and
    /// `schema` [default: the tools of the config]
    #[arg(long, value_name = "FILE")]
    tools: Option<PathBuf>,
    /// The search provider: words alone, the built-in encoder alone, both together, or words and the embedding model of the
    /// config [default: the first three in turn]
    #[arg(long, value_enum)]
    provider: Option<ProviderArgument>,
    /// Remember up to this many queries per tool, and test with the others
    #[arg(long, value_name = "N")]
    memory: Option<usize>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum ProviderArgument {
    Bm25,
    Meaning,
    Hybrid,
    Embedding,
}

impl Eval {
    pub(crate) async fn run(self, common: &GlobalArgs) -> Result<ExitCode> {
        let sets = self.sets(common).await?;
        let encoder = SentenceEncoder::new();
        let providers = match self.provider {
            Some(ProviderArgument::Bm25) => vec![EvaluationProvider::Bm25],
            Some(ProviderArgument::Meaning) => vec![EvaluationProvider::Meaning],
            Some(ProviderArgument::Hybrid) => vec![EvaluationProvider::Hybrid],
            Some(ProviderArgument::Embedding) => vec![EvaluationProvider::Embedding],
            None => vec![EvaluationProvider::Bm25, EvaluationProvider::Meaning, EvaluationProvider::Hybrid],
        };
        let embedder = match self.provider {
            Some(ProviderArgument::Embedding) => Some(embedder(common)?),
            _ => None,
        };
        let mut rows = Vec::new();
        for set in &sets {
            let texts = match &embedder {
                Some(embedder) => Some(EmbeddedTexts::of(set, &**embedder).await?),
                None => None,
            };
            let encoder = texts.as_ref().map_or(&encoder as &dyn Encoder, |texts| texts);
            for provider in &providers {
                let bench = SearchEvaluation::new(set, *provider, encoder);
                match self.memory {
                    Some(count) => rows.extend(bench.halves(count)),
                    None => rows.push(bench.all()),
                }
            }
        }
        print(&if self.json { evaluation::object(&rows).to_string() } else { evaluation::table(&rows) });
        Ok(ExitCode::SUCCESS)
    }

    async fn sets(&self, common: &GlobalArgs) -> Result<Vec<LabelledSet>> {
        let file = if self.questions.is_dir() { self.questions.join(QUESTIONS) } else { self.questions.clone() };
        let name = self.questions.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if let Some(tools) = &self.tools {
            return Ok(vec![LabelledSet::of(name, &file, LabelledTools::read(tools)?)?]);
        }
        if self.questions.is_dir() {
            return folders(&self.questions)?.iter().map(|folder| LabelledSet::read(folder)).collect();
        }
        let runtime = Runtime::start(&common.load()?, program()?).await?;
        progress::wait_for_all(&runtime.gateway, runtime.limits.start_timeout).await;
        let tools = LabelledTools::of(&runtime.gateway.catalogs().view_of(&Caller::owner()));
        runtime.stop().await;
        Ok(vec![LabelledSet::of(name, &file, tools)?])
    }
}

/// Returns the embedding model of the config.
fn embedder(common: &GlobalArgs) -> Result<Arc<dyn Embedder>> {
    let config = common.load()?;
    let client = EgressClient::guarded(config.egress.rules());
    let settings = search::settings(&config, &client, &search::encoder())?;
    settings.embedder.context("the config names no embedding model: add `search.embedding` with `url` and `model`")
}
