//! Cuts a text into the pieces that the model knows, so that together they are as likely as can be (the unigram model of
//! `SentencePiece`). A piece is named by its row in the table.

use crate::file::File;
use crate::normalise::{Normaliser, SPACE};
use crate::trie::Trie;

pub(crate) const UNKNOWN: usize = 0;
const BEGIN: usize = 1;
const END: usize = 2;

/// What a text says further on is not read: its meaning is a mean, and so much of it does not change any more.
pub(crate) const PIECES_MAX: usize = 512;
const TEXT_BYTES_MAX: usize = 8 * 1024;

#[derive(Debug)]
pub(crate) struct Pieces {
    normaliser: Normaliser,
    trie: Trie,
    /// The logarithm of how unlikely each piece is, in fixed steps: whole numbers add up the same everywhere.
    costs: &'static [[u8; 2]],
    /// The piece that is nothing but a space.
    space: usize,
}

/// The cheapest way to cut a text up to one place: its cost, and its last piece with where that begins.
#[derive(Clone, Copy)]
struct Way {
    cost: u32,
    start: usize,
    piece: usize,
}

impl Pieces {
    pub(crate) fn new(file: &File) -> Self {
        let trie = Trie::new(file.pieces);
        let mut space = UNKNOWN;
        trie.prefixes(SPACE, |_, piece| space = piece);
        Self { normaliser: Normaliser::new(file), trie, costs: file.scores.as_chunks().0, space }
    }

    /// The rows of a text, between the two that mark its beginning and its end.
    pub(crate) fn cut(&self, text: &str) -> Vec<usize> {
        let normal = self.normaliser.apply(beginning(text));
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

    /// Whether any of the pieces says something.
    pub(crate) fn knows(&self, pieces: &[usize]) -> bool {
        pieces.iter().any(|piece| *piece > END && *piece != self.space)
    }

    fn cheapest(&self, text: &[u8], pieces: &mut Vec<usize>) {
        let mut ways = vec![Way { cost: u32::MAX, start: 0, piece: UNKNOWN }; text.len() + 1];
        ways[0].cost = 0;
        let mut start = 0;
        while start < text.len() {
            let character = character_length(text[start]);
            let mut is_known = false;
            self.trie.prefixes(&text[start..], |length, piece| {
                is_known |= length == character;
                self.offer(&mut ways, start, length, piece);
            });
            if !is_known {
                self.offer(&mut ways, start, character, UNKNOWN);
            }
            start += character;
        }
        let first = pieces.len();
        let mut end = text.len();
        while end > 0 {
            pieces.push(ways[end].piece);
            end = ways[end].start;
        }
        pieces[first..].reverse();
    }

    /// A way that goes on with `piece`; of two that cost the same, the one that was offered first stays.
    fn offer(&self, ways: &mut [Way], start: usize, length: usize, piece: usize) {
        let cost = ways[start].cost + u32::from(u16::from_le_bytes(self.costs[piece]));
        let way = &mut ways[start + length];
        if cost < way.cost {
            *way = Way { cost, start, piece };
        }
    }
}

fn beginning(text: &str) -> &str {
    let mut end = text.len().min(TEXT_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// Of a character of UTF-8, from its first byte.
fn character_length(first: u8) -> usize {
    match first {
        ..0xc0 => 1,
        0xc0..0xe0 => 2,
        0xe0..0xf0 => 3,
        0xf0.. => 4,
    }
}
