//! Trims an answer that is too large: first the ends of long strings, then rows, then deeply nested values. Every
//! omission is counted and reported.

use std::fmt::Write as _;

use serde_json::Value;

use super::render::render;
use super::{CompactText, TextFormat};

/// Lengths to which strings are cut, tried in order; rows are dropped only with the short ones.
const TEXTS: [usize; 4] = [2000, 500, 200, 80];
const TEXTS_IN_FEWER_ROWS: [usize; 2] = [200, 80];
/// Elements and members shown of each value if even one row per list is too much.
const ELEMENTS_IN_OUTLINE: usize = 3;
const MEMBERS_IN_OUTLINE: usize = 40;
const DEPTHS: [usize; 5] = [5, 4, 3, 2, 1];
#[derive(Clone, Copy, Debug)]
struct TrimBounds {
    text: usize,
    elements: usize,
    members: usize,
    depth: usize,
}

const ALL: TrimBounds = TrimBounds { text: usize::MAX, elements: usize::MAX, members: usize::MAX, depth: usize::MAX };

/// Counts of omitted parts.
#[derive(Debug, Default)]
struct Omissions {
    texts: usize,
    lists: usize,
    elements: usize,
    elements_of: usize,
    members: usize,
    nested: usize,
}

/// Encodes the value in at most `budget` bytes.
pub(super) fn fit(value: &Value, hoist: bool, budget: usize) -> CompactText {
    let (text, form) = render(value, hoist);
    if text.len() <= budget {
        return CompactText { text, form, left_out: None };
    }
    let room = BudgetFitter { value, hoist, budget };
    let (mut longest_text, mut longest_list) = (0, 0);
    survey(value, &mut longest_text, &mut longest_list);
    // A cut saves at most what it removes; escapes may double that.
    let may_do = |cut: &usize| text.len() <= budget + 2 * bytes_over(value, *cut);
    let shorter = TEXTS
        .into_iter()
        .filter(|cut| *cut < longest_text)
        .filter(may_do)
        .find_map(|text| room.try_with(TrimBounds { text, ..ALL }));
    shorter
        .or_else(|| TEXTS_IN_FEWER_ROWS.into_iter().find_map(|text| room.most_rows(text, longest_list)))
        .or_else(|| DEPTHS.into_iter().find_map(|depth| room.outline(depth)))
        .unwrap_or_else(|| {
            let left_out = Some("everything except its type".into());
            CompactText { left_out, ..cut(&outline_of(value), budget) }
        })
}

/// Cuts a text to at most `budget` bytes, at a line end if there is one in the second half.
pub(super) fn cut(text: &str, budget: usize) -> CompactText {
    if text.len() <= budget {
        return CompactText { text: text.into(), form: TextFormat::Text, left_out: None };
    }
    let end = (0..=budget).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    let most = &text[..end];
    let (kept, left_out) = match most.rfind('\n').filter(|end| *end >= budget / 2) {
        Some(end) => {
            let (kept, rest) = text.split_at(end);
            let lines = |text: &str| text.lines().count();
            // `rest` begins with the newline of the last line that is kept.
            let left = lines(&rest[1..]);
            (kept, format!("{left} of {} lines", left + lines(kept)))
        }
        None => {
            let characters = |text: &str| text.chars().count();
            let all = characters(text);
            (most, format!("{} of {all} characters", all - characters(most)))
        }
    };
    CompactText { text: kept.into(), form: TextFormat::Text, left_out: Some(left_out) }
}

struct BudgetFitter<'a> {
    value: &'a Value,
    hoist: bool,
    budget: usize,
}

impl BudgetFitter<'_> {
    fn try_with(&self, bounds: TrimBounds) -> Option<CompactText> {
        let mut left = Omissions::default();
        let trimmed = trim(self.value, bounds, &mut left);
        let (text, form) = render(&trimmed, self.hoist);
        (text.len() <= self.budget).then(|| CompactText { text, form, left_out: left.description(bounds.text) })
    }

    /// Finds the largest number of elements per list that fits, by doubling and then bisection.
    fn most_rows(&self, text: usize, longest: usize) -> Option<CompactText> {
        let with = |elements| self.try_with(TrimBounds { text, elements, ..ALL });
        let mut best = with(1)?;
        let (mut fits, mut too_many) = (1, longest + 1);
        while too_many - fits > 1 {
            let elements = if fits * 2 < too_many { fits * 2 } else { usize::midpoint(fits, too_many) };
            match with(elements) {
                Some(compacted) => (best, fits) = (compacted, elements),
                None => too_many = elements,
            }
        }
        Some(best)
    }

    fn outline(&self, depth: usize) -> Option<CompactText> {
        self.try_with(TrimBounds { text: 80, elements: ELEMENTS_IN_OUTLINE, members: MEMBERS_IN_OUTLINE, depth })
    }
}

impl Omissions {
    fn description(&self, text: usize) -> Option<String> {
        let mut description = Vec::new();
        match self.lists {
            0 => {}
            1 => description.push(format!("{} of {} rows", self.elements, self.elements_of)),
            lists => {
                description.push(format!("{} of {} rows of {lists} lists", self.elements, self.elements_of));
            }
        }
        match self.texts {
            0 => {}
            1 => description.push(format!("the end of a text longer than {text} characters")),
            texts => description.push(format!("the ends of {texts} texts longer than {text} characters")),
        }
        if self.members > 0 {
            description.push(format!("{} object members", self.members));
        }
        if self.nested > 0 {
            description.push(format!("the content of {} deeply nested values", self.nested));
        }
        (!description.is_empty()).then(|| description.join(", "))
    }
}

fn trim(value: &Value, bounds: TrimBounds, left: &mut Omissions) -> Value {
    let below = TrimBounds { depth: bounds.depth.saturating_sub(1), ..bounds };
    match value {
        Value::String(text) => match text.char_indices().nth(bounds.text) {
            Some((end, _)) => {
                left.texts += 1;
                format!("{}…", &text[..end]).into()
            }
            None => value.clone(),
        },
        Value::Array(items) if bounds.depth == 0 && !items.is_empty() => {
            left.nested += 1;
            outline_of(value).into()
        }
        Value::Object(members) if bounds.depth == 0 && !members.is_empty() => {
            left.nested += 1;
            outline_of(value).into()
        }
        Value::Array(items) => {
            if items.len() > bounds.elements {
                left.lists += 1;
                left.elements += items.len() - bounds.elements;
                left.elements_of += items.len();
            }
            items.iter().take(bounds.elements).map(|item| trim(item, below, left)).collect()
        }
        Value::Object(members) => {
            left.members += members.len().saturating_sub(bounds.members);
            let kept = members.iter().take(bounds.members);
            Value::Object(kept.map(|(key, value)| (key.clone(), trim(value, below, left))).collect())
        }
        _ => value.clone(),
    }
}

/// Describes a value without its contents.
fn outline_of(value: &Value) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = match value {
        Value::Array(items) => write!(text, "[{} elements]", items.len()),
        Value::Object(members) => write!(text, "{{{} members}}", members.len()),
        _ => write!(text, "{value}"),
    };
    text
}

fn survey(value: &Value, longest_text: &mut usize, longest_list: &mut usize) {
    match value {
        Value::String(text) => *longest_text = text.len().max(*longest_text),
        Value::Array(items) => {
            *longest_list = items.len().max(*longest_list);
            for item in items {
                survey(item, longest_text, longest_list);
            }
        }
        Value::Object(members) => {
            for value in members.values() {
                survey(value, longest_text, longest_list);
            }
        }
        _ => {}
    }
}

/// Returns the number of bytes removed if every string is cut to `longest`.
fn bytes_over(value: &Value, longest: usize) -> usize {
    match value {
        Value::String(text) => text.len().saturating_sub(longest),
        Value::Array(items) => items.iter().map(|item| bytes_over(item, longest)).sum(),
        Value::Object(members) => members.values().map(|value| bytes_over(value, longest)).sum(),
        _ => 0,
    }
}
