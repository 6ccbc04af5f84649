//! Scores every document in a mask against a query.
//!
//! Lexical and vector scores have different scales, so each becomes a z-score among the scored documents before they
//! are added with the weights below. Every module has the same weight in the mean and in the deviation, whatever its
//! number of documents. A share of the best clause's score and a prior for the document's module are added. The prior is
//! bounded: it never lifts a document above one whose own score is better by more than the bound. A document without
//! a vector gets the vector score that its lexical score predicts, by linear regression over the documents that have
//! both.

use super::index::SearchIndex;
use super::query::{QueryParts, QueryText, SearchQuery};
use crate::tool_set::ToolSet;

const WORDS: f32 = 0.15;
/// A lexical z-score counts in full up to this value; what is above it counts for less, because a rare word may be chance.
const WORDS_KNEE: f32 = 4.0;
const WORDS_ABOVE_KNEE: f32 = 0.3;
const MEANING: f32 = 1.0;
/// Weight of the z-score of the module's mean score.
const MODULE: f32 = 0.4;
/// Largest difference that the module makes between two documents, as a share of the best own score.
const MODULE_BOUND: f32 = 0.1;
const CLAUSE: f32 = 0.2;
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
        self.standardise(&mut scores, |_| true);
        let similarity = part.vector.as_ref().and_then(|v| self.index.meaning.similarity(v, &self.places));
        if let Some(mut similarity) = similarity {
            self.mark_evidence(&similarity);
            self.predict_missing(&mut similarity, &scores);
            for (score, similarity) in scores.iter_mut().zip(&similarity) {
                let above = (*score - WORDS_KNEE).max(0.0);
                *score = WORDS * (*score - (1.0 - WORDS_ABOVE_KNEE) * above) + MEANING * similarity;
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
        for word in &part.words {
            let Some(postings) = self.index.lexical.postings(word.term) else { continue };
            for (document, impact) in postings.documents.iter().zip(postings.impacts) {
                all[*document as usize] += word.weight * impact;
            }
        }
        if self.places.len() == all.len() {
            return all;
        }
        self.places.iter().map(|at| all[*at as usize]).collect()
    }

    /// Converts similarities to z-scores and predicts those of documents without a vector.
    fn predict_missing(&self, similarity: &mut [f32], words: &[f32]) {
        let known = |at: usize| self.index.meaning.is_known(self.places[at] as usize);
        if self.index.meaning.is_complete() {
            return self.standardise(similarity, |_| true);
        }
        self.standardise(similarity, known);
        let all: Vec<usize> = (0..similarity.len()).filter(|at| known(*at)).collect();
        let mean = all.iter().map(|at| words[*at]).sum::<f32>() / as_f32(all.len()).max(1.0);
        let spread: f32 = all.iter().map(|at| (words[*at] - mean).powi(2)).sum();
        let shared: f32 = all.iter().map(|at| (words[*at] - mean) * similarity[*at]).sum();
        let slope = if spread > 0.0 { (shared / spread).max(0.0) } else { 0.0 };
        for (at, value) in similarity.iter_mut().enumerate().filter(|(at, _)| !known(*at)) {
            *value = slope * (words[at] - mean);
        }
    }

    /// Adds the prior of each document's module: the z-score of the module's mean score, scaled to the bound.
    fn add_modules(&self, scores: &mut [f32]) {
        let sums = self.module_sums(scores, |_| true);
        let z_score = ZScore::of(sums.iter().filter_map(|of| of.mean().map(|mean| (mean, mean * mean))));
        let bound = MODULE_BOUND / 2.0 * scores.iter().copied().fold(0.0, f32::max);
        let own = |mean: f64| MODULE * z_score.value(as_single(mean));
        let largest = sums.iter().copied().filter_map(ModuleSums::mean).map(|mean| own(mean).abs()).fold(0.0, f32::max);
        let scale = if largest > bound { bound / largest } else { 1.0 };
        let prior = |mean: f64| scale * own(mean);
        let priors: Vec<f32> = sums.iter().map(|of| of.mean().map_or(0.0, prior)).collect();
        let modules = self.index.modules();
        for (at, score) in self.places.iter().zip(scores) {
            *score += priors[modules[*at as usize] as usize];
        }
    }

    /// Converts values to z-scores; zeros if they are all equal. Only the values that `counts` accepts determine the
    /// mean and the deviation.
    fn standardise(&self, values: &mut [f32], counts: impl Fn(usize) -> bool) {
        let sums = self.module_sums(values, counts);
        let z_score = ZScore::of(sums.iter().filter_map(|of| Some((of.mean()?, of.squares / of.count))));
        for value in values {
            *value = z_score.value(*value);
        }
    }

    /// Adds up the values of each module.
    fn module_sums(&self, values: &[f32], counts: impl Fn(usize) -> bool) -> Vec<ModuleSums> {
        let modules = self.index.modules();
        let mut sums = vec![ModuleSums::default(); self.index.module_count()];
        for (at, (place, value)) in self.places.iter().zip(values).enumerate() {
            if counts(at) {
                let (of, value) = (&mut sums[modules[*place as usize] as usize], f64::from(*value));
                of.count += 1.0;
                of.sum += value;
                of.squares += value * value;
            }
        }
        sums
    }
}

/// Sums over the values of one module.
#[derive(Clone, Copy, Debug, Default)]
struct ModuleSums {
    count: f64,
    sum: f64,
    squares: f64,
}

impl ModuleSums {
    /// Returns the mean of the values; `None` without values.
    fn mean(self) -> Option<f64> {
        (self.count > 0.0).then(|| self.sum / self.count)
    }
}

/// Conversion of values to z-scores.
struct ZScore {
    mean: f32,
    one_over_deviation: f32,
}

impl ZScore {
    /// Takes the mean and the mean square of each module; all modules have the same weight.
    fn of(modules: impl Iterator<Item = (f64, f64)>) -> Self {
        let add = |(count, sum, squares), (mean, square)| (count + 1.0, sum + mean, squares + square);
        let (count, sum, squares): (f64, f64, f64) = modules.fold((0.0, 0.0, 0.0), add);
        let mean = sum / count.max(1.0);
        let variance = squares / count.max(1.0) - mean * mean;
        // A smaller variance is a rounding error.
        let one_over_deviation = if variance > 1e-9 { 1.0 / variance.sqrt() } else { 0.0 };
        Self { mean: as_single(mean), one_over_deviation: as_single(one_over_deviation) }
    }

    fn value(&self, value: f32) -> f32 {
        (value - self.mean) * self.one_over_deviation
    }
}

fn add(scores: &mut [f32], more: &[f32], share: f32) {
    scores.iter_mut().zip(more).for_each(|(score, more)| *score += share * more);
}

#[expect(clippy::cast_possible_truncation, reason = "scores need no more than seven digits")]
fn as_single(value: f64) -> f32 {
    value as f32
}

#[expect(clippy::cast_precision_loss, reason = "counts of documents stay far below 2^24")]
fn as_f32(count: usize) -> f32 {
    count as f32
}
