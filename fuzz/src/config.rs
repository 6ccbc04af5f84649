//! The config file. Any text yields a config or problems whose spans lie inside the text, never a panic; plain JSON
//! reads the same as with `serde_json`.

use std::io::ErrorKind;
use std::path::Path;

use hikite_config::jsonc::{self, JsoncNode, JsoncValue};
use hikite_config::{Config, ConfigEnvironment, TextPosition};

pub fn assert_properties(text: &str) {
    match jsonc::parse(text) {
        Ok(tree) => {
            spans_lie_inside(text, &tree);
            if let Ok(value) = serde_json::from_str::<serde_json::Value>(text) {
                assert_eq!(tree.json(), value);
            }
        }
        Err(error) => {
            assert!(text.is_char_boundary(error.at), "at {} of {}", error.at, text.len());
            assert!(!error.message.is_empty());
            let plain = serde_json::from_str::<serde_json::Value>(text);
            assert!(plain.is_err(), "plain JSON was refused: {error}");
        }
    }
    load(text);
}

fn load(text: &str) {
    let env = |name: &str| (name == "HOME").then(|| "/nowhere".to_owned());
    let read = |_: &Path| Err(ErrorKind::NotFound.into());
    let outside = ConfigEnvironment { env: &env, read: &read };
    let Err(problems) = Config::parse(text, Path::new("hikite.json"), outside) else { return };
    assert!(!problems.errors.is_empty(), "refused without a reason");
    for problem in &problems.errors {
        let place = problem.place.expect("a problem of a text has a place");
        assert!(is_inside(text, place), "{place} is outside: {problems}");
    }
}

fn is_inside(text: &str, place: TextPosition) -> bool {
    let line = place.line.checked_sub(1).and_then(|index| text.split('\n').nth(index));
    line.is_some_and(|line| (1..=line.chars().count() + 1).contains(&place.column))
}

fn spans_lie_inside(outer: &str, node: &JsoncNode) {
    assert!(outer.get(node.span.clone()).is_some_and(|text| !text.is_empty()), "{:?}", node.span);
    let inside = |child: &JsoncNode| node.span.start < child.span.start && child.span.end < node.span.end;
    match &node.value {
        JsoncValue::List(items) => {
            for item in items {
                assert!(inside(item));
                spans_lie_inside(outer, item);
            }
        }
        JsoncValue::Object(object) => {
            for member in &object.members {
                assert!(inside(&member.node));
                assert_eq!(outer.as_bytes().get(member.name_at), Some(&b'"'));
                spans_lie_inside(outer, &member.node);
            }
        }
        JsoncValue::Null | JsoncValue::Bool(_) | JsoncValue::Number(_) | JsoncValue::Text(_) => {}
    }
}
