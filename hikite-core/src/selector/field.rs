//! Field lists: `number,user.login,labels[].name,"key.with.dots"`. Selected values keep their position, so that a path
//! into the whole also works in the part: `user.login` gives `{"user":{"login":…}}`. Lists are traversed implicitly;
//! `[]` is optional. Fields are never renamed or computed.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use super::MissingPart;
use super::path::{PathStep, at, bracket, quoted};
use crate::suggestion::did_you_mean;

/// Most fields of one list.
const FIELDS_MAX: usize = 200;

/// Most names listed in a message, and most characters of each.
const NAMES_MAX: usize = 40;
const NAME_MAX: usize = 60;
/// Most fields that get a suggestion, and most names searched for one.
const GUESSES_MAX: usize = 5;
const KNOWN_MAX: usize = 1000;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldList {
    wanted: FieldTree,
    /// Fields as written.
    names: Vec<Box<str>>,
}

/// Selection within a value: all of it, or some of its parts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct FieldTree {
    whole: bool,
    parts: Vec<(PathStep, FieldTree)>,
}

impl FieldList {
    /// Parses a field list. The error continues a sentence that begins with the field's name.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.len() > super::TEXT_MAX {
            return Err(format!("is longer than {} bytes", super::TEXT_MAX));
        }
        Self::read(text)
            .map_err(|field| format!("must be a list of fields such as `title,user.login`, not `{field}`"))?
            .check_limits()
    }

    /// Parses a field list without length limits. The error is the text that is no field.
    pub(super) fn read(text: &str) -> Result<Self, &str> {
        let mut fields = Self { wanted: FieldTree::default(), names: Vec::new() };
        let mut rest = Some(text);
        while let Some(text) = rest {
            let text = text.trim_start();
            let (steps, after) = field(text).ok_or(text)?;
            fields.names.push(text[..text.len() - after.len()].into());
            fields.wanted.add(steps);
            let after = after.trim_start();
            rest = match after.strip_prefix(',') {
                None if after.is_empty() => None,
                None => return Err(text),
                next => next,
            };
        }
        Ok(fields)
    }

    pub(super) fn check_limits(self) -> Result<Self, String> {
        if self.names.len() > FIELDS_MAX {
            return Err(format!("has more than {FIELDS_MAX} fields"));
        }
        Ok(self)
    }

    /// Returns the value reduced to these fields; in a list, each element is reduced. Fields missing from a row are
    /// left out. If an object wraps its rows in one list, fields that the object lacks are looked up in the rows; if it
    /// has none of them, its scalar members are kept beside the rows. Fails if no field exists.
    pub fn pick(&self, value: &Value) -> Result<Value, MissingPart> {
        let found = match value {
            Value::Object(members) => self.wanted.select_from_wrapper(members),
            _ => self.wanted.of(value),
        };
        found.ok_or_else(|| self.missing(value))
    }

    /// Returns the cost of selecting per input byte, relative to parsing it.
    pub fn cost(&self) -> usize {
        1 + self.names.len() / 4
    }

    fn missing(&self, value: &Value) -> MissingPart {
        let wanted = names(self.names.iter().map(|name| &**name));
        let members = match value {
            Value::Object(members) => members,
            Value::Array(items) => match items.iter().find_map(Value::as_object) {
                Some(members) => members,
                None => return no_fields("a list of plain values"),
            },
            Value::String(_) => return no_fields("a string"),
            _ => return no_fields("a plain value"),
        };
        let mut hint = format!("Available fields: {}", names(members.keys().map(|key| &**key)));
        let rows = find_rows(members).and_then(|(_, rows)| rows.as_array()?.iter().find_map(Value::as_object));
        if let Some(row) = rows {
            let _ = write!(hint, "; in its rows: {}", names(row.keys().map(|key| &**key)));
        }
        hint.push('.');
        let known = || {
            let rows = rows.into_iter().flat_map(Map::keys).take(KNOWN_MAX);
            members.keys().take(KNOWN_MAX).chain(rows).map(|key| &**key)
        };
        let near = |name| did_you_mean(name, known()).map(|near| (name, near));
        if let Some((name, near)) = self.names.iter().map(|name| &**name).take(GUESSES_MAX).find_map(near) {
            let _ = write!(hint, " For `{name}`: {near}");
        }
        hint.push_str(" A jq program starts with a dot: `. | length`.");
        MissingPart { message: format!("The result has no field {wanted}."), hint }
    }
}

impl FieldTree {
    fn add(&mut self, steps: Vec<PathStep>) {
        let mut here = self;
        for step in steps {
            let place = match here.parts.iter().position(|(known, _)| *known == step) {
                Some(place) => place,
                None => {
                    here.parts.push((step, Self::default()));
                    here.parts.len() - 1
                }
            };
            here = &mut here.parts[place].1;
        }
        here.whole = true;
    }

    /// Selects from a value; `None` if nothing matches. Null and empty lists count as matches.
    fn of(&self, value: &Value) -> Option<Value> {
        if self.whole || value.is_null() {
            return Some(value.clone());
        }
        match value {
            Value::Array(items) if items.is_empty() => Some(Value::Array(Vec::new())),
            Value::Array(items) => self.select_from_list(items),
            Value::Object(members) => self.select_from_object(members).map(Value::Object),
            _ => None,
        }
    }

    fn select_from_object(&self, members: &Map<String, Value>) -> Option<Map<String, Value>> {
        let mut picked = Map::new();
        for (step, wanted) in &self.parts {
            match step {
                PathStep::Key(key) => {
                    if let Some(value) = members.get(&**key).and_then(|value| wanted.of(value)) {
                        picked.insert((&**key).into(), value);
                    }
                }
                PathStep::Each => {
                    for (key, value) in members {
                        if let Some(value) = wanted.of(value) {
                            picked.insert(key.clone(), value);
                        }
                    }
                }
                PathStep::Index(_) => {}
            }
        }
        (!picked.is_empty()).then_some(picked)
    }

    /// Selects from each element. An element without a match becomes empty and keeps its position. An index selects
    /// that element alone.
    fn select_from_list(&self, items: &[Value]) -> Option<Value> {
        if let Some((PathStep::Index(index), wanted)) = self.parts.iter().find(|(step, _)| is_index(step)) {
            let item = items.get(at(items, *index)?)?;
            return wanted.of(item).map(|item| Value::Array(vec![item]));
        }
        let each = self.parts.iter().find(|(step, _)| *step == PathStep::Each).map(|(_, wanted)| wanted);
        let mut any = false;
        let picked = items
            .iter()
            .map(|item| match each.unwrap_or(self).of(item) {
                Some(picked) => {
                    any = true;
                    picked
                }
                None if item.is_object() => Value::Object(Map::new()),
                None => Value::Null,
            })
            .collect();
        any.then_some(Value::Array(picked))
    }

    fn select_from_wrapper(&self, members: &Map<String, Value>) -> Option<Value> {
        let here = self.select_from_object(members);
        let absent = |step: &PathStep| matches!(step, PathStep::Key(key) if !members.contains_key(&**key));
        let elsewhere: Vec<_> = self.parts.iter().filter(|(step, _)| absent(step)).cloned().collect();
        let rows = find_rows(members).filter(|_| !elsewhere.is_empty());
        let Some((name, rows)) = rows else { return here.map(Value::Object) };
        let wanted = Self { whole: false, parts: elsewhere };
        let Some(rows) = wanted.of(rows) else { return here.map(Value::Object) };
        if let Some(mut here) = here {
            here.entry(name).or_insert(rows);
            return Some(Value::Object(here));
        }
        let plain = |value: &Value| !value.is_array() && !value.is_object();
        let beside = members.iter().filter(|(key, value)| *key == name || plain(value));
        let mut rows = Some(rows);
        let picked = beside.map(|(key, value)| {
            let value = if key == name { rows.take().unwrap_or_default() } else { value.clone() };
            (key.clone(), value)
        });
        Some(Value::Object(picked.collect()))
    }
}

/// Returns the only member that is a list of objects, else the only member that is an empty list.
fn find_rows(members: &Map<String, Value>) -> Option<(&String, &Value)> {
    let only = |fits: fn(&Vec<Value>) -> bool| {
        let mut found = members.iter().filter(|(_, value)| value.as_array().is_some_and(fits));
        let first = found.next();
        (first, found.next().is_some())
    };
    match only(|items| !items.is_empty() && items.iter().all(Value::is_object)) {
        (Some(rows), false) => Some(rows),
        (Some(_), true) => None,
        (None, _) => match only(Vec::is_empty) {
            (Some(rows), false) => Some(rows),
            _ => None,
        },
    }
}

fn is_index(step: &PathStep) -> bool {
    matches!(step, PathStep::Index(_))
}

/// Parses one field and returns the rest. A leading `[].` is redundant.
fn field(text: &str) -> Option<(Vec<PathStep>, &str)> {
    let mut rest = text.strip_prefix("[].").unwrap_or(text);
    let mut steps = Vec::new();
    loop {
        let (key, after) = quoted(rest).or_else(|| bare(rest))?;
        steps.push(PathStep::Key(key));
        rest = after;
        while rest.starts_with('[') {
            let (step, after) = bracket(rest)?;
            steps.push(step);
            rest = after;
        }
        match rest.strip_prefix('.') {
            Some(after) => rest = after,
            None => return Some((steps, rest)),
        }
    }
}

fn bare(text: &str) -> Option<(Box<str>, &str)> {
    let end = text.find(|c: char| !(c.is_alphanumeric() || "_-$@:/".contains(c))).unwrap_or(text.len());
    let (name, after) = text.split_at(end);
    (!name.is_empty()).then(|| (name.into(), after))
}

fn no_fields(what: &str) -> MissingPart {
    MissingPart {
        message: format!("The result is {what}, which has no fields."),
        hint: "Leave out the fields, or use a jq program, which starts with a dot.".into(),
    }
}

/// Joins names with commas, within limits of number and length.
pub(super) fn names<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let mut text = String::new();
    for (at, name) in names.enumerate() {
        if at == NAMES_MAX {
            text.push_str(", …");
            break;
        }
        if at > 0 {
            text.push_str(", ");
        }
        text.extend(name.chars().take(NAME_MAX));
        if name.chars().nth(NAME_MAX).is_some() {
            text.push('…');
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(fields: &str, value: &Value, expected: &Value) {
        assert_eq!(FieldList::parse(fields).expect(fields).pick(value).expect(fields), *expected, "{fields}");
    }

    #[track_caller]
    fn missing(fields: &str, value: &Value) -> MissingPart {
        FieldList::parse(fields).expect(fields).pick(value).expect_err(fields)
    }

    #[test]
    fn what_is_picked_keeps_its_place() {
        let issue = json!({
            "number": 7, "title": "設計", "user": {"login": "aki", "id": 1}, "body": "…",
            "labels": [{"name": "bug", "color": "f00"}, {"name": "ui", "color": "0f0"}],
        });
        check("title,number", &issue, &json!({"title": "設計", "number": 7}));
        check("user.login", &issue, &json!({"user": {"login": "aki"}}));
        check("labels[].name", &issue, &json!({"labels": [{"name": "bug"}, {"name": "ui"}]}));
        check("labels.name", &issue, &json!({"labels": [{"name": "bug"}, {"name": "ui"}]}));
        check("labels[].name, labels[].color", &issue, &json!({"labels": issue["labels"]}));
        check("labels[1].name", &issue, &json!({"labels": [{"name": "ui"}]}));
        check("labels[-1].name", &issue, &json!({"labels": [{"name": "ui"}]}));
        check("user,user.login", &issue, &json!({"user": {"login": "aki", "id": 1}}));
    }

    #[test]
    fn keys_may_be_any_text() {
        let value = json!({"a.b": 1, "題 名": {"x": 2, "y": 3}, "a": {"b": 4}, "@type": "T", "": 5});
        check(r#""a.b","題 名".x"#, &value, &json!({"a.b": 1, "題 名": {"x": 2}}));
        check("a.b,@type", &value, &json!({"a": {"b": 4}, "@type": "T"}));
        check(r#""""#, &value, &json!({"": 5}));
    }

    #[test]
    fn fields_of_a_list_are_those_of_each_element() {
        let rows = json!([{"a": 1, "b": 2}, {"b": 3}, {"a": null}, {"c": 1}]);
        check("a", &rows, &json!([{"a": 1}, {}, {"a": null}, {}]));
        check("[].a,b", &rows, &json!([{"a": 1, "b": 2}, {"b": 3}, {"a": null}, {}]));
        check("a", &json!([]), &json!([]));
    }

    #[test]
    fn members_can_be_gone_through_like_elements() {
        let page = json!({"properties": {"名前": {"type": "title", "id": 1}, "状態": {"type": "select", "id": 2}}});
        check(
            "properties[].type",
            &page,
            &json!({"properties": {"名前": {"type": "title"}, "状態": {"type": "select"}}}),
        );
    }

    #[test]
    fn rows_are_found_in_the_object_around_them() {
        let page = json!({"total": 2, "more": false, "meta": {"x": 1}, "items": [{"id": 1, "n": "a"}, {"id": 2}]});
        check("id", &page, &json!({"total": 2, "more": false, "items": [{"id": 1}, {"id": 2}]}));
        check("total", &page, &json!({"total": 2}));
        check("total,id", &page, &json!({"total": 2, "items": [{"id": 1}, {"id": 2}]}));
        check("items.n", &page, &json!({"items": [{"n": "a"}, {}]}));
        check("id", &json!({"total": 0, "items": []}), &json!({"total": 0, "items": []}));
        let two = json!({"nodes": [{"id": 1}], "edges": [{"id": 2}]});
        assert!(missing("id", &two).hint.starts_with("Available fields: nodes, edges."));
    }

    #[test]
    fn what_is_null_is_there() {
        check("assignee.login", &json!({"assignee": null}), &json!({"assignee": null}));
        check("labels[].name", &json!({"labels": []}), &json!({"labels": []}));
    }

    #[test]
    fn fields_that_are_nowhere_are_told_with_those_that_are() {
        let wrong = missing("sate,x", &json!({"total": 1, "items": [{"title": 1, "state": 2}]}));
        assert_eq!(wrong.message, "The result has no field sate, x.");
        assert_eq!(
            wrong.hint,
            "Available fields: total, items; in its rows: title, state. For `sate`: Did you mean `state`? A jq program starts with a dot: `. | length`."
        );
        assert_eq!(missing("a", &json!("words")).message, "The result is a string, which has no fields.");
        assert_eq!(missing("a", &json!([1, 2])).message, "The result is a list of plain values, which has no fields.");
        assert!(missing("a[0]", &json!({"a": {"b": 1}})).hint.contains("Available fields: a."));
    }

    #[test]
    fn names_that_are_told_are_few_and_short() {
        let many: Map<String, Value> = (0..1000).map(|n| (format!("{n}{}", "x".repeat(500)), json!(1))).collect();
        assert!(missing("a", &Value::Object(many)).hint.len() < 4000);
    }

    #[test]
    fn what_is_no_list_of_fields_is_refused() {
        for text in ["", "a,", ",a", "a b", ".a", "a..b", "a[x]", "{a}", "a|b", "a.", "\"a", "[]", "a.[0]"] {
            assert!(FieldList::parse(text).is_err(), "{text}");
        }
        assert_eq!(FieldList::parse(&vec!["f"; 201].join(",")).expect_err("many"), "has more than 200 fields");
    }
}
