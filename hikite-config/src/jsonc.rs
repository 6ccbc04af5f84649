//! Parses JSON with comments, trailing commas and a byte order mark into a tree with byte positions. Any text gives a
//! tree or an error, never a panic: this is a fuzz target.
//!
//! It is ours because `jsonc-parser` lets a string run over the end of its line, so that a missing quote would be
//! reported far below. It also accepts white space that JSON does not, and its tree does not say where a trailing comma
//! is.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::OnceLock;

/// Maximum nesting: deeper than any real file, shallow enough for every stack.
const DEPTH_MAX: usize = 128;

#[derive(Clone, Debug, PartialEq)]
pub struct JsoncNode {
    pub span: Range<usize>,
    pub value: JsoncValue,
}

#[derive(Clone, Debug, PartialEq)]
pub enum JsoncValue {
    Null,
    Bool(bool),
    Number(serde_json::Number),
    Text(String),
    List(Vec<JsoncNode>),
    Object(JsoncObject),
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct JsoncObject {
    pub members: Vec<JsoncMember>,
    index: MemberIndex,
}

#[derive(Clone, Debug, PartialEq)]
pub struct JsoncMember {
    pub name: String,
    pub name_at: usize,
    pub node: JsoncNode,
    /// Position of the comma after the member; the last member may have one too.
    pub comma: Option<usize>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct SyntaxError {
    pub at: usize,
    pub message: String,
    pub hint: Option<&'static str>,
}

pub fn parse(text: &str) -> Result<JsoncNode, SyntaxError> {
    let mut reader = JsoncParser { text, at: text.len() - text.trim_start_matches('\u{feff}').len(), depth: 0 };
    reader.skip()?;
    let node = reader.value()?;
    reader.skip()?;
    if reader.peek().is_some() {
        return Err(reader.error("unexpected content after the end of the value", None));
    }
    Ok(node)
}

impl JsoncNode {
    pub fn object(&self) -> Option<&JsoncObject> {
        match &self.value {
            JsoncValue::Object(object) => Some(object),
            _ => None,
        }
    }

    /// Converts the tree to plain JSON. The last of duplicate members wins.
    pub fn json(&self) -> serde_json::Value {
        match &self.value {
            JsoncValue::Null => serde_json::Value::Null,
            JsoncValue::Bool(value) => (*value).into(),
            JsoncValue::Number(number) => number.clone().into(),
            JsoncValue::Text(text) => text.as_str().into(),
            JsoncValue::List(items) => items.iter().map(Self::json).collect(),
            JsoncValue::Object(object) => {
                object.members.iter().map(|member| (member.name.clone(), member.node.json())).collect()
            }
        }
    }
}

impl JsoncObject {
    pub fn get(&self, name: &str) -> Option<&JsoncMember> {
        if self.members.len() <= LINEAR_SEARCH_MAX {
            return self.members.iter().rev().find(|member| member.name == name);
        }
        let index = self
            .index
            .0
            .get_or_init(|| self.members.iter().enumerate().map(|(at, member)| (member.name.clone(), at)).collect());
        self.members.get(*index.get(name)?)
    }
}

/// Number of members up to which a linear search is faster than a map.
const LINEAR_SEARCH_MAX: usize = 16;

/// Lazily built index of the members of a large object. It holds no information of its own, so all indexes are equal.
#[derive(Clone, Debug, Default)]
pub struct MemberIndex(OnceLock<HashMap<String, usize>>);

impl PartialEq for MemberIndex {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

struct JsoncParser<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
}

impl JsoncParser<'_> {
    fn value(&mut self) -> Result<JsoncNode, SyntaxError> {
        let start = self.at;
        let value = match self.peek() {
            Some('{') => self.nested(Self::members)?,
            Some('[') => self.nested(Self::items)?,
            Some('"') => JsoncValue::Text(self.string()?),
            Some('-' | '0'..='9') => self.number()?,
            Some('\'') => return Err(self.error("strings must use double quotes", None)),
            Some(c) if c.is_alphabetic() => self.word()?,
            Some(c) => return Err(self.error(format!("expected a value, found `{c}`"), None)),
            None => return Err(self.error("expected a value, found the end of the file", None)),
        };
        Ok(JsoncNode { span: start..self.at, value })
    }

    fn nested(&mut self, read: fn(&mut Self) -> Result<JsoncValue, SyntaxError>) -> Result<JsoncValue, SyntaxError> {
        if self.depth == DEPTH_MAX {
            return Err(self.error("nested too deeply", None));
        }
        self.depth += 1;
        self.at += 1;
        let value = read(self)?;
        self.depth -= 1;
        Ok(value)
    }

    fn members(&mut self) -> Result<JsoncValue, SyntaxError> {
        let mut object = JsoncObject::default();
        loop {
            self.skip()?;
            let name_at = self.at;
            match self.peek() {
                Some('"') => {}
                Some('}') => {
                    self.at += 1;
                    return Ok(JsoncValue::Object(object));
                }
                Some(c) => {
                    let hint = (c.is_alphabetic() || matches!(c, '_' | '\'')).then_some("Put it in double quotes.");
                    return Err(self.error(format!("expected a name or `}}`, found `{c}`"), hint));
                }
                None => return Err(self.error("the file ends inside an object", Some("A `}` is missing."))),
            }
            let name = self.string()?;
            self.skip()?;
            self.expect(':', "expected `:` after the name")?;
            self.skip()?;
            let node = self.value()?;
            let comma = self.comma('}')?;
            object.members.push(JsoncMember { name, name_at, node, comma });
        }
    }

    fn items(&mut self) -> Result<JsoncValue, SyntaxError> {
        let mut items = Vec::new();
        loop {
            self.skip()?;
            if self.peek() == Some(']') {
                self.at += 1;
                return Ok(JsoncValue::List(items));
            }
            items.push(self.value()?);
            self.comma(']')?;
        }
    }

    /// Consumes the comma after an element and returns its position; without one, `end` must follow.
    fn comma(&mut self, end: char) -> Result<Option<usize>, SyntaxError> {
        self.skip()?;
        match self.peek() {
            Some(',') => {
                self.at += 1;
                Ok(Some(self.at - 1))
            }
            Some(c) if c == end => Ok(None),
            Some(c) => {
                let hint = matches!(c, '"' | '{' | '[').then_some("A comma is missing before this.");
                Err(self.error(format!("expected `,` or `{end}`, found `{c}`"), hint))
            }
            None => Err(self.error(format!("expected `,` or `{end}`, found the end of the file"), None)),
        }
    }

    fn string(&mut self) -> Result<String, SyntaxError> {
        let start = self.at;
        let body = self.text[start + 1..].bytes();
        let mut escaped = false;
        let length = body.take_while(|byte| *byte != b'\n').position(|byte| {
            let closes = byte == b'"' && !escaped;
            escaped = byte == b'\\' && !escaped;
            closes
        });
        let Some(length) = length else {
            return Err(self.error("the string is not closed", Some("A `\"` is missing on this line.")));
        };
        self.at = start + length + 2;
        serde_json::from_str(&self.text[start..self.at]).map_err(|error| {
            let message = error.to_string();
            let reason = message.split(" at line ").next().unwrap_or_default();
            let hint = reason.contains("escape").then_some("Write a backslash as `\\\\`.");
            SyntaxError { at: start, message: format!("the string is not valid: {reason}"), hint }
        })
    }

    fn number(&mut self) -> Result<JsoncValue, SyntaxError> {
        let rest = &self.text[self.at..];
        let length = rest.find(|c: char| !matches!(c, '0'..='9' | '+' | '-' | '.' | 'e' | 'E'));
        let digits = &rest[..length.unwrap_or(rest.len())];
        let number =
            serde_json::from_str(digits).map_err(|_| self.error(format!("`{digits}` is not a number"), None))?;
        self.at += digits.len();
        Ok(JsoncValue::Number(number))
    }

    fn word(&mut self) -> Result<JsoncValue, SyntaxError> {
        let rest = &self.text[self.at..];
        let length = rest.find(|c: char| !c.is_alphanumeric() && c != '_');
        let word = &rest[..length.unwrap_or(rest.len())];
        let value = match word {
            "null" => JsoncValue::Null,
            "true" => JsoncValue::Bool(true),
            "false" => JsoncValue::Bool(false),
            _ => {
                let hint = Some("Put text in double quotes.");
                return Err(self.error(format!("expected a value, found `{word}`"), hint));
            }
        };
        self.at += word.len();
        Ok(value)
    }

    /// Skips white space and comments.
    fn skip(&mut self) -> Result<(), SyntaxError> {
        loop {
            let rest = &self.text[self.at..];
            let space = rest.len() - rest.trim_start_matches([' ', '\t', '\r', '\n']).len();
            self.at += space;
            let rest = &rest[space..];
            if rest.starts_with("//") {
                self.at += rest.find('\n').unwrap_or(rest.len());
            } else if let Some(comment) = rest.strip_prefix("/*") {
                let end = comment.find("*/");
                let end = end.ok_or_else(|| self.error("the comment is not closed", Some("A `*/` is missing.")))?;
                self.at += end + 4;
            } else {
                return Ok(());
            }
        }
    }

    fn expect(&mut self, wanted: char, message: &str) -> Result<(), SyntaxError> {
        if self.peek() != Some(wanted) {
            return Err(self.error(message, None));
        }
        self.at += wanted.len_utf8();
        Ok(())
    }

    fn peek(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    fn error(&self, message: impl Into<String>, hint: Option<&'static str>) -> SyntaxError {
        SyntaxError { at: self.at, message: message.into(), hint }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn check(text: &str, expected: &serde_json::Value) {
        assert_eq!(parse(text).expect(text).json(), *expected, "{text}");
    }

    #[test]
    fn comments_trailing_commas_and_a_mark_are_passed_over() {
        check("\u{feff}{\"a\": [1, 2,], // one\n /* two */ \"b\": {}, }", &json!({"a": [1, 2], "b": {}}));
        check("// only\n\"http://x/*y*/\"", &json!("http://x/*y*/"));
        check(r#"["\u00e9\\", "\"", -1.5e3, true, null]"#, &json!(["é\\", "\"", -1.5e3, true, null]));
    }

    #[test]
    fn a_syntax_error_says_where_and_what() {
        for (text, at, message) in [
            ("", 0, "expected a value, found the end of the file"),
            ("{\"a\" 1}", 5, "expected `:` after the name"),
            ("{\"a\": 1 \"b\": 2}", 8, "expected `,` or `}`, found `\"`"),
            ("{a: 1}", 1, "expected a name or `}`, found `a`"),
            ("['x']", 1, "strings must use double quotes"),
            ("[\"x\n\"]", 1, "the string is not closed"),
            ("[\"\\q\"]", 1, "the string is not valid: invalid escape"),
            ("[1 /* ]", 3, "the comment is not closed"),
            ("[01]", 1, "`01` is not a number"),
            ("[tru]", 1, "expected a value, found `tru`"),
            ("{} x", 3, "unexpected content after the end of the value"),
            ("{\"a\": {", 7, "the file ends inside an object"),
            ("[,]", 1, "expected a value, found `,`"),
        ] {
            let error = parse(text).expect_err(text);
            assert_eq!((error.at, error.message.as_str()), (at, message), "{text}");
        }
    }

    #[test]
    fn no_depth_and_no_cut_text_panics() {
        assert_eq!(parse(&"[".repeat(100_000)).expect_err("deep").message, "nested too deeply");
        let text = "{\"é\": [\"\\u12\", 1e, // 日本\n /* x */ null], \"\\ud800\": \"\u{1F600}\", '\"\\";
        for (at, _) in text.char_indices() {
            let _ = (parse(&text[..at]), parse(&text[at..]));
        }
    }
}
