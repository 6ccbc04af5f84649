//! Estimates how many model tokens a text takes from its characters. Used for budgets during calls, where a real
//! tokenizer would cost more time than it saves.

/// Average bytes per token of ordinary text.
const BYTES_PER_TOKEN: u64 = 4;

/// Costs in hundredths of a token, fitted to o200k counts of English and Japanese documentation, recorded JSON results,
/// and TOON tables.
const WORD: usize = 107;
/// Up to three digits.
const DIGITS: usize = 128;
/// A run of punctuation.
const PUNCTUATION: usize = 71;
/// A line end with the following indentation.
const LINE: usize = 172;
const KANA: usize = 90;
const KANJI: usize = 60;
const OTHER: usize = 42;

#[derive(Clone, Copy, PartialEq, Eq)]
enum CharacterClass {
    Upper,
    Lower,
    Digit,
    Punctuation,
    Blank,
    Wide,
}

/// Estimates the number of o200k tokens. Within about 10 % for more than a few words.
pub fn estimate(text: &str) -> usize {
    let mut cost = 0;
    let mut last = CharacterClass::Blank;
    // Length of the current run, and whether it is whitespace that contains a line end.
    let (mut run, mut line) = (0, false);
    for character in text.chars() {
        let class = class_of(character);
        let continues = class == last || (last == CharacterClass::Upper && class == CharacterClass::Lower);
        run = if continues { run + 1 } else { 1 };
        cost += match class {
            CharacterClass::Upper | CharacterClass::Lower if run == 1 => WORD,
            CharacterClass::Digit if run % 3 == 1 => DIGITS,
            CharacterClass::Punctuation if run == 1 => PUNCTUATION,
            CharacterClass::Blank if character == '\n' && !(line && continues) => LINE,
            CharacterClass::Wide => wide(character),
            _ => 0,
        };
        line = class == CharacterClass::Blank && (character == '\n' || (line && continues));
        // An upper-case letter after lower-case ones begins a word; the reverse does not.
        last = class;
    }
    cost.div_ceil(100)
}

/// Estimates the tokens of a text from its length alone: rough but free.
pub fn of_bytes(bytes: u64) -> u64 {
    bytes.div_ceil(BYTES_PER_TOKEN)
}

fn class_of(character: char) -> CharacterClass {
    match character {
        'A'..='Z' => CharacterClass::Upper,
        'a'..='z' => CharacterClass::Lower,
        '0'..='9' => CharacterClass::Digit,
        ' ' | '\t' | '\r' | '\n' => CharacterClass::Blank,
        _ if character.is_ascii() => CharacterClass::Punctuation,
        _ => CharacterClass::Wide,
    }
}

fn wide(character: char) -> usize {
    match character {
        '\u{3040}'..='\u{30ff}' => KANA,
        '\u{3400}'..='\u{9fff}' | '\u{20000}'..='\u{3ffff}' => KANJI,
        _ => OTHER,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares the estimate with `counted`, the count of the real tokenizer.
    #[track_caller]
    fn check(name: &str, counted: usize, text: &str) {
        let guessed = estimate(text);
        let (least, most) = (counted * 85 / 100, counted * 115 / 100);
        assert!((least..=most).contains(&guessed), "{name}: {guessed}, but {counted} were counted");
    }

    #[test]
    fn a_guess_is_near_what_is_counted() {
        check("English", 80, include_str!("../tests/fixtures/tokens/en.txt"));
        check("Japanese", 104, include_str!("../tests/fixtures/tokens/ja.txt"));
        check("Markdown", 63, include_str!("../tests/fixtures/tokens/mixed.txt"));
        check("TOON", 133, include_str!("../tests/fixtures/tokens/table.toon"));
        check("JSON", 90, include_str!("../tests/fixtures/tokens/object.json"));
    }

    #[test]
    fn a_guess_for_a_recorded_answer_is_near_what_is_counted() {
        check("github-issues", 8426, include_str!("../../hikite-testkit/fixtures/answers/github-issues.json"));
        check("github-repository", 1785, include_str!("../../hikite-testkit/fixtures/answers/github-repository.json"));
        check(
            "github-search-issues",
            1316,
            include_str!("../../hikite-testkit/fixtures/answers/github-search-issues.json"),
        );
        check("notion-blocks", 3436, include_str!("../../hikite-testkit/fixtures/answers/notion-blocks.json"));
        check(
            "notion-file-uploads",
            4359,
            include_str!("../../hikite-testkit/fixtures/answers/notion-file-uploads.json"),
        );
        check("notion-query", 8561, include_str!("../../hikite-testkit/fixtures/answers/notion-query.json"));
        check("notion-search", 8584, include_str!("../../hikite-testkit/fixtures/answers/notion-search.json"));
        check("notion-users", 266, include_str!("../../hikite-testkit/fixtures/answers/notion-users.json"));
    }

    #[test]
    fn nothing_costs_nothing_and_more_costs_more() {
        assert_eq!((estimate(""), estimate(" ")), (0, 0));
        assert!(estimate("word word") > estimate("word"));
        assert!(estimate("設計設計") > estimate("設計"));
    }
}
