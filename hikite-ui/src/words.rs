//! Texts of the pages. Written in English; translations are in `words/ja.txt`.

use std::collections::HashMap;
use std::sync::LazyLock;

use hikite_core::language::Language;

static JAPANESE: LazyLock<HashMap<&'static str, &'static str>> = LazyLock::new(|| pairs(include_str!("words/ja.txt")));

/// Parses pairs of text and translation, separated by empty lines.
fn pairs(file: &'static str) -> HashMap<&'static str, &'static str> {
    file.split("\n\n").filter_map(|pair| pair.trim_matches('\n').split_once('\n')).collect()
}

/// Marks a text that is translated when it is shown.
pub(crate) const fn translatable(english: &'static str) -> &'static str {
    english
}

pub(crate) fn say(language: Language, english: &'static str) -> &'static str {
    match language {
        Language::English => english,
        Language::Japanese => JAPANESE.get(english).copied().unwrap_or(english),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::{Path, PathBuf};

    use super::*;

    fn files(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()) {
            if entry.is_dir() { files(&entry, found) } else { found.push(entry) }
        }
    }

    /// Returns all texts used by pages and handlers: `t("…")`, `tn("…", n)`, `translatable("…")`.
    fn asked_for() -> BTreeSet<String> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut sources = Vec::new();
        files(&root.join("templates"), &mut sources);
        files(&root.join("src"), &mut sources);
        let mut found = BTreeSet::new();
        for file in sources.iter().filter(|file| !file.ends_with("words.rs")) {
            let text = fs::read_to_string(file).expect("text");
            for open in [".t(", ".tn(", "translatable("] {
                let after = text.split(open).skip(1).filter_map(|rest| rest.trim_start().strip_prefix('"'));
                found.extend(after.filter_map(|rest| Some(rest.split_once('"')?.0.to_owned())));
            }
        }
        found
    }

    #[test]
    fn every_text_has_its_japanese_and_no_japanese_is_left_over() {
        let (parameter, known) = (asked_for(), JAPANESE.keys().map(|text| (*text).to_owned()).collect::<BTreeSet<_>>());
        let missing: Vec<_> = parameter.difference(&known).collect();
        let unused: Vec<_> = known.difference(&parameter).collect();
        assert!(missing.is_empty() && unused.is_empty(), "missing: {missing:#?}\nunused: {unused:#?}");
    }

    #[test]
    fn places_to_fill_are_the_same_in_both() {
        for (english, japanese) in JAPANESE.iter() {
            assert_eq!(english.matches("{}").count(), japanese.matches("{}").count(), "{english}");
            assert_ne!(english, japanese);
        }
    }
}
