//! Tokenizer of the search index: splits identifiers (`createIssue`, `get_HTTPUrl`, `base64`), folds letters, stems
//! English words, and cuts text without spaces (Chinese, Japanese, Korean) into character bigrams. A term is a hash
//! that is stable across runs.

use rust_stemmers::{Algorithm, Stemmer};

use super::fold::fold;

/// Longest indexed word, in bytes.
const WORD_BYTES_MAX: usize = 64;

/// Stop words, in alphabetical order.
const STOP: &[&str] = &[
    "a", "about", "above", "after", "again", "all", "also", "am", "an", "and", "any", "are", "as", "at", "be",
    "because", "been", "before", "being", "below", "between", "both", "but", "by", "can", "could", "d", "did", "do",
    "does", "doing", "don", "down", "during", "each", "etc", "few", "for", "from", "further", "had", "has", "have",
    "having", "he", "her", "here", "hers", "him", "his", "how", "i", "if", "in", "into", "is", "it", "its", "just",
    "like", "ll", "m", "may", "me", "more", "most", "my", "need", "no", "nor", "not", "now", "of", "off", "on", "once",
    "only", "or", "other", "our", "ours", "out", "over", "own", "please", "re", "s", "same", "she", "should", "so",
    "some", "such", "t", "than", "that", "the", "their", "theirs", "them", "then", "there", "these", "they", "this",
    "those", "through", "to", "too", "under", "until", "up", "us", "ve", "very", "via", "want", "was", "we", "were",
    "what", "when", "where", "which", "while", "who", "whom", "why", "will", "with", "would", "you", "your", "yours",
];

/// One word of a text, folded but not stemmed.
#[derive(Clone, Copy, Debug)]
pub(super) struct TextWord<'a> {
    pub(super) text: &'a str,
    /// `true` for a bigram of text without spaces.
    pub(super) is_bigram: bool,
}

impl TextWord<'_> {
    pub(super) fn is_stop(self) -> bool {
        !self.is_bigram && STOP.binary_search(&self.text).is_ok()
    }
}

/// A term of a query.
#[derive(Clone, Debug)]
pub(super) struct QueryTerm {
    pub(super) term: u64,
    pub(super) text: String,
    /// 1 for a word of the query, less for a synonym.
    pub(super) weight: f32,
}

impl QueryTerm {
    /// Returns `true` if the query itself has the word.
    pub(super) fn is_own(&self) -> bool {
        self.weight >= 1.0
    }
}

/// Splits texts into words, with reused buffers.
#[derive(Debug, Default)]
pub(super) struct WordReader {
    letters: Vec<char>,
    word: String,
}

impl WordReader {
    /// Calls `found` with every word, stop words included. A split identifier is also reported whole (`GitHub` is
    /// `git`, `hub` and `github`), because people write it either way.
    pub(super) fn words(&mut self, text: &str, mut found: impl FnMut(TextWord<'_>)) {
        let Self { letters, word } = self;
        if text.is_ascii() {
            return ascii_words(text, word, &mut found);
        }
        letters.clear();
        fold(text, |letter| letters.push(letter));
        let mut rest = letters.as_slice();
        while let Some(start) = rest.iter().position(|letter| letter.is_alphanumeric()) {
            rest = &rest[start..];
            let pairs = is_cjk(rest[0]);
            let end = rest.iter().position(|l| !l.is_alphanumeric() || is_cjk(*l) != pairs);
            let (run, after) = rest.split_at(end.unwrap_or(rest.len()));
            rest = after;
            if pairs {
                // A single character is a word by itself.
                for pair in run.windows(run.len().min(2)) {
                    lower(pair, word);
                    found(TextWord { text: word, is_bigram: true });
                }
            } else {
                parts(run, word, &mut found);
            }
        }
    }
}

/// Stems English words; other words stay unchanged.
pub(super) struct TermStemmer(Stemmer);

impl TermStemmer {
    pub(super) fn new() -> Self {
        Self(Stemmer::create(Algorithm::English))
    }

    /// Returns the term hash of a word.
    pub(super) fn term(&self, word: TextWord<'_>) -> u64 {
        if word.is_bigram || !word.text.bytes().all(|byte| byte.is_ascii_lowercase()) {
            return hash(word.text);
        }
        hash(&self.0.stem(word.text))
    }
}

/// Fast path for ASCII text.
fn ascii_words(text: &str, word: &mut String, found: &mut impl FnMut(TextWord<'_>)) {
    for run in text.as_bytes().split(|byte| !byte.is_ascii_alphanumeric()).filter(|run| !run.is_empty()) {
        let mut start = 0;
        for at in 1..run.len() {
            let (before, here) = (run[at - 1], run[at]);
            let next_is_lower = run.get(at + 1).is_some_and(u8::is_ascii_lowercase);
            let is_boundary = before.is_ascii_digit() != here.is_ascii_digit()
                || here.is_ascii_uppercase()
                    && (before.is_ascii_lowercase() || before.is_ascii_uppercase() && next_is_lower);
            if is_boundary {
                lower_ascii(&run[start..at], word);
                emit(word, found);
                start = at;
            }
        }
        lower_ascii(&run[start..], word);
        emit(word, found);
        if start > 0 {
            lower_ascii(run, word);
            emit(word, found);
        }
    }
}

fn lower_ascii(run: &[u8], word: &mut String) {
    word.clear();
    word.extend(run.iter().map(|byte| char::from(byte.to_ascii_lowercase())));
}

/// Reports the parts of one identifier, and the whole if there are several.
fn parts(run: &[char], word: &mut String, found: &mut impl FnMut(TextWord<'_>)) {
    let mut start = 0;
    for at in 1..=run.len() {
        if at < run.len() && !is_boundary(run, at) {
            continue;
        }
        lower(&run[start..at], word);
        emit(word, found);
        if start > 0 && at == run.len() {
            lower(run, word);
            emit(word, found);
        }
        start = at;
    }
}

fn emit(word: &str, found: &mut impl FnMut(TextWord<'_>)) {
    if word.len() <= WORD_BYTES_MAX {
        found(TextWord { text: word, is_bigram: false });
    }
}

/// Returns `true` if a new part begins at `at`: `aB`, `ABc` before the `B`, `a1`, `1a`.
fn is_boundary(run: &[char], at: usize) -> bool {
    let (before, here) = (run[at - 1], run[at]);
    let next_is_lower = run.get(at + 1).is_some_and(|next| next.is_lowercase());
    before.is_numeric() != here.is_numeric()
        || here.is_uppercase() && (before.is_lowercase() || before.is_uppercase() && next_is_lower)
}

fn lower(letters: &[char], word: &mut String) {
    word.clear();
    word.extend(letters.iter().flat_map(|letter| letter.to_lowercase()));
}

/// Returns `true` for letters of scripts without spaces between words.
pub(super) fn is_cjk(letter: char) -> bool {
    matches!(letter, '\u{3005}'..='\u{3007}' | '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{ac00}'..='\u{d7a3}'
        | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{323af}')
}

/// FNV-1a. Hashes are stored with remembered queries and must never change.
pub(super) fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let mut words = Vec::new();
        WordReader::default().words(text, |word| words.push(word.text.to_owned()));
        assert_eq!(words.join(" "), expected, "{text}");
    }

    #[test]
    fn identifiers_are_taken_apart() {
        check("create_issue", "create issue");
        check("createIssue", "create issue createissue");
        check("getHTTPUrl", "get http url gethttpurl");
        check("list-S3-buckets.v2", "list s 3 s3 buckets v 2 v2");
        check("GitHub's API", "git hub github s api");
        check("base64", "base 64 base64");
        check("Büro Ångström ＡＢＣ", "buro angstrom abc");
    }

    #[test]
    fn plain_text_is_read_like_any_other() {
        for text in ["getHTTPUrl_v2 base64 S3 GitHub's API", "ABC aB1c 1a2 --x", ""] {
            let (mut plain, mut other) = (Vec::new(), Vec::new());
            WordReader::default().words(text, |word| plain.push(word.text.to_owned()));
            WordReader::default().words(&format!("{text} é"), |word| other.push(word.text.to_owned()));
            assert_eq!(other.pop().as_deref(), Some("e"));
            assert_eq!(plain, other, "{text}");
        }
    }

    #[test]
    fn text_without_spaces_becomes_pairs() {
        check("ファイルを読む", "ファ ァイ イル ルを を読 読む");
        check("PDFを作成", "pdf を作 作成");
        check("木 ﾌｧｲﾙ", "木 ファ ァイ イル");
        check("검색 도구", "검색 도구");
    }

    #[test]
    fn a_word_and_its_forms_are_one_term() {
        let stems = TermStemmer::new();
        let term = |text| stems.term(TextWord { text, is_bigram: false });
        assert_eq!(term("issues"), term("issue"));
        assert_eq!(term("creating"), term("created"));
        assert_ne!(term("read"), term("write"));
        // Hashes are stored: changing this value discards the usage memory.
        assert_eq!(term("issues"), 0x6579_c7c5_b9ae_6605, "{:#x}", term("issues"));
    }

    #[test]
    fn stop_words_stand_in_order() {
        assert!(STOP.is_sorted());
        assert!(TextWord { text: "the", is_bigram: false }.is_stop());
        assert!(!TextWord { text: "weather", is_bigram: false }.is_stop());
    }
}
