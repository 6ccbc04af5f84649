//! Measures the quality and speed of search on labelled queries.

#[cfg(test)]
mod page;
pub(crate) mod set;

use std::time::{Duration, Instant};

use hikite_core::mask::Mask;
use hikite_core::search::encoder::{Encoder, Vector};
use hikite_core::search::measure::{DEPTHS, Quality};
use hikite_core::search::{Index, Question, Trace};

use crate::progress::Steps;
use set::{LabelledSet, Wanted};

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Provider {
    Bm25,
    Hybrid,
}

impl Provider {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Bm25 => "bm25",
            Self::Hybrid => "hybrid",
        }
    }
}

/// Results of one set with one provider.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) set: String,
    pub(crate) tools: usize,
    pub(crate) questions: usize,
    pub(crate) provider: Provider,
    /// Number of remembered queries per tool.
    pub(crate) memory: Option<usize>,
    pub(crate) quality: Quality,
    pub(crate) median: Duration,
    /// 99th percentile of the latency.
    pub(crate) slowest: Duration,
}

/// A labelled set, its index, and vectors if the provider is hybrid.
#[derive(Debug)]
pub(crate) struct Bench<'a> {
    set: &'a LabelledSet,
    index: Index,
    encoder: Option<&'a dyn Encoder>,
    provider: Provider,
}

impl<'a> Bench<'a> {
    pub(crate) fn new(set: &'a LabelledSet, provider: Provider, encoder: &'a dyn Encoder) -> Self {
        let mut index = Index::build(set.documents.clone(), None);
        let encoder = (provider == Provider::Hybrid).then_some(encoder);
        if let Some(encoder) = encoder {
            index = index.with_vectors(encoder.model(), vectors(set, encoder));
        }
        Self { set, index, encoder, provider }
    }

    /// Runs every query of the set.
    pub(crate) fn all(&self) -> Row {
        let asked: Vec<&Wanted> = self.set.questions.iter().collect();
        self.row(&asked, &[], None)
    }

    /// Runs one half of the queries, without memory and with up to `count` remembered queries of the other half per
    /// tool.
    pub(crate) fn halves(&self, count: usize) -> [Row; 2] {
        let (remembered, asked) = self.set.halves(count);
        let memory: Vec<Trace> = remembered
            .iter()
            .flat_map(|wanted| {
                let question = self.question(wanted);
                let trace = move |document| Trace {
                    document,
                    terms: question.terms(),
                    vector: question.vector().cloned(),
                    weight: 1.0,
                };
                wanted.right.iter().map(|(document, _)| *document).map(trace)
            })
            .collect();
        [self.row(&asked, &[], Some(0)), self.row(&asked, &memory, Some(count))]
    }

    fn row(&self, asked: &[&Wanted], memory: &[Trace], remembered: Option<usize>) -> Row {
        let mask = Mask::all(self.index.len());
        let mut steps = Steps::new(&format!("{}: asking", self.set.name), asked.len());
        let mut times = Vec::with_capacity(asked.len());
        let mut qualities = Vec::with_capacity(asked.len());
        for wanted in asked {
            let started = Instant::now();
            let question = self.question(wanted);
            let hits = self.index.search(&question, &mask, memory, DEPTHS[2]);
            times.push(started.elapsed());
            let ranking: Vec<usize> = hits.iter().map(|hit| hit.at).collect();
            qualities.push(Quality::of(&ranking, &wanted.right));
            steps.step();
        }
        times.sort_unstable();
        let at = |share: usize| times.get(times.len() * share / 100).copied().unwrap_or_default();
        Row {
            set: self.set.name.clone(),
            tools: self.index.len(),
            questions: asked.len(),
            provider: self.provider,
            memory: remembered,
            quality: Quality::average(&qualities),
            median: at(50),
            slowest: at(99),
        }
    }

    fn question(&self, wanted: &Wanted) -> Question {
        let queries = std::slice::from_ref(&wanted.query);
        match self.encoder {
            Some(encoder) => Question::hybrid(queries, None, encoder),
            None => Question::lexical(queries, None),
        }
    }
}

/// Encodes all tools, with one thread per core.
fn vectors(set: &LabelledSet, encoder: &dyn Encoder) -> Vec<(usize, Vector)> {
    let steps = parking_lot::Mutex::new(Steps::new(&format!("{}: reading", set.name), set.documents.len()));
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
