//! The fuzz targets, on the stable toolchain. Each runs for one second under `cargo test`, or for
//! `BOLERO_RANDOM_TEST_TIME_MS`. Inputs are real ones with a few random edits, so that they get past the first byte; a
//! failure is shrunk and printed with its seed.

use bolero::{TypeGenerator, check};
use hikite_fuzz::seed::{ANSWERS, CHECKS, CONFIGS, LINES, MESSAGES, OBJECTS, PLANS, STREAMS, WORDS};

#[test]
fn message() {
    check!().with_type::<FuzzInput>().for_each(|draft| hikite_fuzz::message::assert_properties(&draft.bytes(MESSAGES)));
}

#[test]
fn object() {
    check!().with_type::<FuzzInput>().for_each(|draft| hikite_fuzz::object::assert_properties(&draft.bytes(OBJECTS)));
}

#[test]
fn check_arguments() {
    check!().with_type::<FuzzInput>().for_each(|draft| hikite_fuzz::check::assert_properties(&draft.bytes(CHECKS)));
}

#[test]
fn plan() {
    check!().with_type::<FuzzInput>().for_each(|draft| hikite_fuzz::plan::assert_properties(&draft.bytes(PLANS)));
}

#[test]
fn line() {
    check!()
        .with_type::<(FuzzInput, Vec<u8>)>()
        .for_each(|(draft, lengths)| hikite_fuzz::line::assert_properties(&draft.bytes(LINES), lengths));
}

#[test]
fn sse() {
    check!()
        .with_type::<(FuzzInput, Vec<u8>)>()
        .for_each(|(draft, lengths)| hikite_fuzz::sse::assert_properties(&draft.bytes(STREAMS), lengths));
}

#[test]
fn config() {
    check!().with_type::<FuzzInput>().for_each(|draft| {
        hikite_fuzz::config::assert_properties(&String::from_utf8_lossy(&draft.bytes(CONFIGS)));
    });
}

#[test]
fn toon() {
    check!().with_type::<FuzzInput>().for_each(|draft| hikite_fuzz::toon::assert_properties(&draft.bytes(ANSWERS)));
}

#[test]
fn unedited_inputs_hold() {
    for text in CHECKS {
        hikite_fuzz::check::assert_properties(text.as_bytes());
    }
    for text in PLANS {
        hikite_fuzz::plan::assert_properties(text.as_bytes());
    }
    MESSAGES.iter().chain(OBJECTS).for_each(|text| {
        hikite_fuzz::message::assert_properties(text.as_bytes());
        hikite_fuzz::object::assert_properties(text.as_bytes());
    });
    ANSWERS
        .iter()
        .chain(OBJECTS)
        .chain(MESSAGES)
        .for_each(|text| hikite_fuzz::toon::assert_properties(text.as_bytes()));
    for text in LINES.iter().chain(STREAMS).chain(MESSAGES) {
        for length in 1..=64 {
            hikite_fuzz::line::assert_properties(text.as_bytes(), &[length]);
            hikite_fuzz::sse::assert_properties(text.as_bytes(), &[length]);
        }
    }
    CONFIGS.iter().chain(OBJECTS).chain(MESSAGES).for_each(|text| hikite_fuzz::config::assert_properties(text));
}

/// A real input and the edits to apply to it.
#[derive(Clone, Debug, TypeGenerator)]
struct FuzzInput {
    seed: u8,
    edits: Vec<FuzzEdit>,
}

/// An edit of the input. Positions wrap around at the end.
#[derive(Clone, Debug, TypeGenerator)]
enum FuzzEdit {
    Replace { at: u16, byte: u8 },
    Remove { at: u16, length: u8 },
    Insert { at: u16, word: u8 },
    Raw { at: u16, bytes: Vec<u8> },
    Repeat { at: u16, length: u8 },
    Splice { at: u16, seed: u8, from: u16 },
    Truncate { at: u16 },
}

impl FuzzInput {
    fn bytes(&self, seeds: &[&str]) -> Vec<u8> {
        let mut bytes = pick(seeds, self.seed).as_bytes().to_vec();
        // More edits would leave nothing of the input.
        for edit in self.edits.iter().take(6) {
            edit.apply(&mut bytes, seeds);
        }
        bytes
    }
}

impl FuzzEdit {
    fn apply(&self, bytes: &mut Vec<u8>, seeds: &[&str]) {
        let place = |at: u16, length: u8| {
            let start = usize::from(at) % (bytes.len() + 1);
            start..bytes.len().min(start + usize::from(length))
        };
        match self {
            Self::Replace { at, byte } => {
                let range = place(*at, 1);
                bytes.splice(range, [*byte]);
            }
            Self::Remove { at, length } => {
                let range = place(*at, *length);
                bytes.drain(range);
            }
            Self::Insert { at, word } => {
                let range = place(*at, 0);
                bytes.splice(range, pick(WORDS, *word).bytes());
            }
            Self::Raw { at, bytes: raw } => {
                let range = place(*at, 0);
                bytes.splice(range, raw.iter().copied());
            }
            Self::Repeat { at, length } => {
                let range = place(*at, *length);
                let again = bytes[range.clone()].to_vec();
                bytes.splice(range.start..range.start, again);
            }
            Self::Splice { at, seed, from } => {
                let other = pick(seeds, *seed).as_bytes();
                let range = place(*at, u8::MAX);
                bytes.splice(range, other.iter().skip(usize::from(*from) % (other.len() + 1)).copied());
            }
            Self::Truncate { at } => bytes.truncate(usize::from(*at) % (bytes.len() + 1)),
        }
    }
}

fn pick<'a>(texts: &[&'a str], index: u8) -> &'a str {
    texts[usize::from(index) % texts.len()]
}
