//! Usage memory: questions that led to a successful call of a tool speak for that tool when something alike is asked.

use super::encoder::Vector;
use super::index::Index;
use super::question::Question;

/// One remembered success: the question's hashes and vector, the tool, how much it still counts.
#[derive(Clone, Debug)]
pub struct Trace {
    /// The place of the tool in the index.
    pub document: usize,
    /// What `Question::terms` told.
    pub terms: Vec<u64>,
    pub vector: Option<Vector>,
    /// One when it is new, less the longer ago it was.
    pub weight: f32,
}

/// Questions that are less alike than this have nothing to do with each other.
const UNLIKE: f32 = 0.5;
/// What a question that was asked before in the same words adds to the score of its tool.
const SHARE: f32 = 4.0;
/// What each further remembered question adds, against the best one.
const FURTHER: f32 = 0.1;

/// How strongly the memory speaks for each document, 0 to 1.
#[derive(Debug, Default)]
pub(super) struct Recall {
    /// Empty if nothing alike is remembered.
    of_documents: Vec<f32>,
}

impl Recall {
    pub(super) fn of(index: &Index, question: &Question, memory: &[Trace]) -> Self {
        if memory.is_empty() {
            return Self::default();
        }
        let terms = question.terms();
        let mut best = vec![0.0_f32; index.len()];
        let mut sums = vec![0.0_f32; index.len()];
        for trace in memory.iter().filter(|trace| trace.document < index.len()) {
            let likeness = likeness(index, question, &terms, trace);
            let sign = ((likeness - UNLIKE) / (1.0 - UNLIKE)).clamp(0.0, 1.0) * trace.weight.clamp(0.0, 1.0);
            best[trace.document] = best[trace.document].max(sign);
            sums[trace.document] += sign;
        }
        for (best, sum) in best.iter_mut().zip(sums) {
            *best = (*best + FURTHER * (sum - *best)).min(1.0);
        }
        Self { of_documents: best }
    }

    pub(super) fn of_document(&self, at: usize) -> f32 {
        self.of_documents.get(at).copied().unwrap_or(0.0)
    }

    pub(super) fn add_to(&self, scores: &mut [f32], places: &[u32]) {
        if !self.of_documents.is_empty() {
            for (score, at) in scores.iter_mut().zip(places) {
                *score += SHARE * self.of_documents[*at as usize];
            }
        }
    }
}

/// By their vectors where both have one, else by the words they share, rare ones counting more.
fn likeness(index: &Index, question: &Question, terms: &[u64], trace: &Trace) -> f32 {
    if let Some(vector) = &trace.vector {
        let asked = question.queries.iter().filter_map(|query| query.whole.vector.as_ref());
        let comparable = asked.filter(|asked| asked.dimension() == vector.dimension());
        if let Some(best) = comparable.map(|asked| asked.likeness(vector)).reduce(f32::max) {
            return best;
        }
    }
    let weight = |term: &u64| index.lexical.rarity(*term);
    let shared: f32 = trace.terms.iter().filter(|term| terms.binary_search(term).is_ok()).map(weight).sum();
    let (asked, told): (f32, f32) = (terms.iter().map(weight).sum(), trace.terms.iter().map(weight).sum());
    if shared > 0.0 { shared / (asked * told).sqrt() } else { 0.0 }
}
