//! Project rules that no lint covers: crate dependencies, file length, vocabulary, import cycles. `cargo xtask tidy` prints violations;
//! each rule is also a test.

mod arrow;
mod block;
mod cycle;
mod manifest;
mod method;
mod name;
mod opening;
mod ratchet;
#[cfg(test)]
mod readme;
mod retired;
mod size;
mod text;
mod tree;
mod type_name;

use std::fmt;

use anyhow::{Result, bail};

use tree::SourceTree;

/// A violation of a rule.
#[derive(Debug, PartialEq, Eq)]
struct TidyFinding {
    file: String,
    line: Option<usize>,
    message: String,
}

impl TidyFinding {
    fn file(file: &str, message: impl Into<String>) -> Self {
        Self { file: file.into(), line: None, message: message.into() }
    }

    fn line(file: &str, line: usize, message: impl Into<String>) -> Self {
        Self { file: file.into(), line: Some(line), message: message.into() }
    }
}

impl fmt::Display for TidyFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line = self.line.map(|line| format!(":{line}")).unwrap_or_default();
        write!(f, "{}{line}: {}", self.file, self.message)
    }
}

type TidyRule = fn(&SourceTree) -> Vec<TidyFinding>;

const RULES: &[TidyRule] = &[
    arrow::check,
    size::check,
    name::check,
    manifest::check,
    text::check,
    retired::check,
    opening::check,
    method::check,
    cycle::check,
    type_name::check,
];

pub(crate) fn run() -> Result<()> {
    let tree = SourceTree::read(&crate::root()?)?;
    for warning in size::warnings(&tree).into_iter().chain(cycle::warnings(&tree)) {
        crate::print(&format!("warning: {warning}"));
    }
    let findings: Vec<TidyFinding> = RULES.iter().flat_map(|rule| rule(&tree)).collect();
    for finding in &findings {
        crate::print(&finding.to_string());
    }
    if !findings.is_empty() {
        bail!("{} places break a rule", findings.len());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn holds(rule: TidyRule) {
        let tree = SourceTree::read(&crate::root().expect("a workspace")).expect("readable files");
        let findings: Vec<String> = rule(&tree).iter().map(ToString::to_string).collect();
        assert!(findings.is_empty(), "\n{}", findings.join("\n"));
    }

    #[test]
    fn crates_know_only_whom_they_may() {
        holds(arrow::check);
    }

    #[test]
    fn files_and_functions_are_short() {
        holds(size::check);
    }

    #[test]
    fn names_say_something_and_every_file_has_a_head() {
        holds(name::check);
    }

    #[test]
    fn every_dependency_has_a_reason() {
        holds(manifest::check);
    }

    #[test]
    fn nobodys_machine_is_named() {
        holds(text::check);
    }

    #[test]
    fn the_commands_in_the_readme_exist() {
        holds(readme::check);
    }

    #[test]
    fn retired_words_are_gone() {
        holds(retired::check);
    }

    #[test]
    fn doc_comments_open_with_their_subject() {
        holds(opening::check);
    }

    #[test]
    fn types_have_few_methods() {
        holds(method::check);
    }

    #[test]
    fn import_cycles_are_short() {
        holds(cycle::check);
    }

    #[test]
    fn type_names_can_be_searched_for() {
        holds(type_name::check);
    }

    /// Lists files over 400 lines, which must be split at 600.
    #[test]
    fn long_files_are_named() {
        let tree = SourceTree::read(&crate::root().expect("a workspace")).expect("readable files");
        for warning in size::warnings(&tree) {
            crate::print(&format!("warning: {warning}"));
        }
    }
}
