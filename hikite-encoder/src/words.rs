//! Tokenizer of text with spaces: `WordPiece` over lower-case letters without accents, as BERT's uncased models read it.

use unicode_normalization::UnicodeNormalization;
use unicode_properties::{GeneralCategory, GeneralCategoryGroup, UnicodeGeneralCategory};

use crate::file::ModelFile;
use crate::strings::SortedStrings;

/// Marks a piece that continues a word.
const CONTINUES: &str = "##";
/// Longer words are unknown, in characters.
const WORD_CHARS_MAX: usize = 100;

#[derive(Debug)]
pub(crate) struct WordTokenizer {
    pieces: SortedStrings,
    pub(crate) unknown: usize,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

impl WordTokenizer {
    pub(crate) fn new(file: &ModelFile) -> Self {
        let pieces = SortedStrings::new(file.words);
        let row = |piece: &str| pieces.find(piece.as_bytes()).expect("a piece of the vocabulary");
        Self { pieces, unknown: row("[UNK]"), start: row("[CLS]"), end: row("[SEP]") }
    }

    /// Returns the number of pieces.
    pub(crate) fn len(&self) -> usize {
        self.pieces.len()
    }

    /// Adds the rows of a text's pieces.
    pub(crate) fn tokenize(&self, text: &str, rows: &mut Vec<usize>) {
        let mut word = String::with_capacity(CONTINUES.len() + 16);
        for letter in normalized(text) {
            if letter.is_whitespace() {
                self.flush(&mut word, rows);
            } else if is_separate(letter) {
                self.flush(&mut word, rows);
                word.push(letter);
                self.flush(&mut word, rows);
            } else {
                word.push(letter);
            }
        }
        self.flush(&mut word, rows);
    }

    /// Adds the longest pieces that make up the word, from left to right.
    fn flush(&self, word: &mut String, rows: &mut Vec<usize>) {
        let first = rows.len();
        let (mut start, mut piece) = (0, String::with_capacity(CONTINUES.len() + word.len()));
        let mut is_known = word.chars().count() <= WORD_CHARS_MAX;
        while is_known && start < word.len() {
            let ends = word[start..].char_indices().map(|(at, letter)| start + at + letter.len_utf8());
            let longest = ends.rev().find_map(|end| {
                piece.clear();
                piece.push_str(if start > 0 { CONTINUES } else { "" });
                piece.push_str(&word[start..end]);
                Some((self.pieces.find(piece.as_bytes())?, end))
            });
            is_known = longest.is_some();
            if let Some((row, end)) = longest {
                rows.push(row);
                start = end;
            }
        }
        if !is_known {
            rows.truncate(first);
            rows.push(self.unknown);
        }
        word.clear();
    }
}

/// Removes control characters and accents, and lowers the case.
fn normalized(text: &str) -> impl Iterator<Item = char> {
    let kept = text.chars().filter(|letter| !is_control(*letter));
    let plain = kept.nfd().filter(|letter| letter.general_category() != GeneralCategory::NonspacingMark);
    plain.flat_map(char::to_lowercase)
}

fn is_control(letter: char) -> bool {
    let is_other = || {
        letter.general_category_group() == GeneralCategoryGroup::Other
            && letter.general_category() != GeneralCategory::Unassigned
    };
    matches!(letter, '\0' | '\u{fffd}') || !matches!(letter, '\t' | '\n' | '\r') && is_other()
}

/// Returns `true` for a character that is a word by itself: punctuation and rare ideographs.
fn is_separate(letter: char) -> bool {
    letter.is_ascii_punctuation()
        || matches!(letter, '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}'
            | '\u{20000}'..='\u{2a6df}' | '\u{2a700}'..='\u{2b81f}' | '\u{2b920}'..='\u{2ceaf}' | '\u{2f800}'..='\u{2fa1f}')
        || letter.general_category_group() == GeneralCategoryGroup::Punctuation
}
