//! Comparison with the reference (`model/reference.py`): the tokenizers of the published packages and the network before
//! quantization. Tokens are equal, vectors nearly so.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hikite_core::search::encoder::{Encoder, Vector};
use proptest::prelude::*;
use serde_json::Value;

use crate::tokenizer::TOKENS_MAX;
use crate::{ENCODER, SentenceEncoder};

fn cases() -> Vec<Value> {
    let lines = include_str!("../model/reference.jsonl").lines();
    lines.map(|line| serde_json::from_str(line).expect("a case")).collect()
}

fn text(case: &Value) -> &str {
    case["text"].as_str().expect("a text")
}

#[test]
fn texts_are_cut_as_the_reference_cuts_them() {
    let cases = cases();
    assert!(cases.len() >= 2000);
    for case in &cases {
        let rows = ENCODER.tokenizer.tokenize(text(case)).next();
        assert_eq!(serde_json::json!(rows), case["rows"], "{}", text(case));
    }
}

#[test]
fn vectors_are_those_of_the_reference() {
    let encoder = SentenceEncoder::new();
    let cases = cases();
    let mut compared = 0;
    for (case, expected) in cases.iter().filter_map(|case| Some((case, case["vector"].as_str()?))) {
        let bytes = STANDARD.decode(expected).expect("base64");
        let expected = Vector::from_bytes(bytes.into_iter().map(u8::cast_signed).collect());
        let found = encoder.tool(text(case));
        // A text without a known piece has no direction here.
        if found.similarity(&found) > 0.5 {
            let similarity = found.similarity(&expected);
            assert!(similarity > 0.99, "{similarity} for {}", text(case));
            compared += 1;
        }
    }
    assert!(compared >= 95, "{compared}");
}

#[test]
fn a_text_of_any_length_costs_no_more_than_a_long_one() {
    let long = "長い text ".repeat(100_000);
    assert!(ENCODER.tokenizer.tokenize(&long).all(|rows| rows.len() <= TOKENS_MAX));
    assert!(ENCODER.tokenizer.tokenize(&long).count() < 100, "the rest is not even tokenized");
    assert_eq!(ENCODER.tokenizer.tokenize(&"a".repeat(1_000_000)).count(), 1, "a word that is too long is one unknown");
}

#[test]
fn the_end_of_a_long_question_counts() {
    let encoder = SentenceEncoder::new();
    let long = |end: &str| format!("{}{end}", "Please look at everything that we talked about before. ".repeat(10));
    let tool = encoder.tool("weather get forecast: The weather forecast of a city");
    let (with, without) = (long("What will the weather be in Osaka?"), long("Then send the mail."));
    let similarity = |text: &str| encoder.question(text).similarity(&tool);
    assert!(similarity(&with) > similarity(&without) + 0.1);
}

proptest! {
    #[test]
    fn every_text_has_tokens_and_a_direction_or_none(text in any::<String>()) {
        let windows: Vec<Vec<usize>> = ENCODER.tokenizer.tokenize(&text).collect();
        prop_assert!(windows.iter().all(|rows| (3..=TOKENS_MAX).contains(&rows.len())));
        let vector = SentenceEncoder::new().question(&text);
        let expected = if windows.iter().any(|rows| ENCODER.tokenizer.has_content(rows)) { 1.0 } else { 0.0 };
        prop_assert!((vector.similarity(&vector) - expected).abs() < 1e-5);
    }
}
