//! Usage memory: questions that led to a successful call of a tool speak for that tool when something alike is asked.
//!
//! How alike the best two remembered questions of a tool are becomes a z-score among the tools that are remembered at all. A
//! tool of which little is known moves only part of the way from what its own score lets expect (the straight line
//! through the remembered ones), and one of which nothing is known stays there: to be new is no fault.

use std::collections::BTreeMap;

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

/// What the memory counts against the rest of the score.
const SHARE: f32 = 2.5;
/// So many remembered questions speak as strongly for a tool as everything else together.
const DOUBT: f32 = 3.0;
/// Questions more alike than this ask for the same.
const ALIKE: f32 = 0.5;
/// How alike questions are that have nothing to do with each other, and how much that varies; counted as so many tools,
/// so that a single remembered one has something to be held against.
const STRANGERS: (f32, f32, f32) = (0.06, 0.1, 3.0);

/// What is remembered of the documents, for one question.
#[derive(Debug, Default)]
pub(super) struct Recall {
    of_documents: BTreeMap<usize, Remembered>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Remembered {
    /// The best likenesses of its questions.
    best: [f32; 2],
    /// Of how many.
    traces: u32,
    /// How much all its questions still count.
    count: f32,
    /// 0 to 1: whether the same has been asked before.
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

    /// One question alone may be a chance.
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

    /// 0 to 1: whether the same has been asked before and led to the document.
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

/// What the score of a document lets expect of the memory.
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
