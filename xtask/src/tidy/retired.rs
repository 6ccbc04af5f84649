//! Words that the workspace no longer uses, because they were metaphors of its own: in identifiers, comments, texts,
//! documents, pages and paths. `retired/words.rs` lists them with what to write instead.

mod words;

use std::collections::BTreeSet;

use words::{EXCEPTIONS, FUNCTIONS, MODULES, PHRASES, TYPES, WORDS};

use super::block::declared;
use super::tree::SourceFile;
use super::{SourceTree, TidyFinding};

const EXTENSIONS: &[&str] = &["css", "html", "js", "md", "mjs", "py", "rs", "toml", "txt"];

/// Files that say the words on purpose, and files of others.
const SKIPPED: &[&str] = &["CHANGELOG.md", "docs/mcp-", "hikite/order.txt", "xtask/src/tidy/retired"];
const SKIPPED_FOLDERS: &[&str] = &["/fixtures/", "/data/", "/snapshots/", "tests/contract/"];

/// A word that a file may use for now.
struct RetiredException {
    /// The start of the paths that it is for.
    path: &'static str,
    word: &'static str,
    /// Why the word is still there; printed with the exception once it is not.
    reason: &'static str,
}

/// A retired word in a line, or in a path.
struct RetiredUse {
    line: Option<usize>,
    word: &'static str,
    instead: &'static str,
}

pub(super) fn check(tree: &SourceTree) -> Vec<TidyFinding> {
    check_with(tree, EXCEPTIONS)
}

fn check_with(tree: &SourceTree, exceptions: &[RetiredException]) -> Vec<TidyFinding> {
    let mut needed = BTreeSet::new();
    let mut findings = Vec::new();
    for file in tree.files.iter().filter(|file| is_checked(file)) {
        for found in uses(file) {
            let exception = exceptions
                .iter()
                .position(|exception| exception.word == found.word && file.path.starts_with(exception.path));
            if let Some(index) = exception {
                needed.insert(index);
            } else {
                let message = format!("\"{}\" is retired; write {}", found.word, found.instead);
                findings.push(TidyFinding { file: file.path.clone(), line: found.line, message });
            }
        }
    }
    for (index, exception) in exceptions.iter().enumerate() {
        if !needed.contains(&index) {
            let RetiredException { path, word, reason } = exception;
            let message = format!("no \"{word}\" is left in `{path}`; remove its exception ({reason})");
            findings.push(TidyFinding::file("xtask/src/tidy/retired/words.rs", message));
        }
    }
    findings
}

fn is_checked(file: &SourceFile) -> bool {
    EXTENSIONS.iter().any(|extension| file.is(extension))
        && !SKIPPED.iter().any(|start| file.path.starts_with(start))
        && !SKIPPED_FOLDERS.iter().any(|folder| file.path.contains(folder))
}

fn uses(file: &SourceFile) -> Vec<RetiredUse> {
    let in_path = retired_words(&file.path).map(|(word, instead)| RetiredUse { line: None, word, instead });
    let in_lines = file.lines().flat_map(|(line, text)| {
        let phrases = PHRASES.iter().filter(|(phrase, _)| text.to_lowercase().contains(phrase)).copied();
        let names = if file.is("rs") { declared_name(text) } else { None };
        let mentions = if file.is("md") || text.trim_start().starts_with("//") { mentioned(text) } else { Vec::new() };
        let all = retired_words(text).chain(phrases).chain(names).chain(mentions);
        all.map(move |(word, instead)| RetiredUse { line: Some(line), word, instead }).collect::<Vec<_>>()
    });
    in_path.chain(in_lines).collect()
}

/// Returns the retired words among the words of a text and the parts of its identifiers.
fn retired_words(text: &str) -> impl Iterator<Item = (&'static str, &'static str)> {
    // The crate of this name is not ours.
    let text = text.replace("parking_lot", "");
    let parts: Vec<String> = text.split(|c: char| !c.is_alphabetic()).flat_map(humps).collect();
    parts.into_iter().filter_map(|part| {
        let singular = part.strip_suffix('s').unwrap_or(&part);
        WORDS.iter().find(|(word, _)| *word == part || *word == singular).copied()
    })
}

/// Splits `CamelCase` at its capitals, in lower case.
fn humps(word: &str) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    let mut after_lower = false;
    for c in word.chars() {
        if parts.is_empty() || (c.is_uppercase() && after_lower) {
            parts.push(String::new());
        }
        after_lower = c.is_lowercase();
        parts.last_mut().expect("never empty").extend(c.to_lowercase());
    }
    parts
}

fn declared_name(line: &str) -> Option<(&'static str, &'static str)> {
    let lists = [(&["struct", "enum", "trait", "type"][..], TYPES), (&["fn"], FUNCTIONS), (&["mod"], MODULES)];
    lists.into_iter().find_map(|(keywords, names)| {
        let name = declared(line, keywords)?;
        names.iter().find(|(retired, _)| *retired == name).copied()
    })
}

/// Returns the retired types and functions that a text names in backticks.
fn mentioned(text: &str) -> Vec<(&'static str, &'static str)> {
    let spans = text.split('`').skip(1).step_by(2);
    let paths = spans.filter(|span| span.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | ':')));
    let names = paths.flat_map(|path| path.split("::"));
    names.filter_map(|name| TYPES.iter().chain(FUNCTIONS).find(|(retired, _)| *retired == name).copied()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn finds(path: &str, text: &str, words: &[&str]) {
        let file = SourceFile { path: path.into(), text: text.into() };
        let found: Vec<&str> =
            if is_checked(&file) { uses(&file).iter().map(|found| found.word).collect() } else { Vec::new() };
        assert_eq!(found, words, "{path}: {text}");
    }

    #[test]
    fn words_are_found_wherever_they_are_written() {
        finds(
            "a/src/x.rs",
            "let deeds = HouseKey::of_the_house(\"one drawer\");",
            &["deed", "house", "house", "drawer"],
        );
        finds("a/src/x.rs", "// A warehouse, `parking_lot`, Claude Desktop and indoor: no metaphor.", &[]);
        finds("hikite-ui/templates/x.html", "<p>as the house has it</p>", &["house"]);
        finds("a/src/door.rs", "", &["door"]);
        finds("docs/x.md", "## Kept results", &["kept results"]);
        finds("tests/fixtures/x.md", "the house", &[]);
    }

    #[test]
    fn names_with_an_ordinary_sense_are_found_as_names_alone() {
        finds("a/src/x.rs", "pub(crate) struct Safe<T> {", &["Safe"]);
        finds("a/src/x.rs", "mod narrow;\n    async fn see_off(self) {", &["narrow", "see_off"]);
        finds("a/src/x.rs", "/// Safe to narrow, see `Connection::greet` and `404 Not Found`.", &["greet"]);
        finds("a/src/x.rs", "let found = StatusCode::Found; let tools = \"`greet`\";", &[]);
        finds("docs/x.md", "A safe way; `pin::Book` asks.", &["Book"]);
    }

    #[test]
    fn an_exception_counts_while_it_is_needed() {
        let findings = |exceptions: &[RetiredException]| -> Vec<String> {
            let file = SourceFile { path: "a/src/x.rs".into(), text: "use a;\nlet seat = 1;\n".into() };
            check_with(&SourceTree { files: vec![file] }, exceptions).iter().map(ToString::to_string).collect()
        };
        assert_eq!(findings(&[]).len(), 1);
        assert!(findings(&[])[0].starts_with("a/src/x.rs:2: \"seat\" is retired"), "{:?}", findings(&[]));
        let exception = |path, word| RetiredException { path, word, reason: "a name in a file" };
        assert_eq!(findings(&[exception("a/src/", "seat")]), [""; 0]);
        let unneeded = findings(&[exception("a/", "seat"), exception("b/", "seat")]);
        assert_eq!(
            unneeded,
            ["xtask/src/tidy/retired/words.rs: no \"seat\" is left in `b/`; remove its exception (a name in a file)"]
        );
    }
}
