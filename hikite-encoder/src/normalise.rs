//! Text normalization as in the model's training: NFKC with additions, by the model's own table. Runs of spaces become
//! one mark, and a mark precedes the first word.

use crate::file::ModelFile;
use crate::trie::Trie;

/// Mark that stands for a space (U+2581).
pub(crate) const SPACE: &[u8] = "\u{2581}".as_bytes();

#[derive(Debug)]
pub(crate) struct Normaliser {
    trie: Trie,
    /// Zero-terminated replacement texts.
    replacements: &'static [u8],
}

impl Normaliser {
    pub(crate) fn new(file: &ModelFile) -> Self {
        Self { trie: Trie::new(file.normaliser), replacements: file.replacements }
    }

    /// Normalizes a text; the result is empty for a text of spaces only.
    pub(crate) fn apply(&self, text: &str) -> Vec<u8> {
        let mut normal = Vec::with_capacity(text.len() + text.len() / 4 + SPACE.len());
        let mut rest = text;
        // A mark is written before the word that follows it: never at the end, always before the first word.
        let mut space = true;
        while !rest.is_empty() {
            let (replacement, length) = self.first(rest);
            rest = &rest[length..];
            for byte in replacement {
                if *byte == b' ' {
                    space = true;
                    continue;
                }
                if std::mem::take(&mut space) {
                    normal.extend_from_slice(SPACE);
                }
                normal.push(*byte);
            }
        }
        normal
    }

    /// Returns the replacement of the longest prefix in the table and the prefix's length, or the first character as it
    /// is.
    fn first<'a>(&self, text: &'a str) -> (&'a [u8], usize)
    where
        Self: 'a,
    {
        let mut longest = None;
        self.trie.prefixes(text.as_bytes(), |length, value| longest = Some((length, value)));
        let replacement = longest.and_then(|(length, value)| Some((self.replacement(value)?, length)));
        replacement.unwrap_or_else(|| {
            let length = text.chars().next().map_or(0, char::len_utf8);
            (&text.as_bytes()[..length], length)
        })
    }

    fn replacement(&self, at: usize) -> Option<&'static [u8]> {
        let rest = self.replacements.get(at..)?;
        let length = rest.iter().position(|byte| *byte == 0)?;
        Some(&rest[..length])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, normal: &str) {
        let bytes = Normaliser::new(&ModelFile::read()).apply(text);
        assert_eq!(String::from_utf8(bytes).expect("text"), normal);
    }

    #[test]
    fn widths_and_compositions_are_made_one() {
        check("ＡＢＣ　１２３", "▁ABC▁123");
        check("ﾌｧｲﾙ", "▁ファイル");
        check("か\u{3099}", "▁が");
        check("①②", "▁12");
        check("ﬁle", "▁file");
    }

    #[test]
    fn runs_of_spaces_are_one_and_none_is_left_at_the_end() {
        check("  a \t\n b  ", "▁a▁b");
        check(" \u{3000} ", "");
        check("", "");
    }

    #[test]
    fn what_the_table_does_not_know_stays() {
        check("héllo 🦀 ไทย", "▁héllo▁🦀▁ไทย");
    }
}
