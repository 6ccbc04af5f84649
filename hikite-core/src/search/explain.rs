//! Explains a search hit in a few words: the words it shares with the query and their fields, the vector similarity,
//! and earlier use for similar queries.

use std::fmt::Write;

use super::lexical::{DESCRIPTION, Lexical, MODULE, NAME};
use super::question::Asked;

/// Lowest similarity that is mentioned.
const MEANING_LEAST: f32 = 0.2;
/// Most words listed per field.
const WORDS_MAX: usize = 6;

/// Facts about one hit.
#[derive(Debug)]
pub(super) struct Reasons<'a> {
    pub(super) document: usize,
    pub(super) words: &'a [&'a Asked],
    pub(super) likeness: Option<f32>,
    pub(super) is_named: bool,
    pub(super) was_used: bool,
}

/// Fields in order of precedence; a word is listed only under the first that contains it.
const FIELDS: [(u8, &str); 4] =
    [(NAME, "name"), (MODULE, "module"), (DESCRIPTION, "description"), (u8::MAX, "parameters")];

pub(super) fn explain(lexical: &Lexical, reasons: &Reasons<'_>) -> String {
    let mut places: [Vec<&str>; FIELDS.len()] = Default::default();
    for word in reasons.words {
        let (_, bits) = lexical.gain_of(word.term, reasons.document);
        if let Some(at) = FIELDS.iter().position(|(field, _)| bits & field != 0)
            && places[at].len() < WORDS_MAX
        {
            places[at].push(&word.text);
        }
    }
    let mut text = String::new();
    if reasons.is_named {
        tell(&mut text, format_args!("named in the question"));
    }
    for ((_, field), words) in FIELDS.iter().zip(places).filter(|(_, words)| !words.is_empty()) {
        tell(&mut text, format_args!("{field}: {}", words.join(", ")));
    }
    if let Some(likeness) = reasons.likeness.filter(|likeness| *likeness >= MEANING_LEAST) {
        tell(&mut text, format_args!("meaning {likeness:.2}"));
    }
    if reasons.was_used {
        tell(&mut text, format_args!("used before for a similar question"));
    }
    text
}

fn tell(text: &mut String, reason: std::fmt::Arguments<'_>) {
    let _ = write!(text, "{}{reason}", if text.is_empty() { "" } else { "; " });
}
