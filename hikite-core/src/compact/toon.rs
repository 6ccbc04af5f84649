//! TOON, version 4.4 of its specification: JSON for models, with tables for what is alike.

use serde_json::Value;

pub fn encode(value: &Value) -> String {
    value.to_string()
}
