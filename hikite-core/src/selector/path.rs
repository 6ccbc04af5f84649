//! Paths into a value in jq syntax: `.a.b[0]["x y"]`, and `[]` for each element or member. Nothing is computed.

use std::fmt;

use serde_json::Value;

use super::MissingPart;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValuePath(Vec<PathStep>);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PathStep {
    Key(Box<str>),
    /// Index into a list; negative counts from the end.
    Index(i64),
    Each,
}

impl ValuePath {
    /// Parses a path. The error continues a sentence that begins with the field's name.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = || format!("must be a plain path such as `.items[].user.login`, not `{text}`");
        let mut rest = text.strip_prefix('.').ok_or_else(wrong)?;
        let mut steps = Vec::new();
        let mut after_dot = true;
        while !rest.is_empty() {
            let (step, after) = if rest.starts_with('[') {
                bracket(rest)
            } else if after_dot {
                key(rest)
            } else {
                None
            }
            .ok_or_else(wrong)?;
            steps.push(step);
            after_dot = after.starts_with('.');
            rest = after.strip_prefix('.').unwrap_or(after);
        }
        // A single dot is the whole value; a trailing dot is an error.
        if after_dot && !steps.is_empty() {
            return Err(wrong());
        }
        Ok(Self(steps))
    }

    /// Returns `true` if the path leads to exactly one value.
    pub fn is_single(&self) -> bool {
        !self.0.contains(&PathStep::Each)
    }

    /// Returns the value at the path with jq semantics: null if it is missing, an error if the value cannot have such a
    /// part. `[]` selects the first element.
    pub fn pick(&self, value: &Value) -> Result<Value, MissingPart> {
        let mut here = value;
        for step in &self.0 {
            here = match (step, here) {
                (_, Value::Null) => return Ok(Value::Null),
                (PathStep::Key(key), Value::Object(members)) => members.get(&**key).unwrap_or(&Value::Null),
                (PathStep::Index(index), Value::Array(items)) => {
                    at(items, *index).and_then(|at| items.get(at)).unwrap_or(&Value::Null)
                }
                (PathStep::Each, Value::Array(items)) => items.first().unwrap_or(&Value::Null),
                (PathStep::Each, Value::Object(members)) => members.values().next().unwrap_or(&Value::Null),
                (step, other) => return Err(refuse(step, other)),
            };
        }
        Ok(here.clone())
    }

    /// Returns the elements of the lists at the path, which may end in `[]`; `None` if there is no list.
    pub fn rows<'v>(&self, value: &'v Value) -> Option<Vec<&'v Value>> {
        let list = self.0.strip_suffix(&[PathStep::Each]).unwrap_or(&self.0);
        let mut lists = Vec::new();
        follow(list, value, &mut lists);
        let lists: Vec<_> = lists.into_iter().filter_map(Value::as_array).collect();
        (!lists.is_empty()).then(|| lists.into_iter().flatten().collect())
    }

    /// Returns all values at the path, in order. Missing and mismatched parts are skipped.
    pub fn all<'v>(&self, value: &'v Value) -> Vec<&'v Value> {
        let mut found = Vec::new();
        follow(&self.0, value, &mut found);
        found
    }
}

impl fmt::Display for ValuePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str(".");
        }
        for (at, step) in self.0.iter().enumerate() {
            match step {
                PathStep::Key(key) if is_plain(key) => write!(f, ".{key}")?,
                PathStep::Key(key) => {
                    let dot = if at == 0 { "." } else { "" };
                    write!(f, "{dot}[{}]", Value::from(&**key))?;
                }
                PathStep::Index(index) if at == 0 => write!(f, ".[{index}]")?,
                PathStep::Index(index) => write!(f, "[{index}]")?,
                PathStep::Each if at == 0 => f.write_str(".[]")?,
                PathStep::Each => f.write_str("[]")?,
            }
        }
        Ok(())
    }
}

fn follow<'v>(steps: &[PathStep], value: &'v Value, found: &mut Vec<&'v Value>) {
    let Some((step, rest)) = steps.split_first() else {
        return found.push(value);
    };
    let below: &mut dyn Iterator<Item = &'v Value> = match (step, value) {
        (PathStep::Key(key), Value::Object(members)) => &mut members.get(&**key).into_iter(),
        (PathStep::Index(index), Value::Array(items)) => {
            &mut at(items, *index).and_then(|at| items.get(at)).into_iter()
        }
        (PathStep::Each, Value::Array(items)) => &mut items.iter(),
        (PathStep::Each, Value::Object(members)) => &mut members.values(),
        _ => return,
    };
    for value in below {
        follow(rest, value, found);
    }
}

/// Resolves a possibly negative index.
pub(super) fn at(items: &[Value], index: i64) -> Option<usize> {
    match usize::try_from(index.unsigned_abs()).ok()? {
        from_end if index < 0 => items.len().checked_sub(from_end),
        place => Some(place),
    }
}

/// Parses `[0]`, `["x"]` or `[]` and returns the rest.
pub(super) fn bracket(text: &str) -> Option<(PathStep, &str)> {
    let inside = text.strip_prefix('[')?;
    if let Some(after) = inside.strip_prefix(']') {
        return Some((PathStep::Each, after));
    }
    if inside.starts_with('"') {
        let (key, after) = quoted(inside)?;
        return Some((PathStep::Key(key), after.strip_prefix(']')?));
    }
    let (number, after) = inside.split_once(']')?;
    let digits = number.strip_prefix('-').unwrap_or(number);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    Some((PathStep::Index(number.parse().ok()?), after))
}

/// Parses a JSON string and returns the rest.
pub(super) fn quoted(text: &str) -> Option<(Box<str>, &str)> {
    if !text.starts_with('"') {
        return None;
    }
    let mut strings = serde_json::Deserializer::from_str(text).into_iter::<String>();
    let key = strings.next()?.ok()?;
    Some((key.into(), &text[strings.byte_offset()..]))
}

fn key(text: &str) -> Option<(PathStep, &str)> {
    if text.starts_with('"') {
        let (key, after) = quoted(text)?;
        return Some((PathStep::Key(key), after));
    }
    let end = text.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(text.len());
    let (name, after) = text.split_at(end);
    is_plain(name).then(|| (PathStep::Key(name.into()), after))
}

fn is_plain(name: &str) -> bool {
    name.starts_with(|c: char| c.is_alphabetic() || c == '_') && name.chars().all(|c| c.is_alphanumeric() || c == '_')
}

fn refuse(step: &PathStep, value: &Value) -> MissingPart {
    let (what, hint) = match value {
        Value::Object(members) => {
            ("An object", format!("Its members are {}.", super::field::names(members.keys().map(|key| &**key))))
        }
        Value::Array(items) => {
            ("A list", format!("It has {} elements: `[0]` is the first, `[]` (jq) each.", items.len()))
        }
        Value::String(_) => ("A string", "It has no members.".into()),
        _ => ("A plain value", "It has no members.".into()),
    };
    let wanted = match step {
        PathStep::Key(key) => format!("no member `{key}`"),
        PathStep::Index(_) | PathStep::Each => "no elements".to_owned(),
    };
    MissingPart { message: format!("{what} has {wanted}."), hint }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn path(text: &str) -> ValuePath {
        ValuePath::parse(text).expect("a path")
    }

    #[track_caller]
    fn check(text: &str, expected: &Value) {
        let value = json!({"a": {"b": [10, 20, {"x y": "deep", "名": "前"}]}, "n": null, "s": "words"});
        assert_eq!(path(text).pick(&value).expect(text), *expected, "{text}");
    }

    #[test]
    fn a_path_leads_to_its_value() {
        check(".a.b[1]", &json!(20));
        check(".a.b[-1][\"x y\"]", &json!("deep"));
        check(".a.b[2].\"x y\"", &json!("deep"));
        check(".a.b[2].名", &json!("前"));
        check(".[\"s\"]", &json!("words"));
        check(".a.[\"b\"][0]", &json!(10));
    }

    #[test]
    fn what_is_not_there_is_null_as_in_jq() {
        for text in [".zzz", ".a.zzz.y[3]", ".a.b[9]", ".a.b[-9]", ".n.deeper[0]"] {
            check(text, &Value::Null);
        }
    }

    #[test]
    fn what_cannot_be_there_says_what_there_is() {
        let value = json!({"a": {"b": [1, 2], "c": 1}, "s": "words"});
        let refusal = |text: &str| path(text).pick(&value).expect_err(text);
        assert_eq!(
            refusal(".a[0]"),
            MissingPart { message: "An object has no elements.".into(), hint: "Its members are b, c.".into() }
        );
        assert!(refusal(".a.b.c").hint.contains("2 elements"));
        assert_eq!(refusal(".s.c").message, "A string has no member `c`.");
    }

    #[test]
    fn each_goes_through_lists_and_members_and_passes_over_what_does_not_fit() {
        let value = json!({"labels": [{"name": "a"}, "plain", {"name": "b"}, {}], "p": {"x": {"t": 1}, "y": {"t": 2}}});
        let all = |text: &str| path(text).all(&value).into_iter().cloned().collect::<Vec<_>>();
        assert_eq!(all(".labels[].name"), [json!("a"), json!("b")]);
        assert_eq!(all(".p[].t"), [json!(1), json!(2)]);
        assert!(all(".none[].x").is_empty());
        assert_eq!(all("."), std::slice::from_ref(&value));
    }

    #[test]
    fn rows_are_the_elements_of_a_list() {
        let value = json!({"items": [1, 2], "none": [], "deep": [{"x": [3]}, {"x": [4]}], "o": {"a": 1}});
        let rows = |text: &str| Some(path(text).rows(&value)?.into_iter().cloned().collect::<Vec<_>>());
        assert_eq!(rows(".items[]"), Some(vec![json!(1), json!(2)]));
        assert_eq!(rows(".items"), rows(".items[]"));
        assert_eq!(rows(".deep[].x[]"), Some(vec![json!(3), json!(4)]));
        assert_eq!(rows(".none[]"), Some(vec![]));
        assert_eq!((rows(".missing[]"), rows(".o[]"), rows(".[]")), (None, None, None));
    }

    #[test]
    fn a_path_is_shown_as_it_is_read() {
        for text in [".", ".a.b[0]", ".[0][-1]", ".[\"x y\"].b", ".a[\"1\"]", ".items[].name", ".[].a"] {
            assert_eq!(path(text).to_string(), text);
        }
    }

    #[test]
    fn what_is_no_path_is_refused() {
        for text in ["", "a", "..", ".a.", ".a b", ".a[", ".a[x]", ".a[1.5]", ".a[--1]", ".a\"b\"", ".[\"a]", ".1"] {
            assert!(ValuePath::parse(text).is_err(), "{text}");
        }
    }
}
