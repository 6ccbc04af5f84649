//! Messages for references that cannot be resolved: how far the path led and what is there instead. They contain member
//! names and counts, never values.

use serde_json::Value;

use super::super::UnresolvedReference;
use super::{ReferenceStep, TaskReference, is_bare_name, shortened};
use crate::suggestion::did_you_mean;

/// Most members listed in a message, and most members searched for a suggestion.
const NAMES_MAX: usize = 20;
const NAMES_SEEN_MAX: usize = 1000;
const NAME_BYTES_MAX: usize = 200;

/// Point at which a path could not be followed.
pub(super) struct BrokenPath<'a> {
    /// Index of the failing step, and the value it was applied to.
    step: usize,
    value: &'a Value,
    /// Indexes of the enclosing list elements, innermost first.
    places: Vec<usize>,
}

impl<'a> BrokenPath<'a> {
    pub(super) fn new(step: usize, value: &'a Value) -> Self {
        Self { step, value, places: Vec::new() }
    }

    pub(super) fn inside(mut self, place: usize) -> Self {
        self.places.push(place);
        self
    }
}

impl TaskReference {
    pub(super) fn no_result(&self) -> UnresolvedReference {
        UnresolvedReference {
            message: format!("`{}` is missing: `{}` has no result.", shortened(&self.text), shortened(&self.name)),
            hint: self.or_null("It failed or did not run."),
        }
    }

    pub(super) fn missing(&self, broken: &BrokenPath<'_>) -> UnresolvedReference {
        let so_far = self.so_far(broken);
        let so_far = shortened(&so_far);
        let step = &self.path[broken.step];
        let (problem, instead) = match (broken.value, step) {
            (Value::Object(_), ReferenceStep::Key(key)) => {
                (format!("has no `{}`", shortened(key)), members(broken.value, Some(key)))
            }
            (Value::Object(_), _) => ("is an object, not a list".into(), members(broken.value, None)),
            (Value::Array(items), ReferenceStep::Key(_)) => (
                format!("is a list of {}, not an object", items.len()),
                "Write `[0]` for the first element, `[-1]` for the last, `[*]` for all.".into(),
            ),
            (Value::Array(items), _) => match items.len() {
                0 => ("is an empty list".into(), "It has no elements.".into()),
                length => (format!("is a list of {length}"), format!("The last element is `[{}]`.", length - 1)),
            },
            (other, ReferenceStep::Key(_)) => {
                (format!("is {}, not an object", kind(other)), "It has no members.".into())
            }
            (other, _) => (format!("is {}, not a list", kind(other)), "It has no members.".into()),
        };
        UnresolvedReference {
            message: format!("`{}` cannot be resolved: `{so_far}` {problem}.", shortened(&self.text)),
            hint: self.or_null(&instead),
        }
    }

    fn or_null(&self, hint: &str) -> String {
        let head = self.text.trim_end_matches('}');
        format!("{hint} Write `{}?}}` if it may be missing.", shortened(head))
    }

    /// Returns the part of the path that could be followed, with the visited element indexes.
    fn so_far(&self, broken: &BrokenPath<'_>) -> String {
        let mut places = broken.places.iter().rev();
        let part = |step: &ReferenceStep| match step {
            ReferenceStep::Key(key) if is_bare_name(key) => format!(".{key}"),
            ReferenceStep::Key(key) => format!("[{}]", Value::from(&**key)),
            ReferenceStep::Index(place) => format!("[{place}]"),
            ReferenceStep::All => places.next().map_or("[*]".into(), |place| format!("[{place}]")),
        };
        let parts: String = self.path[..broken.step].iter().map(part).collect();
        format!("{}{parts}", self.name)
    }
}

fn members(value: &Value, wrong: Option<&str>) -> String {
    let names = value.as_object().map_or(0, serde_json::Map::len);
    if names == 0 {
        return "It is empty.".into();
    }
    let all = value.as_object().into_iter().flat_map(serde_json::Map::keys).map(String::as_str);
    let near = wrong.and_then(|wrong| {
        did_you_mean(wrong, all.clone().take(NAMES_SEEN_MAX).filter(|name| (1..=NAME_BYTES_MAX).contains(&name.len())))
    });
    let near = near.map(|near| format!("{near} ")).unwrap_or_default();
    let listed: Vec<String> = all.take(NAMES_MAX).map(|name| format!("`{}`", shortened(name))).collect();
    let more = if names > NAMES_MAX { format!(" and {} more", names - NAMES_MAX) } else { String::new() };
    format!("{near}It has {}{more}.", listed.join(", "))
}

pub(in crate::plan) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
