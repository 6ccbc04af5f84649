//! Scores every document in a mask against a query.
//!
//! Lexical and vector scores have different scales, so each becomes a z-score among the scored documents before they
//! are added: half the lexical score plus the vector score. A share of the module's mean score and a share of the best
//! clause's score are added. A document without a vector gets the vector score that its lexical score predicts, by
//! linear regression over the documents that have both.

use super::index::SearchIndex;
use super::query::{QueryParts, QueryText, SearchQuery};
use crate::tool_set::ToolSet;

const WORDS: f32 = 0.5;
const MEANING: f32 = 1.0;
const MODULE: f32 = 0.4;
const CLAUSE: f32 = 0.3;
/// Weight of the other queries against the best one.
const OTHERS: f32 = 0.2;
const CONTEXT: f32 = 0.3;

/// Scores a set of documents. All lists of numbers are parallel to `places`.
#[derive(Debug)]
pub(super) struct Scorer<'a> {
    index: &'a SearchIndex,
    pub(super) places: Vec<u32>,
    /// `true` if a term or the vector matches the document itself; a good module alone does not count.
    pub(super) has_evidence: Vec<bool>,
}

impl<'a> Scorer<'a> {
    pub(super) fn new(index: &'a SearchIndex, mask: &ToolSet) -> Self {
        let places = mask.iter().take_while(|at| *at < index.len());
        let places: Vec<u32> = places.filter_map(|at| u32::try_from(at).ok()).collect();
        Self { index, has_evidence: vec![false; places.len()], places }
    }

    /// Returns the score of each document; zero is average.
    pub(super) fn question(&mut self, question: &SearchQuery) -> Vec<f32> {
        let mut queries = question.queries.iter();
        let Some(first) = queries.next() else {
            return match &question.context {
                Some(context) => self.part(context),
                None => vec![0.0; self.places.len()],
            };
        };
        let mut scores = self.query(first);
        let others: Vec<Vec<f32>> = queries.map(|query| self.query(query)).collect();
        if !others.is_empty() {
            let share = OTHERS / as_f32(others.len());
            for (at, score) in scores.iter_mut().enumerate() {
                let all = others.iter().map(|other| other[at]);
                let best = all.clone().fold(*score, f32::max);
                *score = best + share * (*score + all.sum::<f32>() - best);
            }
        }
        if let Some(context) = &question.context {
            add(&mut scores, &self.part(context), CONTEXT);
        }
        scores
    }

    fn query(&mut self, query: &QueryParts) -> Vec<f32> {
        let mut scores = self.part(&query.whole);
        // Clauses add nothing to lexical scores, whose terms are counted already.
        let clauses = query.clauses.iter().filter(|clause| clause.vector.is_some());
        let clauses = clauses.map(|clause| self.part(clause));
        let best = clauses.reduce(|mut best, clause| {
            best.iter_mut().zip(clause).for_each(|(best, score)| *best = best.max(score));
            best
        });
        if let Some(best) = best {
            add(&mut scores, &best, CLAUSE);
        }
        scores
    }

    fn part(&mut self, part: &QueryText) -> Vec<f32> {
        let mut scores = self.words(part);
        self.mark_evidence(&scores);
        standardise(&mut scores);
        let similarity = part.vector.as_ref().and_then(|v| self.index.meaning.similarity(v, &self.places));
        if let Some(mut similarity) = similarity {
            self.mark_evidence(&similarity);
            self.predict_missing(&mut similarity, &scores);
            for (score, similarity) in scores.iter_mut().zip(&similarity) {
                *score = WORDS * *score + MEANING * similarity;
            }
        }
        self.add_modules(&mut scores);
        scores
    }

    fn mark_evidence(&mut self, values: &[f32]) {
        for (sign, value) in self.has_evidence.iter_mut().zip(values) {
            *sign |= *value > 0.0;
        }
    }

    /// Adds up impacts; touches only the postings of the query's terms.
    fn words(&self, part: &QueryText) -> Vec<f32> {
        let mut all = vec![0.0_f32; self.index.len()];
        for postings in part.words.iter().filter_map(|word| self.index.lexical.postings(word.term)) {
            for (document, impact) in postings.documents.iter().zip(postings.impacts) {
                all[*document as usize] += impact;
            }
        }
        if self.places.len() == all.len() {
            return all;
        }
        self.places.iter().map(|at| all[*at as usize]).collect()
    }

    /// Converts similarities to z-scores and predicts those of documents without a vector.
    fn predict_missing(&self, similarity: &mut [f32], words: &[f32]) {
        if self.index.meaning.is_complete() {
            return standardise(similarity);
        }
        let known = |at: usize| self.index.meaning.is_known(self.places[at] as usize);
        let all: Vec<usize> = (0..similarity.len()).filter(|at| known(*at)).collect();
        let mut known_scores: Vec<f32> = all.iter().map(|at| similarity[*at]).collect();
        standardise(&mut known_scores);
        let mean = all.iter().map(|at| words[*at]).sum::<f32>() / as_f32(all.len()).max(1.0);
        let spread: f32 = all.iter().map(|at| (words[*at] - mean).powi(2)).sum();
        let shared: f32 = all.iter().zip(&known_scores).map(|(at, z)| (words[*at] - mean) * z).sum();
        let slope = if spread > 0.0 { (shared / spread).max(0.0) } else { 0.0 };
        for (at, value) in similarity.iter_mut().enumerate() {
            *value = slope * (words[at] - mean);
        }
        for (at, z) in all.into_iter().zip(known_scores) {
            similarity[at] = z;
        }
    }

    /// Adds the z-score of each module's mean score, weighted by its number of documents.
    fn add_modules(&self, scores: &mut [f32]) {
        if self.index.module_count() < 2 {
            return;
        }
        let modules = self.index.modules();
        let mut means = vec![(0.0_f32, 0.0_f32); self.index.module_count()];
        for (at, score) in self.places.iter().zip(&*scores) {
            let (sum, count) = &mut means[modules[*at as usize] as usize];
            *sum += score;
            *count += 1.0;
        }
        for (sum, count) in &mut means {
            *sum /= count.max(1.0);
        }
        let total = as_f32(scores.len()).max(1.0);
        let mean = means.iter().map(|(mean, count)| mean * count).sum::<f32>() / total;
        let spread = means.iter().map(|(one, count)| (one - mean).powi(2) * count).sum::<f32>() / total;
        let scale = MODULE * one_over_deviation(spread);
        for (at, score) in self.places.iter().zip(scores) {
            *score += scale * (means[modules[*at as usize] as usize].0 - mean);
        }
    }
}

/// Converts values to z-scores; zeros if they are all equal.
fn standardise(values: &mut [f32]) {
    let count = as_f32(values.len()).max(1.0);
    let mean = sum(values, |value| value) / count;
    let scale = one_over_deviation(sum(values, |value| (value - mean) * (value - mean)) / count);
    for value in values {
        *value = (*value - mean) * scale;
    }
}

fn one_over_deviation(variance: f32) -> f32 {
    // A smaller variance is a rounding error.
    if variance > 1e-9 { 1.0 / variance.sqrt() } else { 0.0 }
}

/// Sums in eight lanes, so that the compiler can vectorise it.
fn sum(values: &[f32], of: impl Fn(f32) -> f32) -> f32 {
    const LANES: usize = 8;
    let mut lanes = [0.0_f32; LANES];
    let chunks = values.chunks_exact(LANES);
    let rest: f32 = chunks.remainder().iter().map(|value| of(*value)).sum();
    for chunk in chunks {
        for (lane, value) in lanes.iter_mut().zip(chunk) {
            *lane += of(*value);
        }
    }
    lanes.iter().sum::<f32>() + rest
}

fn add(scores: &mut [f32], more: &[f32], share: f32) {
    scores.iter_mut().zip(more).for_each(|(score, more)| *score += share * more);
}

#[expect(clippy::cast_precision_loss, reason = "counts of documents stay far below 2^24")]
fn as_f32(count: usize) -> f32 {
    count as f32
}
