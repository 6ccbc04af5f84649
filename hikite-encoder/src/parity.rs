//! Comparison with the published model in full precision (`model/reference.py`): equal pieces, and equal vectors up to
//! quantization error.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use hikite_core::search::encoder::{Encoder, Vector};
use proptest::prelude::*;
use serde_json::Value;

use crate::file::ModelFile;
use crate::tokenizer::{PIECES_MAX, PieceTokenizer, UNKNOWN};
use crate::trie::Trie;
use crate::{ENCODER, SentenceEncoder};

fn cases() -> Vec<Value> {
    serde_json::from_str(include_str!("../model/reference.json")).expect("cases")
}

fn text(case: &Value) -> &str {
    case["text"].as_str().expect("a text")
}

/// Returns the rows of the pieces that the published tokenizer produced, or `None` if our table lacks one of them.
fn rows(case: &Value) -> Option<Vec<usize>> {
    let trie = Trie::new(ModelFile::read().pieces);
    let row = |piece: &str| {
        let mut row = None;
        trie.prefixes(piece.as_bytes(), |length, value| row = (length == piece.len()).then_some(value));
        if piece == "<unk>" { Some(UNKNOWN) } else { row }
    };
    let pieces = case["pieces"].as_array().expect("pieces").iter();
    let rows: Option<Vec<usize>> = pieces.map(|piece| row(piece.as_str().expect("a piece"))).collect();
    rows.map(|rows| [vec![1], rows, vec![2]].concat())
}

#[test]
fn texts_are_cut_as_the_package_cuts_them() {
    let pieces = PieceTokenizer::new(&ModelFile::read());
    let mut compared = 0;
    for case in cases() {
        if let Some(expected) = rows(&case) {
            assert_eq!(pieces.tokenize(text(&case)), expected, "{}", text(&case));
            compared += 1;
        }
    }
    assert!(compared >= 40, "{compared}");
}

#[test]
fn vectors_are_those_of_the_package() {
    let encoder = SentenceEncoder::new();
    let mut likenesses = Vec::new();
    for case in cases().iter().filter(|case| rows(case).is_some()) {
        let bytes = STANDARD_NO_PAD.decode(case["vector"].as_str().expect("a vector")).expect("base64");
        let expected: Vec<f32> = bytes.as_chunks().0.iter().map(|pair| f32::from(i16::from_le_bytes(*pair))).collect();
        let found = if case["side"] == "tool" { encoder.tool(text(case)) } else { encoder.question(text(case)) };
        likenesses.push((cosine(&found, &expected), text(case).chars().take(60).collect::<String>()));
    }
    likenesses.sort_by(|a, b| a.0.total_cmp(&b.0));
    // Measured cosine after quantization: 0.9957 (two rare words) to 0.9999, 0.9995 on average.
    let total: f32 = likenesses.iter().map(|(similarity, _)| similarity).sum();
    let count = f32::from(u8::try_from(likenesses.len()).expect("a few cases"));
    assert!(count >= 40.0 && likenesses[0].0 > 0.995 && total / count > 0.9993, "{likenesses:#?}");
}

fn cosine(found: &Vector, expected: &[f32]) -> f32 {
    let found: Vec<f32> = found.bytes().iter().map(|byte| f32::from(*byte)).collect();
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
    dot(&found, expected) / (dot(&found, &found) * dot(expected, expected)).sqrt()
}

#[test]
fn a_text_of_any_length_costs_no_more_than_a_long_one() {
    let endless = "長い text ".repeat(100_000);
    assert_eq!(ENCODER.pieces.tokenize(&endless).len(), PIECES_MAX);
    let word = "a".repeat(1_000_000);
    assert!(ENCODER.pieces.tokenize(&word).len() <= PIECES_MAX);
}

proptest! {
    #[test]
    fn every_text_has_pieces_and_a_direction_or_none(text in any::<String>()) {
        let pieces = ENCODER.pieces.tokenize(&text);
        prop_assert!((3..=PIECES_MAX).contains(&pieces.len()));
        let vector = SentenceEncoder::new().question(&text);
        let expected = if ENCODER.pieces.has_content(&pieces) { 1.0 } else { 0.0 };
        prop_assert!((vector.similarity(&vector) - expected).abs() < 1e-5);
    }
}
