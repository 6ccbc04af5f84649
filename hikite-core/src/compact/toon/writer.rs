//! Writes lines, members and items: everything but tables. Output is final, except that a failed table is removed again
//! (see `table`).

use serde_json::{Map, Value};

use super::{Delimiter, ToonOptions, number, text};

const BLANKS: &str = "                                                                ";

pub(super) struct ToonWriter<'a> {
    pub(super) out: &'a mut String,
    pub(super) delimiter: u8,
    indent: usize,
    /// Maximum length of `out`, including what it held before.
    end: usize,
}

/// `None` once the text exceeds its limit.
pub(super) type WriteOutcome = Option<()>;

impl<'a> ToonWriter<'a> {
    pub(super) fn new(out: &'a mut String, options: ToonOptions, limit_bytes: usize) -> Self {
        let ToonOptions { delimiter, indent } = options;
        let end = out.len().saturating_add(limit_bytes);
        // At least one space is needed to show nesting.
        Self { out, delimiter: delimiter.byte(), indent: indent.max(1), end }
    }

    pub(super) fn document(&mut self, value: &Value) -> WriteOutcome {
        match value {
            Value::Array(items) if items.is_empty() => self.out.push_str("[]"),
            Value::Array(items) => self.array(items, 0)?,
            Value::Object(members) => {
                if !self.keyed_table(members, 0)? {
                    self.members(members, 0)?;
                }
            }
            // A leading U+FEFF would be taken for a byte order mark.
            Value::String(string) if string.starts_with('\u{feff}') => text::push_quoted(string, self.out),
            scalar => self.scalar(scalar),
        }
        self.fits()
    }

    pub(super) fn fits(&self) -> WriteOutcome {
        (self.out.len() <= self.end).then_some(())
    }

    pub(super) fn line(&mut self, depth: usize) {
        self.out.push('\n');
        let mut blanks = self.indent * depth;
        while blanks > BLANKS.len() {
            self.out.push_str(BLANKS);
            blanks -= BLANKS.len();
        }
        self.out.push_str(&BLANKS[..blanks]);
    }

    /// Writes the number of items that follow: `[2]`, or `[2:]` for keyed ones.
    pub(super) fn count(&mut self, count: usize, keyed: bool) {
        self.out.push('[');
        number::push_unsigned(count as u64, self.out);
        if keyed {
            self.out.push(':');
        }
        if self.delimiter != Delimiter::Comma.byte() {
            self.delimit();
        }
        self.out.push(']');
    }

    pub(super) fn delimit(&mut self) {
        self.out.push(self.delimiter.into());
    }

    /// Writes a value that is neither a list nor an object.
    pub(super) fn scalar(&mut self, value: &Value) {
        match value {
            Value::String(string) => text::push(string, self.delimiter, self.out),
            Value::Number(number) => number::push(number, self.out),
            Value::Bool(true) => self.out.push_str("true"),
            Value::Bool(false) => self.out.push_str("false"),
            _ => self.out.push_str("null"),
        }
    }

    /// Writes the members of an object, the first one on the current line.
    fn members(&mut self, members: &Map<String, Value>, depth: usize) -> WriteOutcome {
        for (at, (name, value)) in members.iter().enumerate() {
            if at > 0 {
                self.line(depth);
            }
            self.member(name, value, depth)?;
        }
        Some(())
    }

    /// Writes a member on the current line. Its contents go one level below `depth`, also after a hyphen.
    fn member(&mut self, name: &str, value: &Value, depth: usize) -> WriteOutcome {
        text::push_key(name, self.out);
        match value {
            Value::Array(items) if items.is_empty() => self.out.push_str(": []"),
            Value::Array(items) => self.array(items, depth)?,
            Value::Object(members) => {
                if !self.keyed_table(members, depth)? {
                    self.out.push(':');
                    if !members.is_empty() {
                        self.line(depth + 1);
                        self.members(members, depth + 1)?;
                    }
                }
            }
            scalar => {
                self.out.push_str(": ");
                self.scalar(scalar);
            }
        }
        self.fits()
    }

    /// Writes the array of a member or of the document; only these can be tables.
    fn array(&mut self, items: &[Value], depth: usize) -> WriteOutcome {
        if items.iter().all(is_scalar) {
            self.inline(items);
            return self.fits();
        }
        if self.table(items, depth)? {
            return Some(());
        }
        self.list(items, depth + 1)
    }

    fn inline(&mut self, items: &[Value]) {
        self.count(items.len(), false);
        self.out.push(':');
        for (at, item) in items.iter().enumerate() {
            if at > 0 {
                self.delimit();
            } else {
                self.out.push(' ');
            }
            self.scalar(item);
        }
    }

    fn list(&mut self, items: &[Value], depth: usize) -> WriteOutcome {
        self.count(items.len(), false);
        self.out.push(':');
        for item in items {
            self.line(depth);
            self.out.push('-');
            self.item(item, depth)?;
        }
        Some(())
    }

    /// Writes an item after its hyphen.
    fn item(&mut self, item: &Value, depth: usize) -> WriteOutcome {
        match item {
            Value::Object(members) if members.is_empty() => {}
            Value::Object(members) => {
                self.out.push(' ');
                self.members(members, depth + 1)?;
            }
            Value::Array(items) => {
                self.out.push(' ');
                if items.iter().all(is_scalar) {
                    self.inline(items);
                } else {
                    self.list(items, depth + 1)?;
                }
            }
            scalar => {
                self.out.push(' ');
                self.scalar(scalar);
            }
        }
        self.fits()
    }
}

pub(super) fn is_scalar(value: &Value) -> bool {
    !matches!(value, Value::Array(_) | Value::Object(_))
}
