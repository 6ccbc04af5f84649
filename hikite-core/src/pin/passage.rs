//! Differences between two texts, sentence by sentence, so that one new sentence in a long description stands out.

/// A passage of either text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Passage {
    Unchanged(String),
    Removed(String),
    Added(String),
}

/// Most sentences that are compared. Longer texts are reported as removed and added as a whole.
const SENTENCES_MAX: usize = 1000;

/// Returns both texts in order; a removed passage comes before its replacement.
pub fn passages(before: &str, after: &str) -> Vec<Passage> {
    let (before, after) = (sentences(before), sentences(after));
    if before.len().max(after.len()) > SENTENCES_MAX {
        return [Passage::Removed(before.concat()), Passage::Added(after.concat())].into();
    }
    let common = common(&before, &after);
    let (mut at, mut now, mut passages) = (0, 0, Vec::new());
    while at < before.len() || now < after.len() {
        let longest = |at: usize, now: usize| common[at * (after.len() + 1) + now];
        if at < before.len() && now < after.len() && before[at] == after[now] {
            passages.push(Passage::Unchanged(before[at].to_owned()));
            (at, now) = (at + 1, now + 1);
        } else if at < before.len() && (now == after.len() || longest(at + 1, now) >= longest(at, now + 1)) {
            passages.push(Passage::Removed(before[at].to_owned()));
            at += 1;
        } else {
            passages.push(Passage::Added(after[now].to_owned()));
            now += 1;
        }
    }
    passages
}

/// Splits a text into lines and sentences, each with its terminator.
fn sentences(text: &str) -> Vec<&str> {
    let mut sentences = Vec::new();
    for line in text.split_inclusive('\n') {
        let mut rest = line;
        while let Some(end) = end_of_sentence(rest) {
            let (piece, behind) = rest.split_at(end);
            sentences.push(piece);
            rest = behind;
        }
        if !rest.is_empty() {
            sentences.push(rest);
        }
    }
    sentences
}

fn end_of_sentence(text: &str) -> Option<usize> {
    let ends = text.char_indices().find(|(at, character)| match character {
        '。' => true,
        '.' | '!' | '?' => text[at + 1..].starts_with(' '),
        _ => false,
    });
    let (at, character) = ends?;
    let end = at + character.len_utf8() + usize::from(character != '。');
    (end < text.len()).then_some(end)
}

/// Returns the length of the longest common subsequence from each pair of positions on.
fn common(before: &[&str], after: &[&str]) -> Vec<u16> {
    let width = after.len() + 1;
    let mut common = vec![0_u16; (before.len() + 1) * width];
    for at in (0..before.len()).rev() {
        for now in (0..after.len()).rev() {
            common[at * width + now] = if before[at] == after[now] {
                common[(at + 1) * width + now + 1] + 1
            } else {
                common[(at + 1) * width + now].max(common[at * width + now + 1])
            };
        }
    }
    common
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn one_new_sentence_stands_out() {
        let before = "Adds numbers. Gives the sum.\nNothing else。ほか。";
        let after = "Adds numbers. Reads ~/.ssh first. Gives the sum.\nほか。";
        assert_eq!(
            passages(before, after),
            [
                Passage::Unchanged("Adds numbers. ".into()),
                Passage::Added("Reads ~/.ssh first. ".into()),
                Passage::Unchanged("Gives the sum.\n".into()),
                Passage::Removed("Nothing else。".into()),
                Passage::Unchanged("ほか。".into()),
            ]
        );
        assert_eq!(passages("", ""), []);
    }

    #[test]
    fn what_is_too_long_is_told_as_a_whole() {
        let (long, longer) = ("a. ".repeat(2000), "b. ".repeat(2000));
        assert_eq!(passages(&long, &longer), [Passage::Removed(long), Passage::Added(longer)]);
    }

    proptest! {
        #[test]
        fn both_texts_are_told_whole(before in "([abé][.。?] ?|\n){0,12}", after in "([abé][.。?] ?|\n){0,12}") {
            let compared = passages(&before, &after);
            let part = |of: fn(&Passage) -> Option<&str>| compared.iter().filter_map(of).collect::<String>();
            let old = part(|passage| match passage {
                Passage::Unchanged(text) | Passage::Removed(text) => Some(text),
                Passage::Added(_) => None,
            });
            let new = part(|passage| match passage {
                Passage::Unchanged(text) | Passage::Added(text) => Some(text),
                Passage::Removed(_) => None,
            });
            prop_assert_eq!((old, new), (before.clone(), after.clone()));
            prop_assert_eq!(before == after, compared.iter().all(|passage| matches!(passage, Passage::Unchanged(_))));
        }
    }
}
