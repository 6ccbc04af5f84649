//! Encodes a list as one cell of a table: elements joined by semicolons. An element that would be ambiguous (a string
//! with a semicolon, a string of digits) is written as JSON; a missing value is empty.

use std::borrow::Cow;

use serde_json::Value;

/// Joins the elements of a list. `None` stands for an element without this member.
pub(super) fn joined(elements: &[Option<&Value>]) -> Value {
    match elements {
        // An empty list differs from a list with one element that lacks this member.
        [] => Value::Null,
        [None] => Value::String(String::new()),
        [Some(only)] => match only {
            Value::String(text) if is_plain(text) => Value::String(text.clone()),
            Value::String(_) | Value::Array(_) | Value::Object(_) => Value::String(only.to_string()),
            scalar => (*scalar).clone(),
        },
        many => {
            let mut text = String::new();
            for (at, element) in many.iter().enumerate() {
                if at > 0 {
                    text.push(';');
                }
                if let Some(element) = element {
                    text.push_str(&written(element));
                }
            }
            Value::String(text)
        }
    }
}

fn written(value: &Value) -> Cow<'_, str> {
    match value {
        Value::String(text) if is_plain(text) && !is_literal(text) => Cow::Borrowed(text),
        other => Cow::Owned(other.to_string()),
    }
}

/// Returns `true` if a string between semicolons reads as itself.
fn is_plain(text: &str) -> bool {
    !text.is_empty()
        && !text.starts_with(['"', '[', '{'])
        && !text.starts_with(char::is_whitespace)
        && !text.ends_with(char::is_whitespace)
        && !text.contains(|c: char| c == ';' || c.is_control())
}

/// Returns `true` if a string would read as a number, a boolean or null.
fn is_literal(text: &str) -> bool {
    matches!(text, "true" | "false" | "null")
        || (text.starts_with(|c: char| c == '-' || c.is_ascii_digit())
            && serde_json::from_str::<serde_json::Number>(text).is_ok())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(list: &Value, expected: &Value) {
        let elements: Vec<Option<&Value>> = list.as_array().expect("a list").iter().map(Some).collect();
        assert_eq!(joined(&elements), *expected, "{list}");
    }

    #[test]
    fn elements_stand_beside_one_another() {
        check(&json!(["bug", "設計", "a b"]), &json!("bug;設計;a b"));
        check(&json!([1, 2.5, true, null]), &json!("1;2.5;true;null"));
        check(&json!([]), &json!(null));
        assert_eq!(joined(&[None]), json!(""));
        assert_eq!(joined(&[Some(&json!("a")), None, Some(&json!("b"))]), json!("a;;b"));
    }

    #[test]
    fn one_element_is_itself() {
        check(&json!(["bug"]), &json!("bug"));
        check(&json!([7]), &json!(7));
        check(&json!(["7"]), &json!("7"));
    }

    #[test]
    fn what_would_be_misread_is_json() {
        check(&json!(["a;b", "c"]), &json!(r#""a;b";c"#));
        check(&json!(["a;b"]), &json!(r#""a;b""#));
        check(&json!(["1", 1, "true", ""]), &json!(r#""1";1;"true";"""#));
        check(&json!([[1, 2], {"a": 1}]), &json!(r#"[1,2];{"a":1}"#));
        check(&json!(["[1]", " x"]), &json!(r#""[1]";" x""#));
    }
}
