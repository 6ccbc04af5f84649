//! References `{name}` and `{a.b}` to argument values in templates.

use std::borrow::Cow;

use hikite_core::json::{Object, Raw};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ArgumentReference {
    written: Box<str>,
    first: Box<str>,
    further: Box<[Box<str>]>,
}

impl ArgumentReference {
    /// References a whole argument, whatever its name looks like.
    pub(crate) fn whole(name: &str) -> Self {
        Self { written: name.into(), first: name.into(), further: Box::default() }
    }

    /// Parses steps separated by dots. Returns `None` if one is empty.
    pub(crate) fn dotted(written: &str) -> Option<Self> {
        let mut steps = written.split('.');
        let first = steps.next()?;
        let further: Box<[Box<str>]> = steps.map(Into::into).collect();
        let is_empty = first.is_empty() || further.iter().any(|step| step.is_empty());
        (!is_empty).then(|| Self { written: written.into(), first: first.into(), further })
    }

    /// Returns the text between the braces.
    pub(crate) fn written(&self) -> &str {
        &self.written
    }

    /// Returns the name of the argument.
    pub(crate) fn argument(&self) -> &str {
        &self.first
    }

    /// Returns the steps below the argument.
    pub(crate) fn further(&self) -> &[Box<str>] {
        &self.further
    }

    /// Returns the value. `null` counts as absent.
    pub(crate) fn find(&self, arguments: &Object) -> Option<Raw> {
        let mut value = arguments.get(&self.first)?.clone();
        for step in &self.further {
            value = match step.parse::<usize>() {
                Ok(index) if value.bytes().first() == Some(&b'[') => value.items()?.get(index)?.clone(),
                _ => value.object()?.get(step)?.clone(),
            };
        }
        (!value.is_null()).then_some(value)
    }
}

/// Returns a value as text: strings unquoted, everything else as JSON.
pub(crate) fn text(value: &Raw) -> Cow<'_, str> {
    if value.bytes().first() != Some(&b'"') {
        return value.as_str();
    }
    // Most strings have no escapes and are borrowed.
    match value.decode::<&str>() {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => Cow::Owned(value.text().unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(written: &str, expected: Option<&str>) {
        let arguments = Raw::parse(r#"{"a":{"b":[{"c":"d\u0065"}],"n":null},"x":1.0,"q":"\"","e":""}"#).expect("valid");
        let arguments = arguments.object().expect("an object");
        let found = ArgumentReference::dotted(written).and_then(|reference| reference.find(&arguments));
        assert_eq!(found.as_ref().map(text).as_deref(), expected, "{written}");
    }

    #[test]
    fn values_are_found_at_any_depth() {
        check("x", Some("1.0"));
        check("q", Some("\""));
        check("e", Some(""));
        check("a.b.0.c", Some("de"));
        check("a.b", Some(r#"[{"c":"d\u0065"}]"#));
        check("a.n", None);
        check("a.b.1", None);
        check("x.y", None);
        check("no", None);
        check("a..b", None);
    }
}
