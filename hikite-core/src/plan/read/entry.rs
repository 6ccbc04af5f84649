//! The tasks of a batch one by one, before anything about them is known: from a list, from lines of text, or from a text
//! that holds a list. Bad JSON is told with its place in the lines that were sent.

use bytes::Bytes;
use serde_json::value::RawValue;

use super::{Faults, shown};
use crate::json::{Object, Raw};

/// Nobody wraps a text in a text more often.
const LAYERS: usize = 3;

pub(super) struct Entry {
    /// Where it begins, if it came as text.
    line: Option<usize>,
    /// `None` if it is no task at all; that has been told.
    pub(super) members: Option<Object>,
}

impl Entry {
    /// What it is called in messages.
    pub(super) fn about(&self, place: usize, id: Option<&str>) -> String {
        match (id, self.line) {
            (Some(id), _) => format!("task `{}`", shown(id)),
            (None, Some(line)) => format!("line {line}"),
            (None, None) => format!("task {}", place + 1),
        }
    }
}

/// A task as it came.
struct Piece {
    line: Option<usize>,
    raw: Result<Raw, String>,
}

pub(super) fn entries(commands: &Raw, tasks_max: usize, faults: &mut Faults) -> Vec<Entry> {
    let pieces = match pieces(commands) {
        Ok(pieces) => pieces,
        Err(message) => {
            faults.add("/commands", message);
            return Vec::new();
        }
    };
    if pieces.is_empty() {
        faults.add("/commands", "there are no tasks");
    }
    if pieces.len() > tasks_max {
        let message = format!("there are {} tasks; a batch has at most {tasks_max}", pieces.len());
        faults.add("/commands", message);
        return Vec::new();
    }
    let mut entries = Vec::with_capacity(pieces.len());
    for (place, piece) in pieces.into_iter().enumerate() {
        let mut entry = Entry { line: piece.line, members: None };
        match piece.raw.and_then(|raw| members(&raw)) {
            Ok(members) => entry.members = Some(members),
            Err(message) => {
                // A message about bad JSON names its line itself.
                let about = entry.about(place, None);
                let message =
                    if message.starts_with("line ") { message } else { format!("{about}: {message}") };
                faults.add(format!("/commands/{place}"), message);
            }
        }
        entries.push(entry);
    }
    entries
}

fn members(raw: &Raw) -> Result<Object, String> {
    let no_task = || "a task must be a JSON object".to_owned();
    let opened = match raw.text() {
        Some(text) => Raw::parse(text).map_err(|_| no_task())?,
        None => raw.clone(),
    };
    opened.object().ok_or_else(no_task)
}

fn pieces(commands: &Raw) -> Result<Vec<Piece>, String> {
    if let Some(items) = commands.items() {
        return Ok(items.into_iter().map(|raw| Piece { line: None, raw: Ok(raw) }).collect());
    }
    let mut text = commands
        .text()
        .ok_or("`commands` must be a list of tasks, or a text with one task per line, each a JSON object")?;
    for _ in 0..LAYERS {
        if text.trim_start().starts_with('"')
            && let Ok(inner) = serde_json::from_str(&text)
        {
            text = inner;
        }
    }
    let text = text.trim_start_matches('\u{feff}');
    if text.trim_start().starts_with('[') { listed(text) } else { lines(text) }
}

/// A text that holds a list.
fn listed(text: &str) -> Result<Vec<Piece>, String> {
    let items: Vec<&RawValue> = serde_json::from_str(text).map_err(|error| bad_json(text, 1, &error))?;
    Ok(items.into_iter().map(|item| Piece { line: None, raw: Ok(copy(item)) }).collect())
}

/// One task after the other. A task may also go over several lines, as long as everything can be read.
fn lines(text: &str) -> Result<Vec<Piece>, String> {
    stream(text).or_else(|error| {
        let pieces = by_line(text);
        let some = pieces.iter().any(|piece| piece.raw.is_ok());
        if some { Ok(pieces) } else { Err(bad_json(text, 1, &error)) }
    })
}

fn stream(text: &str) -> Result<Vec<Piece>, serde_json::Error> {
    let (mut pieces, mut line, mut counted) = (Vec::new(), 1, 0);
    let mut stream = serde_json::Deserializer::from_str(text).into_iter::<&RawValue>();
    while let Some(value) = stream.next().transpose()? {
        let start = stream.byte_offset() - value.get().len();
        line += text[counted..start].matches('\n').count();
        counted = start;
        pieces.push(Piece { line: Some(line), raw: Ok(copy(value)) });
    }
    Ok(pieces)
}

fn by_line(text: &str) -> Vec<Piece> {
    let lines = text.lines().zip(1..).filter(|(line, _)| !line.trim().is_empty());
    let piece = |(line, number): (&str, usize)| {
        let raw = Raw::parse(line.to_owned()).map_err(|error| bad_json(line, number, &error));
        Piece { line: Some(number), raw }
    };
    lines.map(piece).collect()
}

fn copy(value: &RawValue) -> Raw {
    Raw::trusted(Bytes::copy_from_slice(value.get().as_bytes()))
}

/// Where in the text and why, in lines and characters as people count them; `first` is the number of its first line.
pub(super) fn bad_json(text: &str, first: usize, error: &serde_json::Error) -> String {
    let said = error.to_string();
    let reason = said.rsplit_once(" at line ").map_or(said.as_str(), |(reason, _)| reason);
    let line = text.split('\n').nth(error.line().saturating_sub(1)).unwrap_or_default();
    let bytes = line.as_bytes();
    let before = String::from_utf8_lossy(&bytes[..error.column().saturating_sub(1).min(bytes.len())]);
    // A character that is cut through counts as the one that is meant.
    let column = before.trim_end_matches('\u{fffd}').chars().count() + 1;
    format!("line {}, column {column}: {reason}", first + error.line().saturating_sub(1))
}
