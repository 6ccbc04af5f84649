//! Text with references, parsed once. `{{` and `}}` are literal braces.

use hikite_core::json::Object;
use hikite_core::violation::REPORTED_MAX;

use crate::reference::{ArgumentReference, text};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TextTemplate(Vec<TemplatePiece>);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TemplatePiece {
    Text(Box<str>),
    Value(ArgumentReference),
}

impl TextTemplate {
    /// Parses a template. `reference` parses the text between braces. Returns all errors.
    pub(crate) fn parse(
        written: &str,
        reference: &mut dyn FnMut(&str) -> Result<ArgumentReference, String>,
    ) -> Result<Self, Vec<String>> {
        let (mut pieces, mut literal, mut faults) = (Vec::new(), String::new(), Vec::new());
        let mut rest = written;
        while let Some(at) = rest.find(['{', '}']) {
            if faults.len() == REPORTED_MAX {
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
                faults.push(format!("`{brace}` {lacks}; write a literal brace twice"));
                if brace == "{" {
                    // No brace after an unclosed one is closed either.
                    return Err(faults);
                }
                rest = &found[1..];
                continue;
            };
            if !literal.is_empty() {
                pieces.push(TemplatePiece::Text(std::mem::take(&mut literal).into()));
            }
            match reference(name) {
                Ok(reference) => pieces.push(TemplatePiece::Value(reference)),
                Err(fault) => faults.push(fault),
            }
            rest = after;
        }
        literal.push_str(rest);
        if !literal.is_empty() {
            pieces.push(TemplatePiece::Text(literal.into()));
        }
        if faults.is_empty() { Ok(Self(pieces)) } else { Err(faults) }
    }

    /// Creates a template without references.
    pub(crate) fn fixed(text: &str) -> Self {
        Self(vec![TemplatePiece::Text(text.into())])
    }

    pub(crate) fn pieces(&self) -> &[TemplatePiece] {
        &self.0
    }

    /// Returns the text if there are no references.
    pub(crate) fn as_fixed(&self) -> Option<&str> {
        match self.0.as_slice() {
            [] => Some(""),
            [TemplatePiece::Text(text)] => Some(text),
            _ => None,
        }
    }

    /// Returns the reference if there is nothing else.
    pub(crate) fn as_single_reference(&self) -> Option<&ArgumentReference> {
        match self.0.as_slice() {
            [TemplatePiece::Value(reference)] => Some(reference),
            _ => None,
        }
    }

    /// Rewrites the literal texts.
    pub(crate) fn map_texts(self, write: impl Fn(&str, &mut String)) -> Self {
        let pieces = self.0.into_iter().map(|piece| match piece {
            TemplatePiece::Text(text) => {
                let mut out = String::with_capacity(text.len());
                write(&text, &mut out);
                TemplatePiece::Text(out.into())
            }
            value @ TemplatePiece::Value(_) => value,
        });
        Self(pieces.collect())
    }

    /// Appends the text with its values, each through `write`. Returns `false` if a value is absent.
    pub(crate) fn render(&self, arguments: &Object, write: impl Fn(&str, &mut String), out: &mut String) -> bool {
        for piece in &self.0 {
            match piece {
                TemplatePiece::Text(text) => out.push_str(text),
                TemplatePiece::Value(reference) => match reference.find(arguments) {
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

    fn parse(written: &str) -> Result<TextTemplate, Vec<String>> {
        TextTemplate::parse(written, &mut |name| ArgumentReference::dotted(name).ok_or_else(|| format!("bad `{name}`")))
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
