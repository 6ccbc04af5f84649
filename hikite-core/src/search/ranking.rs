//! Runs one search: scores all documents in a mask, keeps the best, and adds relevance and an explanation to each.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use super::explanation::{HitReasons, explain};
use super::index::{SearchHit, SearchIndex};
use super::memory::{UsageRecall, UsageTrace};
use super::query::{QueryText, SearchQuery};
use super::relevance::{HitEvidence, relevance};
use super::score::Scorer;
use super::word::QueryTerm;
use crate::tool_set::ToolSet;

impl SearchIndex {
    /// Returns the best documents in `mask`, best first; ties are in catalog order. Documents outside the mask are
    /// never returned and do not affect the ranking of the others.
    pub fn search(
        &self,
        question: &SearchQuery,
        mask: &ToolSet,
        memory: &[UsageTrace],
        limit: usize,
    ) -> Vec<SearchHit> {
        if question.is_empty() || limit == 0 {
            return Vec::new();
        }
        let mut scoring = Scorer::new(self, mask);
        let mut scores = scoring.question(question);
        let recall = UsageRecall::of(self, question, memory);
        recall.add_to(&mut scores, &scoring.places);
        let named = self.names.mentioned_in(question, self.documents());
        let search = SearchRun { index: self, question, recall, named };
        let best = search.best(&scoring, &scores, limit);
        search.hits(&best)
    }
}

struct SearchRun<'a> {
    index: &'a SearchIndex,
    question: &'a SearchQuery,
    recall: UsageRecall,
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

impl SearchRun<'_> {
    /// Returns the best `limit` documents that have any evidence, best first.
    fn best(&self, scoring: &Scorer<'_>, scores: &[f32], limit: usize) -> Vec<usize> {
        let mut best: BinaryHeap<Candidate> = BinaryHeap::with_capacity(limit.min(scores.len()) + 1);
        for ((at, sign), score) in scoring.places.iter().zip(&scoring.has_evidence).zip(scores) {
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

    fn hits(&self, best: &[usize]) -> Vec<SearchHit> {
        let mut words: Vec<&QueryTerm> = Vec::new();
        for word in self.parts().flat_map(|part| &part.words) {
            if words.iter().all(|known| known.term != word.term) {
                words.push(word);
            }
        }
        let evidence: Vec<HitEvidence> = best.iter().map(|at| self.evidence(*at)).collect();
        let hits = best.iter().zip(&evidence).zip(relevance(&evidence));
        hits.map(|((at, evidence), relevance)| {
            let reasons = HitReasons {
                document: *at,
                words: &words,
                similarity: evidence.similarity,
                is_named: evidence.is_named,
                was_used: evidence.memory > 0.0,
            };
            SearchHit { at: *at, relevance, explanation: explain(&self.index.lexical, &reasons) }
        })
        .collect()
    }

    /// Collects the evidence for one document, the best of all queries.
    fn evidence(&self, at: usize) -> HitEvidence {
        let words = self.parts().map(|part| {
            let lexical = &self.index.lexical;
            let own = part.words.iter().filter(|word| word.is_own());
            let impact_max: f32 = own.map(|word| lexical.impact_max(word.term)).sum();
            let impact: f32 = part.words.iter().map(|word| word.weight * lexical.impact_of(word.term, at).0).sum();
            if impact_max > 0.0 { impact / impact_max } else { 0.0 }
        });
        HitEvidence {
            words: words.fold(0.0, f32::max),
            similarity: self.parts().filter_map(|part| self.similarity(part, at)).reduce(f32::max),
            memory: self.recall.of_document(at),
            is_named: u32::try_from(at).is_ok_and(|at| self.named.binary_search(&at).is_ok()),
        }
    }

    fn similarity(&self, part: &QueryText, at: usize) -> Option<f32> {
        self.index.meaning.similarity_of(part.vector.as_ref()?, at)
    }

    /// Returns the queries and their clauses, or the context if there are no queries.
    fn parts(&self) -> impl Iterator<Item = &QueryText> {
        let queries = self.question.queries.iter();
        let context = self.question.context.iter().filter(|_| self.question.queries.is_empty());
        queries.flat_map(|query| std::iter::once(&query.whole).chain(&query.clauses)).chain(context)
    }
}
