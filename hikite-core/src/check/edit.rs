//! Edits of arguments, grouped in a tree by location, so that the bytes and the parsed values are each traversed once,
//! however many edits there are.

use std::collections::HashMap;

use serde_json::{Map, Value};

use crate::json::scan::{Scanner, text_of};
use crate::json::{Raw, write_string};

/// A location, and the change to make there.
#[derive(Debug)]
pub(super) struct ArgumentEdit {
    path: Vec<String>,
    to: EditAction,
}

#[derive(Clone, Debug)]
enum EditAction {
    Remove,
    Value(Raw),
    /// Quote the existing value as a string, so that a long number keeps all its digits.
    Quote,
}

impl ArgumentEdit {
    pub(super) fn set(path: Vec<String>, to: Raw) -> Self {
        Self { path, to: EditAction::Value(to) }
    }

    pub(super) fn remove(path: Vec<String>) -> Self {
        Self { path, to: EditAction::Remove }
    }

    pub(super) fn quote(path: Vec<String>) -> Self {
        Self { path, to: EditAction::Quote }
    }

    /// Returns the name and value if the edit sets a top-level member.
    pub(super) fn top_level(&self) -> Option<(&str, &Raw)> {
        match (self.path.as_slice(), &self.to) {
            ([name], EditAction::Value(to)) => Some((name, to)),
            _ => None,
        }
    }
}

/// All edits at or below one location.
#[derive(Debug, Default)]
pub(super) struct EditTree {
    index: HashMap<String, usize>,
    changes: Vec<(String, EditNode)>,
}

#[derive(Debug)]
enum EditNode {
    Here(EditAction),
    Below(EditTree),
}

impl EditTree {
    /// Builds the tree. A later edit of the same location wins.
    pub(super) fn of(edits: &[ArgumentEdit]) -> Self {
        let mut places = Self::default();
        for edit in edits {
            places.insert(&edit.path, &edit.to);
        }
        places
    }

    /// Returns the bytes with all edits applied. Must run before `apply`, because it resolves the values to quote.
    pub(super) fn rewrite(&mut self, raw: &Raw) -> Raw {
        let mut out = Vec::with_capacity(raw.bytes().len());
        self.write(&mut Scanner::new(raw.bytes()), &mut out);
        Raw::trusted(out)
    }

    pub(super) fn apply(&self, value: &mut Value) {
        match value {
            Value::Object(members) => self.apply_to_members(members),
            Value::Array(items) => {
                for (step, change) in &self.changes {
                    let Some(item) = step.parse::<usize>().ok().and_then(|index| items.get_mut(index)) else {
                        continue;
                    };
                    match change {
                        EditNode::Here(EditAction::Value(to)) => *item = to.value(),
                        EditNode::Here(_) => {}
                        EditNode::Below(places) => places.apply(item),
                    }
                }
            }
            _ => {}
        }
    }

    fn apply_to_members(&self, members: &mut Map<String, Value>) {
        let mut removes = false;
        for (name, change) in &self.changes {
            match change {
                EditNode::Here(EditAction::Value(to)) => drop(members.insert(name.clone(), to.value())),
                EditNode::Here(EditAction::Remove) => removes = true,
                EditNode::Here(EditAction::Quote) => {}
                EditNode::Below(places) => {
                    if let Some(member) = members.get_mut(name) {
                        places.apply(member);
                    }
                }
            }
        }
        if removes {
            members.retain(|name, _| !matches!(self.change(name), Some(EditNode::Here(EditAction::Remove))));
        }
    }

    fn insert(&mut self, path: &[String], to: &EditAction) {
        let Some((step, rest)) = path.split_first() else { return };
        let at = match self.index.get(step) {
            Some(at) => *at,
            None => {
                self.changes.push((step.clone(), EditNode::Below(Self::default())));
                self.index.insert(step.clone(), self.changes.len() - 1);
                self.changes.len() - 1
            }
        };
        let change = &mut self.changes[at].1;
        match change {
            _ if rest.is_empty() => *change = EditNode::Here(to.clone()),
            EditNode::Below(places) => places.insert(rest, to),
            EditNode::Here(_) => {}
        }
    }

    fn change(&self, step: &str) -> Option<&EditNode> {
        Some(&self.changes[*self.index.get(step)?].1)
    }

    fn write(&mut self, scanner: &mut Scanner<'_>, out: &mut Vec<u8>) {
        match scanner.peek() {
            Some(b'{') => self.write_members(scanner, out),
            Some(b'[') => self.write_items(scanner, out),
            _ => out.extend_from_slice(scanner.value()),
        }
    }

    fn write_members(&mut self, scanner: &mut Scanner<'_>, out: &mut Vec<u8>) {
        scanner.take(1);
        out.push(b'{');
        let start = out.len();
        let mut visited = vec![false; self.changes.len()];
        while !scanner.at_end(b'}') {
            let written = scanner.string();
            scanner.colon();
            let at = text_of(written).and_then(|name| self.index.get(&*name)).copied();
            let change = at.map(|at| {
                visited[at] = true;
                &mut self.changes[at].1
            });
            if matches!(change, Some(EditNode::Here(EditAction::Remove))) {
                scanner.value();
                continue;
            }
            if out.len() > start {
                out.push(b',');
            }
            out.extend_from_slice(written);
            out.push(b':');
            write_changed(change, scanner, out);
        }
        for ((name, change), _) in self.changes.iter().zip(visited).filter(|(_, visited)| !visited) {
            if let EditNode::Here(EditAction::Value(to)) = change {
                if out.len() > start {
                    out.push(b',');
                }
                write_string(name, out);
                out.push(b':');
                out.extend_from_slice(to.bytes());
            }
        }
        out.push(b'}');
    }

    fn write_items(&mut self, scanner: &mut Scanner<'_>, out: &mut Vec<u8>) {
        let places = self.changes.iter().enumerate();
        let by_index: HashMap<usize, usize> =
            places.filter_map(|(at, (step, _))| Some((step.parse().ok()?, at))).collect();
        scanner.take(1);
        out.push(b'[');
        let mut index = 0;
        while !scanner.at_end(b']') {
            if index > 0 {
                out.push(b',');
            }
            let change = by_index.get(&index).map(|at| &mut self.changes[*at].1);
            write_changed(change, scanner, out);
            index += 1;
        }
        out.push(b']');
    }
}

/// Writes one value with its change. Array items are never removed.
fn write_changed(change: Option<&mut EditNode>, scanner: &mut Scanner<'_>, out: &mut Vec<u8>) {
    let Some(change) = change else { return out.extend_from_slice(scanner.value()) };
    match change {
        EditNode::Here(EditAction::Remove) => out.extend_from_slice(scanner.value()),
        EditNode::Below(places) => places.write(scanner, out),
        EditNode::Here(to) => {
            let written = scanner.value();
            if matches!(to, EditAction::Quote) {
                *to = EditAction::Value(Raw::from(&*String::from_utf8_lossy(written)));
            }
            if let EditAction::Value(to) = to {
                out.extend_from_slice(to.bytes());
            }
        }
    }
}
