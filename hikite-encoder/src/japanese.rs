//! Tokenizer of runs of kana and kanji: the most likely sequence of pieces (a unigram model).

use crate::file::{ModelFile, float};
use crate::strings::SortedStrings;

/// How much less likely an unknown character is than the rarest piece, as a logarithm.
const UNKNOWN_PENALTY: f64 = 10.0;

#[derive(Debug)]
pub(crate) struct JapaneseTokenizer {
    pieces: SortedStrings,
    scores: &'static [u8],
    unknown_score: f64,
}

/// The best segmentation of a prefix: its score, and its last piece with that piece's start.
#[derive(Clone, Copy)]
struct BestSegmentation {
    score: f64,
    start: usize,
    piece: Option<usize>,
}

impl JapaneseTokenizer {
    pub(crate) fn new(file: &ModelFile) -> Self {
        let pieces = SortedStrings::new(file.japanese);
        let all = (0..pieces.len()).map(|at| f64::from(float(file.scores, at)));
        Self { pieces, scores: file.scores, unknown_score: all.fold(0.0, f64::min) - UNKNOWN_PENALTY }
    }

    /// Adds the rows of a run's pieces: `first` plus the piece's place, or `unknown` for a stretch without pieces.
    pub(crate) fn tokenize(&self, run: &str, first: usize, unknown: usize, rows: &mut Vec<usize>) {
        let mut lattice = vec![BestSegmentation { score: f64::NEG_INFINITY, start: 0, piece: None }; run.len() + 1];
        lattice[0].score = 0.0;
        for (start, letter) in run.char_indices() {
            let before = lattice[start].score;
            let mut offer = |end: usize, piece: Option<usize>| {
                let score = before + piece.map_or(self.unknown_score, |at| f64::from(float(self.scores, at)));
                if score > lattice[end].score {
                    lattice[end] = BestSegmentation { score, start, piece };
                }
            };
            let mut is_known = false;
            for end in run[start..].char_indices().map(|(at, letter)| start + at + letter.len_utf8()) {
                let text = &run.as_bytes()[start..end];
                if let Some(piece) = self.pieces.find(text) {
                    is_known |= end == start + letter.len_utf8();
                    offer(end, Some(piece));
                } else if !self.pieces.has_prefix(text) {
                    break;
                }
            }
            if !is_known {
                offer(start + letter.len_utf8(), None);
            }
        }
        let (mut end, mut found) = (run.len(), Vec::new());
        while end > 0 {
            found.push(lattice[end].piece.map_or(unknown, |at| first + at));
            end = lattice[end].start;
        }
        found.reverse();
        // Unknown characters that stand together are one.
        found.dedup_by(|next, before| *next == unknown && *before == unknown);
        rows.append(&mut found);
    }
}
