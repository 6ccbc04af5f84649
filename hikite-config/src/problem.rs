//! Problems of a config file, each with its position, path and hint. They are collected, so that one run reports all.

use std::collections::HashSet;
use std::fmt;

use super::invalid_entry::{EntryId, InvalidEntry};
use super::jsonc::{JsoncNode, SyntaxError};
use super::position::{ConfigPath, LineIndex, TextPosition};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    pub place: Option<TextPosition>,
    /// Path like `categories.fs.tools.includeNames[1]`; empty for the file itself.
    pub path: String,
    pub message: String,
    pub hint: Option<String>,
    /// The server, provider or service that alone is invalid because of this.
    pub entry: Option<EntryId>,
}

/// The errors of a rejected file, displayed as `error: file:line:column: path: message` and `hint: …` lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problems {
    pub file: String,
    pub errors: Vec<Problem>,
    /// Warnings about the file.
    pub warnings: Vec<String>,
}

impl Problems {
    /// Creates a problem of the file as a whole.
    pub fn whole(file: &str, message: impl Into<String>, hint: Option<&str>) -> Self {
        let message = message.into();
        let problem = Problem { place: None, path: String::new(), message, hint: hint.map(Into::into), entry: None };
        Self { file: file.into(), errors: vec![problem], warnings: Vec::new() }
    }

    pub fn syntax(file: &str, text: &str, error: &SyntaxError) -> Self {
        let mut problems = Self::whole(file, error.message.as_str(), error.hint);
        problems.errors[0].place = Some(TextPosition::of(text, error.at));
        problems
    }

    /// Returns all problems with their hints in one line.
    pub fn summary(&self) -> String {
        let with_hint = |problem: &Problem| match &problem.hint {
            Some(hint) => format!("{}. {hint}", problem.line(&self.file)),
            None => problem.line(&self.file),
        };
        self.errors.iter().map(with_hint).collect::<Vec<_>>().join("; ")
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.errors.iter().enumerate() {
            let separator = if index == 0 { "" } else { "\n" };
            write!(f, "{separator}error: {}", problem.line(&self.file))?;
            if let Some(hint) = &problem.hint {
                write!(f, "\nhint: {hint}")?;
            }
        }
        Ok(())
    }
}

impl std::error::Error for Problems {}

impl Problem {
    fn line(&self, file: &str) -> String {
        let place = self.place.map(|place| format!("{place}: ")).unwrap_or_default();
        let path = if self.path.is_empty() { String::new() } else { format!("{}: ", self.path) };
        let gap = if place.is_empty() { " " } else { "" };
        format!("{file}:{gap}{place}{path}{}", self.message)
    }
}

/// Collects the problems of one file.
pub(crate) struct ProblemCollector<'a> {
    file: &'a str,
    tree: &'a JsoncNode,
    lines: LineIndex<'a>,
    errors: Vec<Problem>,
    /// Number of errors over the limit, which are counted but not stored.
    more: usize,
    warnings: Vec<(TextPosition, String)>,
    /// Paths of objects that directly contain an error.
    paths_with_errors: HashSet<String>,
}

/// Maximum number of reported errors per file.
const ERRORS_MAX: usize = 200;

impl<'a> ProblemCollector<'a> {
    pub(crate) fn new(file: &'a str, text: &'a str, tree: &'a JsoncNode) -> Self {
        Self {
            file,
            tree,
            lines: LineIndex::new(text),
            errors: Vec::new(),
            more: 0,
            warnings: Vec::new(),
            paths_with_errors: HashSet::new(),
        }
    }

    /// Reports an error in the value at `path`.
    pub(crate) fn error(&mut self, path: &ConfigPath<'_>, message: impl Into<String>, hint: Option<String>) {
        self.push(path, path.value_at(self.tree), message.into(), hint, EntryId::of(path));
    }

    /// Reports an error in the name at `path`, not in its value.
    pub(crate) fn error_in_name(&mut self, path: &ConfigPath<'_>, message: impl Into<String>, hint: Option<String>) {
        self.push(path, path.key_at(self.tree), message.into(), hint, EntryId::of(path));
    }

    /// Reports an error in the value at `path` that makes only `entry` invalid.
    pub(crate) fn error_of(&mut self, entry: EntryId, path: &ConfigPath<'_>, message: String, hint: String) {
        self.push(path, path.value_at(self.tree), message, Some(hint), Some(entry));
    }

    /// Reports something missing, unless an error in the same object may be its cause.
    pub(crate) fn missing(&mut self, path: &ConfigPath<'_>, message: impl Into<String>, hint: Option<String>) {
        if !self.paths_with_errors.contains(&path.to_string()) {
            self.push(path, path.key_at(self.tree), message.into(), hint, EntryId::of(path));
        }
    }

    pub(crate) fn warning(&mut self, path: &ConfigPath<'_>, message: impl fmt::Display) {
        let place = self.lines.place(path.key_at(self.tree));
        self.warnings.push((place, format!("{}:{place}: {path}: {message}", self.file)));
    }

    /// Returns the line of a byte, for naming a second position in a message.
    pub(crate) fn line(&self, at: usize) -> usize {
        self.lines.place(at).line
    }

    /// Returns `true` if further errors are only counted.
    pub(crate) fn is_full(&self) -> bool {
        self.errors.len() >= ERRORS_MAX
    }

    pub(crate) fn tree(&self) -> &'a JsoncNode {
        self.tree
    }

    /// Returns the warnings and the invalid entries, or all problems if one of them belongs to no entry.
    pub(crate) fn finish(mut self) -> Result<(Vec<String>, Vec<InvalidEntry>), Problems> {
        self.errors.sort_by_key(|problem| problem.place);
        self.warnings.sort_by_key(|(place, _)| *place);
        let warnings: Vec<String> = self.warnings.into_iter().map(|(_, warning)| warning).collect();
        if self.more > 0 {
            let message = format!("and {} more", self.more);
            self.errors.push(Problem { place: None, path: String::new(), message, hint: None, entry: None });
        }
        match InvalidEntry::group(self.file, &self.errors) {
            Some(invalid) => Ok((warnings, invalid)),
            None => Err(Problems { file: self.file.into(), errors: self.errors, warnings }),
        }
    }

    fn push(
        &mut self,
        path: &ConfigPath<'_>,
        at: usize,
        message: String,
        hint: Option<String>,
        entry: Option<EntryId>,
    ) {
        if self.is_full() {
            self.more += 1;
            return;
        }
        let place = Some(self.lines.place(at));
        let around = [path.parent(), path.owner()];
        self.paths_with_errors.extend(around.into_iter().flatten().map(ToString::to_string));
        self.errors.push(Problem { place, path: path.to_string(), message, hint, entry });
    }
}
