//! A complete result as lines: rows of a table, elements of a list, or the lines of a text. Pages and searches consist
//! of them.

use hikite_core::compact::{Shape, TextFormat, compact};
use serde_json::Value;

/// Length above which JSON is split into lines.
const LINE: usize = 400;

#[derive(Debug)]
pub(crate) struct ResultLines {
    pub(crate) form: TextFormat,
    pub(crate) all: Vec<String>,
}

/// A line and the indices of its parent lines, outermost first.
#[derive(Debug)]
pub(crate) struct NestedLine<'a> {
    /// Counted from 0.
    pub(crate) at: usize,
    pub(crate) text: &'a str,
    pub(crate) parents: Vec<usize>,
}

impl ResultLines {
    pub(crate) fn of(value: &Value, shape: Option<&Shape>) -> Self {
        let whole = compact(value, shape, usize::MAX);
        if whole.form != TextFormat::Json {
            return Self { form: whole.form, all: whole.text.split('\n').map(str::to_owned).collect() };
        }
        // Rows of JSON carry their member names, so that each is readable by itself.
        let shaped = shape.and_then(|_| serde_json::from_str::<Value>(&whole.text).ok());
        let mut all = vec![String::new()];
        write(shaped.as_ref().unwrap_or(value), "", &mut all);
        Self { form: TextFormat::Json, all }
    }

    /// Returns each line with its parents: in TOON the preceding lines with less indentation.
    pub(crate) fn nested(&self) -> impl Iterator<Item = NestedLine<'_>> {
        let mut parents: Vec<(usize, usize)> = Vec::new();
        self.all.iter().enumerate().map(move |(at, text)| {
            if self.form == TextFormat::Toon && !text.is_empty() {
                let indent = indent(text);
                while parents.pop_if(|(_, other)| *other >= indent).is_some() {}
                let above = parents.iter().map(|(line, _)| *line).collect();
                parents.push((at, indent));
                return NestedLine { at, text, parents: above };
            }
            NestedLine { at, text, parents: Vec::new() }
        })
    }
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

/// Appends a value to the last line if it is short, else each of its parts on a line of its own.
fn write(value: &Value, after: &str, lines: &mut Vec<String>) {
    let whole = value.to_string();
    match value {
        Value::Array(items) if whole.len() > LINE => {
            parts(('[', ']'), items.len(), lines, |at, comma, lines| write(&items[at], comma, lines));
        }
        Value::Object(members) if whole.len() > LINE => {
            let members: Vec<(&String, &Value)> = members.iter().collect();
            parts(('{', '}'), members.len(), lines, |at, comma, lines| {
                let (name, member) = members[at];
                push(&format!("{}:", Value::from(name.as_str())), lines);
                write(member, comma, lines);
            });
        }
        _ => push(&whole, lines),
    }
    push(after, lines);
}

fn parts(
    (open, close): (char, char),
    count: usize,
    lines: &mut Vec<String>,
    mut part: impl FnMut(usize, &str, &mut Vec<String>),
) {
    push(&open.to_string(), lines);
    for at in 0..count {
        lines.push(String::new());
        part(at, if at + 1 < count { "," } else { "" }, lines);
    }
    lines.push(close.to_string());
}

fn push(text: &str, lines: &mut [String]) {
    if let Some(last) = lines.last_mut() {
        last.push_str(text);
    }
}
