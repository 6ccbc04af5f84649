//! Tables: objects with equal keys whose values are scalars or, recursively, objects with equal keys. The first row is
//! the pattern for the others. Rows are written until one does not match; then the whole table is removed again.

use serde_json::{Map, Value};

use super::text;
use super::writer::{ToonWriter, is_scalar};

impl ToonWriter<'_> {
    /// Writes the items as a table. Returns `false`, and writes nothing, if they do not form one.
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

    /// Writes the values of an object as a table, each row prefixed with its key. Returns `false`, and writes nothing,
    /// if they do not form one.
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
                // Too long as a table. If it turns out not to be one, another form may still fit.
                let is_table = rows.all(|(_, row)| each_cell(pattern, row, &mut |_| {}));
                return if is_table { None } else { Some(false) };
            }
        }
        Some(true)
    }

    /// Writes the column names, `{id,owner{name,mail}}`. Returns `false` if a value cannot be a column.
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

/// Returns the first value if all are objects with the same number of members.
fn pattern<'v>(mut values: impl Iterator<Item = &'v Value>) -> Option<&'v Map<String, Value>> {
    let first = values.next()?.as_object().filter(|first| !first.is_empty())?;
    let is_alike = |value: &Value| value.as_object().is_some_and(|object| object.len() == first.len());
    values.all(is_alike).then_some(first)
}

/// Visits the scalars of a row in the order of the pattern. Returns `false` if the row does not match.
fn each_cell<'v>(pattern: &Map<String, Value>, row: &'v Value, cell: &mut impl FnMut(&'v Value)) -> bool {
    let Value::Object(row) = row else { return false };
    if row.len() != pattern.len() {
        return false;
    }
    // Rows usually share one member order; otherwise members are looked up by name.
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
