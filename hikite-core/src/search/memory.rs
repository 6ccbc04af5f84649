//! Usage memory: queries that led to a successful call boost that tool for similar queries.
//!
//! The mean similarity of a tool's two most similar remembered queries becomes a z-score among the remembered tools. A
//! tool with few records moves only part of the way from the value that its base score predicts (a linear regression
//! over the remembered tools); a tool without records stays at the prediction, so that new tools are not penalised.

use std::collections::BTreeMap;

use super::encoder::Vector;
use super::index::Index;
use super::question::Question;

/// One remembered success: query terms and vector, the tool, and the weight that is left.
#[derive(Clone, Debug)]
pub struct Trace {
    /// Index of the tool's document.
    pub document: usize,
    /// Sorted term hashes of the query.
    pub terms: Vec<u64>,
    pub vector: Option<Vector>,
    /// 1 for a new record, decaying with age.
    pub weight: f32,
}

/// Weight of the memory against the rest of the score.
const SHARE: f32 = 2.5;
/// Number of records at which the memory counts as much as the prediction.
const DOUBT: f32 = 3.0;
/// Similarity above which two queries ask for the same thing.
const ALIKE: f32 = 0.5;
/// Prior for unrelated queries: mean similarity, standard deviation, and weight in tools. Keeps the z-score defined for
/// a single remembered tool.
const STRANGERS: (f32, f32, f32) = (0.06, 0.1, 3.0);

/// Usage of each remembered document, for one query.
#[derive(Debug, Default)]
pub(super) struct Recall {
    of_documents: BTreeMap<usize, Remembered>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Remembered {
    /// Highest similarities among its queries.
    best: [f32; 2],
    /// Number of records.
    traces: u32,
    /// Sum of the weights of its records.
    count: f32,
    /// 0 to 1: degree to which the same query led to this document before.
    same: f32,
}

impl Remembered {
    fn learn(&mut self, likeness: f32) {
        let [first, second] = self.best;
        self.best = match self.traces {
            0 => [likeness, 0.0],
            _ if likeness > first => [likeness, first],
            1 => [first, likeness],
            _ => [first, second.max(likeness)],
        };
        self.traces += 1;
    }

    /// Averages the two best similarities, since a single similar query may be chance.
    fn likeness(self) -> f32 {
        if self.traces > 1 { f32::midpoint(self.best[0], self.best[1]) } else { self.best[0] }
    }
}

impl Recall {
    pub(super) fn of(index: &Index, question: &Question, memory: &[Trace]) -> Self {
        let terms = question.terms();
        let mut of_documents: BTreeMap<usize, Remembered> = BTreeMap::new();
        for trace in memory.iter().filter(|trace| trace.document < index.len() && trace.weight > 0.0) {
            let likeness = likeness(index, question, &terms, trace);
            let weight = trace.weight.min(1.0);
            let known = of_documents.entry(trace.document).or_default();
            known.learn(likeness);
            known.count += weight;
            known.same = known.same.max(weight * ((likeness - ALIKE) / (1.0 - ALIKE)).clamp(0.0, 1.0));
        }
        Self { of_documents }
    }

    /// Returns, from 0 to 1, the degree to which the same query led to the document before.
    pub(super) fn of_document(&self, at: usize) -> f32 {
        self.of_documents.get(&at).map_or(0.0, |known| known.same)
    }

    pub(super) fn add_to(&self, scores: &mut [f32], places: &[u32]) {
        if self.of_documents.is_empty() {
            return;
        }
        let place = |at: &usize| places.binary_search(&u32::try_from(*at).ok()?).ok();
        let known: Vec<(usize, Remembered)> =
            self.of_documents.iter().filter_map(|(at, known)| Some((place(at)?, *known))).collect();
        let Some(line) = Line::through(&known, scores) else { return };
        let before: Vec<f32> = known.iter().map(|(place, _)| scores[*place]).collect();
        for score in &mut *scores {
            *score += SHARE * line.expected(*score);
        }
        for ((place, known), before) in known.into_iter().zip(before) {
            let trust = known.count / (known.count + DOUBT * (1.0 - known.same));
            let expected = line.expected(before);
            scores[place] += SHARE * trust * (line.standard(known.likeness()) - expected);
        }
    }
}

/// Regression of memory z-scores on base scores.
struct Line {
    score: f32,
    slope: f32,
    likeness: f32,
    deviation: f32,
}

impl Line {
    fn through(known: &[(usize, Remembered)], scores: &[f32]) -> Option<Self> {
        #[expect(clippy::cast_precision_loss, reason = "counts of documents stay far below 2^24")]
        let count = known.len() as f32;
        let (usual, spread, strangers) = STRANGERS;
        let all = || known.iter().map(|(place, known)| (scores[*place], known.likeness()));
        let likeness =
            (all().map(|(_, likeness)| likeness).sum::<f32>() + strangers * usual) / (count + strangers);
        let squares: f32 = all().map(|(_, one)| (one - likeness).powi(2)).sum();
        let strange = strangers * ((usual - likeness).powi(2) + spread.powi(2));
        let deviation = ((squares + strange) / (count + strangers)).sqrt();
        let score = all().map(|(score, _)| score).sum::<f32>() / count;
        let line = Self { score, slope: 0.0, likeness, deviation };
        let shared: f32 = all().map(|(one, likeness)| (one - score) * line.standard(likeness)).sum();
        let varied: f32 = all().map(|(one, _)| (one - score).powi(2)).sum();
        (count > 0.0).then_some(Self { slope: (shared / (varied + strangers)).max(0.0), ..line })
    }

    fn expected(&self, score: f32) -> f32 {
        self.slope * (score - self.score)
    }

    fn standard(&self, likeness: f32) -> f32 {
        (likeness - self.likeness) / self.deviation
    }
}

/// Returns the similarity of a query and a record: cosine of their vectors if both have one, else the IDF-weighted
/// overlap of their terms.
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
