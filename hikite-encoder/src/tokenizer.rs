//! Tokenizer: Unicode compatibility forms are made one (NFKC), then runs of kana and kanji are cut by the Japanese
//! model and everything else into word pieces. A piece is identified by its row in the embedding table.

use unicode_normalization::UnicodeNormalization;

use crate::file::ModelFile;
use crate::japanese::JapaneseTokenizer;
use crate::words::WordTokenizer;

/// Longest token sequence, with its two marks. The network was trained on no longer ones.
pub(crate) const TOKENS_MAX: usize = 96;
/// More bytes than this cannot matter to so few tokens.
const TEXT_BYTES_MAX: usize = 8 * 1024;

#[derive(Debug)]
pub(crate) struct TextTokenizer {
    words: WordTokenizer,
    japanese: JapaneseTokenizer,
}

impl TextTokenizer {
    pub(crate) fn new(file: &ModelFile) -> Self {
        Self { words: WordTokenizer::new(file), japanese: JapaneseTokenizer::new(file) }
    }

    /// Tokenizes a text into sequences of rows, each between the marks of its start and its end. Only a long text has
    /// more than one; an empty text has none.
    pub(crate) fn tokenize(&self, text: &str) -> impl Iterator<Item = Vec<usize>> {
        let (rows, start, end) = (self.rows(text), self.words.start, self.words.end);
        let count = rows.len().div_ceil(TOKENS_MAX - 2);
        (0..count).map(move |at| {
            let window = rows.iter().skip(at * (TOKENS_MAX - 2)).take(TOKENS_MAX - 2);
            std::iter::once(start).chain(window.copied()).chain(std::iter::once(end)).collect()
        })
    }

    fn rows(&self, text: &str) -> Vec<usize> {
        let text: String = truncated(text).nfkc().collect();
        let mut rows = Vec::new();
        let mut rest = text.as_str();
        while !rest.is_empty() {
            let (other, after) = split_at_first(rest, is_japanese);
            self.words.tokenize(other, &mut rows);
            let (run, after) = split_at_first(after, |letter| !is_japanese(letter));
            self.japanese.tokenize(run, self.words.len(), self.words.unknown, &mut rows);
            rest = after;
        }
        rows
    }

    /// Returns `true` if any piece of a sequence is known.
    pub(crate) fn has_content(&self, rows: &[usize]) -> bool {
        rows.iter().any(|row| ![self.words.start, self.words.end, self.words.unknown].contains(row))
    }
}

fn is_japanese(letter: char) -> bool {
    matches!(letter, '\u{3005}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}')
}

/// Splits a text before the first such character.
fn split_at_first(text: &str, is_such: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(is_such).unwrap_or(text.len()))
}

fn truncated(text: &str) -> &str {
    let mut end = text.len().min(TEXT_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}
