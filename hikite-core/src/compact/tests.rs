//! The whole way of an answer, and what must hold for any answer.

use serde_json::json;

use super::*;

mod property;

const AMPLE: usize = usize::MAX;

#[test]
fn words_stay_words() {
    for text in ["# 題名\n\n本文", "<p>x</p>", "", "12"] {
        let compacted = compact(&json!(text), None, AMPLE);
        assert_eq!((compacted.text.as_str(), compacted.form, compacted.left_out), (text, Form::Text, None));
    }
}
