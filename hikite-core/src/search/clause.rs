//! Splits a long query into clauses at commas, at "and" and "then", and at the ends of sentences and lines, so that
//! each request in it can be searched for separately.

use super::word::is_cjk;

/// Shorter queries are not split, in words.
const LONG_WORDS: usize = 12;
/// Shortest clause, in words.
const CLAUSE_WORDS: usize = 3;
/// Most clauses. Each costs an encoder pass; more would slow the search down without improving it.
const CLAUSES_MAX: usize = 8;

/// Returns the clauses of a long query; none if it is short or cannot be split.
pub(super) fn clauses(text: &str) -> Vec<&str> {
    if size(text) < LONG_WORDS {
        return Vec::new();
    }
    let ends = text.match_indices(|letter: char| is_end(letter) || letter == '.');
    let after = |at: usize, end: &str| text[at + end.len()..].chars().next().is_none_or(char::is_whitespace);
    // A full stop inside a word, number or address ends nothing.
    let ends = ends.filter(|(at, end)| *end != "." || after(*at, end));
    let mut clauses = Vec::new();
    let mut start = 0;
    for (at, end) in ends.chain(std::iter::once((text.len(), ""))) {
        for clause in text[start..at].split(" and ").flat_map(|clause| clause.split(" then ")) {
            let clause = clause.trim_matches(|letter: char| !letter.is_alphanumeric());
            if size(clause) >= CLAUSE_WORDS {
                clauses.push(clause);
            }
        }
        start = at + end.len();
    }
    clauses.truncate(CLAUSES_MAX);
    if clauses.len() < 2 { Vec::new() } else { clauses }
}

fn is_end(letter: char) -> bool {
    matches!(letter, ',' | ';' | '\n' | '•' | '!' | '?' | '、' | '。' | '，' | '；' | '！' | '？' | '・')
}

/// Counts the words of a text; three CJK characters count as one word.
fn size(text: &str) -> usize {
    let unspaced = text.chars().filter(|letter| is_cjk(*letter)).count();
    let spaced = text.split_whitespace().filter(|word| !word.contains(is_cjk)).count();
    spaced + unspaced.div_ceil(3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        assert_eq!(clauses(text), expected);
    }

    #[test]
    fn a_long_question_is_taken_apart() {
        check(
            "Find the cheapest flight to Rome v1.2, book a hotel there and send me the plan. Thanks!",
            &["Find the cheapest flight to Rome v1.2", "book a hotel there", "send me the plan"],
        );
        check(
            "ローマまでの一番安い航空券を探して、近くのホテルを予約し、旅程をメールで送ってください。",
            &["ローマまでの一番安い航空券を探して", "近くのホテルを予約し", "旅程をメールで送ってください"],
        );
        check(
            "Please do all of the following for me today:\n- read the file\n- count its many words",
            &["Please do all of the following for me today", "read the file", "count its many words"],
        );
    }

    #[test]
    fn a_short_question_stays_whole() {
        check("read a file, and write it", &[]);
        check("one long question without any border in it that goes on for quite a while", &[]);
        check("", &[]);
    }

    #[test]
    fn there_is_an_end_to_clauses() {
        assert_eq!(clauses(&"three more words, ".repeat(50)).len(), CLAUSES_MAX);
    }
}
