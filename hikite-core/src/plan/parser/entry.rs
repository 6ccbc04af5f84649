//! Splits a batch into tasks before their fields are read: from a list, from lines of text, or from text that holds a
//! list. JSON errors are reported with their line and column in the input.

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::{PlanViolations, TaskLabel};
use crate::json::Raw;

/// Most layers of JSON strings around the text that are removed.
const QUOTING_LAYERS_MAX: usize = 3;

pub(super) struct TaskEntry {
    pub(super) about: TaskLabel,
    /// `None` if the entry is not a JSON object, which has then been reported.
    pub(super) members: Option<Map<String, Value>>,
}

/// JSON text of one task or its parse error, and its first line if it was sent as text.
struct TaskText<'a> {
    line: Option<usize>,
    json: Result<&'a str, String>,
}

pub(super) fn entries(commands: &Raw, tasks_max: usize, faults: &mut PlanViolations) -> Vec<TaskEntry> {
    let text = text(commands);
    let parsed = text.as_deref().map_or_else(|| parse_valid_list(commands), parse_valid_lines);
    if let Some(entries) = parsed.filter(|entries| (1..=tasks_max).contains(&entries.len())) {
        return entries;
    }
    let pieces = match &text {
        Some(text) if text.trim_start().starts_with('[') => listed(text),
        Some(text) => lines(text, tasks_max),
        None => items(commands),
    };
    let pieces = match pieces {
        Ok(pieces) if pieces.is_empty() => Err("there are no tasks".into()),
        Ok(pieces) if pieces.len() > tasks_max => {
            Err(format!("the batch has {} tasks; the limit is {tasks_max}", pieces.len()))
        }
        pieces => pieces,
    };
    let mut entries = Vec::new();
    match pieces {
        Err(message) => faults.add("/commands", message),
        Ok(pieces) => {
            entries.extend(pieces.into_iter().zip(0..).map(|(piece, place)| entry(piece, place, faults)));
        }
    }
    entries
}

/// Fast path for a valid list, parsed only once. Returns `None` if anything is wrong.
fn parse_valid_list(commands: &Raw) -> Option<Vec<TaskEntry>> {
    let list: Vec<Map<String, Value>> = commands.decode().ok()?;
    let entry =
        |(members, place)| TaskEntry { about: TaskLabel { place, line: None, id: None }, members: Some(members) };
    Some(list.into_iter().zip(0..).map(entry).collect())
}

/// Fast path for valid text with one task per line. Returns `None` if anything is wrong.
fn parse_valid_lines(text: &str) -> Option<Vec<TaskEntry>> {
    let (mut entries, mut line, mut counted) = (Vec::new(), 1, 0);
    let mut stream = serde_json::Deserializer::from_str(text).into_iter::<Map<String, Value>>();
    loop {
        let start = text.len() - text[stream.byte_offset()..].trim_start().len();
        let Some(members) = stream.next() else { return Some(entries) };
        line += text[counted..start].matches('\n').count();
        counted = start;
        let about = TaskLabel { place: entries.len(), line: Some(line), id: None };
        entries.push(TaskEntry { about, members: Some(members.ok()?) });
    }
}

fn entry(piece: TaskText<'_>, place: usize, faults: &mut PlanViolations) -> TaskEntry {
    let about = TaskLabel { place, line: piece.line, id: None };
    let members = match piece.json {
        // The parse error names its line already.
        Err(bad_json) => Err(bad_json),
        Ok(json) => members(json).map_err(|message| format!("{about}: {message}")),
    };
    let members = members.map_err(|message| faults.add(format!("/commands/{place}"), message)).ok();
    TaskEntry { about, members }
}

fn members(json: &str) -> Result<Map<String, Value>, &'static str> {
    let opened = match serde_json::from_str(json) {
        Ok(Value::String(text)) => serde_json::from_str(&text),
        other => other,
    };
    match opened {
        Ok(Value::Object(members)) => Ok(members),
        Err(_) if json.starts_with('{') => {
            Err("it is nested too deeply, or contains a number or a string that cannot be read")
        }
        _ => Err("a task must be a JSON object"),
    }
}

/// Returns the text that was sent, with surplus layers of JSON quoting removed.
fn text(commands: &Raw) -> Option<String> {
    let mut text = commands.text()?;
    for _ in 0..QUOTING_LAYERS_MAX {
        if text.trim_start().starts_with('"')
            && let Ok(inner) = serde_json::from_str(&text)
        {
            text = inner;
        }
    }
    Some(if text.starts_with('\u{feff}') { text.trim_start_matches('\u{feff}').to_owned() } else { text })
}

fn items(commands: &Raw) -> Result<Vec<TaskText<'_>>, String> {
    let items: Vec<&RawValue> = commands
        .decode()
        .map_err(|_| "`commands` must be a list of tasks, or a string with one task per line, each a JSON object")?;
    Ok(items.into_iter().map(|item| TaskText { line: None, json: Ok(item.get()) }).collect())
}

/// Splits text that holds a JSON list.
fn listed(text: &str) -> Result<Vec<TaskText<'_>>, String> {
    let items: Vec<&RawValue> = serde_json::from_str(text).map_err(|error| bad_json(text, 1, &error))?;
    Ok(items.into_iter().map(|item| TaskText { line: None, json: Ok(item.get()) }).collect())
}

/// Splits text into tasks. A task may span several lines as long as the whole text parses.
fn lines(text: &str, tasks_max: usize) -> Result<Vec<TaskText<'_>>, String> {
    stream(text).or_else(|error| {
        let lines = text.lines().filter(|line| !line.trim().is_empty()).count();
        if lines > tasks_max {
            return Err(format!(
                "{}; also, there are {lines} lines and the limit is {tasks_max} tasks",
                bad_json(text, 1, &error)
            ));
        }
        let pieces = by_line(text);
        let some = pieces.iter().any(|piece| piece.json.is_ok());
        if some { Ok(pieces) } else { Err(bad_json(text, 1, &error)) }
    })
}

fn stream(text: &str) -> Result<Vec<TaskText<'_>>, serde_json::Error> {
    let (mut pieces, mut line, mut counted) = (Vec::new(), 1, 0);
    let mut stream = serde_json::Deserializer::from_str(text).into_iter::<&RawValue>();
    while let Some(value) = stream.next().transpose()? {
        let start = stream.byte_offset() - value.get().len();
        line += text[counted..start].matches('\n').count();
        counted = start;
        pieces.push(TaskText { line: Some(line), json: Ok(value.get()) });
    }
    Ok(pieces)
}

fn by_line(text: &str) -> Vec<TaskText<'_>> {
    let mut pieces = Vec::new();
    for (line, number) in text.lines().zip(1..).filter(|(line, _)| !line.trim().is_empty()) {
        let json = serde_json::from_str::<&RawValue>(line).map(RawValue::get);
        pieces.push(TaskText { line: Some(number), json: json.map_err(|error| bad_json(line, number, &error)) });
    }
    pieces
}

/// Formats a JSON error with line and column, counted in characters from 1; `first` is the number of the first line.
pub(super) fn bad_json(text: &str, first: usize, error: &serde_json::Error) -> String {
    let error_text = error.to_string();
    let reason = error_text.rsplit_once(" at line ").map_or(error_text.as_str(), |(reason, _)| reason);
    let line = text.split('\n').nth(error.line().saturating_sub(1)).unwrap_or_default();
    let bytes = line.as_bytes();
    let before = String::from_utf8_lossy(&bytes[..error.column().saturating_sub(1).min(bytes.len())]);
    // A character cut in half counts as the failing one.
    let column = before.trim_end_matches('\u{fffd}').chars().count() + 1;
    format!("line {}, column {column}: {reason}", first + error.line().saturating_sub(1))
}
