//! Parser for references: `${`, a task name, path steps, an optional `?`, and `}`. Does not know which tasks exist.

use super::{ReferenceStep, shortened};

/// Most steps of one path; results are not nested deeper.
const STEPS_MAX: usize = 256;

#[derive(Debug, PartialEq, Eq)]
pub(in crate::plan) struct ParsedReference<'a> {
    /// Source text, from `${` to `}`.
    pub(super) text: &'a str,
    pub(super) name: &'a str,
    pub(super) path: Vec<ReferenceStep>,
    pub(super) optional: bool,
    /// Length of the source text in bytes.
    pub(in crate::plan) length: usize,
}

/// A syntax error and its byte offset.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::plan) struct SyntaxProblem {
    pub(in crate::plan) at: usize,
    pub(in crate::plan) message: String,
}

impl SyntaxProblem {
    pub(in crate::plan) fn new(at: usize, message: impl Into<String>) -> Self {
        Self { at, message: message.into() }
    }
}

/// Characters that end an unquoted name or key.
const ENDS: [char; 8] = ['.', '[', ']', '{', '}', '?', '"', '\''];

/// Returns `true` if a name can be used without quotes.
pub(in crate::plan) fn is_bare_name(name: &str) -> bool {
    !name.is_empty() && !name.contains(ENDS) && !name.contains(char::is_control) && name.trim() == name
}

/// Parses the reference at the start of `text`, which begins with `${`.
pub(in crate::plan) fn parse(text: &str) -> Result<ParsedReference<'_>, SyntaxProblem> {
    let mut reader = ReferenceParser { text, at: 2 };
    let name = reader.word();
    if name.is_empty() && reader.peek() == Some('}') {
        return Err(SyntaxProblem::new(0, "`${}` names no task; write `$${` for a literal `${`"));
    }
    let mut path = Vec::new();
    while let Some(step) = reader.step()? {
        path.push(step);
        if path.len() > STEPS_MAX {
            return Err(SyntaxProblem::new(0, format!("a reference has more than {STEPS_MAX} steps")));
        }
    }
    let optional = reader.take('?');
    reader.skip_blanks();
    match reader.peek() {
        Some('}') if !name.is_empty() => {
            let length = reader.at + 1;
            Ok(ParsedReference { text: &text[..length], name, path, optional, length })
        }
        None => Err(SyntaxProblem::new(0, "`${` without a matching `}`; write `$${` for a literal `${`")),
        Some(_) if optional => Err(reader.problem("`?` is only allowed at the end of a reference")),
        Some(other) => {
            let forms =
                "a reference is `${task}`, optionally with `.key`, `[\"key\"]`, `[0]`, `[-1]` or `[*]` after the task";
            Err(reader.problem(format!("unexpected `{}`: {forms}", other.escape_debug())))
        }
    }
}

/// Parses a single- or double-quoted string at the start of `text`. Returns its value and its length in bytes. JSON
/// escapes work in both.
pub(in crate::plan) fn quoted(text: &str) -> Option<(String, usize)> {
    let quote = text.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    let mut json = String::from('"');
    let mut characters = text.char_indices().skip(1);
    while let Some((at, c)) = characters.next() {
        if c == quote {
            json.push('"');
            return Some((serde_json::from_str(&json).ok()?, at + 1));
        }
        match c {
            '\\' => match characters.next()?.1 {
                '\'' => json.push('\''),
                escaped => json.extend(['\\', escaped]),
            },
            '"' => json.push_str("\\\""),
            plain => json.push(plain),
        }
    }
    None
}

struct ReferenceParser<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> ReferenceParser<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn take(&mut self, wanted: char) -> bool {
        let found = self.peek() == Some(wanted);
        if found {
            self.at += wanted.len_utf8();
        }
        found
    }

    fn skip_blanks(&mut self) {
        self.at += self.rest().len() - self.rest().trim_start().len();
    }

    /// Reads up to the next delimiter and trims blanks.
    fn word(&mut self) -> &'a str {
        let rest = self.rest();
        let end = rest.find(ENDS).unwrap_or(rest.len());
        self.at += end;
        rest[..end].trim()
    }

    fn step(&mut self) -> Result<Option<ReferenceStep>, SyntaxProblem> {
        let from = self.at;
        if self.take('.') {
            let key = self.word();
            if key.is_empty() {
                return Err(SyntaxProblem::new(from, "`.` must be followed by a key"));
            }
            return Ok(Some(ReferenceStep::Key(key.into())));
        }
        if !self.take('[') {
            return Ok(None);
        }
        self.skip_blanks();
        let step = if matches!(self.peek(), Some('"' | '\'')) {
            let (key, length) = quoted(self.rest()).ok_or_else(|| self.problem("a quoted key is not terminated"))?;
            self.at += length;
            self.skip_blanks();
            ReferenceStep::Key(key.into())
        } else {
            parse_index(self.word()).map_err(|message| SyntaxProblem::new(from, message))?
        };
        if !self.take(']') {
            return Err(SyntaxProblem::new(from, "`[` without a matching `]`"));
        }
        Ok(Some(step))
    }

    fn problem(&self, message: impl Into<String>) -> SyntaxProblem {
        SyntaxProblem::new(self.at, message)
    }
}

fn parse_index(word: &str) -> Result<ReferenceStep, String> {
    if word == "*" {
        return Ok(ReferenceStep::All);
    }
    let word = word.strip_prefix('+').map_or(word, |_| "");
    word.parse().map(ReferenceStep::Index).map_err(|_| match word {
        "" => "`[` must be followed by an index or a key: `[0]`, `[-1]`, `[*]` or `[\"key\"]`".into(),
        word => format!("`[{}]` is not a list index; write `[\"key\"]` for a key", shortened(word)),
    })
}
