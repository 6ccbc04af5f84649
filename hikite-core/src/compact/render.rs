//! Renders a value as compact JSON or TOON, whichever is smaller. Lists of objects become tables (see `table`). Only
//! empty values are lost.

use std::borrow::Cow;
use std::io;

use serde_json::Value;

use super::column::ColumnTable;
use super::{TextFormat, toon};
use crate::json::write_string;

/// A value whose lists of objects are tables.
#[derive(Debug)]
enum RenderNode<'a> {
    Plain(&'a Value),
    Object(Vec<(&'a str, RenderNode<'a>)>),
    List(Vec<RenderNode<'a>>),
    Table(Box<ColumnTable<'a>>),
}

/// Renders the value. Without `hoist`, tables keep all their columns.
pub(super) fn render(value: &Value, hoist: bool) -> (String, TextFormat) {
    let part = RenderNode::of(value, hoist);
    let plain = length(value);
    let json = part.json(value, plain);
    // Models know TOON less well than JSON, so it must save at least a tenth.
    let most = json.len().min((plain * 9).div_ceil(10)).saturating_sub(1);
    match part.for_toon().and_then(|value| toon::encode_within(&value, most)) {
        Some(toon) => (toon, TextFormat::Toon),
        None => (String::from_utf8(json).unwrap_or_default(), TextFormat::Json),
    }
}

/// Returns the value that the TOON encoder receives.
#[cfg(test)]
pub(super) fn flat(value: &Value, hoist: bool) -> Option<Value> {
    RenderNode::of(value, hoist).for_toon().map(Cow::into_owned)
}

/// Returns the value rendered as JSON.
#[cfg(test)]
pub(super) fn json(value: &Value, hoist: bool) -> String {
    String::from_utf8(RenderNode::of(value, hoist).json(value, length(value))).expect("text")
}

impl<'a> RenderNode<'a> {
    fn of(value: &'a Value, hoist: bool) -> Self {
        match value {
            Value::Array(items) => {
                if let Some(table) = ColumnTable::of(items, hoist) {
                    return Self::Table(Box::new(table));
                }
                let parts: Vec<Self> = items.iter().map(|item| Self::of(item, hoist)).collect();
                if parts.iter().all(Self::is_plain) { Self::Plain(value) } else { Self::List(parts) }
            }
            Value::Object(members) => {
                let parts: Vec<(&str, Self)> =
                    members.iter().map(|(key, value)| (&**key, Self::of(value, hoist))).collect();
                let is_plain = parts.iter().all(|(_, part)| part.is_plain());
                if is_plain { Self::Plain(value) } else { Self::Object(parts) }
            }
            _ => Self::Plain(value),
        }
    }

    fn is_plain(&self) -> bool {
        matches!(self, Self::Plain(_))
    }

    /// Encodes as JSON: with tables, or plain if that is shorter.
    fn json(&self, value: &Value, plain: usize) -> Vec<u8> {
        let mut json = Vec::with_capacity(plain);
        self.write_json(&mut json);
        if plain < json.len() {
            json.clear();
            write_json(value, &mut json);
        }
        json
    }

    fn write_json(&self, out: &mut Vec<u8>) {
        match self {
            Self::Plain(value) => write_json(value, out),
            Self::Object(members) => {
                out.push(b'{');
                for (at, (key, part)) in members.iter().enumerate() {
                    write_key(key, at == 0, out);
                    part.write_json(out);
                }
                out.push(b'}');
            }
            Self::List(parts) => {
                out.push(b'[');
                for (at, part) in parts.iter().enumerate() {
                    if at > 0 {
                        out.push(b',');
                    }
                    part.write_json(out);
                }
                out.push(b']');
            }
            Self::Table(table) => table.write_json(out),
        }
    }

    /// Returns the value with flat tables for TOON; `None` if a table would be mostly empty cells.
    fn for_toon(&self) -> Option<Cow<'a, Value>> {
        let value = match self {
            Self::Plain(value) => return Some(Cow::Borrowed(*value)),
            Self::Object(members) => {
                let member = |(key, part): &(&str, Self)| Some(((*key).to_owned(), part.for_toon()?.into_owned()));
                Value::Object(members.iter().map(member).collect::<Option<_>>()?)
            }
            Self::List(parts) => {
                let parts = parts.iter().map(|part| part.for_toon().map(Cow::into_owned));
                Value::Array(parts.collect::<Option<_>>()?)
            }
            Self::Table(table) => table.for_toon()?,
        };
        Some(Cow::Owned(value))
    }
}

pub(super) fn write_json(value: &Value, out: &mut Vec<u8>) {
    // Serializing a value to memory cannot fail.
    let _ = serde_json::to_writer(out, value);
}

pub(super) fn write_key(key: &str, is_first: bool, out: &mut Vec<u8>) {
    if !is_first {
        out.push(b',');
    }
    write_string(key, out);
    out.push(b':');
}

/// Returns the length of the value as compact JSON.
pub(super) fn length(value: &Value) -> usize {
    struct ByteCounter(usize);
    impl io::Write for ByteCounter {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut count = ByteCounter(0);
    let _ = serde_json::to_writer(&mut count, value);
    count.0
}
