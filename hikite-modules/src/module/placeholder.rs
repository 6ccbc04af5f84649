//! Text with placeholders: the path of a request, a header, the URI of a resource. Values in a path are
//! percent-encoded, so that they cannot change its structure.

use hikite_core::error::{Error, ErrorKind};
use hikite_core::violation::{self, Violation, step};
use serde_json::Value;

use crate::escape;
use crate::expression::{Expression, ExpressionNames};
use crate::scope::VariableScope;

#[derive(Debug)]
pub(crate) struct PlaceholderText(Vec<PlaceholderPiece>);

#[derive(Debug)]
enum PlaceholderPiece {
    Text(Box<str>),
    Value { name: Box<str>, filter: Option<Expression>, segments: bool },
}

impl PlaceholderText {
    /// Parses `{name}`, `{name|jq}` with a filter, and `{+name}` for several path segments.
    pub(crate) fn new(written: &str, names: &ExpressionNames) -> Result<Self, String> {
        let mut pieces = Vec::new();
        let mut rest = written;
        while let Some((text, after)) = rest.split_once('{') {
            let (inside, after) = after.split_once('}').ok_or("a `{` is not closed")?;
            let (segments, inside) = inside.strip_prefix('+').map_or((false, inside), |inside| (true, inside));
            let (name, filter) = inside.split_once('|').map_or((inside, None), |(name, jq)| (name, Some(jq)));
            if !names.variables.contains(name) {
                return Err(format!("`{{{name}}}` is neither a parameter nor a step"));
            }
            pieces.push(PlaceholderPiece::Text(text.into()));
            let filter = filter.map(|filter| Expression::new(filter, names));
            pieces.push(PlaceholderPiece::Value { name: name.into(), filter, segments });
            rest = after;
        }
        pieces.push(PlaceholderPiece::Text(rest.into()));
        Ok(Self(pieces))
    }

    /// Renders a URL path. Absent or empty values and `.` or `..` segments are refused.
    pub(crate) fn path(&self, scope: &VariableScope<'_>) -> Result<String, Error> {
        let mut out = String::new();
        for piece in &self.0 {
            match piece {
                PlaceholderPiece::Text(text) => escape::written(text, &mut out),
                PlaceholderPiece::Value { name, filter, segments } => {
                    let value = text(name, filter.as_ref(), scope)?;
                    let parts: Vec<&str> = if *segments { value.split('/').collect() } else { vec![&value] };
                    for (at, part) in parts.into_iter().enumerate() {
                        if matches!(part, "" | "." | "..") {
                            return Err(refuse(name, "it is empty, or contains `.` or `..`"));
                        }
                        if at > 0 {
                            out.push('/');
                        }
                        escape::value(part, &mut out);
                    }
                }
            }
        }
        if escape::has_dot_segment(&out) {
            let faults: Vec<Violation> =
                self.names().map(|name| Violation::new(step(name), "no `.` or `..` in a path")).collect();
            return Err(violation::error(&faults));
        }
        Ok(out)
    }

    /// Renders a header value. Only printable ASCII is allowed.
    pub(crate) fn header(&self, scope: &VariableScope<'_>) -> Result<String, Error> {
        let mut out = String::new();
        for piece in &self.0 {
            match piece {
                PlaceholderPiece::Text(text) => out.push_str(text),
                PlaceholderPiece::Value { name, filter, .. } => {
                    let value = text(name, filter.as_ref(), scope)?;
                    if !value.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ') {
                        return Err(refuse(name, "only ASCII letters, digits and punctuation can be sent"));
                    }
                    out.push_str(&value);
                }
            }
        }
        Ok(out)
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|piece| match piece {
            PlaceholderPiece::Text(_) => None,
            PlaceholderPiece::Value { name, .. } => Some(&**name),
        })
    }

    pub(crate) fn expressions<'a>(&'a self, found: &mut Vec<&'a Expression>) {
        found.extend(self.0.iter().filter_map(|piece| match piece {
            PlaceholderPiece::Text(_) => None,
            PlaceholderPiece::Value { filter, .. } => filter.as_ref(),
        }));
    }
}

fn text(name: &str, filter: Option<&Expression>, scope: &VariableScope<'_>) -> Result<String, Error> {
    let argument = scope.get(name);
    let value = match filter {
        Some(filter) if !argument.is_null() => filter.one(argument, scope)?,
        _ => argument.clone(),
    };
    match value {
        Value::String(text) if text.is_empty() => Err(refuse(name, "it is empty")),
        Value::String(text) => Ok(text),
        Value::Number(number) => Ok(number.to_string()),
        Value::Bool(flag) => Ok(flag.to_string()),
        Value::Null => {
            Err(violation::error(&[Violation::new(step(name), format!("Required parameter missing: {name}"))]))
        }
        _ => Err(refuse(name, "a list or an object cannot be used in an address")),
    }
}

fn refuse(name: &str, why: &str) -> Error {
    let told = violation::error(&[Violation::new(step(name), format!("Invalid value for parameter {name}: {why}"))]);
    debug_assert_eq!(told.kind, ErrorKind::Validation);
    told
}
