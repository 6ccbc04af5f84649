//! Parses JSON without changing any number: a literal that does not fit 64 bits becomes a string of the same digits.
//! Nothing else changes.

use std::borrow::Cow;

use serde_json::Value;

use crate::json::{Raw, canonical};

/// Number of digits that a 64-bit number always holds exactly.
const DIGITS_SAFE: usize = 15;

/// Parses a value. JSON that is nested too deeply becomes one string.
pub fn parse(raw: &Raw) -> Value {
    let exact = quote_inexact(raw.bytes());
    serde_json::from_slice(&exact).unwrap_or_else(|_| Value::String(raw.as_str().into_owned()))
}

fn quote_inexact(bytes: &[u8]) -> Cow<'_, [u8]> {
    let mut out: Option<Vec<u8>> = None;
    let (mut at, mut copied) = (0, 0);
    while at < bytes.len() {
        match bytes[at] {
            b'"' => at = end_of_string(bytes, at),
            b'-' | b'0'..=b'9' => {
                let length = bytes[at..].iter().position(|byte| !is_of_number(*byte));
                let end = length.map_or(bytes.len(), |length| at + length);
                if !is_held(&bytes[at..end]) {
                    let out = out.get_or_insert_with(|| Vec::with_capacity(bytes.len() + 16));
                    out.extend_from_slice(&bytes[copied..at]);
                    out.push(b'"');
                    out.extend_from_slice(&bytes[at..end]);
                    out.push(b'"');
                    copied = end;
                }
                at = end;
            }
            _ => at += 1,
        }
    }
    match out {
        None => Cow::Borrowed(bytes),
        Some(mut out) => {
            out.extend_from_slice(&bytes[copied..]);
            Cow::Owned(out)
        }
    }
}

/// Returns the offset after the string that begins at `start`.
fn end_of_string(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while at < bytes.len() {
        match bytes[at] {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    bytes.len()
}

fn is_of_number(byte: u8) -> bool {
    byte.is_ascii_digit() || matches!(byte, b'+' | b'-' | b'.' | b'e' | b'E')
}

fn is_held(literal: &[u8]) -> bool {
    let is_scaled = literal.iter().any(|byte| matches!(byte, b'e' | b'E'));
    if literal.len() <= DIGITS_SAFE && !is_scaled {
        return true;
    }
    let Ok(text) = str::from_utf8(literal) else { return true };
    if !is_scaled && !literal.contains(&b'.') {
        return text.parse::<i64>().is_ok() || text.parse::<u64>().is_ok();
    }
    let Some(number) = text.parse().ok().and_then(serde_json::Number::from_f64) else { return false };
    let spelling = |text: String| canonical(&Raw::trusted(text));
    spelling(text.to_owned()) == spelling(number.to_string())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &Value) {
        assert_eq!(parse(&Raw::parse(text.to_owned()).expect("JSON")), *expected, "{text}");
    }

    #[test]
    fn numbers_that_64_bits_hold_stay_numbers() {
        check("[0,-1,1.5,1e3,0.1,1.10]", &json!([0, -1, 1.5, 1000.0, 0.1, 1.1]));
        check("18446744073709551615", &json!(u64::MAX));
        check("-9223372036854775808", &json!(i64::MIN));
        check("1.7976931348623157e308", &json!(f64::MAX));
        check("123456789.12345678", &json!(123_456_789.123_456_78));
    }

    #[test]
    fn numbers_that_would_change_become_texts() {
        check(r#"{"id":18446744073709551616}"#, &json!({"id": "18446744073709551616"}));
        check("[1,-9223372036854775809,2]", &json!([1, "-9223372036854775809", 2]));
        check("3.14159265358979323846", &json!("3.14159265358979323846"));
        check("[1e400]", &json!(["1e400"]));
        check("1e-400", &json!("1e-400"));
    }

    #[test]
    fn digits_in_texts_are_texts() {
        check(r#"{"a\"18446744073709551616":"\\"}"#, &json!({"a\"18446744073709551616": "\\"}));
    }

    #[test]
    fn what_is_nested_too_deeply_is_one_text() {
        let deep = format!("{}{}", "[".repeat(1000), "]".repeat(1000));
        check(&deep, &json!(deep));
    }

    proptest! {
        #[test]
        fn no_number_changes(text in "-?(0|[1-9][0-9]{0,40})(\\.[0-9]{1,30})?([eE][+-]?[0-9]{1,3})?") {
            let raw = Raw::parse(text.clone()).expect("JSON");
            match parse(&raw) {
                Value::String(kept) => prop_assert_eq!(kept, text),
                number => prop_assert_eq!(canonical(&Raw::of(&number)), canonical(&raw)),
            }
        }
    }
}
