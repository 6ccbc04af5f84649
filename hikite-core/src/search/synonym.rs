//! Abbreviations of the field and other words for the same thing. A query for one finds tools that use another, with
//! less weight than the word itself.

use std::sync::LazyLock;

use super::word::{QueryTerm, TermStemmer, WordReader};

/// Weight of a synonym against the word itself.
const SYNONYM: f32 = 0.5;

/// Phrases of one meaning per line.
const SAME: &[&[&str]] = &[
    &["admin", "administrator"],
    &["app", "application"],
    &["attr", "attribute"],
    &["auth", "authentication"],
    &["cal", "calendar"],
    &["ci", "pipeline"],
    &["cmd", "command"],
    &["config", "configuration", "setting"],
    &["db", "database"],
    &["del", "delete", "remove"],
    &["dep", "dependency"],
    &["dir", "directory", "folder"],
    &["dm", "direct message"],
    &["doc", "document"],
    &["env", "environment"],
    &["exec", "execute", "run"],
    &["id", "identifier"],
    &["img", "image", "picture"],
    &["info", "information"],
    &["k8s", "kubernetes"],
    &["mail", "email"],
    &["meeting", "event", "appointment"],
    &["mr", "merge request"],
    &["msg", "message"],
    &["ns", "namespace"],
    &["org", "organization"],
    &["param", "parameter"],
    &["perm", "permission"],
    &["pkg", "package"],
    &["pr", "pull request"],
    &["repo", "repository"],
    &["spec", "specification"],
    &["stats", "statistics"],
    &["svc", "service"],
    &["sync", "synchronize"],
    &["todo", "task"],
    &["tz", "timezone", "time zone"],
    &["url", "link"],
    &["var", "variable"],
    &["vm", "virtual machine"],
];

/// The table as terms: groups of phrases of words.
static TERMS: LazyLock<Vec<Vec<Vec<QueryTerm>>>> = LazyLock::new(|| {
    let stems = TermStemmer::new();
    let phrase = |phrase: &&str| {
        let mut terms = Vec::new();
        for text in phrase.split(' ') {
            WordReader::default().words(text, |word| {
                if word.text == text {
                    terms.push(QueryTerm { term: stems.term(word), text: text.to_owned(), weight: SYNONYM });
                }
            });
        }
        terms
    };
    SAME.iter().map(|group| group.iter().map(phrase).collect()).collect()
});

/// Adds the synonyms of phrases whose words are all in the query.
pub(super) fn add_synonyms(words: &mut Vec<QueryTerm>) {
    let mut synonyms: Vec<&QueryTerm> = Vec::new();
    let has = |term: &QueryTerm| words.iter().any(|word| word.term == term.term);
    for group in TERMS.iter() {
        for (at, _) in group.iter().enumerate().filter(|(_, phrase)| phrase.iter().all(has)) {
            let others = group.iter().enumerate().filter(|(other, _)| *other != at);
            synonyms.extend(others.flat_map(|(_, phrase)| phrase));
        }
    }
    for synonym in synonyms {
        if words.iter().all(|word| word.term != synonym.term) {
            words.push(synonym.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_phrase_has_its_words() {
        for (group, phrases) in TERMS.iter().zip(SAME) {
            for (terms, phrase) in group.iter().zip(*phrases) {
                let words: Vec<&str> = terms.iter().map(|term| term.text.as_str()).collect();
                assert_eq!(words.join(" "), *phrase);
            }
        }
        assert!(SAME.is_sorted());
    }
}
