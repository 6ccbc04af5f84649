//! Tokenizer: segments a text into the most likely sequence of pieces (`SentencePiece`'s unigram model). A piece is
//! identified by its row in the embedding table.

use crate::file::ModelFile;
use crate::normalise::{Normaliser, SPACE};
use crate::trie::Trie;

pub(crate) const UNKNOWN: usize = 0;
const BEGIN: usize = 1;
const END: usize = 2;

/// Longest token sequence. Later text is ignored: the vector is a mean that more text no longer changes.
pub(crate) const PIECES_MAX: usize = 512;
const TEXT_BYTES_MAX: usize = 8 * 1024;

#[derive(Debug)]
pub(crate) struct PieceTokenizer {
    normaliser: Normaliser,
    trie: Trie,
    /// Negative log probability of each piece in fixed point, since integer sums are equal on every machine.
    costs: &'static [[u8; 2]],
    /// Row of the piece that is a single space.
    space: usize,
}

/// The cheapest segmentation of a prefix: its cost, and its last piece with that piece's start.
#[derive(Clone, Copy)]
struct BestSegmentation {
    cost: u32,
    start: usize,
    piece: usize,
}

impl PieceTokenizer {
    pub(crate) fn new(file: &ModelFile) -> Self {
        let trie = Trie::new(file.pieces);
        let mut space = UNKNOWN;
        trie.prefixes(SPACE, |_, piece| space = piece);
        Self { normaliser: Normaliser::new(file), trie, costs: file.scores.as_chunks().0, space }
    }

    /// Tokenizes a text into rows, between the begin and end markers.
    pub(crate) fn tokenize(&self, text: &str) -> Vec<usize> {
        let normal = self.normaliser.apply(truncated(text));
        let mut pieces = vec![BEGIN];
        if normal.is_empty() {
            pieces.push(UNKNOWN);
        } else {
            self.cheapest(&normal, &mut pieces);
        }
        pieces.truncate(PIECES_MAX - 1);
        pieces.push(END);
        pieces
    }

    /// Returns `true` if any piece is neither a marker nor a space.
    pub(crate) fn has_content(&self, pieces: &[usize]) -> bool {
        pieces.iter().any(|piece| *piece > END && *piece != self.space)
    }

    fn cheapest(&self, text: &[u8], pieces: &mut Vec<usize>) {
        let mut lattice = vec![BestSegmentation { cost: u32::MAX, start: 0, piece: UNKNOWN }; text.len() + 1];
        lattice[0].cost = 0;
        let mut start = 0;
        while start < text.len() {
            let character = character_length(text[start]);
            let mut is_known = false;
            self.trie.prefixes(&text[start..], |length, piece| {
                is_known |= length == character;
                self.offer(&mut lattice, start, length, piece);
            });
            if !is_known {
                self.offer(&mut lattice, start, character, UNKNOWN);
            }
            start += character;
        }
        let first = pieces.len();
        let mut end = text.len();
        while end > 0 {
            pieces.push(lattice[end].piece);
            end = lattice[end].start;
        }
        pieces[first..].reverse();
    }

    /// Extends a segmentation by `piece`; on equal cost the earlier offer wins.
    fn offer(&self, lattice: &mut [BestSegmentation], start: usize, length: usize, piece: usize) {
        let cost = lattice[start].cost + u32::from(u16::from_le_bytes(self.costs[piece]));
        let way = &mut lattice[start + length];
        if cost < way.cost {
            *way = BestSegmentation { cost, start, piece };
        }
    }
}

fn truncated(text: &str) -> &str {
    let mut end = text.len().min(TEXT_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// Returns the length of a UTF-8 character from its first byte.
fn character_length(first: u8) -> usize {
    match first {
        ..0xc0 => 1,
        0xc0..0xe0 => 2,
        0xe0..0xf0 => 3,
        0xf0.. => 4,
    }
}
