//! Writes a table as JSON or prepares it for TOON. Values that are constant in all rows are written once as
//! `in_every_row`, paths that are empty in all rows are only named (`in_no_row`), and the rest goes to `rows`: as
//! objects in JSON, flat for TOON, where `a.b` is a nested member and `a[]` holds a whole list in one cell (see
//! `cell`).

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::cell::joined;
use super::column::{ColumnRole, ColumnTable, ROOT, is_empty};
use super::render::{write_json, write_key};

/// Maximum ratio of cells to filled cells for a TOON table.
const SPARSE: usize = 2;

/// A column of the flat table: its path in a row, and which step is a list.
#[derive(Clone, Debug, Default)]
struct FlatColumn<'a> {
    steps: Vec<&'a str>,
    list: Option<usize>,
}

impl<'a> ColumnTable<'a> {
    pub(super) fn write_json(&self, out: &mut Vec<u8>) {
        let (constants, empty) = (self.constants(ROOT), self.empty());
        if constants.is_empty() && empty.is_empty() {
            return self.write_rows(out);
        }
        out.push(b'{');
        if !constants.is_empty() {
            write_key("in_every_row", true, out);
            write_json(&Value::Object(constants), out);
            out.push(b',');
        }
        if !empty.is_empty() {
            write_key("in_no_row", true, out);
            write_json(&empty.into(), out);
            out.push(b',');
        }
        write_key("rows", true, out);
        self.write_rows(out);
        out.push(b'}');
    }

    /// Returns the flat table; `None` if most cells would be empty.
    pub(super) fn for_toon(&self) -> Option<Value> {
        let columns = self.columns();
        if self.rows.len() * columns.len() > SPARSE * self.filled_cells() {
            return None;
        }
        let rows = if columns.is_empty() {
            self.rows.len().into()
        } else {
            let names = names(&columns);
            let row = |row| {
                let cells = columns.iter().map(|column| column.cell(row));
                Value::Object(names.iter().cloned().zip(cells).collect())
            };
            Value::Array(self.rows.iter().map(row).collect())
        };
        let (constants, empty) = (self.constants(ROOT), self.empty());
        if constants.is_empty() && empty.is_empty() {
            return Some(rows);
        }
        let mut table = Map::new();
        if !constants.is_empty() {
            table.insert("in_every_row".into(), constants.into());
        }
        if !empty.is_empty() {
            table.insert("in_no_row".into(), empty.into());
        }
        table.insert("rows".into(), rows);
        Some(Value::Object(table))
    }

    fn write_rows(&self, out: &mut Vec<u8>) {
        if !self.nodes[ROOT].has_column_below {
            return out.extend_from_slice(self.rows.len().to_string().as_bytes());
        }
        out.push(b'[');
        for (at, row) in self.rows.iter().filter_map(Value::as_object).enumerate() {
            if at > 0 {
                out.push(b',');
            }
            self.write_members(ROOT, row, false, out);
        }
        out.push(b']');
    }

    /// Writes the members of an object that are columns.
    fn write_members(&self, at: usize, members: &Map<String, Value>, in_list: bool, out: &mut Vec<u8>) {
        out.push(b'{');
        let mut first = true;
        for (key, value) in members {
            let each = value.is_array() && !in_list;
            let Some(child) = self.child(at, key, each) else { continue };
            let node = &self.nodes[child];
            let below = value.as_object().filter(|below| !below.is_empty());
            let stays = if each || below.is_some() { node.has_column_below } else { node.role == ColumnRole::Column };
            if !stays {
                continue;
            }
            write_key(key, first, out);
            first = false;
            match (below, value) {
                (Some(below), _) => self.write_members(child, below, in_list, out),
                (None, Value::Array(items)) if each => self.write_list(child, items, out),
                _ => write_json(value, out),
            }
        }
        out.push(b'}');
    }

    fn write_list(&self, at: usize, items: &[Value], out: &mut Vec<u8>) {
        out.push(b'[');
        for (index, item) in items.iter().enumerate() {
            if index > 0 {
                out.push(b',');
            }
            match item {
                Value::Object(below) if !below.is_empty() => self.write_members(at, below, true, out),
                _ => write_json(item, out),
            }
        }
        out.push(b']');
    }

    /// Returns the values that are constant in all rows, in their nested places.
    fn constants(&self, at: usize) -> Map<String, Value> {
        let mut members = Map::new();
        for child in &self.nodes[at].children {
            let node = &self.nodes[*child];
            let is_whole = node.role == ColumnRole::ConstantList;
            let value = match self.constant(*child) {
                Some(value) => value.clone(),
                None => Value::Object(self.constants(*child)),
            };
            if is_empty(&value) {
                continue;
            }
            let mut key = node.key.to_owned();
            // A list that varies is represented by what its elements share.
            while (node.each && !is_whole && !key.ends_with("[]")) || members.contains_key(&key) {
                key.push_str("[]");
            }
            members.insert(key, value);
        }
        members
    }

    fn columns(&self) -> Vec<FlatColumn<'a>> {
        let mut columns = Vec::new();
        self.columns_below(ROOT, &FlatColumn::default(), &mut columns);
        columns
    }

    fn columns_below(&self, at: usize, above: &FlatColumn<'a>, columns: &mut Vec<FlatColumn<'a>>) {
        for child in self.nodes[at].children.iter().filter(|child| self.nodes[**child].has_column_below) {
            let node = &self.nodes[*child];
            let mut steps = above.steps.clone();
            steps.push(node.key);
            let list = above.list.or(node.each.then_some(above.steps.len()));
            let column = FlatColumn { steps, list };
            if node.role == ColumnRole::Column {
                columns.push(column.clone());
            }
            self.columns_below(*child, &column, columns);
        }
    }
}

impl FlatColumn<'_> {
    fn cell(&self, row: &Value) -> Value {
        let Some(list) = self.list else {
            let value = self.steps(row, 0, self.steps.len());
            return value.filter(|value| is_scalar(value)).cloned().unwrap_or_default();
        };
        let Some(Value::Array(items)) = self.steps(row, 0, list + 1) else { return Value::Null };
        // A list inside an element is written as JSON.
        let element = |item| {
            let value = self.steps(item, list + 1, self.steps.len());
            value.filter(|value| value.as_object().is_none_or(Map::is_empty))
        };
        joined(&items.iter().map(element).collect::<Vec<_>>())
    }

    fn steps<'v>(&self, value: &'v Value, from: usize, to: usize) -> Option<&'v Value> {
        self.steps[from..to].iter().try_fold(value, |value, step| value.as_object()?.get(*step))
    }

    /// Returns the column's name. With `quote`, keys that contain a dot or a bracket are written as JSON.
    fn name(&self, quote: bool) -> String {
        let mut name = String::new();
        for (at, step) in self.steps.iter().enumerate() {
            if at > 0 {
                name.push('.');
            }
            if quote && step.contains(['.', '[', '"']) {
                name.push_str(&Value::from(*step).to_string());
            } else {
                name.push_str(step);
            }
            if self.list == Some(at) {
                name.push_str("[]");
            }
        }
        name
    }
}

fn is_scalar(value: &Value) -> bool {
    !value.is_array() && !value.is_object()
}

/// Returns distinct column names, quoting keys that look like paths if needed.
fn names(columns: &[FlatColumn<'_>]) -> Vec<String> {
    let plain: Vec<String> = columns.iter().map(|column| column.name(false)).collect();
    let distinct: HashSet<&str> = plain.iter().map(String::as_str).collect();
    if distinct.len() == plain.len() {
        return plain;
    }
    columns.iter().map(|column| column.name(true)).collect()
}
