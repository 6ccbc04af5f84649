//! Commands in the documentation: every `hikite …` line of a code block must pass the program's argument parser.
//! Test-only, because it links the whole program.

use clap::CommandFactory;
use clap::error::ErrorKind;

use super::tree::SourceFile;
use super::{SourceTree, TidyFinding};

pub(super) fn check(tree: &SourceTree) -> Vec<TidyFinding> {
    let documents = tree
        .files
        .iter()
        .filter(|file| file.is("md") && (file.path.starts_with("README") || file.path.starts_with("docs/")));
    documents.flat_map(unknown_commands).collect()
}

fn unknown_commands(file: &SourceFile) -> Vec<TidyFinding> {
    let mut inside = false;
    let mut findings = Vec::new();
    for (line, text) in file.lines() {
        if text.trim_start().starts_with("```") {
            inside = !inside;
        }
        let command = text.trim_start().trim_start_matches("$ ");
        if !inside || !(command.starts_with("hikite ") || command == "hikite") {
            continue;
        }
        if let Err(error) = hikite::cli::Cli::command().try_get_matches_from(words(command))
            && !matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion)
        {
            let reason = error.to_string();
            let reason = reason.lines().next().unwrap_or_default();
            findings.push(TidyFinding::line(&file.path, line, format!("`{command}`: {reason}")));
        }
    }
    findings
}

/// Splits a simple command like a shell, up to a pipe, a redirection or a comment.
fn words(command: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quote = None;
    for c in command.chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '\'' | '"') => quote = Some(c),
            (None, '|' | '>' | '<' | '#' | '&' | ';') => break,
            (None, ' ') => words.push(String::new()),
            (_, c) => words.last_mut().expect("never empty").push(c),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_commands_are_found() {
        let text = "hikite no\n```sh\n$ hikite serve --listen 127.0.0.1:1 # here\nhikite servee\nhikite config check --config 'a b' | cat\n```\n";
        let file = SourceFile { path: "README.md".into(), text: text.into() };
        let findings = unknown_commands(&file);
        assert_eq!(findings.iter().map(|finding| finding.line).collect::<Vec<_>>(), [Some(4)], "{findings:?}");
    }
}
