//! Runs one search: scores all documents in a mask, keeps the best, and adds relevance and an explanation to each.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use super::explain::{Reasons, explain};
use super::index::{Hit, Index};
use super::memory::{Recall, Trace};
use super::question::{Asked, Part, Question};
use super::relevance::{Evidence, relevance};
use super::score::Scorer;
use crate::mask::Mask;

pub(super) fn search(
    index: &Index,
    question: &Question,
    mask: &Mask,
    memory: &[Trace],
    limit: usize,
) -> Vec<Hit> {
    if question.is_empty() || limit == 0 {
        return Vec::new();
    }
    let mut scorer = Scorer::new(index, mask);
    let mut fits = scorer.question(question);
    let recall = Recall::of(index, question, memory);
    recall.add_to(&mut fits, &scorer.places);
    let named = index.names.in_question(question, index.documents());
    let search = Search { index, question, recall, named };
    let best = search.best(&scorer, &fits, limit);
    search.hits(&best)
}

struct Search<'a> {
    index: &'a Index,
    question: &'a Question,
    recall: Recall,
    /// Documents that the query mentions by name, sorted.
    named: Vec<u32>,
}

/// A scored document. The greatest is the worst, so that it leaves the heap first.
#[derive(PartialEq)]
struct Candidate {
    is_named: bool,
    score: f32,
    at: u32,
}

impl Eq for Candidate {}

impl Ord for Candidate {
    fn cmp(&self, other: &Self) -> Ordering {
        let better = self.is_named.cmp(&other.is_named).then(self.score.total_cmp(&other.score));
        better.reverse().then(self.at.cmp(&other.at))
    }
}

impl PartialOrd for Candidate {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Search<'_> {
    /// Returns the best `limit` documents that have any evidence, best first.
    fn best(&self, scorer: &Scorer<'_>, fits: &[f32], limit: usize) -> Vec<usize> {
        let mut best: BinaryHeap<Candidate> = BinaryHeap::with_capacity(limit.min(fits.len()) + 1);
        for ((at, sign), score) in scorer.places.iter().zip(&scorer.signs).zip(fits) {
            let is_named = !self.named.is_empty() && self.named.binary_search(at).is_ok();
            if !*sign && !is_named && self.recall.of_document(*at as usize) <= 0.0 {
                continue;
            }
            let candidate = Candidate { is_named, score: *score, at: *at };
            if best.len() < limit {
                best.push(candidate);
            } else if let Some(mut worst) = best.peek_mut()
                && candidate < *worst
            {
                *worst = candidate;
            }
        }
        best.into_sorted_vec().into_iter().map(|candidate| candidate.at as usize).collect()
    }

    fn hits(&self, best: &[usize]) -> Vec<Hit> {
        let mut words: Vec<&Asked> = Vec::new();
        for word in self.parts().flat_map(|part| &part.words) {
            if words.iter().all(|known| known.term != word.term) {
                words.push(word);
            }
        }
        let evidence: Vec<Evidence> = best.iter().map(|at| self.evidence(*at)).collect();
        let hits = best.iter().zip(&evidence).zip(relevance(&evidence));
        hits.map(|((at, evidence), relevance)| {
            let reasons = Reasons {
                document: *at,
                words: &words,
                likeness: evidence.likeness,
                is_named: evidence.is_named,
                was_used: evidence.memory > 0.0,
            };
            Hit { at: *at, relevance, explanation: explain(&self.index.lexical, &reasons) }
        })
        .collect()
    }

    /// Collects the evidence for one document, the best of all queries.
    fn evidence(&self, at: usize) -> Evidence {
        let words = self.parts().map(|part| {
            let most: f32 = part.words.iter().map(|word| self.index.lexical.most(word.term)).sum();
            let gain: f32 = part.words.iter().map(|word| self.index.lexical.gain_of(word.term, at).0).sum();
            if most > 0.0 { gain / most } else { 0.0 }
        });
        Evidence {
            words: words.fold(0.0, f32::max),
            likeness: self.parts().filter_map(|part| self.likeness(part, at)).reduce(f32::max),
            memory: self.recall.of_document(at),
            is_named: u32::try_from(at).is_ok_and(|at| self.named.binary_search(&at).is_ok()),
        }
    }

    fn likeness(&self, part: &Part, at: usize) -> Option<f32> {
        self.index.meaning.likeness_of(part.vector.as_ref()?, at)
    }

    /// Returns the queries and their clauses, or the context if there are no queries.
    fn parts(&self) -> impl Iterator<Item = &Part> {
        let queries = self.question.queries.iter();
        let context = self.question.context.iter().filter(|_| self.question.queries.is_empty());
        queries.flat_map(|query| std::iter::once(&query.whole).chain(&query.clauses)).chain(context)
    }
}
