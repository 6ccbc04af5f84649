//! Finds the tools that a question means: by their words (`lexical`), by their meaning (`meaning`) where an encoder has
//! read them, and by what was used before (`memory`). Only what a mask holds is ever found.

mod clause;
pub mod document;
pub mod encoder;
mod explain;
mod fold;
pub mod index;
mod lexical;
mod meaning;
pub mod measure;
pub mod memory;
mod named;
pub mod question;
mod rank;
mod relevance;
mod score;
#[cfg(test)]
mod tests;
mod word;

pub use document::Document;
pub use index::{Hit, Index};
pub use memory::Trace;
pub use question::Question;

use std::collections::{HashMap, HashSet};

/// The indices of the documents that match, best first, with their score.
pub fn rank<'a>(query: &str, documents: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<(usize, f64)> {
    const K1: f64 = 1.2;
    const B: f64 = 0.75;
    let documents: Vec<Vec<String>> = documents
        .map(|(name, description)| {
            let name = words(name);
            name.iter().cloned().chain(name.iter().cloned()).chain(words(description)).collect()
        })
        .collect();
    let terms: HashSet<String> = words(query).into_iter().collect();
    let total = as_f64(documents.len());
    let average = as_f64(documents.iter().map(Vec::len).sum()) / total.max(1.0);
    let mut holders: HashMap<&str, usize> = HashMap::new();
    for document in &documents {
        for term in terms.iter().filter(|term| document.contains(term)) {
            *holders.entry(term).or_default() += 1;
        }
    }
    let mut ranked: Vec<(usize, f64)> = documents
        .iter()
        .enumerate()
        .filter_map(|(index, document)| {
            let score: f64 = terms
                .iter()
                .filter_map(|term| {
                    let frequency = as_f64(document.iter().filter(|word| *word == term).count());
                    let held = as_f64(*holders.get(term.as_str())?);
                    let rarity = (1.0 + (total - held + 0.5) / (held + 0.5)).ln();
                    let length = 1.0 - B + B * as_f64(document.len()) / average;
                    Some(rarity * frequency * (K1 + 1.0) / (frequency + K1 * length))
                })
                .sum();
            (score > 0.0).then_some((index, score))
        })
        .collect();
    ranked.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    ranked
}

#[expect(clippy::cast_precision_loss, reason = "counts of words stay far below 2^52")]
fn as_f64(count: usize) -> f64 {
    count as f64
}

/// Lower-case words; `camelCase` and `snake_case` are split, CJK text is cut into pairs of characters.
fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut before = ' ';
    for c in text.chars() {
        let boundary = !c.is_alphanumeric()
            || (c.is_uppercase() && before.is_lowercase())
            || is_cjk(c) != is_cjk(before) && before.is_alphanumeric();
        if boundary && !word.is_empty() {
            push(&mut words, std::mem::take(&mut word));
        }
        if c.is_alphanumeric() {
            word.extend(c.to_lowercase());
        }
        before = c;
    }
    push(&mut words, word);
    words
}

fn push(words: &mut Vec<String>, word: String) {
    let letters: Vec<char> = word.chars().collect();
    match letters.first() {
        Some(first) if is_cjk(*first) && letters.len() > 2 => {
            words.extend(letters.windows(2).map(|pair| pair.iter().collect::<String>()));
        }
        // The one ending that keeps `issue` and `issues` apart.
        Some(_) if word.len() > 3 && word.ends_with('s') && !word.ends_with("ss") => {
            words.push(word[..word.len() - 1].to_owned());
        }
        Some(_) => words.push(word),
        None => {}
    }
}

fn is_cjk(c: char) -> bool {
    matches!(c, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}')
}
