//! Adds servers to the text of a config file. The text is edited, so that comments and layout stay; existing entries
//! are never overwritten.

use serde_json::{Map, Value};

use super::problem::Problems;
use super::{edit, jsonc};

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
    let root = jsonc::parse(text).map_err(|error| Problems::syntax(file, text, &error))?.json();
    let set = |text: &str, path: &[&str], value: &Value| {
        edit::set(text, path, value).map_err(|error| Problems::syntax(file, text, &error))
    };
    let mut merged = MergedConfig { text: text.to_owned(), added: Vec::new(), unchanged: Vec::new() };
    let present = root.get("mcpServers");
    if present.is_none() {
        merged.text = set(text, &["mcpServers"], &Value::Object(Map::new()))?;
    }
    for (name, server) in servers {
        if present.is_some_and(|present| present.get(name).is_some()) {
            merged.unchanged.push(name.clone());
        } else {
            merged.text = set(&merged.text, &["mcpServers", name], server)?;
            merged.added.push(name.clone());
        }
    }
    Ok(merged)
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
                "// top\n{{\n  \"mcpServers\": {{\n    \"z\": {{}}, // last\n    // more\n    {NEW}{comma}\n  }}, // x\n}}\n"
            )
        };
        check(Some(&with("")), &expected(""), &[]);
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
            r#"{"mcpServers": {"b": {}, "a": {"command":"x"}}, "data": "d"}"#,
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
        let servers = Map::from_iter([("a".to_owned(), json!({}))]);
        let problems = merge("hikite.json", Some("{\"mcpServers\": []}"), &servers).expect_err("array");
        assert_eq!(
            problems.to_string(),
            "error: hikite.json:1:16: `mcpServers` is not an object\nhint: Correct it by hand first."
        );
    }
}
