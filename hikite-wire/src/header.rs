//! Header values of revision 2026-07-28: parts of the body repeated where proxies can read them.

use std::borrow::Cow;
use std::collections::HashSet;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hikite_core::json::{Object, Raw};
use memchr::memmem;

const OPEN: &str = "=?base64?";
const CLOSE: &str = "?=";
const ANNOTATION: &str = "x-mcp-header";
/// Largest integer that every JSON parser represents exactly.
const SAFE_INTEGER: i64 = (1 << 53) - 1;

/// Returns the member of `params` that the `Mcp-Name` header repeats, for methods that have one.
pub fn named_member(method: &str) -> Option<&'static str> {
    match method {
        "tools/call" | "prompts/get" => Some("name"),
        "resources/read" => Some("uri"),
        "tasks/get" | "tasks/update" | "tasks/cancel" => Some("taskId"),
        _ => None,
    }
}

/// Encodes a text as a header value: plain if that is safe, else base64 between markers.
pub fn encode(text: &str) -> Cow<'_, str> {
    let plain = text.bytes().all(|byte| (0x20..=0x7e).contains(&byte))
        && !text.starts_with(' ')
        && !text.ends_with(' ')
        && unwrap(text).is_none();
    if plain { Cow::Borrowed(text) } else { Cow::Owned(format!("{OPEN}{}{CLOSE}", STANDARD.encode(text))) }
}

/// Decodes a header value; `None` if the base64 is invalid.
pub fn decode(value: &str) -> Option<Cow<'_, str>> {
    match unwrap(value) {
        None => Some(Cow::Borrowed(value)),
        Some(inner) => String::from_utf8(STANDARD.decode(inner).ok()?).ok().map(Cow::Owned),
    }
}

fn unwrap(value: &str) -> Option<&str> {
    value.strip_prefix(OPEN)?.strip_suffix(CLOSE)
}

/// An argument repeated in a header: the header name after `Mcp-Param-`, and the path to the argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParamHeader {
    pub header: Box<str>,
    pub path: Box<[Box<str>]>,
}

impl ParamHeader {
    /// Returns the argument, if it is present and not null.
    pub fn argument(&self, arguments: Option<&Raw>) -> Option<Raw> {
        let mut value = arguments?.clone();
        for step in &self.path {
            value = value.object()?.get(step)?.clone();
        }
        (!value.is_null()).then_some(value)
    }

    /// Returns `true` if the header value equals the argument.
    pub fn says(argument: &Raw, header: &str) -> bool {
        let Some(header) = decode(header.trim()) else { return false };
        if let Some(text) = argument.text() {
            return text == header;
        }
        match (argument.decode::<f64>(), header.parse::<f64>()) {
            (Ok(number), Ok(sent)) => number.total_cmp(&sent).is_eq(),
            _ => argument.as_str() == header,
        }
    }

    /// Encodes the argument as a header value; `None` if that is not possible.
    pub fn value(argument: &Raw) -> Option<String> {
        if let Some(text) = argument.text() {
            return Some(encode(&text).into_owned());
        }
        if let Ok(flag) = argument.decode::<bool>() {
            return Some(flag.to_string());
        }
        let number = argument.decode::<i64>().ok().or_else(|| whole(argument.decode().ok()?));
        number.filter(|number| number.abs() <= SAFE_INTEGER).map(|number| number.to_string())
    }
}

/// Converts an integral float: `42.0` is the integer 42.
#[expect(clippy::cast_possible_truncation, reason = "checked to be a whole number within the safe range")]
#[expect(clippy::cast_precision_loss, reason = "the safe range is exact")]
fn whole(number: f64) -> Option<i64> {
    (number.fract() == 0.0 && number.abs() <= SAFE_INTEGER as f64).then_some(number as i64)
}

/// Collects the `x-mcp-header` annotations of an input schema; an error if one is invalid.
pub fn param_headers(input_schema: &Raw) -> Result<Vec<ParamHeader>, String> {
    let mut found = ParamHeaderCollector::default();
    if memmem::find(input_schema.bytes(), ANNOTATION.as_bytes()).is_some() {
        found.walk(input_schema, true)?;
    }
    Ok(found.param_headers)
}

#[derive(Default)]
struct ParamHeaderCollector {
    param_headers: Vec<ParamHeader>,
    names: HashSet<String>,
    path: Vec<Box<str>>,
}

impl ParamHeaderCollector {
    /// Visits a schema. `reachable` is `true` while only `properties` lie between here and the root.
    fn walk(&mut self, schema: &Raw, reachable: bool) -> Result<(), String> {
        if let Some(items) = schema.items() {
            return items.iter().try_for_each(|item| self.walk(item, false));
        }
        let Some(members) = schema.object() else { return Ok(()) };
        if let Some(annotation) = members.get(ANNOTATION) {
            self.take(&members, annotation, reachable)?;
        }
        for (name, value) in members.iter().filter(|(name, _)| !VALUE_MEMBERS.contains(name)) {
            if name == "properties" {
                for (property, schema) in value.object().unwrap_or_default().iter() {
                    self.path.push(property.into());
                    self.walk(schema, reachable)?;
                    self.path.pop();
                }
            } else {
                self.walk(value, false)?;
            }
        }
        Ok(())
    }

    fn take(&mut self, schema: &Object, annotation: &Raw, reachable: bool) -> Result<(), String> {
        let at = self.path.join(".");
        let Some(header) = annotation.text().filter(|name| is_token(name)) else {
            return Err(format!("`{ANNOTATION}` of `{at}` is not a header name"));
        };
        if !reachable || self.path.is_empty() {
            return Err(format!("`{ANNOTATION}` \"{header}\" is not on a plain property"));
        }
        if !matches!(schema.text("type").as_deref(), Some("string" | "integer" | "boolean")) {
            return Err(format!("`{at}` has `{ANNOTATION}` but is no string, integer or boolean"));
        }
        if !self.names.insert(header.to_ascii_lowercase()) {
            return Err(format!("`{ANNOTATION}` \"{header}\" is there twice"));
        }
        self.param_headers.push(ParamHeader { header: header.into(), path: self.path.clone().into() });
        Ok(())
    }
}

/// Schema members that hold values, not schemas.
const VALUE_MEMBERS: [&str; 5] = [ANNOTATION, "default", "const", "enum", "examples"];

/// Returns `true` for a token of RFC 9110.
fn is_token(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_plain_or_base64_between_markers() {
        assert_eq!(decode("plain").as_deref(), Some("plain"));
        assert_eq!(decode("=?base64?5pel5pys?=").as_deref(), Some("日本"));
        assert_eq!(decode("=?base64?aGk=?=").as_deref(), Some("hi"));
        assert_eq!(decode("=?base64?aGk?="), None);
        assert_eq!(decode("=?base64?a*k=?="), None);
        assert_eq!(decode("=?base64?aGl=?="), None);
    }

    #[test]
    fn what_is_encoded_reads_back() {
        for text in ["", "a b", " a", "a\t", "日本", "=?base64?aGk=?=", "line\nbreak", "~"] {
            let encoded = encode(text);
            assert!(encoded.bytes().all(|byte| (0x20..=0x7e).contains(&byte)), "{text}");
            assert_eq!(decode(&encoded).as_deref(), Some(text));
        }
        assert_eq!(encode("a b"), "a b");
    }

    fn schema(property: &str) -> Raw {
        Raw::parse(format!(r#"{{"type":"object","properties":{{"a":{property}}}}}"#)).expect("valid")
    }

    #[test]
    fn annotations_are_found_on_plain_properties() {
        let nested = r#"{"properties":{"b":{"type":"integer","x-mcp-header":"B"}}}"#;
        let found = param_headers(&schema(nested)).expect("valid");
        assert_eq!(found, [ParamHeader { header: "B".into(), path: ["a".into(), "b".into()].into() }]);
        let arguments = Raw::parse(r#"{"a":{"b":42.0}}"#).expect("valid");
        let argument = found[0].argument(Some(&arguments)).expect("there");
        assert_eq!(ParamHeader::value(&argument).as_deref(), Some("42"));
        assert!(ParamHeader::says(&argument, "42"));
        assert!(!ParamHeader::says(&argument, "43"));
        assert!(ParamHeader::says(&Raw::from("日本"), "=?base64?5pel5pys?="));
        assert!(ParamHeader::says(&Raw::of(&true), "true"));
    }

    #[test]
    fn annotations_elsewhere_or_of_the_wrong_kind_are_refused() {
        for bad in [
            r#"{"type":"string","x-mcp-header":""}"#,
            r#"{"type":"string","x-mcp-header":"a b"}"#,
            r#"{"type":"string","x-mcp-header":7}"#,
            r#"{"type":"number","x-mcp-header":"A"}"#,
            r#"{"type":["string","null"],"x-mcp-header":"A"}"#,
            r#"{"x-mcp-header":"A"}"#,
            r#"{"type":"array","items":{"type":"string","x-mcp-header":"A"}}"#,
            r#"{"anyOf":[{"type":"string","x-mcp-header":"A"}]}"#,
            r#"{"properties":{"b":{"type":"string","x-mcp-header":"A"},"c":{"type":"string","x-mcp-header":"a"}}}"#,
        ] {
            assert!(param_headers(&schema(bad)).is_err(), "{bad}");
        }
        let data = r#"{"type":"string","default":{"x-mcp-header":7}}"#;
        assert_eq!(param_headers(&schema(data)), Ok(Vec::new()));
    }
}
