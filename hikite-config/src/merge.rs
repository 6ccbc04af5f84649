//! Adds servers to the text of a config file. The text is edited, so that comments and layout stay; existing entries
//! are never overwritten.

use std::fmt::Write;

use serde_json::{Map, Value};

use super::jsonc::{self, JsoncNode, JsoncObject};
use super::problem::Problems;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MergedConfig {
    /// The complete new text.
    pub text: String,
    pub added: Vec<String>,
    /// Names that existed already and were left unchanged.
    pub unchanged: Vec<String>,
}

/// Adds the servers. `text` is `None` if there is no file yet; `file` names it in messages.
pub fn merge(file: &str, text: Option<&str>, servers: &Map<String, Value>) -> Result<MergedConfig, Problems> {
    let text = text.filter(|text| !text.trim().is_empty()).unwrap_or("{}\n");
    let root = jsonc::parse(text).map_err(|error| Problems::syntax(file, text, &error))?;
    let object = |node: &JsoncNode, what: &str| {
        let refused = || Problems::whole(file, format!("{what} is not an object"), Some("Correct it by hand first."));
        node.object().cloned().ok_or_else(refused)
    };
    let members = object(&root, "the file")?;
    let Some(block) = members.get("mcpServers") else {
        let block = Map::from_iter([("mcpServers".to_owned(), Value::Object(servers.clone()))]);
        let text = insert(text, &root, &members, &block);
        return Ok(MergedConfig { text, added: servers.keys().cloned().collect(), unchanged: Vec::new() });
    };
    let present = object(&block.node, "`mcpServers`")?;
    let (unchanged, new): (Vec<_>, Vec<_>) = servers.iter().partition(|(name, _)| present.get(name).is_some());
    let new: Map<String, Value> = new.into_iter().map(|(name, server)| (name.clone(), server.clone())).collect();
    let unchanged = unchanged.into_iter().map(|(name, _)| name.clone()).collect();
    let text = if new.is_empty() { text.to_owned() } else { insert(text, &block.node, &present, &new) };
    Ok(MergedConfig { text, added: new.keys().cloned().collect(), unchanged })
}

/// Returns the text with `new` inserted at the end of the object.
fn insert(text: &str, node: &JsoncNode, object: &JsoncObject, new: &Map<String, Value>) -> String {
    let outer = indent_of(text, node.span.start);
    let inner = object
        .members
        .last()
        .filter(|last| text[..last.name_at].trim_end_matches([' ', '\t']).ends_with('\n'))
        .map_or_else(|| format!("{outer}  "), |last| indent_of(text, last.name_at));
    let newline = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let close = node.span.end - 1;
    // Inserted after a comment that follows the last member.
    let end = text[..close].trim_end().len();
    let mut out = String::with_capacity(text.len() + 256);
    match object.members.last() {
        Some(last) if last.comma.is_none() => {
            out.push_str(&text[..last.node.span.end]);
            out.push(',');
            out.push_str(&text[last.node.span.end..end]);
        }
        _ => out.push_str(&text[..end]),
    }
    for (index, (name, value)) in new.iter().enumerate() {
        let separator = if index == 0 { "" } else { "," };
        let pretty = serde_json::to_string_pretty(value).unwrap_or_default();
        let pretty = pretty.replace('\n', &format!("{newline}{inner}"));
        let _ = write!(out, "{separator}{newline}{inner}{}: {pretty}", Value::from(name.as_str()));
    }
    out.push_str(newline);
    out.push_str(&outer);
    out.push_str(&text[close..]);
    out
}

/// Returns the indentation of the line that contains the byte.
fn indent_of(text: &str, at: usize) -> String {
    let start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
    text[start..at].chars().take_while(|c| matches!(c, ' ' | '\t')).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn check(text: Option<&str>, expected: &str, unchanged: &[&str]) {
        let servers = json!({"a": {"command": "x"}, "b": {"url": "https://x"}});
        let merged = merge("hikite.json", text, servers.as_object().expect("object")).expect("merges");
        assert_eq!(merged.text, expected);
        assert_eq!(merged.unchanged, unchanged);
        jsonc::parse(&merged.text).expect("still valid");
    }

    const NEW: &str = "\"a\": {\n      \"command\": \"x\"\n    },\n    \"b\": {\n      \"url\": \"https://x\"\n    }";

    #[test]
    fn a_new_file_is_made() {
        let expected = format!("{{\n  \"mcpServers\": {{\n    {NEW}\n  }}\n}}\n");
        check(None, &expected, &[]);
        check(Some(" \n"), &expected, &[]);
    }

    #[test]
    fn comments_and_layout_stay() {
        let with = |end: &str| {
            format!("// top\n{{\n  \"mcpServers\": {{\n    \"z\": {{}}{end} // last\n    // more\n  }}, // x\n}}\n")
        };
        let expected = |comma: &str| {
            format!(
                "// top\n{{\n  \"mcpServers\": {{\n    \"z\": {{}}{comma} // last\n    // more\n    {NEW}\n  }}, // x\n}}\n"
            )
        };
        check(Some(&with("")), &expected(","), &[]);
        check(Some(&with(",")), &expected(","), &[]);
    }

    #[test]
    fn line_ends_stay_those_of_the_file() {
        let text = "{\r\n  \"data\": \"d\"\r\n}\r\n";
        let merged = merge("hikite.json", Some(text), &Map::new()).expect("merges");
        assert_eq!(merged.text, "{\r\n  \"data\": \"d\",\r\n  \"mcpServers\": {}\r\n}\r\n");
    }

    #[test]
    fn names_that_are_there_are_kept() {
        let text = r#"{"mcpServers": {"a": 1, "b": 2}}"#;
        check(Some(text), text, &["a", "b"]);
        check(
            Some(r#"{"mcpServers": {"b": {}}, "data": "d"}"#),
            "{\"mcpServers\": {\"b\": {},\n  \"a\": {\n    \"command\": \"x\"\n  }\n}, \"data\": \"d\"}",
            &["b"],
        );
    }

    #[test]
    fn a_section_is_added_where_there_is_none() {
        check(
            Some("{\n  \"data\": \"d\" // here\n}\n"),
            &format!("{{\n  \"data\": \"d\", // here\n  \"mcpServers\": {{\n    {NEW}\n  }}\n}}\n"),
            &[],
        );
    }

    #[test]
    fn a_file_of_another_shape_is_refused() {
        let problems = merge("hikite.json", Some("{\"mcpServers\": []}"), &Map::new()).expect_err("array");
        assert_eq!(
            problems.to_string(),
            "error: hikite.json: `mcpServers` is not an object\nhint: Correct it by hand first."
        );
    }
}
