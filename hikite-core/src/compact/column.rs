//! Analyzes the rows of a list of objects: all paths to values, which of them are constant or empty in all rows, and
//! which become columns. One walk over all rows; values are borrowed, never copied.

use std::collections::HashMap;

use serde_json::{Map, Value};

/// Maximum length of a nested list of objects that is split into columns. A longer one becomes a separate table: long
/// lists in cells are hard to read.
const INNER_MAX: usize = 8;

/// Bytes that `in_every_row` and `in_no_row` add around a table.
const HOIST_COST: usize = 30;

/// A path in the rows: a member, or the elements of a list (`each`).
#[derive(Debug)]
pub(super) struct ColumnNode<'a> {
    pub(super) key: &'a str,
    pub(super) each: bool,
    pub(super) children: Vec<usize>,
    /// Statistics of the leaf values at this path.
    values: ValueStats<'a>,
    /// Statistics of the lists at this path, if `each` is set.
    lists: ValueStats<'a>,
    elements: usize,
    /// `true` if a value at or below this path is not empty.
    filled: bool,
    pub(super) role: ColumnRole,
    /// `true` if this path or one below it is a column.
    pub(super) has_column_below: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ColumnRole {
    Column,
    /// Constant in every row.
    Constant,
    /// A list that is constant in every row, written once with everything below it.
    ConstantList,
    /// Empty in every row, or without values of its own.
    Empty,
}

#[derive(Debug, Default)]
struct ValueStats<'a> {
    first: Option<&'a Value>,
    count: usize,
    differ: bool,
    filled: bool,
}

impl<'a> ValueStats<'a> {
    fn add(&mut self, value: &'a Value) {
        self.count += 1;
        self.filled |= !is_empty(value);
        match self.first {
            None => self.first = Some(value),
            Some(first) => self.differ |= !self.differ && first != value,
        }
    }

    fn is_same_in(&self, count: usize) -> bool {
        self.filled && !self.differ && self.count == count
    }
}

#[derive(Debug)]
pub(super) struct ColumnTable<'a> {
    pub(super) rows: &'a [Value],
    pub(super) nodes: Vec<ColumnNode<'a>>,
    /// `true` if some paths are not columns.
    hoisted: bool,
    places: HashMap<(usize, &'a str, bool), usize>,
}

pub(super) const ROOT: usize = 0;

impl<'a> ColumnTable<'a> {
    /// Builds the table; `None` if the values are not table rows. Without `hoist` every path is a column.
    pub(super) fn of(rows: &'a [Value], hoist: bool) -> Option<Self> {
        if rows.len() < 2 || !rows.iter().all(|row| row.as_object().is_some_and(|row| !row.is_empty())) {
            return None;
        }
        let mut table = Self { rows, nodes: vec![ColumnNode::new("", false)], hoisted: false, places: HashMap::new() };
        for row in rows {
            table.walk(ROOT, row.as_object()?, false)?;
        }
        table.mark_filled(ROOT);
        table.hoisted = hoist && table.assign_roles();
        if !table.hoisted {
            table.make_all_columns(ROOT);
        }
        table.mark_column_paths(ROOT);
        Some(table)
    }

    pub(super) fn child(&self, node: usize, key: &str, each: bool) -> Option<usize> {
        self.places.get(&(node, key, each)).copied()
    }

    /// Returns the value that every row has at this path, if any.
    pub(super) fn constant(&self, node: usize) -> Option<&'a Value> {
        let node = &self.nodes[node];
        match node.role {
            ColumnRole::Constant => node.values.first,
            ColumnRole::ConstantList => node.lists.first,
            ColumnRole::Column | ColumnRole::Empty => None,
        }
    }

    /// Returns the paths that are empty in all rows, each at its highest level.
    pub(super) fn empty(&self) -> Vec<String> {
        let mut names = Vec::new();
        if self.hoisted {
            self.empty_below(ROOT, "", &mut names);
        }
        names.dedup();
        names
    }

    /// Returns the number of column cells with a value.
    pub(super) fn filled_cells(&self) -> usize {
        let columns = self.nodes.iter().filter(|node| node.role == ColumnRole::Column);
        columns.map(|node| node.values.count.min(self.rows.len())).sum()
    }

    /// Walks an object; `None` if a nested list is too long to be split into columns.
    fn walk(&mut self, node: usize, members: &'a Map<String, Value>, in_list: bool) -> Option<()> {
        let mut next = 0;
        for (key, value) in members {
            match value {
                Value::Object(below) if !below.is_empty() => {
                    let child = self.enter(node, key, false, &mut next);
                    self.walk(child, below, in_list)?;
                }
                Value::Array(items) if !in_list => {
                    let child = self.enter(node, key, true, &mut next);
                    self.walk_list(child, value, items)?;
                }
                _ => {
                    let child = self.enter(node, key, false, &mut next);
                    self.nodes[child].values.add(value);
                }
            }
        }
        Some(())
    }

    fn walk_list(&mut self, node: usize, list: &'a Value, items: &'a [Value]) -> Option<()> {
        if items.len() > INNER_MAX && items.iter().any(Value::is_object) {
            return None;
        }
        self.nodes[node].lists.add(list);
        self.nodes[node].elements += items.len();
        for item in items {
            match item {
                Value::Object(below) if !below.is_empty() => self.walk(node, below, true)?,
                _ => self.nodes[node].values.add(item),
            }
        }
        Some(())
    }

    /// Returns the child with this name, creating it if needed. Rows mostly share one member order, so the next child
    /// is tried first.
    fn enter(&mut self, node: usize, key: &'a str, each: bool, next: &mut usize) -> usize {
        if let Some(child) = self.nodes[node].children.get(*next).copied()
            && self.nodes[child].each == each
            && self.nodes[child].key == key
        {
            *next += 1;
            return child;
        }
        if let Some(child) = self.child(node, key, each) {
            return child;
        }
        let child = self.nodes.len();
        self.nodes.push(ColumnNode::new(key, each));
        self.nodes[node].children.push(child);
        self.places.insert((node, key, each), child);
        *next = self.nodes[node].children.len();
        child
    }

    /// Assigns the roles. Returns `true` if hoisting saves more than it costs.
    fn assign_roles(&mut self) -> bool {
        let mut gain = 0;
        self.assign_roles_below(ROOT, self.rows.len(), &mut gain);
        gain > HOIST_COST
    }

    /// Makes every path a column, except those that are empty where another node of the same name has values.
    fn make_all_columns(&mut self, at: usize) {
        for index in 0..self.nodes[at].children.len() {
            let child = self.nodes[at].children[index];
            self.make_all_columns(child);
            let ColumnNode { key, each, .. } = self.nodes[child];
            let other = self.child(at, key, !each);
            let stands_alone = other.is_none_or(|other| each && !self.nodes[other].filled);
            let node = &mut self.nodes[child];
            let is_empty_column = (node.values.count > 0 || each) && !node.filled && stands_alone;
            node.role = if node.values.filled || is_empty_column { ColumnRole::Column } else { ColumnRole::Empty };
        }
    }

    fn empty_below(&self, at: usize, above: &str, names: &mut Vec<String>) {
        for child in &self.nodes[at].children {
            let node = &self.nodes[*child];
            let other = self.child(at, node.key, !node.each);
            let dot = if above.is_empty() { "" } else { "." };
            if !node.filled {
                if other.is_none_or(|other| !self.nodes[other].filled) {
                    names.push(format!("{above}{dot}{}", node.key));
                }
            } else if node.role != ColumnRole::ConstantList {
                let each = if node.each { "[]" } else { "" };
                self.empty_below(*child, &format!("{above}{dot}{}{each}", node.key), names);
            }
        }
    }

    fn mark_filled(&mut self, at: usize) -> bool {
        let mut filled = self.nodes[at].values.filled;
        for index in 0..self.nodes[at].children.len() {
            filled |= self.mark_filled(self.nodes[at].children[index]);
        }
        self.nodes[at].filled = filled;
        filled
    }

    /// Assigns the roles below a node. `count` is the number of values that a complete path has.
    fn assign_roles_below(&mut self, at: usize, count: usize, gain: &mut usize) {
        for index in 0..self.nodes[at].children.len() {
            let child = self.nodes[at].children[index];
            if self.nodes[child].each {
                self.assign_list_role(child, gain);
                continue;
            }
            self.assign_roles_below(child, count, gain);
            self.assign_value_role(child, count, gain);
        }
    }

    fn assign_list_role(&mut self, at: usize, gain: &mut usize) {
        let rows = self.rows.len();
        if self.nodes[at].lists.is_same_in(rows) {
            let length = self.nodes[at].lists.first.map_or(0, size);
            *gain += (rows - 1) * length;
            self.nodes[at].role = ColumnRole::ConstantList;
            return;
        }
        self.nodes[at].role = ColumnRole::of_column(&self.nodes[at].values);
        let elements = self.nodes[at].elements;
        self.assign_roles_below(at, elements, gain);
        // At least one column must remain to show the number of elements.
        if !self.has_column(at)
            && let Some(first) = self.first_constant(at)
        {
            self.nodes[first].role = ColumnRole::Column;
        }
    }

    fn assign_value_role(&mut self, at: usize, count: usize, gain: &mut usize) {
        let rows = self.rows.len();
        let node = &mut self.nodes[at];
        if node.values.is_same_in(count) {
            *gain += (rows - 1) * (node.values.first.map_or(0, size) + 1);
            node.role = ColumnRole::Constant;
        } else {
            node.role = ColumnRole::of_column(&node.values);
            if node.role == ColumnRole::Empty && node.values.count > 0 {
                *gain += rows * 5;
            }
        }
    }

    fn has_column(&self, at: usize) -> bool {
        self.nodes[at].role == ColumnRole::Column || self.nodes[at].children.iter().any(|child| self.has_column(*child))
    }

    fn first_constant(&self, at: usize) -> Option<usize> {
        if self.nodes[at].role == ColumnRole::Constant {
            return Some(at);
        }
        self.nodes[at].children.iter().find_map(|child| self.first_constant(*child))
    }

    fn mark_column_paths(&mut self, at: usize) -> bool {
        let mut has_column_below = self.nodes[at].role == ColumnRole::Column;
        for index in 0..self.nodes[at].children.len() {
            has_column_below |= self.mark_column_paths(self.nodes[at].children[index]);
        }
        self.nodes[at].has_column_below = has_column_below;
        has_column_below
    }
}

impl<'a> ColumnNode<'a> {
    fn new(key: &'a str, each: bool) -> Self {
        Self {
            key,
            each,
            children: Vec::new(),
            values: ValueStats::default(),
            lists: ValueStats::default(),
            elements: 0,
            filled: false,
            role: ColumnRole::Empty,
            has_column_below: false,
        }
    }
}

impl ColumnRole {
    fn of_column(values: &ValueStats<'_>) -> Self {
        if values.filled { Self::Column } else { Self::Empty }
    }
}

pub(super) fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        _ => false,
    }
}

/// Returns the approximate number of bytes that the value takes in text.
fn size(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Number(number) => number.to_string().len(),
        Value::Array(items) => items.iter().map(|item| size(item) + 1).sum(),
        Value::Object(members) => members.iter().map(|(key, value)| key.len() + size(value) + 2).sum(),
        _ => 4,
    }
}
