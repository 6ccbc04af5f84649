//! Words that the workspace no longer uses, because they were metaphors of its own: in identifiers, comments, texts,
//! documents, pages and paths. `retired/words.rs` lists them with what to write instead.

mod words;

use std::collections::BTreeSet;

use words::{EXCEPTIONS, FUNCTIONS, KEPT_NAMES, MODULES, PHRASES, TYPES, WORDS};

use super::block::declared;
use super::tree::SourceFile;
use super::{SourceTree, TidyFinding};

const EXTENSIONS: &[&str] = &["css", "html", "js", "md", "mjs", "py", "rs", "toml", "txt"];

const TABLE: &str = "xtask/src/tidy/retired/words.rs";

/// Files that say the words on purpose, and files of others.
const SKIPPED: &[&str] = &["CHANGELOG.md", "docs/mcp-", "hikite/order.txt", "xtask/src/tidy/retired"];
const SKIPPED_FOLDERS: &[&str] = &["/fixtures/", "/data/", "/snapshots/", "tests/contract/"];

/// A retired word, and what to write instead.
type RetiredWord = &'static (&'static str, &'static str);

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
    let mut findings = check_with(tree, EXCEPTIONS);
    findings.extend(unused_names(tree));
    findings
}

fn unused_names(tree: &SourceTree) -> impl Iterator<Item = TidyFinding> {
    let is_used = |name: &str| tree.files.iter().any(|file| is_checked(file) && file.text.contains(name));
    let unused = KEPT_NAMES.iter().filter(move |(name, _)| !is_used(name));
    unused.map(|(name, reason)| TidyFinding::file(TABLE, format!("no `{name}` is left; remove the name ({reason})")))
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
            findings.push(TidyFinding::file(TABLE, message));
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
    // Most files and most lines have none of the words, and are not taken apart.
    let folded = file.text.to_lowercase();
    let words: Vec<RetiredWord> = WORDS.iter().filter(|(word, _)| folded.contains(word)).collect();
    let phrases: Vec<RetiredWord> = PHRASES.iter().filter(|(phrase, _)| folded.contains(phrase)).collect();
    let in_line = |text: &str| {
        let mut found = Vec::new();
        if !words.is_empty() || !phrases.is_empty() {
            let folded = text.to_lowercase();
            if words.iter().any(|(word, _)| folded.contains(word)) {
                found.extend(retired_words(text));
            }
            found.extend(phrases.iter().copied().filter(|(phrase, _)| folded.contains(phrase)));
        }
        if file.is("rs") {
            found.extend(declared_name(text));
        }
        if file.is("md") || text.trim_start().starts_with("//") {
            found.extend(mentioned(text));
        }
        found
    };
    let in_path = retired_words(&file.path).into_iter().map(|found| (None, found));
    let in_lines =
        file.lines().flat_map(|(line, text)| in_line(text).into_iter().map(move |found| (Some(line), found)));
    let all = in_path.chain(in_lines);
    all.map(|(line, &(word, instead))| RetiredUse { line, word, instead }).collect()
}

/// Returns the retired words among the words of a text and the parts of its identifiers.
fn retired_words(text: &str) -> Vec<RetiredWord> {
    let text = KEPT_NAMES.iter().fold(text.to_owned(), |text, (name, _)| text.replace(name, ""));
    let parts = text.split(|c: char| !c.is_alphabetic()).flat_map(humps);
    let retired = parts.filter_map(|part| {
        let singular = part.strip_suffix('s').unwrap_or(&part);
        WORDS.iter().find(|(word, _)| *word == part || *word == singular)
    });
    retired.collect()
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

fn declared_name(line: &str) -> Option<RetiredWord> {
    let lists = [(&["struct", "enum", "trait", "type"][..], TYPES), (&["fn"], FUNCTIONS), (&["mod"], MODULES)];
    lists.into_iter().find_map(|(keywords, names)| {
        let name = declared(line, keywords)?;
        names.iter().find(|(retired, _)| *retired == name)
    })
}

/// Returns the retired types and functions that a text names in backticks.
fn mentioned(text: &str) -> Vec<RetiredWord> {
    let spans = text.split('`').skip(1).step_by(2);
    let paths = spans.filter(|span| span.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | ':')));
    let names = paths.flat_map(|path| path.split("::"));
    names.filter_map(|name| TYPES.iter().chain(FUNCTIONS).find(|(retired, _)| *retired == name)).collect()
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
