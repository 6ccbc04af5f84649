//! Explains a search hit in a few words: the words it shares with the query and their fields, the vector similarity,
//! and earlier use for similar queries.

use std::fmt::Write;

use super::lexical::{DESCRIPTION, LexicalIndex, MODULE, NAME};
use super::word::QueryTerm;

/// Lowest similarity that is mentioned.
const SIMILARITY_MIN: f32 = 0.2;
/// Most words listed per field.
const WORDS_MAX: usize = 6;

/// Facts about one hit.
#[derive(Debug)]
pub(super) struct HitReasons<'a> {
    pub(super) document: usize,
    pub(super) words: &'a [&'a QueryTerm],
    pub(super) similarity: Option<f32>,
    pub(super) is_named: bool,
    pub(super) was_used: bool,
}

/// Fields in order of precedence; a word is listed only under the first that contains it.
const FIELDS: [(u8, &str); 4] =
    [(NAME, "name"), (MODULE, "module"), (DESCRIPTION, "description"), (u8::MAX, "parameters")];

pub(super) fn explain(lexical: &LexicalIndex, reasons: &HitReasons<'_>) -> String {
    let mut places: [Vec<&str>; FIELDS.len()] = Default::default();
    for word in reasons.words {
        let (_, bits) = lexical.impact_of(word.term, reasons.document);
        if let Some(at) = FIELDS.iter().position(|(field, _)| bits & field != 0)
            && places[at].len() < WORDS_MAX
        {
            places[at].push(&word.text);
        }
    }
    let mut text = String::new();
    if reasons.is_named {
        push_reason(&mut text, format_args!("named in the query"));
    }
    for ((_, field), words) in FIELDS.iter().zip(places).filter(|(_, words)| !words.is_empty()) {
        push_reason(&mut text, format_args!("{field}: {}", words.join(", ")));
    }
    if let Some(similarity) = reasons.similarity.filter(|similarity| *similarity >= SIMILARITY_MIN) {
        push_reason(&mut text, format_args!("semantic similarity {similarity:.2}"));
    }
    if reasons.was_used {
        push_reason(&mut text, format_args!("used before for a similar query"));
    }
    text
}

fn push_reason(text: &mut String, reason: std::fmt::Arguments<'_>) {
    let _ = write!(text, "{}{reason}", if text.is_empty() { "" } else { "; " });
}
