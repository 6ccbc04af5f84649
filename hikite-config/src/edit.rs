//! Sets and removes a member of a JSONC text by its path. Only the member changes: comments, trailing commas and the
//! layout of everything else stay. An error has the position in the text; show it with `Problems::syntax`.

pub mod toml;

use std::ops::Range;

use serde_json::{Value, json};

use super::jsonc::{self, JsoncMember, JsoncNode, JsoncObject, SyntaxError};

/// Returns the text with the member at `path` set to `value`. Objects missing on the way are created; a new member
/// becomes the last of its object. A text that has this value already is returned unchanged, and a blank text counts
/// as `{}`.
pub fn set(text: &str, path: &[&str], value: &Value) -> Result<String, SyntaxError> {
    let is_blank = text.trim_start_matches('\u{feff}').trim().is_empty();
    let text = if is_blank { "{}\n" } else { text };
    let root = jsonc::parse(text)?;
    let mut node = &root;
    for (index, name) in path.iter().enumerate() {
        let object = node.object().ok_or_else(|| not_an_object(node, &path[..index]))?;
        let Some(member) = object.get(name) else {
            let value = path[index + 1..].iter().rev().fold(value.clone(), |value, name| json!({ *name: value }));
            return Ok(Layout::of(text, &root).insert(node, object, name, &value));
        };
        if index + 1 < path.len() {
            node = &member.node;
        } else if member.node.json() == *value {
            break;
        } else {
            let layout = Layout::of(text, &root);
            let written = if layout.starts_line(member.name_at) {
                layout.lines(value, layout.indent(member.name_at))
            } else {
                value.to_string()
            };
            return Ok(spliced(text, vec![(member.node.span.clone(), written)]));
        }
    }
    Ok(text.to_owned())
}

/// Returns the text without the member at `path`. A text that has no such member is returned unchanged.
pub fn remove(text: &str, path: &[&str]) -> Result<String, SyntaxError> {
    let mut text = text.to_owned();
    let Some((name, parents)) = path.split_last() else { return Ok(text) };
    loop {
        let root = jsonc::parse(&text)?;
        let parent = parents.iter().try_fold(&root, |node, name| Some(&node.object()?.get(name)?.node));
        let object = parent.and_then(JsoncNode::object);
        // A name may be written twice; the earlier one must not come into effect.
        let found = object.and_then(|object| Some((object, object.members.iter().position(|m| m.name == *name)?)));
        let Some((object, index)) = found else { return Ok(text) };
        text = spliced(&text, Layout::of(&text, &root).removal(object, index));
    }
}

fn not_an_object(node: &JsoncNode, path: &[&str]) -> SyntaxError {
    let what = if path.is_empty() { "the file".into() } else { format!("`{}`", path.join(".")) };
    let message = format!("{what} is not an object");
    SyntaxError { at: node.span.start, message, hint: Some("Correct it by hand first.") }
}

/// A replacement of one part of the text.
type Splice = (Range<usize>, String);

/// Applies replacements that are in the order of the text.
fn spliced(text: &str, splices: Vec<Splice>) -> String {
    let mut out = text.to_owned();
    for (range, written) in splices.into_iter().rev() {
        out.replace_range(range, &written);
    }
    out
}

const SPACE: [char; 2] = [' ', '\t'];
/// White space of JSON. A comment may end in other white space, which belongs to the comment.
const BLANK: [char; 4] = [' ', '\t', '\r', '\n'];

/// Line ends and indentation in use.
struct Layout<'a> {
    text: &'a str,
    newline: &'static str,
    /// One step of indentation.
    step: &'a str,
}

impl<'a> Layout<'a> {
    fn of(text: &'a str, root: &JsoncNode) -> Self {
        let mut layout = Self { text, newline: if text.contains("\r\n") { "\r\n" } else { "\n" }, step: "  " };
        let mut members = root.object().into_iter().flat_map(|object| &object.members);
        let first = members.find(|member| layout.starts_line(member.name_at));
        let step = first.map_or("", |member| layout.indent(member.name_at));
        let step = step.strip_prefix(layout.indent(root.span.start)).unwrap_or_default();
        layout.step = if step.is_empty() { layout.step } else { step };
        layout
    }

    fn insert(&self, node: &JsoncNode, object: &JsoncObject, name: &str, value: &Value) -> String {
        let name = Value::from(name);
        let close = node.span.end - 1;
        let Some(last) = object.members.last() else {
            let outer = self.indent(node.span.start);
            let inner = format!("{outer}{}", self.step);
            let written = format!("{}{inner}{name}: {}", self.newline, self.lines(value, &inner));
            return self.insert_first(node.span.start + 1..close, &written, outer);
        };
        let (after, comma, trailing) = match last.comma {
            Some(comma) => (comma + 1, "", ","),
            None => (last.node.span.end, ",", ""),
        };
        if !self.starts_line(last.name_at) {
            let written = format!("{comma} {name}: {value}{trailing}");
            return spliced(self.text, vec![(after..after, written)]);
        }
        let inner = self.indent(last.name_at);
        let end = after + self.text[after..close].trim_end_matches(BLANK).len();
        let written = format!("{}{inner}{name}: {}{trailing}", self.newline, self.lines(value, inner));
        spliced(self.text, vec![(after..after, comma.into()), (end..end, written)])
    }

    /// Writes the first member into an object that holds nothing or only comments.
    fn insert_first(&self, inside: Range<usize>, written: &str, outer: &str) -> String {
        let comments = self.text[inside.clone()].trim_end_matches(BLANK).len();
        let blank = inside.start + comments..inside.end;
        let tail = match &self.text[blank.clone()] {
            tail if tail.contains('\n') => tail.to_owned(),
            _ => format!("{}{outer}", self.newline),
        };
        spliced(self.text, vec![(blank, format!("{written}{tail}"))])
    }

    /// Returns the parts to delete: the member with its comma, or with the comma before it, and its lines if nothing
    /// else is on them.
    fn removal(&self, object: &JsoncObject, index: usize) -> Vec<Splice> {
        let member = &object.members[index];
        let is_last = index + 1 == object.members.len();
        let before = index.checked_sub(1).map(|before| &object.members[before]);
        let comma = before.and_then(|before| before.comma).filter(|_| is_last && member.comma.is_none());
        let comma = comma.map(|comma| (comma..comma + 1, String::new()));
        let mut parts: Vec<Splice> = comma.into_iter().collect();
        let end = member.node.span.end;
        let comma_end = member.comma.map_or(end, |comma| comma + 1);
        // A comment between the member and its comma stays.
        let is_joined = self.text[end..comma_end].trim_start_matches(BLANK).len() <= 1;
        if !is_joined {
            parts.push((member.name_at..end, String::new()));
            parts.push((comma_end - 1..comma_end, String::new()));
            return parts;
        }
        parts.push((self.whole_lines(member, comma_end, is_last), String::new()));
        parts
    }

    fn whole_lines(&self, member: &JsoncMember, end: usize, is_last: bool) -> Range<usize> {
        let rest = &self.text[end..];
        let spaces = rest.len() - rest.trim_start_matches(SPACE).len();
        let rest = &rest[spaces..];
        let line_start = member.name_at - self.before(member.name_at).len();
        let line_end = if rest.starts_with("\r\n") { 2 } else { usize::from(rest.starts_with('\n')) };
        if self.starts_line(member.name_at) && line_end > 0 {
            return line_start..end + spaces + line_end;
        }
        if is_last {
            return self.text[..member.name_at].trim_end_matches(SPACE).len()..end;
        }
        member.name_at..end + spaces
    }

    /// Returns the value in lines of which all but the first begin with `indent`.
    fn lines(&self, value: &Value, indent: &str) -> String {
        let formatter = serde_json::ser::PrettyFormatter::with_indent(self.step.as_bytes());
        let mut out = Vec::new();
        let mut serializer = serde_json::Serializer::with_formatter(&mut out, formatter);
        let written = serde::Serialize::serialize(value, &mut serializer).ok().and(String::from_utf8(out).ok());
        written.unwrap_or_default().replace('\n', &format!("{}{indent}", self.newline))
    }

    /// Returns the part of the line that is before the byte.
    fn before(&self, at: usize) -> &'a str {
        let start = self.text[..at].rfind('\n').map_or(0, |newline| newline + 1);
        &self.text[start..at]
    }

    fn starts_line(&self, at: usize) -> bool {
        self.text[..at].trim_end_matches(SPACE).ends_with('\n')
    }

    /// Returns the indentation of the line that contains the byte.
    fn indent(&self, at: usize) -> &'a str {
        let line = self.before(at);
        &line[..line.len() - line.trim_start_matches(SPACE).len()]
    }
}

#[cfg(test)]
mod tests;
