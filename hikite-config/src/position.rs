//! Positions in the config file: a path of names and indexes, and the line and column of a byte.

use std::fmt;

use super::jsonc::{JsoncNode, JsoncValue};

/// A path that is built on the stack while the tree is walked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ConfigPath<'a> {
    parent: Option<&'a ConfigPath<'a>>,
    step: ConfigPathStep<'a>,
}

#[derive(Clone, Copy, Debug)]
enum ConfigPathStep<'a> {
    Root,
    Key(&'a str),
    Index(usize),
}

/// Line and column, both from one; columns count characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TextPosition {
    pub line: usize,
    pub column: usize,
}

impl ConfigPath<'_> {
    pub(crate) const ROOT: ConfigPath<'static> = ConfigPath { parent: None, step: ConfigPathStep::Root };

    pub(crate) fn key<'b>(&'b self, name: &'b str) -> ConfigPath<'b> {
        ConfigPath { parent: Some(self), step: ConfigPathStep::Key(name) }
    }

    pub(crate) fn index(&self, index: usize) -> ConfigPath<'_> {
        ConfigPath { parent: Some(self), step: ConfigPathStep::Index(index) }
    }

    pub(crate) fn parent(&self) -> Option<&ConfigPath<'_>> {
        self.parent
    }

    /// Returns the names of the first two steps: a section and an entry in it.
    pub(crate) fn entry(&self) -> Option<(&str, &str)> {
        let parent = self.parent?;
        match (parent.step, self.step) {
            (ConfigPathStep::Key(section), ConfigPathStep::Key(name)) if parent.parent?.parent.is_none() => {
                Some((section, name))
            }
            _ => parent.entry(),
        }
    }

    /// Returns the path of the enclosing object.
    pub(crate) fn owner(&self) -> Option<&ConfigPath<'_>> {
        match self.step {
            ConfigPathStep::Root => None,
            ConfigPathStep::Key(_) => self.parent,
            ConfigPathStep::Index(_) => self.parent.and_then(ConfigPath::owner),
        }
    }

    /// Returns the byte position of the value, or of the nearest enclosing part if it is absent.
    pub(crate) fn value_at(&self, root: &JsoncNode) -> usize {
        self.find(root).map_or_else(|| self.key_at(root), |node| node.span.start)
    }

    /// Returns the byte position of the name; for list items and the root, that of the value.
    pub(crate) fn key_at(&self, root: &JsoncNode) -> usize {
        let Some(parent) = self.parent else { return root.span.start };
        let at = match self.step {
            ConfigPathStep::Key(name) => {
                parent.find(root).and_then(JsoncNode::object).and_then(|o| o.get(name)).map(|m| m.name_at)
            }
            _ => self.find(root).map(|node| node.span.start),
        };
        at.unwrap_or_else(|| parent.key_at(root))
    }

    fn find<'n>(&self, root: &'n JsoncNode) -> Option<&'n JsoncNode> {
        let Some(parent) = self.parent else { return Some(root) };
        match (&parent.find(root)?.value, self.step) {
            (JsoncValue::Object(object), ConfigPathStep::Key(name)) => object.get(name).map(|member| &member.node),
            (JsoncValue::List(items), ConfigPathStep::Index(index)) => items.get(index),
            _ => None,
        }
    }
}

impl fmt::Display for ConfigPath<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let first = match self.parent {
            Some(parent) => {
                parent.fmt(f)?;
                parent.parent.is_none()
            }
            None => return Ok(()),
        };
        match self.step {
            ConfigPathStep::Root => Ok(()),
            ConfigPathStep::Index(index) => write!(f, "[{index}]"),
            ConfigPathStep::Key(name) if is_plain(name) && first => f.write_str(name),
            ConfigPathStep::Key(name) if is_plain(name) => write!(f, ".{name}"),
            ConfigPathStep::Key(name) => write!(f, "[{name:?}]"),
        }
    }
}

/// Index for converting many byte positions of a text to lines and columns.
#[derive(Debug)]
pub(crate) struct LineIndex<'a> {
    text: &'a str,
    /// Byte positions of line starts.
    starts: Vec<usize>,
    /// Number of characters before every `STRIDE` bytes.
    characters: Vec<usize>,
}

/// Bytes between two character counts.
const STRIDE: usize = 1024;

impl<'a> LineIndex<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        let starts = [0].into_iter().chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        let mut count = 0;
        let mut characters = vec![0];
        for part in text.as_bytes().chunks(STRIDE) {
            count += begun(part);
            characters.push(count);
        }
        Self { text, starts, characters }
    }

    pub(crate) fn place(&self, at: usize) -> TextPosition {
        let at = at.min(self.text.len());
        let line = self.starts.partition_point(|start| *start <= at);
        let start = self.starts[line - 1];
        let marks = usize::from(self.text[start..].starts_with('\u{feff}') && at > start);
        TextPosition { line, column: self.before(at) - self.before(start) - marks + 1 }
    }

    /// Returns the number of characters that start before a byte.
    fn before(&self, at: usize) -> usize {
        let whole = at / STRIDE;
        self.characters[whole] + begun(&self.text.as_bytes()[whole * STRIDE..at])
    }
}

/// Counts the characters that start in these bytes.
fn begun(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| **byte & 0xC0 != 0x80).count()
}

impl TextPosition {
    pub fn of(text: &str, at: usize) -> Self {
        let before = text.get(..at).unwrap_or(text);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
        let column = before[line_start..].trim_start_matches('\u{feff}').chars().count() + 1;
        Self { line, column }
    }
}

impl fmt::Display for TextPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

fn is_plain(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '$'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jsonc;

    #[test]
    fn names_and_values_are_found_and_absent_ones_fall_back() {
        let text = "{\n  \"a\": { \"日本\": [10, 20] }\n}";
        let tree = jsonc::parse(text).expect("valid");
        let place = |at| TextPosition::of(text, at).to_string();
        let a = ConfigPath::ROOT.key("a");
        let list = a.key("日本");
        let second = list.index(1);
        assert_eq!(second.to_string(), "a.日本[1]");
        assert_eq!(place(second.value_at(&tree)), "2:21");
        assert_eq!(place(list.key_at(&tree)), "2:10");
        assert_eq!(place(a.key("absent").value_at(&tree)), "2:3");
    }

    #[test]
    fn places_are_the_same_however_they_are_found() {
        let text = format!("\u{feff}{{\n\"日本\": [\n{}]\n}}", "\"長い行\", ".repeat(500));
        let lines = LineIndex::new(&text);
        for (at, _) in text.char_indices() {
            assert_eq!(lines.place(at), TextPosition::of(&text, at), "{at}");
        }
        assert_eq!(lines.place(text.len()), TextPosition::of(&text, text.len()));
    }

    #[test]
    fn odd_names_are_quoted() {
        assert_eq!(ConfigPath::ROOT.key("mcpServers").key("a/b").to_string(), "mcpServers[\"a/b\"]");
    }
}
