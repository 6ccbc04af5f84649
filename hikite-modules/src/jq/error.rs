//! Errors of jq programs, with positions.

use std::fmt;

use hikite_core::suggestion;
use jaq_core::load::{self, lex, parse, span};
use jaq_core::{Exn, compile as compiler};
use jaq_json::Val;

/// Maximum length of a message.
const MESSAGE_CHARS: usize = 300;
/// Maximum number of errors reported.
const FAULTS: usize = 3;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JqError {
    /// The program does not compile.
    Invalid(String),
    /// The program failed on this input.
    Failed(String),
    /// The output exceeds its limit.
    TooLong,
}

impl fmt::Display for JqError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid(words) | Self::Failed(words) => f.write_str(words),
            Self::TooLong => f.write_str("its output is too large"),
        }
    }
}

/// Converts parse errors. There is one file: the caller's program.
pub(super) fn load(errors: &load::Errors<&str, ()>) -> JqError {
    let faults = errors.iter().flat_map(|(file, error)| match error {
        load::Error::Io(modules) => modules.iter().map(|(path, _)| no_module(file.code, path)).collect(),
        load::Error::Lex(errors) => errors.iter().map(|error| misspelt(file.code, error)).collect(),
        load::Error::Parse(errors) => errors.iter().map(|error| misplaced(file.code, error)).collect::<Vec<_>>(),
    });
    wrong(faults)
}

pub(super) fn compile(errors: &compiler::Errors<&str, ()>) -> JqError {
    wrong(errors.iter().flat_map(|(file, errors)| errors.iter().map(|error| undefined(file.code, error))))
}

pub(super) fn run(exception: Exn<'_, Val>) -> JqError {
    let words = match exception.get_err() {
        Ok(error) => match error.clone().into_val() {
            Val::TStr(text) => String::from_utf8_lossy(&text).into_owned(),
            _ => error.to_string(),
        },
        Err(_) => "it crashed".to_owned(),
    };
    JqError::Failed(truncate(&words))
}

fn wrong(faults: impl Iterator<Item = String>) -> JqError {
    JqError::Invalid(faults.take(FAULTS).collect::<Vec<_>>().join("; "))
}

fn no_module(code: &str, path: &str) -> String {
    format!("{}: `import` and `include` are not supported", place(code, path))
}

fn misspelt(code: &str, (expected, found): &lex::Error<&str>) -> String {
    format!("{}: expected {}, found {}", place(code, found), expected.as_str(), shown(found))
}

fn misplaced(code: &str, (expected, found): &parse::Error<&str>) -> String {
    format!("{}: expected {}, found {}", place(code, found), expected.as_str(), shown(found))
}

fn undefined(code: &str, (name, what): &compiler::Error<&str>) -> String {
    let at = place(code, name);
    let compiler::Undefined::Filter(arguments) = what else {
        return format!("{at}: unknown {} `{name}`", what.as_str());
    };
    let known = jaq_core::defs().chain(jaq_std::defs()).chain(jaq_json::defs()).map(|known| known.name);
    let known: Vec<&str> = known.filter(|known| known != name).collect();
    let near = suggestion::did_you_mean(name, known).map(|near| format!(". {near}")).unwrap_or_default();
    format!("{at}: unknown filter `{name}` with {arguments} arguments{near}")
}

/// Returns line and column of a part of the program.
fn place(code: &str, part: &str) -> String {
    let before = &code[..span(code, part).start.min(code.len())];
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    format!("line {line}, column {column}")
}

fn shown(found: &str) -> String {
    let first = found.lines().next().unwrap_or_default();
    if first.is_empty() { "the end of the program".to_owned() } else { format!("`{}`", truncate(first)) }
}

fn truncate(text: &str) -> String {
    let short: String = text.chars().take(MESSAGE_CHARS).collect();
    if short.len() < text.len() { short + "…" } else { short }
}
