//! Text with references, parsed once. `{{` and `}}` are literal braces.

use hikite_core::fault::TOLD_MAX;
use hikite_core::json::Object;

use crate::reference::{Reference, text};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Template(Vec<Piece>);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    Text(Box<str>),
    Value(Reference),
}

impl Template {
    /// Parses a template. `reference` parses the text between braces. Returns all errors.
    pub(crate) fn parse(
        written: &str,
        reference: &mut dyn FnMut(&str) -> Result<Reference, String>,
    ) -> Result<Self, Vec<String>> {
        let (mut pieces, mut literal, mut faults) = (Vec::new(), String::new(), Vec::new());
        let mut rest = written;
        while let Some(at) = rest.find(['{', '}']) {
            if faults.len() == TOLD_MAX {
                return Err(faults);
            }
            let (before, found) = rest.split_at(at);
            literal.push_str(before);
            let brace = &found[..1];
            if found[1..].starts_with(brace) {
                literal.push_str(brace);
                rest = &found[2..];
                continue;
            }
            let Some((name, after)) = found[1..].split_once('}').filter(|_| brace == "{") else {
                let lacks = if brace == "{" { "is not closed" } else { "has no `{` before it" };
                faults.push(format!("`{brace}` {lacks}; a literal brace is written twice"));
                if brace == "{" {
                    // No brace after an unclosed one is closed either.
                    return Err(faults);
                }
                rest = &found[1..];
                continue;
            };
            if !literal.is_empty() {
                pieces.push(Piece::Text(std::mem::take(&mut literal).into()));
            }
            match reference(name) {
                Ok(reference) => pieces.push(Piece::Value(reference)),
                Err(fault) => faults.push(fault),
            }
            rest = after;
        }
        literal.push_str(rest);
        if !literal.is_empty() {
            pieces.push(Piece::Text(literal.into()));
        }
        if faults.is_empty() { Ok(Self(pieces)) } else { Err(faults) }
    }

    /// Creates a template without references.
    pub(crate) fn fixed(text: &str) -> Self {
        Self(vec![Piece::Text(text.into())])
    }

    pub(crate) fn pieces(&self) -> &[Piece] {
        &self.0
    }

    /// Returns the text if there are no references.
    pub(crate) fn as_fixed(&self) -> Option<&str> {
        match self.0.as_slice() {
            [] => Some(""),
            [Piece::Text(text)] => Some(text),
            _ => None,
        }
    }

    /// Returns the reference if there is nothing else.
    pub(crate) fn as_sole(&self) -> Option<&Reference> {
        match self.0.as_slice() {
            [Piece::Value(reference)] => Some(reference),
            _ => None,
        }
    }

    /// Rewrites the literal texts.
    pub(crate) fn with_texts(self, write: impl Fn(&str, &mut String)) -> Self {
        let pieces = self.0.into_iter().map(|piece| match piece {
            Piece::Text(text) => {
                let mut out = String::with_capacity(text.len());
                write(&text, &mut out);
                Piece::Text(out.into())
            }
            value @ Piece::Value(_) => value,
        });
        Self(pieces.collect())
    }

    /// Appends the text with its values, each through `write`. Returns `false` if a value is absent.
    pub(crate) fn render(
        &self,
        arguments: &Object,
        write: impl Fn(&str, &mut String),
        out: &mut String,
    ) -> bool {
        for piece in &self.0 {
            match piece {
                Piece::Text(text) => out.push_str(text),
                Piece::Value(reference) => match reference.find(arguments) {
                    Some(value) => write(&text(&value), out),
                    None => return false,
                },
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(written: &str) -> Result<Template, Vec<String>> {
        Template::parse(written, &mut |name| Reference::dotted(name).ok_or_else(|| format!("bad `{name}`")))
    }

    #[track_caller]
    fn check(written: &str, expected: &str) {
        let arguments = Object::default().with("a", "{b}").with("b", "x");
        let mut out = String::new();
        let is_whole = parse(written).expect("a template").render(&arguments, |v, o| o.push_str(v), &mut out);
        assert_eq!((out.as_str(), is_whole), (expected, true), "{written}");
    }

    #[test]
    fn values_are_not_looked_at_again() {
        check("{a} {b}", "{b} x");
        check("", "");
        check("{{a}}", "{a}");
        check("{{{b}}}", "{x}");
        check("{{}}}}", "{}}");
        check("日{b}本", "日x本");
    }

    #[test]
    fn everything_wrong_is_told() {
        assert_eq!(parse("{a").map_err(|f| f.len()), Err(1));
        assert_eq!(parse("a} {} {..} {{ {").map_err(|f| f.len()), Err(4));
    }

    #[test]
    fn what_is_absent_is_seen() {
        let template = parse("x{no}").expect("a template");
        assert!(!template.render(&Object::default(), |v, o| o.push_str(v), &mut String::new()));
    }
}
