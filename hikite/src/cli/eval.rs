//! `hikite eval`: measures search on labelled queries.

use std::fmt::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use hikite_core::caller::Caller;
use hikite_core::search::quality::{DEPTHS, RankingQuality};
use hikite_encoder::SentenceEncoder;
use serde_json::{Value, json};

use super::{GlobalArgs, print, program};
use crate::evaluation::set::{LabelledSet, LabelledTools, QUESTIONS, folders};
use crate::evaluation::{EvaluationProvider, EvaluationRow, SearchEvaluation};
use crate::progress;
use crate::runtime::Runtime;

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
    /// The search provider [default: each in turn]
    #[arg(long, value_enum)]
    provider: Option<EvaluationProvider>,
    /// Remember up to this many queries per tool, and test with the others
    #[arg(long, value_name = "N")]
    memory: Option<usize>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Eval {
    pub(crate) async fn run(self, common: &GlobalArgs) -> Result<ExitCode> {
        let sets = self.sets(common).await?;
        let encoder = SentenceEncoder::new();
        let providers =
            self.provider.map_or(vec![EvaluationProvider::Bm25, EvaluationProvider::Hybrid], |one| vec![one]);
        let mut rows = Vec::new();
        for set in &sets {
            for provider in &providers {
                let bench = SearchEvaluation::new(set, *provider, &encoder);
                match self.memory {
                    Some(count) => rows.extend(bench.halves(count)),
                    None => rows.push(bench.all()),
                }
            }
        }
        if self.json {
            print(&rows.iter().map(object).collect::<Value>().to_string());
        } else {
            print(&table(&rows));
        }
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

fn object(row: &EvaluationRow) -> Value {
    let RankingQuality { recall, hit, ndcg, reciprocal } = row.quality;
    let at =
        |values: [f64; 3]| DEPTHS.iter().zip(values).map(|(depth, value)| (depth.to_string(), value.into())).collect();
    let (recall, hit): (serde_json::Map<_, _>, serde_json::Map<_, _>) = (at(recall), at(hit));
    json!({
        "set": row.set, "tools": row.tools, "questions": row.questions, "provider": row.provider.word(),
        "memory": row.memory, "recall": recall, "hit": hit, "ndcg10": ndcg, "mrr": reciprocal,
        "p50Ms": row.median.as_secs_f64() * 1e3, "p99Ms": row.p99.as_secs_f64() * 1e3,
    })
}

fn table(rows: &[EvaluationRow]) -> String {
    let width = rows.iter().map(|row| row.set.chars().count()).max().unwrap_or(0).max(3);
    let mut text = format!(
        "{:width$}  tools  questions  provider  memory    R@1   R@5  R@10  hit@1 hit@5 hit@10  nDCG@10   MRR   p50 ms  p99 ms",
        "set"
    );
    for row in rows {
        let RankingQuality { recall, hit, ndcg, reciprocal } = row.quality;
        let memory = row.memory.map_or("-".to_owned(), |count| count.to_string());
        let _ = write!(
            text,
            "\n{:width$}  {:5}  {:9}  {:8}  {memory:>6}  {:5.3} {:5.3} {:5.3}  {:5.3} {:5.3}  {:5.3}    {ndcg:5.3}  {reciprocal:5.3}  {:7.2} {:7.2}",
            row.set,
            row.tools,
            row.questions,
            row.provider.word(),
            recall[0],
            recall[1],
            recall[2],
            hit[0],
            hit[1],
            hit[2],
            row.median.as_secs_f64() * 1e3,
            row.p99.as_secs_f64() * 1e3,
        );
    }
    text
}
