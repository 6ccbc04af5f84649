//! Estimates the memory use of a parsed value, which may be many times its text.

use serde_json::Value;

/// Overhead of an object member in bytes, without its name and value.
const MEMBER: usize = 48;

/// Returns the approximate number of bytes that a value takes in memory.
pub fn weight(value: &Value) -> usize {
    let inside = match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        Value::String(text) => text.capacity(),
        Value::Array(items) => items.iter().map(weight).sum(),
        Value::Object(members) => members.iter().map(|(name, value)| MEMBER + name.len() + weight(value)).sum(),
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
