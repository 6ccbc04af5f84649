//! TOON. Any JSON is encoded without a panic, an independent decoder reads the same value back, and a size limit only
//! decides whether there is output.

use hikite_core::compact::toon::{Delimiter, ToonOptions, encode, encode_with, encode_within};
use serde_json::Value;
use toon_format::{DecodeOptions, Indent, decode};

pub fn assert_properties(input: &[u8]) {
    let Ok(value) = serde_json::from_slice::<Value>(input) else { return };
    for (delimiter, indent) in [(Delimiter::Comma, 2), (Delimiter::Tab, 1), (Delimiter::Pipe, 3)] {
        let text = encode_with(&value, ToonOptions { delimiter, indent });
        let strict = DecodeOptions::new().with_strict(true).with_indent(Indent::Spaces(indent));
        let read: Value = decode(&text, &strict).expect("what we write is TOON");
        assert!(is_same(&read, &value), "{value} became {read}");
    }
    let text = encode(&value);
    let length = text.len();
    if length > 0 {
        assert_eq!(encode_within(&value, length - 1), None);
    }
    assert_eq!(encode_within(&value, length), Some(text));
}

/// Compares values: 1 equals 1.0, and member order is ignored because tables do not preserve it.
fn is_same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one == other || one.as_f64() == other.as_f64(),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| is_same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            let is_in_other =
                |(name, value): (&String, &Value)| other.get(name).is_some_and(|other| is_same(value, other));
            one.len() == other.len() && one.iter().all(is_in_other)
        }
        _ => one == other,
    }
}
