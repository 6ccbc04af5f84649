//! Measures the quality and speed of search on labelled queries.

mod calibration;
mod encoder;
mod output;
#[cfg(test)]
mod page;
mod set;

use std::time::{Duration, Instant};

use hikite_core::search::encoder::{Encoder, Vector};
use hikite_core::search::quality::{DEPTHS, RankingQuality};
use hikite_core::search::{SearchIndex, SearchQuery, UsageTrace};
use hikite_core::tool_set::ToolSet;

pub use encoder::EmbeddedTexts;
pub use output::{object, table};
pub use set::{LabelledSet, LabelledTools, QUESTIONS, folders};

use crate::progress::StepProgress;
use calibration::CalibrationBins;
use set::LabelledQuery;

/// How many hits of a query count in the calibration error.
const CALIBRATED_HITS: usize = 5;

/// The search to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EvaluationProvider {
    /// Words alone.
    Bm25,
    /// Vectors of the built-in encoder alone.
    Meaning,
    /// Words and vectors of the built-in encoder.
    Hybrid,
    /// Words and vectors of the embedding model in the config.
    Embedding,
}

impl EvaluationProvider {
    pub fn word(self) -> &'static str {
        match self {
            Self::Bm25 => "bm25",
            Self::Meaning => "meaning",
            Self::Hybrid => "hybrid",
            Self::Embedding => "embedding",
        }
    }
}

/// Results of one set with one provider.
#[derive(Clone, Debug)]
pub struct EvaluationRow {
    pub set: String,
    pub tools: usize,
    pub questions: usize,
    pub provider: EvaluationProvider,
    /// Number of remembered queries per tool.
    pub memory: Option<usize>,
    pub quality: RankingQuality,
    /// Expected calibration error of `relevance` over the first hits: how far it is from the share of right ones.
    pub calibration_error: f64,
    pub median: Duration,
    /// 99th percentile of the latency.
    pub p99: Duration,
}

/// A labelled set, its index, and vectors if the provider is hybrid.
#[derive(Debug)]
pub struct SearchEvaluation<'a> {
    set: &'a LabelledSet,
    index: SearchIndex,
    encoder: Option<&'a dyn Encoder>,
    provider: EvaluationProvider,
}

impl<'a> SearchEvaluation<'a> {
    pub fn new(set: &'a LabelledSet, provider: EvaluationProvider, encoder: &'a dyn Encoder) -> Self {
        let mut index = SearchIndex::build(set.documents.clone(), None);
        let encoder = (provider != EvaluationProvider::Bm25).then_some(encoder);
        if let Some(encoder) = encoder {
            index = index.with_vectors(encoder.model(), vectors(set, encoder));
        }
        Self { set, index, encoder, provider }
    }

    /// Runs every query of the set.
    pub fn all(&self) -> EvaluationRow {
        let evaluated: Vec<&LabelledQuery> = self.set.questions.iter().collect();
        self.row(&evaluated, &[], None)
    }

    /// Runs one half of the queries, without memory and with up to `count` remembered queries of the other half per
    /// tool.
    pub fn halves(&self, count: usize) -> [EvaluationRow; 2] {
        let (remembered, evaluated) = self.set.halves(count);
        let memory: Vec<UsageTrace> = remembered
            .iter()
            .flat_map(|labelled| {
                let question = self.question(labelled);
                let trace = move |document| UsageTrace {
                    document,
                    terms: question.terms(),
                    vector: question.vector().cloned(),
                    weight: 1.0,
                };
                labelled.right.iter().map(|(document, _)| *document).map(trace)
            })
            .collect();
        [self.row(&evaluated, &[], Some(0)), self.row(&evaluated, &memory, Some(count))]
    }

    fn row(&self, evaluated: &[&LabelledQuery], memory: &[UsageTrace], remembered: Option<usize>) -> EvaluationRow {
        let mask = ToolSet::all(self.index.len());
        let mut steps = StepProgress::new(&format!("{}: asking", self.set.name), evaluated.len());
        let mut times = Vec::with_capacity(evaluated.len());
        let mut qualities = Vec::with_capacity(evaluated.len());
        let mut calibration = CalibrationBins::default();
        for labelled in evaluated {
            let started = Instant::now();
            let question = self.question(labelled);
            let hits = self.index.search(&question, &mask, memory, DEPTHS[2]);
            times.push(started.elapsed());
            let ranking: Vec<usize> = hits.iter().map(|hit| hit.at).collect();
            qualities.push(RankingQuality::of(&ranking, &labelled.right));
            for hit in hits.iter().take(CALIBRATED_HITS) {
                calibration.record(hit.relevance, labelled.right.iter().any(|(right, _)| *right == hit.at));
            }
            steps.step();
        }
        times.sort_unstable();
        let at = |share: usize| times.get(times.len() * share / 100).copied().unwrap_or_default();
        EvaluationRow {
            set: self.set.name.clone(),
            tools: self.index.len(),
            questions: evaluated.len(),
            provider: self.provider,
            memory: remembered,
            quality: RankingQuality::average(&qualities),
            calibration_error: calibration.error(),
            median: at(50),
            p99: at(99),
        }
    }

    fn question(&self, labelled: &LabelledQuery) -> SearchQuery {
        let queries = std::slice::from_ref(&labelled.query);
        match self.encoder {
            Some(encoder) if self.provider == EvaluationProvider::Meaning => {
                SearchQuery::hybrid(queries, None, encoder).without_words()
            }
            Some(encoder) => SearchQuery::hybrid(queries, None, encoder),
            None => SearchQuery::lexical(queries, None),
        }
    }
}

/// Encodes all tools, with one thread per core.
fn vectors(set: &LabelledSet, encoder: &dyn Encoder) -> Vec<(usize, Vector)> {
    let steps = parking_lot::Mutex::new(StepProgress::new(&format!("{}: reading", set.name), set.documents.len()));
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let encode = |first: usize| -> Vec<(usize, Vector)> {
        let own = set.documents.iter().enumerate().skip(first).step_by(threads);
        own.map(|(at, document)| {
            let vector = encoder.ready(document.content()).unwrap_or_else(|| encoder.tool(&document.text()));
            steps.lock().step();
            (at, vector)
        })
        .collect()
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|first| scope.spawn(move || encode(first))).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap_or_default()).collect()
    })
}
