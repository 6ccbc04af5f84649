//! What a text costs a model, guessed from its characters: for budgets on the path of a call, where counting with a real
//! vocabulary would take longer than what it saves.

/// Of usual text one token is about so many bytes.
const BYTES_PER_TOKEN: u64 = 4;

/// What each thing costs, in hundredths of a token: fitted to what o200k makes of documentation in English and Japanese,
/// recorded answers as JSON, and tables as TOON.
const WORD: usize = 107;
/// Up to three digits.
const DIGITS: usize = 128;
/// Signs in a row.
const SIGNS: usize = 71;
/// The end of a line, with the blanks that begin the next.
const LINE: usize = 172;
const KANA: usize = 90;
const KANJI: usize = 60;
const OTHER: usize = 42;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Upper,
    Lower,
    Digit,
    Sign,
    Blank,
    Wide,
}

/// About as many tokens as a vocabulary of today (o200k) makes of the text: for more than a few words, a tenth too many
/// or too few.
pub fn estimate(text: &str) -> usize {
    let mut cost = 0;
    let mut last = Class::Blank;
    // How long the run is that the last character belongs to, and whether it is blanks with the end of a line.
    let (mut run, mut line) = (0, false);
    for character in text.chars() {
        let class = class_of(character);
        let goes_on = class == last || (last == Class::Upper && class == Class::Lower);
        run = if goes_on { run + 1 } else { 1 };
        cost += match class {
            Class::Upper | Class::Lower if run == 1 => WORD,
            Class::Digit if run % 3 == 1 => DIGITS,
            Class::Sign if run == 1 => SIGNS,
            Class::Blank if character == '\n' && !(line && goes_on) => LINE,
            Class::Wide => wide(character),
            _ => 0,
        };
        line = class == Class::Blank && (character == '\n' || (line && goes_on));
        // A capital letter after small ones begins a word, small ones after a capital letter do not.
        last = class;
    }
    cost.div_ceil(100)
}

/// The same for text of which only the length is known: rough, and at no price.
pub fn of_bytes(bytes: u64) -> u64 {
    bytes.div_ceil(BYTES_PER_TOKEN)
}

fn class_of(character: char) -> Class {
    match character {
        'A'..='Z' => Class::Upper,
        'a'..='z' => Class::Lower,
        '0'..='9' => Class::Digit,
        ' ' | '\t' | '\r' | '\n' => Class::Blank,
        _ if character.is_ascii() => Class::Sign,
        _ => Class::Wide,
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

    /// `counted` was counted with the vocabulary itself.
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
        check(
            "github-issues",
            8426,
            include_str!("../../hikite-testkit/fixtures/answers/github-issues.json"),
        );
        check(
            "github-repository",
            1785,
            include_str!("../../hikite-testkit/fixtures/answers/github-repository.json"),
        );
        check(
            "github-search-issues",
            1316,
            include_str!("../../hikite-testkit/fixtures/answers/github-search-issues.json"),
        );
        check(
            "notion-blocks",
            3436,
            include_str!("../../hikite-testkit/fixtures/answers/notion-blocks.json"),
        );
        check(
            "notion-file-uploads",
            4359,
            include_str!("../../hikite-testkit/fixtures/answers/notion-file-uploads.json"),
        );
        check("notion-query", 8561, include_str!("../../hikite-testkit/fixtures/answers/notion-query.json"));
        check(
            "notion-search",
            8584,
            include_str!("../../hikite-testkit/fixtures/answers/notion-search.json"),
        );
        check("notion-users", 266, include_str!("../../hikite-testkit/fixtures/answers/notion-users.json"));
    }

    #[test]
    fn nothing_costs_nothing_and_more_costs_more() {
        assert_eq!((estimate(""), estimate(" ")), (0, 0));
        assert!(estimate("word word") > estimate("word"));
        assert!(estimate("設計設計") > estimate("設計"));
    }
}
