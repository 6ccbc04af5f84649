//! How much memory a value takes once it is read, which may be many times its text.

use serde_json::Value;

/// A member of an object beside its name and its value.
const MEMBER: usize = 48;

/// Bytes that a value takes, about.
pub fn weight(value: &Value) -> usize {
    let inside = match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        Value::String(text) => text.capacity(),
        Value::Array(items) => items.iter().map(weight).sum(),
        Value::Object(members) => {
            members.iter().map(|(name, value)| MEMBER + name.len() + weight(value)).sum()
        }
    };
    size_of::<Value>() + inside
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_list_of_small_numbers_is_heavier_than_its_text() {
        let list = json!(vec![1; 1000]);
        assert!(weight(&list) >= 1000 * size_of::<Value>());
        assert!(weight(&json!({ "text": "x".repeat(5000) })) >= 5000);
    }
}
