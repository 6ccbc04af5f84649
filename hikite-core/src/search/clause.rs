//! A long question often asks for several things. Taken apart at commas, at "and", at the ends of sentences and lines,
//! each of them can be looked for by itself.

use super::word::is_cjk;

/// Shorter questions are one thing.
const LONG_WORDS: usize = 8;
/// A clause with fewer words says nothing by itself.
const CLAUSE_WORDS: usize = 2;
/// More than these would make the answer slow, not better.
pub(super) const CLAUSES_MAX: usize = 12;

/// The clauses of a long question; none if it is short or cannot be taken apart.
pub(super) fn clauses(text: &str) -> Vec<&str> {
    if size(text) < LONG_WORDS {
        return Vec::new();
    }
    let mut clauses: Vec<&str> = Vec::new();
    for sentence in text.split(is_end) {
        for clause in sentence.split(" and ").flat_map(|clause| clause.split(" then ")) {
            let clause = clause.trim_matches(|letter: char| !letter.is_alphanumeric());
            if size(clause) >= CLAUSE_WORDS && clauses.len() < CLAUSES_MAX {
                clauses.push(clause);
            }
        }
    }
    if clauses.len() < 2 { Vec::new() } else { clauses }
}

fn is_end(letter: char) -> bool {
    matches!(letter, ',' | ';' | '\n' | '•' | '!' | '?' | '、' | '。' | '，' | '；' | '！' | '？' | '・')
}

/// How many words a text has; three letters of a text without spaces are about one.
fn size(text: &str) -> usize {
    let unspaced = text.chars().filter(|letter| is_cjk(*letter)).count();
    let spaced = text.split_whitespace().filter(|word| !word.contains(is_cjk)).count();
    spaced + unspaced.div_ceil(3)
}
