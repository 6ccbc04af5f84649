//! The first words of doc comments. A doc comment stands alone in rustdoc, so it names its subject instead of opening
//! with a question word or with a comparison to the item above.

use super::tree::SourceFile;
use super::{SourceTree, TidyFinding};

const BANNED: &[&str] = &["What", "Who", "Whether", "The same"];

pub(super) fn check(tree: &SourceTree) -> Vec<TidyFinding> {
    tree.rust().flat_map(banned_openings).collect()
}

fn banned_openings(file: &SourceFile) -> Vec<TidyFinding> {
    let mut before = None;
    let mut findings = Vec::new();
    for (line, text) in file.lines() {
        let doc = doc_text(text);
        if let Some((marker, text)) = doc
            && before != Some(marker)
            && let Some(opening) = BANNED.iter().find(|opening| opens_with(text, opening))
        {
            let message = format!("a doc comment that opens with \"{opening}\"; open with its subject");
            findings.push(TidyFinding::line(&file.path, line, message));
        }
        before = doc.map(|(marker, _)| marker);
    }
    findings
}

/// Returns the marker of a doc comment line and its text.
fn doc_text(line: &str) -> Option<(&'static str, &str)> {
    let line = line.trim_start();
    let marker = ["///", "//!"].into_iter().find(|marker| line.starts_with(marker))?;
    Some((marker, line[marker.len()..].trim_start()))
}

fn opens_with(text: &str, opening: &str) -> bool {
    text.strip_prefix(opening).is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn finds(text: &str, lines: &[usize]) {
        let file = SourceFile { path: "a/src/x.rs".into(), text: text.into() };
        let findings = check(&SourceTree { files: vec![file] });
        assert_eq!(findings.iter().filter_map(|finding| finding.line).collect::<Vec<_>>(), lines);
    }

    #[test]
    fn only_the_first_line_of_a_doc_comment_counts() {
        finds("//! What it costs.\n\n    /// Who asks.\nstruct A;\n/// Whether, or not.\n/// The same\n", &[1, 3, 5]);
        finds("/// The same as above.\n", &[1]);
        finds("//! Tools.\n//! What they do.\n\n/// Whatever is left.\n/// The samely named.\n// What a line.\n", &[]);
    }
}
