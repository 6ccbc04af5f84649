//! What a list of objects has in common: every path that leads to values in its rows, which of these are the same or
//! empty in all of them, and which are columns. A walk over all rows; values are looked at, never copied.

use std::collections::HashMap;

use serde_json::{Map, Value};

/// A list of objects inside a row is taken apart into columns if it is no longer than this. What is longer is a table
/// of its own: in a cell nobody finds the fifth of each.
const INNER_MAX: usize = 8;

/// What two more members around a table cost.
const HOIST_COST: usize = 30;

/// Something that rows may have: a member, or the elements of one (`each`).
#[derive(Debug)]
pub(super) struct Node<'a> {
    pub(super) key: &'a str,
    pub(super) each: bool,
    pub(super) children: Vec<usize>,
    /// Of the values that stand here and have nothing below them.
    seen: Seen<'a>,
    /// Of the lists that stand here, if this is `each`.
    lists: Seen<'a>,
    elements: usize,
    /// Some value here or below is not empty.
    filled: bool,
    pub(super) fate: Fate,
    /// Something below, or here, is a column.
    pub(super) keeps: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Column,
    /// The same in every row.
    Every,
    /// The same list in every row, told once as a whole with all that is below.
    Whole,
    /// Empty in every row, or no place where values stand.
    Nothing,
}

#[derive(Debug, Default)]
struct Seen<'a> {
    first: Option<&'a Value>,
    count: usize,
    differ: bool,
    filled: bool,
}

impl<'a> Seen<'a> {
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
pub(super) struct Table<'a> {
    pub(super) rows: &'a [Value],
    pub(super) nodes: Vec<Node<'a>>,
    /// Not everything is a column.
    hoisted: bool,
    places: HashMap<(usize, &'a str, bool), usize>,
}

pub(super) const ROOT: usize = 0;

impl<'a> Table<'a> {
    /// `None` if these are no rows of a table. Without `hoist` every path is a column.
    pub(super) fn of(rows: &'a [Value], hoist: bool) -> Option<Self> {
        if rows.len() < 2 || !rows.iter().all(|row| row.as_object().is_some_and(|row| !row.is_empty())) {
            return None;
        }
        let mut table =
            Self { rows, nodes: vec![Node::new("", false)], hoisted: false, places: HashMap::new() };
        for row in rows {
            table.walk(ROOT, row.as_object()?, false)?;
        }
        table.note_filled(ROOT);
        table.hoisted = hoist && table.judge();
        if !table.hoisted {
            table.keep_all(ROOT);
        }
        table.note_keeps(ROOT);
        Some(table)
    }

    pub(super) fn child(&self, node: usize, key: &str, each: bool) -> Option<usize> {
        self.places.get(&(node, key, each)).copied()
    }

    /// What stands in every row, if anything does.
    pub(super) fn constant(&self, node: usize) -> Option<&'a Value> {
        let node = &self.nodes[node];
        match node.fate {
            Fate::Every => node.seen.first,
            Fate::Whole => node.lists.first,
            Fate::Column | Fate::Nothing => None,
        }
    }

    /// The names that stand for nothing in any row, each as high up as it can be told.
    pub(super) fn empty(&self) -> Vec<String> {
        let mut names = Vec::new();
        if self.hoisted {
            self.empty_below(ROOT, "", &mut names);
        }
        names.dedup();
        names
    }

    /// How many cells of columns have a value.
    pub(super) fn filled_cells(&self) -> usize {
        let columns = self.nodes.iter().filter(|node| node.fate == Fate::Column);
        columns.map(|node| node.seen.count.min(self.rows.len())).sum()
    }

    /// `None` if a list inside is too long to be taken apart.
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
                    self.nodes[child].seen.add(value);
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
                _ => self.nodes[node].seen.add(item),
            }
        }
        Some(())
    }

    /// The child of that name, made if it is new. Rows mostly have their members in one order: the next is tried first.
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
        self.nodes.push(Node::new(key, each));
        self.nodes[node].children.push(child);
        self.places.insert((node, key, each), child);
        *next = self.nodes[node].children.len();
        child
    }

    /// Whether it is worth while.
    fn judge(&mut self) -> bool {
        let mut gain = 0;
        self.judge_below(ROOT, self.rows.len(), &mut gain);
        gain > HOIST_COST
    }

    /// Everything is a column, but for values that are empty where others of the same name are not.
    fn keep_all(&mut self, at: usize) {
        for index in 0..self.nodes[at].children.len() {
            let child = self.nodes[at].children[index];
            self.keep_all(child);
            let Node { key, each, .. } = self.nodes[child];
            let other = self.child(at, key, !each);
            let stands_alone = other.is_none_or(|other| each && !self.nodes[other].filled);
            let node = &mut self.nodes[child];
            let is_empty_column = (node.seen.count > 0 || each) && !node.filled && stands_alone;
            node.fate = if node.seen.filled || is_empty_column { Fate::Column } else { Fate::Nothing };
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
            } else if node.fate != Fate::Whole {
                let each = if node.each { "[]" } else { "" };
                self.empty_below(*child, &format!("{above}{dot}{}{each}", node.key), names);
            }
        }
    }

    fn note_filled(&mut self, at: usize) -> bool {
        let mut filled = self.nodes[at].seen.filled;
        for index in 0..self.nodes[at].children.len() {
            filled |= self.note_filled(self.nodes[at].children[index]);
        }
        self.nodes[at].filled = filled;
        filled
    }

    /// `count`: how many values a node below has if none is missing.
    fn judge_below(&mut self, at: usize, count: usize, gain: &mut usize) {
        for index in 0..self.nodes[at].children.len() {
            let child = self.nodes[at].children[index];
            if self.nodes[child].each {
                self.judge_list(child, gain);
                continue;
            }
            self.judge_below(child, count, gain);
            self.decide(child, count, gain);
        }
    }

    fn judge_list(&mut self, at: usize, gain: &mut usize) {
        let rows = self.rows.len();
        if self.nodes[at].lists.is_same_in(rows) {
            let length = self.nodes[at].lists.first.map_or(0, size);
            *gain += (rows - 1) * length;
            self.nodes[at].fate = Fate::Whole;
            return;
        }
        self.nodes[at].fate = Fate::of_column(&self.nodes[at].seen);
        let elements = self.nodes[at].elements;
        self.judge_below(at, elements, gain);
        // What tells how many elements there are must not be the same for all of them.
        if !self.has_column(at)
            && let Some(first) = self.first_every(at)
        {
            self.nodes[first].fate = Fate::Column;
        }
    }

    fn decide(&mut self, at: usize, count: usize, gain: &mut usize) {
        let rows = self.rows.len();
        let node = &mut self.nodes[at];
        if node.seen.is_same_in(count) {
            *gain += (rows - 1) * (node.seen.first.map_or(0, size) + 1);
            node.fate = Fate::Every;
        } else {
            node.fate = Fate::of_column(&node.seen);
            if node.fate == Fate::Nothing && node.seen.count > 0 {
                *gain += rows * 5;
            }
        }
    }

    fn has_column(&self, at: usize) -> bool {
        self.nodes[at].fate == Fate::Column
            || self.nodes[at].children.iter().any(|child| self.has_column(*child))
    }

    fn first_every(&self, at: usize) -> Option<usize> {
        if self.nodes[at].fate == Fate::Every {
            return Some(at);
        }
        self.nodes[at].children.iter().find_map(|child| self.first_every(*child))
    }

    fn note_keeps(&mut self, at: usize) -> bool {
        let mut keeps = self.nodes[at].fate == Fate::Column;
        for index in 0..self.nodes[at].children.len() {
            keeps |= self.note_keeps(self.nodes[at].children[index]);
        }
        self.nodes[at].keeps = keeps;
        keeps
    }
}

impl<'a> Node<'a> {
    fn new(key: &'a str, each: bool) -> Self {
        Self {
            key,
            each,
            children: Vec::new(),
            seen: Seen::default(),
            lists: Seen::default(),
            elements: 0,
            filled: false,
            fate: Fate::Nothing,
            keeps: false,
        }
    }
}

impl Fate {
    fn of_column(seen: &Seen<'_>) -> Self {
        if seen.filled { Self::Column } else { Self::Nothing }
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

/// About as many bytes as it takes to write.
fn size(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Number(number) => number.to_string().len(),
        Value::Array(items) => items.iter().map(|item| size(item) + 1).sum(),
        Value::Object(members) => members.iter().map(|(key, value)| key.len() + size(value) + 2).sum(),
        _ => 4,
    }
}
