//! Formats one pin: each difference under its JSON path, texts sentence by sentence.

use std::fmt::Write;

use hikite_core::json::{Object, Raw};
use hikite_core::pin::{Passage, passages};
use serde_json::Value;

pub(super) fn text(pin: &Object) -> String {
    let member = |name: &str| pin.text(name).unwrap_or_default();
    let mut text = format!("{}: {}\n", member("key"), meaning(&member("state")));
    for (name, label) in [("approvedHash", "approved"), ("hash", "offered ")] {
        if let Some(hash) = pin.text(name) {
            let _ = writeln!(text, "{label} {hash}");
        }
    }
    let changes = pin.get("diff").and_then(Raw::items).unwrap_or_default();
    for change in changes.iter().filter_map(Raw::object) {
        let _ = write!(text, "\n{}\n", change.text("path").unwrap_or_default());
        match (change.get("before").map(Raw::value), change.get("after").map(Raw::value)) {
            (Some(Value::String(before)), Some(Value::String(after))) => {
                for passage in passages(&before, &after) {
                    marked(&mut text, &passage);
                }
            }
            (before, after) => {
                let gone = before.map(|value| Passage::Removed(written(&value)));
                let new = after.map(|value| Passage::Added(written(&value)));
                for passage in gone.into_iter().chain(new) {
                    marked(&mut text, &passage);
                }
            }
        }
    }
    if changes.is_empty() {
        text.push_str("\nno differences\n");
    }
    text.truncate(text.trim_end().len());
    text
}

fn meaning(state: &str) -> &str {
    match state {
        "ok" => "approved",
        "changed" => "changed since it was approved; it cannot be called",
        "new" => "new; it cannot be called before it is approved",
        "blocked" => "blocked; it cannot be called",
        other => other,
    }
}

/// Formats text unchanged, and other values as JSON.
fn written(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => format!("{other:#}"),
    }
}

fn marked(text: &mut String, passage: &Passage) {
    let (mark, part) = match passage {
        Passage::Unchanged(part) => (' ', part),
        Passage::Removed(part) => ('-', part),
        Passage::Added(part) => ('+', part),
    };
    for line in part.lines() {
        let _ = writeln!(text, "  {mark} {}", line.trim_end());
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_difference_is_shown_under_its_place() {
        let pin = json!({
            "key": "m:t", "state": "changed", "approvedHash": "aa", "hash": "bb",
            "diff": [
                { "path": "/description", "before": "Adds. Gives the sum.", "after": "Adds. Reads secrets. Gives the sum." },
                { "path": "/inputSchema/properties/x", "before": { "type": "string" } },
                { "path": "/annotations/readOnlyHint", "before": true, "after": false },
                { "path": "/title", "after": "Sum" },
            ],
        });
        let shown = text(&Raw::of(&pin).object().expect("an object"));
        let expected = "m:t: changed since it was approved; it cannot be called
approved aa
offered  bb

/description
    Adds.
  + Reads secrets.
    Gives the sum.

/inputSchema/properties/x
  - {
  -   \"type\": \"string\"
  - }

/annotations/readOnlyHint
  - true
  + false

/title
  + Sum";
        assert_eq!(shown, expected);
    }
}
