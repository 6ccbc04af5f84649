//! Property tests: every non-empty value appears in the text, no text is larger than JSON, and none exceeds its budget.

use proptest::prelude::*;
use serde_json::{Map, Number, Value};

use super::super::render::{flat, length, render};
use super::*;

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-1e6..1e6f64).prop_map(|number| Number::from_f64(number).map_or(Value::Null, Value::Number)),
        "[a-c;,\"\\\\\n 1-3\\[{:#設…-]{0,6}".prop_map(Value::from),
        Just(Value::from("")),
        Just(Value::from("same")),
        Just(Value::from("true")),
    ]
}

fn key() -> impl Strategy<Value = String> {
    prop_oneof![4 => "[a-c]", 1 => "[ab]\\.[ab]", 1 => "[a-c]\\[\\]", 1 => "[設\" ,:-]{0,2}"]
}

/// Generates mostly rows, the values that compaction splits into columns.
fn any_value() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(5, 60, 6, |inner| {
        let object = proptest::collection::vec((key(), inner.clone()), 0..5)
            .prop_map(|members| Value::Object(members.into_iter().collect::<Map<_, _>>()))
            .boxed();
        prop_oneof![
            object.clone(),
            proptest::collection::vec(inner, 0..5).prop_map(Value::from),
            proptest::collection::vec(object.clone(), 0..6).prop_map(Value::from),
            (object, 2..9usize).prop_map(|(row, rows)| Value::from(vec![row; rows])),
        ]
    })
}

/// Collects every non-empty scalar in all its possible spellings.
fn scalars(value: &Value, found: &mut Vec<Vec<String>>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| scalars(item, found)),
        Value::Object(members) => members.values().for_each(|value| scalars(value, found)),
        Value::Null => {}
        Value::String(text) if text.is_empty() => {}
        Value::String(text) => {
            let escape = |text: &str| {
                let quoted = Value::from(text).to_string();
                quoted[1..quoted.len() - 1].to_owned()
            };
            let once = escape(text);
            found.push(vec![escape(&once), once, text.clone()]);
        }
        other => found.push(vec![other.to_string(), plain_number(other)]),
    }
}

/// TOON writes `1.0` as `1`.
fn plain_number(value: &Value) -> String {
    value.as_f64().map_or_else(|| value.to_string(), |number| number.to_string())
}

proptest! {
    #[test]
    fn nothing_but_what_is_empty_is_lost(value in any_value(), hoist in any::<bool>()) {
        let mut found = Vec::new();
        scalars(&value, &mut found);
        let texts = [Some(render(&value, hoist).0), flat(&value, hoist).map(|flat| flat.to_string())];
        for text in texts.into_iter().flatten() {
            for ways in &found {
                prop_assert!(ways.iter().any(|way| text.contains(way)), "{ways:?} of {value} is not in:\n{text}");
            }
        }
    }

    #[test]
    fn no_answer_is_larger_than_json(value in any_value()) {
        prop_assert!(compact(&value, None, AMPLE).text.len() <= length(&value));
    }

    #[test]
    fn no_answer_is_larger_than_its_budget(value in any_value(), budget in 0..400usize) {
        let compacted = compact(&value, None, budget);
        prop_assert!(compacted.text.len() <= budget);
        prop_assert!(compacted.left_out.as_ref().is_none_or(|left| left.len() <= LEFT_OUT_BYTES));
        let whole = compact(&value, None, AMPLE);
        prop_assert_eq!(compacted.left_out.is_none(), whole.text.len() <= budget);
        prop_assert_eq!(&compacted, &compact(&value, None, budget));
    }
}
