//! Usage memory: queries that led to a successful call boost that tool for similar queries.
//!
//! The mean similarity of a tool's two most similar remembered queries becomes a z-score among the remembered tools. A
//! tool with few records moves only part of the way from the value that its base score predicts (a linear regression
//! over the remembered tools); a tool without records stays at the prediction, so that new tools are not penalised.

use std::collections::BTreeMap;

use super::encoder::Vector;
use super::index::SearchIndex;
use super::query::SearchQuery;

/// One remembered success: query terms and vector, the tool, and the weight that is left.
#[derive(Clone, Debug)]
pub struct UsageTrace {
    /// Index of the tool's document.
    pub document: usize,
    /// Sorted term hashes of the query.
    pub terms: Vec<u64>,
    pub vector: Option<Vector>,
    /// 1 for a new record, decaying with age.
    pub weight: f32,
}

/// Weight of the memory against the rest of the score.
const MEMORY_WEIGHT: f32 = 2.5;
/// Number of records at which the memory counts as much as the prediction.
const PRIOR_RECORDS: f32 = 3.0;
/// Similarity above which two queries ask for the same thing.
const SAME_QUERY_SIMILARITY: f32 = 0.5;
/// Prior for unrelated queries: mean similarity, standard deviation, and weight in tools. Keeps the z-score defined for
/// a single remembered tool.
const UNRELATED_PRIOR: (f32, f32, f32) = (0.06, 0.1, 3.0);

/// Usage of each remembered document, for one query.
#[derive(Debug, Default)]
pub(super) struct UsageRecall {
    by_document: BTreeMap<usize, DocumentUsage>,
}

#[derive(Clone, Copy, Debug, Default)]
struct DocumentUsage {
    /// Highest similarities among its queries.
    best: [f32; 2],
    /// Number of records.
    traces: u32,
    /// Sum of the weights of its records.
    count: f32,
    /// 0 to 1: degree to which the same query led to this document before.
    same: f32,
}

impl DocumentUsage {
    fn record(&mut self, similarity: f32) {
        let [first, second] = self.best;
        self.best = match self.traces {
            0 => [similarity, 0.0],
            _ if similarity > first => [similarity, first],
            1 => [first, similarity],
            _ => [first, second.max(similarity)],
        };
        self.traces += 1;
    }

    /// Averages the two best similarities, since a single similar query may be chance.
    fn similarity(self) -> f32 {
        if self.traces > 1 { f32::midpoint(self.best[0], self.best[1]) } else { self.best[0] }
    }
}

impl UsageRecall {
    pub(super) fn of(index: &SearchIndex, question: &SearchQuery, memory: &[UsageTrace]) -> Self {
        let terms = question.terms();
        let mut by_document: BTreeMap<usize, DocumentUsage> = BTreeMap::new();
        for trace in memory.iter().filter(|trace| trace.document < index.len() && trace.weight > 0.0) {
            let similarity = similarity(index, question, &terms, trace);
            let weight = trace.weight.min(1.0);
            let known = by_document.entry(trace.document).or_default();
            known.record(similarity);
            known.count += weight;
            known.same = known
                .same
                .max(weight * ((similarity - SAME_QUERY_SIMILARITY) / (1.0 - SAME_QUERY_SIMILARITY)).clamp(0.0, 1.0));
        }
        Self { by_document }
    }

    /// Returns, from 0 to 1, the degree to which the same query led to the document before.
    pub(super) fn of_document(&self, at: usize) -> f32 {
        self.by_document.get(&at).map_or(0.0, |known| known.same)
    }

    pub(super) fn add_to(&self, scores: &mut [f32], places: &[u32]) {
        if self.by_document.is_empty() {
            return;
        }
        let place = |at: &usize| places.binary_search(&u32::try_from(*at).ok()?).ok();
        let known: Vec<(usize, DocumentUsage)> =
            self.by_document.iter().filter_map(|(at, known)| Some((place(at)?, *known))).collect();
        let Some(line) = RegressionLine::fit(&known, scores) else { return };
        let before: Vec<f32> = known.iter().map(|(place, _)| scores[*place]).collect();
        for score in &mut *scores {
            *score += MEMORY_WEIGHT * line.predicted(*score);
        }
        for ((place, known), before) in known.into_iter().zip(before) {
            let trust = known.count / (known.count + PRIOR_RECORDS * (1.0 - known.same));
            let predicted = line.predicted(before);
            scores[place] += MEMORY_WEIGHT * trust * (line.z_score(known.similarity()) - predicted);
        }
    }
}

/// Regression of memory z-scores on base scores.
struct RegressionLine {
    score: f32,
    slope: f32,
    similarity: f32,
    deviation: f32,
}

impl RegressionLine {
    fn fit(known: &[(usize, DocumentUsage)], scores: &[f32]) -> Option<Self> {
        #[expect(clippy::cast_precision_loss, reason = "counts of documents stay far below 2^24")]
        let count = known.len() as f32;
        let (prior_mean, prior_deviation, prior_tools) = UNRELATED_PRIOR;
        let all = || known.iter().map(|(place, known)| (scores[*place], known.similarity()));
        let similarity =
            (all().map(|(_, similarity)| similarity).sum::<f32>() + prior_tools * prior_mean) / (count + prior_tools);
        let squares: f32 = all().map(|(_, one)| (one - similarity).powi(2)).sum();
        let prior_squares = prior_tools * ((prior_mean - similarity).powi(2) + prior_deviation.powi(2));
        let deviation = ((squares + prior_squares) / (count + prior_tools)).sqrt();
        let score = all().map(|(score, _)| score).sum::<f32>() / count;
        let line = Self { score, slope: 0.0, similarity, deviation };
        let shared: f32 = all().map(|(one, similarity)| (one - score) * line.z_score(similarity)).sum();
        let varied: f32 = all().map(|(one, _)| (one - score).powi(2)).sum();
        (count > 0.0).then_some(Self { slope: (shared / (varied + prior_tools)).max(0.0), ..line })
    }

    fn predicted(&self, score: f32) -> f32 {
        self.slope * (score - self.score)
    }

    fn z_score(&self, similarity: f32) -> f32 {
        (similarity - self.similarity) / self.deviation
    }
}

/// Returns the similarity of a query and a record: cosine of their vectors if both have one, else the IDF-weighted
/// overlap of their terms.
fn similarity(index: &SearchIndex, question: &SearchQuery, terms: &[u64], trace: &UsageTrace) -> f32 {
    if let Some(vector) = &trace.vector {
        let query = question.queries.iter().filter_map(|query| query.whole.vector.as_ref());
        let comparable = query.filter(|query| query.dimension() == vector.dimension());
        if let Some(best) = comparable.map(|query| query.similarity(vector)).reduce(f32::max) {
            return best;
        }
    }
    let weight = |term: &u64| index.lexical.idf(*term);
    let shared: f32 = trace.terms.iter().filter(|term| terms.binary_search(term).is_ok()).map(weight).sum();
    let (query, remembered): (f32, f32) = (terms.iter().map(weight).sum(), trace.terms.iter().map(weight).sum());
    if shared > 0.0 { shared / (query * remembered).sqrt() } else { 0.0 }
}
