//! Differences between two tool definitions, member by member, for the person who approves them.

use serde_json::Value;

use crate::json::Raw;
use crate::violation::step;

/// One difference.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct DefinitionChange {
    /// A JSON Pointer (RFC 6901); empty for the root.
    pub path: String,
    /// `None` if the member was added.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<Value>,
    /// `None` if the member was removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<Value>,
}

/// Returns all differences: changed and removed members in the order of `before`, then added ones. Definitions that are
/// nested too deeply to parse are compared as text.
pub fn diff(before: &Raw, after: &Raw) -> Vec<DefinitionChange> {
    let mut changes = Vec::new();
    if let (Ok(before), Ok(after)) = (before.decode::<Value>(), after.decode::<Value>()) {
        compare(String::new(), &before, &after, &mut changes);
    } else if before != after {
        let text = |raw: &Raw| Some(Value::String(raw.as_str().into_owned()));
        changes.push(DefinitionChange { path: String::new(), before: text(before), after: text(after) });
    }
    changes
}

fn compare(path: String, before: &Value, after: &Value, changes: &mut Vec<DefinitionChange>) {
    match (before, after) {
        (Value::Object(before), Value::Object(after)) => {
            for (name, value) in before {
                let path = path.clone() + &step(name);
                match after.get(name) {
                    Some(now) => compare(path, value, now, changes),
                    None => changes.push(DefinitionChange { path, before: Some(value.clone()), after: None }),
                }
            }
            for (name, value) in after.iter().filter(|(name, _)| !before.contains_key(*name)) {
                let path = path.clone() + &step(name);
                changes.push(DefinitionChange { path, before: None, after: Some(value.clone()) });
            }
        }
        // Arrays of objects are compared by index, other arrays as a whole.
        (Value::Array(before), Value::Array(after))
            if before.len() == after.len() && before.iter().all(Value::is_object) =>
        {
            for (at, (value, now)) in before.iter().zip(after).enumerate() {
                compare(format!("{path}/{at}"), value, now, changes);
            }
        }
        (before, after) if before == after => {}
        (before, after) => {
            changes.push(DefinitionChange { path, before: Some(before.clone()), after: Some(after.clone()) });
        }
    }
}
