//! The words of a text as search knows them: identifiers are taken apart (`createIssue`, `get_HTTPUrl`, `base64`),
//! letters folded, English words reduced to their stems, and text without spaces (Chinese, Japanese, Korean) cut into
//! pairs of letters. A word is known by a hash that stays the same from run to run.

use rust_stemmers::{Algorithm, Stemmer};

use super::fold::fold;

/// A longer word is nothing that anybody looks for.
const WORD_BYTES_MAX: usize = 64;

/// Words that say nothing of what is looked for, in the order of the alphabet.
const STOP: &[&str] = &[
    "a", "about", "above", "after", "again", "all", "also", "am", "an", "and", "any", "are", "as", "at",
    "be", "because", "been", "before", "being", "below", "between", "both", "but", "by", "can", "could", "d",
    "did", "do", "does", "doing", "don", "down", "during", "each", "etc", "few", "for", "from", "further",
    "had", "has", "have", "having", "he", "her", "here", "hers", "him", "his", "how", "i", "if", "in",
    "into", "is", "it", "its", "just", "like", "ll", "m", "may", "me", "more", "most", "my", "need", "no",
    "nor", "not", "now", "of", "off", "on", "once", "only", "or", "other", "our", "ours", "out", "over",
    "own", "please", "re", "s", "same", "she", "should", "so", "some", "such", "t", "than", "that", "the",
    "their", "theirs", "them", "then", "there", "these", "they", "this", "those", "through", "to", "too",
    "under", "until", "up", "us", "ve", "very", "via", "want", "was", "we", "were", "what", "when", "where",
    "which", "while", "who", "whom", "why", "will", "with", "would", "you", "your", "yours",
];

/// One word as it stood in the text, folded but not yet reduced to its stem.
#[derive(Clone, Copy, Debug)]
pub(super) struct Word<'a> {
    pub(super) text: &'a str,
    /// A pair of letters of a text without spaces.
    pub(super) is_pair: bool,
}

impl Word<'_> {
    pub(super) fn is_stop(self) -> bool {
        !self.is_pair && STOP.binary_search(&self.text).is_ok()
    }
}

/// Takes texts apart, again and again with the same buffers.
#[derive(Debug, Default)]
pub(super) struct Reader {
    letters: Vec<char>,
    word: String,
}

impl Reader {
    /// Calls `found` with every word of the text, stop words too. A name that was taken apart also comes whole
    /// (`GitHub` is `git`, `hub` and `github`), because people write it either way.
    pub(super) fn words(&mut self, text: &str, mut found: impl FnMut(Word<'_>)) {
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
                // A letter that stands alone is a word.
                for pair in run.windows(run.len().min(2)) {
                    lower(pair, word);
                    found(Word { text: word, is_pair: true });
                }
            } else {
                parts(run, word, &mut found);
            }
        }
    }
}

/// Reduces English words to their stems; everything else stays as it is.
pub(super) struct Stems(Stemmer);

impl Stems {
    pub(super) fn new() -> Self {
        Self(Stemmer::create(Algorithm::English))
    }

    /// The hash that a word is known by.
    pub(super) fn term(&self, word: Word<'_>) -> u64 {
        if word.is_pair || !word.text.bytes().all(|byte| byte.is_ascii_lowercase()) {
            return hash(word.text);
        }
        hash(&self.0.stem(word.text))
    }
}

/// The same for the text that most of it is, without a look at Unicode.
fn ascii_words(text: &str, word: &mut String, found: &mut impl FnMut(Word<'_>)) {
    for run in text.as_bytes().split(|byte| !byte.is_ascii_alphanumeric()).filter(|run| !run.is_empty()) {
        let mut start = 0;
        for at in 1..run.len() {
            let (before, here) = (run[at - 1], run[at]);
            let next_is_lower = run.get(at + 1).is_some_and(u8::is_ascii_lowercase);
            let is_border = before.is_ascii_digit() != here.is_ascii_digit()
                || here.is_ascii_uppercase()
                    && (before.is_ascii_lowercase() || before.is_ascii_uppercase() && next_is_lower);
            if is_border {
                lower_ascii(&run[start..at], word);
                tell(word, found);
                start = at;
            }
        }
        lower_ascii(&run[start..], word);
        tell(word, found);
        if start > 0 {
            lower_ascii(run, word);
            tell(word, found);
        }
    }
}

fn lower_ascii(run: &[u8], word: &mut String) {
    word.clear();
    word.extend(run.iter().map(|byte| char::from(byte.to_ascii_lowercase())));
}

/// The parts of one identifier, and the whole if there are several.
fn parts(run: &[char], word: &mut String, found: &mut impl FnMut(Word<'_>)) {
    let mut start = 0;
    for at in 1..=run.len() {
        if at < run.len() && !is_border(run, at) {
            continue;
        }
        lower(&run[start..at], word);
        tell(word, found);
        if start > 0 && at == run.len() {
            lower(run, word);
            tell(word, found);
        }
        start = at;
    }
}

fn tell(word: &str, found: &mut impl FnMut(Word<'_>)) {
    if word.len() <= WORD_BYTES_MAX {
        found(Word { text: word, is_pair: false });
    }
}

/// Whether a new part begins here: `aB`, `ABc` before the `B`, `a1`, `1a`.
fn is_border(run: &[char], at: usize) -> bool {
    let (before, here) = (run[at - 1], run[at]);
    let next_is_lower = run.get(at + 1).is_some_and(|next| next.is_lowercase());
    before.is_numeric() != here.is_numeric()
        || here.is_uppercase() && (before.is_lowercase() || before.is_uppercase() && next_is_lower)
}

fn lower(letters: &[char], word: &mut String) {
    word.clear();
    word.extend(letters.iter().flat_map(|letter| letter.to_lowercase()));
}

/// Letters of scripts that put no spaces between words.
pub(super) fn is_cjk(letter: char) -> bool {
    matches!(letter, '\u{3005}'..='\u{3007}' | '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{ac00}'..='\u{d7a3}'
        | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{323af}')
}

/// FNV-1a: hashes are kept with remembered questions, so they must never change.
pub(super) fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let mut words = Vec::new();
        Reader::default().words(text, |word| words.push(word.text.to_owned()));
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
            Reader::default().words(text, |word| plain.push(word.text.to_owned()));
            Reader::default().words(&format!("{text} é"), |word| other.push(word.text.to_owned()));
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
        let stems = Stems::new();
        let term = |text| stems.term(Word { text, is_pair: false });
        assert_eq!(term("issues"), term("issue"));
        assert_eq!(term("creating"), term("created"));
        assert_ne!(term("read"), term("write"));
        // Kept in stores: a change of this number forgets what was remembered.
        assert_eq!(term("issues"), 0x6579_c7c5_b9ae_6605, "{:#x}", term("issues"));
    }

    #[test]
    fn stop_words_stand_in_order() {
        assert!(STOP.is_sorted());
        assert!(Word { text: "the", is_pair: false }.is_stop());
        assert!(!Word { text: "weather", is_pair: false }.is_stop());
    }
}
