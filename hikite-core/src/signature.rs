//! One-line tool signatures in TypeScript style: names, types, optional marks and short descriptions. They cost a model
//! about a tenth of the schema's tokens. Every schema yields a line.

use std::borrow::Cow;

use serde_json::{Map, Value};

use crate::json::Raw;

/// Limits of a signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SignatureStyle {
    /// Depth to which nested objects and alternatives are expanded.
    pub depth: usize,
    /// Longest parameter description; zero leaves descriptions out.
    pub doc_chars: usize,
    /// Longest line; it is truncated only after descriptions and nesting were dropped.
    pub chars: usize,
}

impl Default for SignatureStyle {
    fn default() -> Self {
        Self { depth: 3, doc_chars: 48, chars: 1200 }
    }
}

/// Most enum values listed.
const ENUM_VALUES_MAX: usize = 12;
/// Longest literal, in characters.
const LITERAL_CHARS_MAX: usize = 40;
/// Most `$ref`s followed from one place.
const REFERENCES_MAX: usize = 8;

/// Returns a signature such as `name(a: string, b?: "x" | "y")`. Without a schema the parameters are empty.
pub fn signature(name: &str, schema: Option<&Raw>, style: SignatureStyle) -> String {
    let schema = schema.map_or(Value::Null, Raw::value);
    let line = |depth, doc_chars| {
        let writer = SignatureWriter { root: &schema, doc_chars };
        format!("{name}({})", writer.parameters(depth))
    };
    let fits = |line: &String| line.chars().count() <= style.chars;
    let attempts = [(style.depth, style.doc_chars), (style.depth, 0), (1, 0)];
    let last = attempts.len() - 1;
    let lines = attempts.iter().enumerate().map(|(at, (depth, docs))| (at, line(*depth, *docs)));
    let found = lines.into_iter().find(|(at, line)| *at == last || fits(line));
    let line = found.map(|(_, line)| line).unwrap_or_default();
    if fits(&line) { line } else { truncate(&line, style.chars).into_owned() }
}

/// Returns the first sentences of a text on one line, as many as fit.
pub fn brief(text: &str, chars: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= chars {
        return line;
    }
    let end = line.char_indices().nth(chars).map_or(line.len(), |(at, _)| at);
    let stops = line[..end].match_indices(['.', '!', '?', '。', '！', '？']);
    let mut ends = stops.map(|(at, stop)| at + stop.len());
    let is_end = |at: &usize| {
        let wide = line[..*at].ends_with(['。', '！', '？']);
        wide || line[*at..].starts_with(' ')
    };
    match ends.rfind(is_end) {
        // A much shorter prefix often ends in an abbreviation, not a sentence.
        Some(at) if at * 2 >= end => line[..at].to_owned(),
        _ => truncate(&line, chars).into_owned(),
    }
}

/// Truncates a text and marks it with an ellipsis.
fn truncate(text: &str, chars: usize) -> Cow<'_, str> {
    match text.char_indices().nth(chars) {
        None => text.into(),
        Some(_) => {
            let end = text.char_indices().nth(chars.saturating_sub(1)).map_or(0, |(at, _)| at);
            format!("{}…", text[..end].trim_end()).into()
        }
    }
}

struct SignatureWriter<'a> {
    root: &'a Value,
    doc_chars: usize,
}

impl<'a> SignatureWriter<'a> {
    fn parameters(&self, depth: usize) -> String {
        let schema = self.follow(self.root);
        match schema.as_object() {
            Some(schema) if schema.get("properties").is_some_and(Value::is_object) => self.members(schema, depth),
            Some(schema) if alternatives(schema).is_some() => self.of(self.root, depth),
            _ => String::new(),
        }
    }

    fn members(&self, schema: &'a Map<String, Value>, depth: usize) -> String {
        let required: Vec<&str> = texts(schema.get("required")).collect();
        let members = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
        let (required_members, optional_members): (Vec<_>, Vec<_>) =
            members.partition(|(name, _)| required.contains(&name.as_str()));
        let parts =
            required_members.iter().map(|part| (part, "")).chain(optional_members.iter().map(|part| (part, "?")));
        let parts = parts.map(|((name, schema), mark)| {
            let kind = self.of(schema, depth);
            format!("{}{mark}: {kind}{}{}", key(name), default(schema), self.doc(schema))
        });
        parts.collect::<Vec<_>>().join(", ")
    }

    fn of(&self, schema: &'a Value, depth: usize) -> String {
        let schema = self.follow(schema);
        let Some(schema) = schema.as_object() else {
            return if *schema == Value::Bool(false) { "never" } else { "any" }.into();
        };
        if let Some(only) = schema.get("const") {
            return literal(only);
        }
        if let Some(words) = schema.get("enum").and_then(Value::as_array).filter(|words| !words.is_empty()) {
            let more = (words.len() > ENUM_VALUES_MAX).then(|| "…".to_owned());
            return words.iter().take(ENUM_VALUES_MAX).map(literal).chain(more).collect::<Vec<_>>().join(" | ");
        }
        if let Some((joint, schemas)) = alternatives(schema) {
            let Some(depth) = depth.checked_sub(1) else { return "any".into() };
            let whole = schema.get("properties").map(|_| self.object(schema, depth));
            let parts = schemas.iter().map(|schema| self.of(schema, depth));
            return join(whole.into_iter().chain(parts), joint);
        }
        let kinds: Vec<&str> = texts(schema.get("type")).collect();
        match kinds.as_slice() {
            [] if schema.contains_key("properties") => self.object(schema, depth),
            [] if schema.contains_key("items") => self.array(schema, depth),
            [] => "any".into(),
            kinds => join(kinds.iter().map(|kind| self.of_kind(kind, schema, depth)), " | "),
        }
    }

    fn of_kind(&self, kind: &str, schema: &'a Map<String, Value>, depth: usize) -> String {
        match kind {
            "object" => self.object(schema, depth),
            "array" => self.array(schema, depth),
            "string" | "integer" | "number" | "boolean" | "null" => kind.to_owned(),
            _ => "any".to_owned(),
        }
    }

    fn array(&self, schema: &'a Map<String, Value>, depth: usize) -> String {
        let Some(depth) = depth.checked_sub(1) else { return "any[]".into() };
        if let Some(parts) = schema.get("prefixItems").and_then(Value::as_array) {
            let parts: Vec<String> = parts.iter().take(ENUM_VALUES_MAX).map(|part| self.of(part, depth)).collect();
            return format!("[{}]", parts.join(", "));
        }
        let item = schema.get("items").map_or_else(|| "any".into(), |items| self.of(items, depth));
        if item.contains(" | ") || item.contains(" & ") { format!("({item})[]") } else { format!("{item}[]") }
    }

    fn object(&self, schema: &'a Map<String, Value>, depth: usize) -> String {
        let Some(depth) = depth.checked_sub(1) else { return "object".into() };
        let members = schema.get("properties").and_then(Value::as_object);
        if members.is_some_and(|members| !members.is_empty()) {
            return format!("{{{}}}", self.members(schema, depth));
        }
        match schema.get("additionalProperties").filter(|others| others.is_object()) {
            Some(others) => format!("{{[key]: {}}}", self.of(others, depth)),
            None => "object".into(),
        }
    }

    /// Follows local `$ref`s, with a limit because they may be cyclic.
    fn follow(&self, mut schema: &'a Value) -> &'a Value {
        for _ in 0..REFERENCES_MAX {
            let target = schema.get("$ref").and_then(Value::as_str).and_then(|at| at.strip_prefix('#'));
            match target.and_then(|at| self.root.pointer(at)) {
                Some(found) => schema = found,
                None => break,
            }
        }
        schema
    }

    fn doc(&self, schema: &Value) -> String {
        let text = schema.get("description").and_then(Value::as_str).unwrap_or_default();
        let text = brief(&text.replace("*/", "* /"), self.doc_chars);
        if self.doc_chars == 0 || text.is_empty() { String::new() } else { format!(" /* {text} */") }
    }
}

/// Returns the subschemas of `anyOf`, `oneOf` or `allOf`, and the operator between them.
fn alternatives(schema: &Map<String, Value>) -> Option<(&'static str, &Vec<Value>)> {
    let words = [("anyOf", " | "), ("oneOf", " | "), ("allOf", " & ")];
    words.into_iter().find_map(|(word, joint)| {
        let schemas = schema.get(word)?.as_array().filter(|schemas| !schemas.is_empty())?;
        Some((joint, schemas))
    })
}

/// Joins distinct parts in order. In an intersection `any` is dropped: a subschema with only `required` adds nothing.
fn join(parts: impl Iterator<Item = String>, joint: &str) -> String {
    let mut all: Vec<String> = Vec::new();
    for part in parts.take(ENUM_VALUES_MAX) {
        if !all.contains(&part) {
            all.push(part);
        }
    }
    if all.len() > 1 && joint == " & " {
        all.retain(|part| part != "any");
    }
    if all.iter().any(|part| part == "any") { "any".into() } else { all.join(joint) }
}

fn texts(value: Option<&Value>) -> impl Iterator<Item = &str> {
    let (one, many) = match value {
        Some(Value::Array(many)) => (None, Some(many)),
        other => (other, None),
    };
    many.into_iter().flatten().chain(one).filter_map(Value::as_str)
}

fn key(name: &str) -> Cow<'_, str> {
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$' | '-' | '.');
    if !name.is_empty() && name.chars().all(plain) { name.into() } else { literal(&name.into()).into() }
}

fn literal(value: &Value) -> String {
    truncate(&value.to_string(), LITERAL_CHARS_MAX).into_owned()
}

/// Formats a short scalar default value.
fn default(schema: &Value) -> String {
    match schema.get("default") {
        Some(value @ (Value::Bool(_) | Value::Number(_) | Value::String(_))) => {
            let text = value.to_string();
            if text.len() <= LITERAL_CHARS_MAX { format!(" = {text}") } else { String::new() }
        }
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(schema: &Value, expected: &str) {
        let style = SignatureStyle { doc_chars: 20, ..SignatureStyle::default() };
        assert_eq!(signature("t", Some(&Raw::of(schema)), style), expected, "{schema}");
    }

    fn property(schema: &Value) -> Value {
        json!({ "type": "object", "properties": { "a": schema } })
    }

    #[test]
    fn what_must_be_there_comes_first_and_the_rest_is_marked() {
        check(
            &json!({ "type": "object", "required": ["b"], "properties": {
                "a": { "type": "integer", "default": 10 },
                "b": { "type": "string", "description": "The owner. Of the repository." },
            } }),
            "t(b: string /* The owner. */, a?: integer = 10)",
        );
        check(&json!({ "type": "object" }), "t()");
        assert_eq!(signature("t", None, SignatureStyle::default()), "t()");
    }

    #[test]
    fn every_kind_of_schema_has_a_type() {
        for (schema, expected) in [
            (json!({ "enum": ["open", "closed", null, 3] }), r#""open" | "closed" | null | 3"#),
            (json!({ "const": true }), "true"),
            (json!({ "type": ["string", "null"] }), "string | null"),
            (json!({ "type": "array", "items": { "type": "string" } }), "string[]"),
            (json!({ "type": "array", "items": { "enum": [1, 2] } }), "(1 | 2)[]"),
            (json!({ "prefixItems": [{ "type": "null" }, true], "type": "array" }), "[null, any]"),
            (json!({ "anyOf": [{ "type": "string" }, { "type": "string" }, { "type": "number" }] }), "string | number"),
            (
                json!({ "allOf": [{ "properties": { "x": { "type": "number" } } }, { "type": "object" }] }),
                "{x?: number} & object",
            ),
            (json!({ "type": "object", "additionalProperties": { "type": "number" } }), "{[key]: number}"),
            (json!({ "type": "object", "properties": { "x y": {} }, "required": ["x y"] }), r#"{"x y": any}"#),
            (json!({ "type": "frob" }), "any"),
            (json!(false), "never"),
            (json!("odd"), "any"),
            (json!({ "$ref": "#/properties/a" }), "any"),
        ] {
            check(&property(&schema), &format!("t(a?: {expected})"));
        }
    }

    #[test]
    fn references_are_followed_and_circles_end() {
        check(
            &json!({ "properties": { "a": { "$ref": "#/$defs/Node" } }, "$defs": { "Node": { "type": "object",
                "properties": { "next": { "$ref": "#/$defs/Node" } } } } }),
            "t(a?: {next?: {next?: {next?: object}}})",
        );
    }

    #[test]
    fn a_line_that_is_too_long_loses_its_words_then_its_inner_members_then_its_end() {
        let inner = json!({ "type": "object", "properties": { "x": { "type": "string" } } });
        let schema = Raw::of(&json!({ "properties": {
            "a": { "type": "string", "description": "some words" }, "b": { "properties": { "c": inner } } } }));
        let line = |chars| signature("t", Some(&schema), SignatureStyle { chars, ..SignatureStyle::default() });
        assert_eq!(line(100), "t(a?: string /* some words */, b?: {c?: {x?: string}})");
        assert_eq!(line(50), "t(a?: string, b?: {c?: {x?: string}})");
        assert_eq!(line(36), "t(a?: string, b?: {c?: object})");
        assert_eq!(line(12), "t(a?: strin…");
    }

    #[test]
    fn a_text_is_cut_after_a_sentence() {
        assert_eq!(brief("Reads  a\nfile. Then more of it.", 20), "Reads a file.");
        assert_eq!(brief("ファイルを読む。そして書く。", 10), "ファイルを読む。");
        assert_eq!(brief("e.g. something that goes on", 12), "e.g. someth…");
        assert_eq!(brief("short", 12), "short");
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let word = prop_oneof![
            Just("type"),
            Just("properties"),
            Just("items"),
            Just("anyOf"),
            Just("allOf"),
            Just("enum"),
            Just("required"),
            Just("$ref"),
            Just("const"),
            Just("description"),
            Just("default"),
            Just("additionalProperties"),
            Just("prefixItems"),
            Just("a"),
        ];
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            prop_oneof![Just("object"), Just("array"), Just("#"), Just("#/properties/a"), Just("日本*/")]
                .prop_map(Value::from),
        ];
        leaf.prop_recursive(6, 64, 6, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                prop::collection::vec((word.clone(), inner), 0..6).prop_map(|members| {
                    members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect::<Map<_, _>>().into()
                }),
            ]
        })
    }

    proptest! {
        #[test]
        fn any_schema_has_a_line_of_bounded_length(schema in any_json(), chars in 1_usize..300) {
            let style = SignatureStyle { chars, ..SignatureStyle::default() };
            let line = signature("t", Some(&Raw::of(&schema)), style);
            prop_assert!(line.chars().count() <= chars, "{line}");
            prop_assert!(!line.contains('\n'));
        }
    }

    /// Uses the tool lists of real servers.
    #[test]
    fn real_tools_have_lines_that_cost_less_than_their_schemas() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../hikite-testkit/fixtures/toolsets");
        let (mut lines, mut schemas, mut tools) = (0, 0, 0);
        for file in std::fs::read_dir(folder).expect("the tool lists").flatten() {
            let text = std::fs::read_to_string(file.path()).expect("a file");
            let Ok(list) = Raw::parse(text) else { continue };
            let list = list.value();
            let listed = list.get("tools").or_else(|| list.pointer("/result/tools")).unwrap_or(&list);
            for tool in listed.as_array().into_iter().flatten() {
                let schema = Raw::of(&tool["inputSchema"]);
                let name = tool["name"].as_str().expect("a name");
                let line = signature(name, Some(&schema), SignatureStyle::default());
                assert!(line.chars().count() <= SignatureStyle::default().chars && line.starts_with(name), "{line}");
                for (parameter, _) in tool["inputSchema"]["properties"].as_object().into_iter().flatten() {
                    assert!(line.contains(parameter.as_str()) || line.ends_with('…'), "{parameter}: {line}");
                }
                (lines, schemas, tools) = (lines + line.len(), schemas + schema.bytes().len(), tools + 1);
            }
        }
        assert!(tools > 300, "{tools}");
        assert!(lines * 2 < schemas, "{lines} of {schemas}");
    }
}
