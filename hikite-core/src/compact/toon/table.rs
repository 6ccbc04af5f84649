//! Tables: objects with the same names, whose values are scalars or in turn objects with the same names. The first
//! row is the pattern for all others. Rows are written until one does not fit; then all of it is taken back.

use serde_json::{Map, Value};

use super::text;
use super::writer::{Writer, is_scalar};

impl Writer<'_> {
    /// Whether the items are one; then it is written.
    pub(super) fn table(&mut self, items: &[Value], depth: usize) -> Option<bool> {
        let Some(pattern) = pattern(items.iter()) else { return Some(false) };
        let start = self.out.len();
        self.count(items.len(), false);
        let is_table = self.rows(pattern, items.iter().map(|item| (None, item)), depth + 1)?;
        if !is_table {
            self.out.truncate(start);
        }
        Some(is_table)
    }

    /// The same with the values of an object, whose names go in front of the rows.
    pub(super) fn keyed_table(&mut self, members: &Map<String, Value>, depth: usize) -> Option<bool> {
        if members.len() < 2 {
            return Some(false);
        }
        let Some(pattern) = pattern(members.values()) else { return Some(false) };
        let start = self.out.len();
        self.count(members.len(), true);
        let rows = members.iter().map(|(name, value)| (Some(name.as_str()), value));
        let is_table = self.rows(pattern, rows, depth + 1)?;
        if !is_table {
            self.out.truncate(start);
        }
        Some(is_table)
    }

    fn rows<'v>(
        &mut self,
        pattern: &Map<String, Value>,
        mut rows: impl Iterator<Item = (Option<&'v str>, &'v Value)>,
        depth: usize,
    ) -> Option<bool> {
        if !self.fields(pattern) {
            return Some(false);
        }
        self.out.push(':');
        while let Some((name, row)) = rows.next() {
            self.line(depth);
            if let Some(name) = name {
                text::push_key(name, self.out);
                self.out.push_str(": ");
            }
            let fits = each_cell(pattern, row, &mut |cell| {
                self.scalar(cell);
                self.delimit();
            });
            if !fits {
                return Some(false);
            }
            self.out.pop();
            if self.fits().is_none() {
                // Too long as a table. If it is none, it may be shorter as something else.
                let is_table = rows.all(|(_, row)| each_cell(pattern, row, &mut |_| {}));
                return if is_table { None } else { Some(false) };
            }
        }
        Some(true)
    }

    /// The names of the columns, `{id,owner{name,mail}}`; false if there is something that is no column.
    fn fields(&mut self, pattern: &Map<String, Value>) -> bool {
        self.out.push('{');
        for (at, (name, value)) in pattern.iter().enumerate() {
            if at > 0 {
                self.delimit();
            }
            text::push_key(name, self.out);
            let is_column = match value {
                Value::Object(inner) => !inner.is_empty() && self.fields(inner),
                other => is_scalar(other),
            };
            if !is_column {
                return false;
            }
        }
        self.out.push('}');
        true
    }
}

/// The first of them, if they are objects and all have as many members.
fn pattern<'v>(mut values: impl Iterator<Item = &'v Value>) -> Option<&'v Map<String, Value>> {
    let first = values.next()?.as_object().filter(|first| !first.is_empty())?;
    let is_alike = |value: &Value| value.as_object().is_some_and(|object| object.len() == first.len());
    values.all(is_alike).then_some(first)
}

/// Hands out the scalars of a row in the order of the pattern; false if the row is not like it.
fn each_cell<'v>(pattern: &Map<String, Value>, row: &'v Value, cell: &mut impl FnMut(&'v Value)) -> bool {
    let Value::Object(row) = row else { return false };
    if row.len() != pattern.len() {
        return false;
    }
    // Rows have their members in the same order as a rule. Where not, they are looked up.
    pattern.iter().zip(row).all(|((name, column), (here, value))| {
        let Some(value) = (if here == name { Some(value) } else { row.get(name) }) else { return false };
        match column {
            Value::Object(inner) => each_cell(inner, value, cell),
            _ if is_scalar(value) => {
                cell(value);
                true
            }
            _ => false,
        }
    })
}
