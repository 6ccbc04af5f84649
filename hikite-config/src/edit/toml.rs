//! Reads, sets and removes a member of a TOML text by its path; comments and layout of everything else stay.

use serde_json::{Map, Value};
use toml_edit::{Array, DocumentMut, InlineTable, Item, Table, TableLike, TomlError};

use crate::jsonc::SyntaxError;

/// Converts a TOML text to plain JSON. Dates become text.
pub fn parse(text: &str) -> Result<Value, SyntaxError> {
    Ok(json_of_table(document(text)?.as_table()))
}

/// Returns the text with the member at `path` set to `value`. Tables missing on the way are created.
pub fn set(text: &str, path: &[&str], value: &Value) -> Result<String, SyntaxError> {
    let Some((name, parents)) = path.split_last() else { return Ok(text.to_owned()) };
    let mut document = document(text)?;
    let mut table: &mut dyn TableLike = document.as_table_mut();
    for (index, parent) in parents.iter().enumerate() {
        let new = || {
            let mut table = Table::new();
            // Only the tables below it get a header.
            table.set_implicit(true);
            Item::Table(table)
        };
        table = table.entry(parent).or_insert_with(new).as_table_like_mut().ok_or_else(|| SyntaxError {
            at: 0,
            message: format!("`{}` is not a table", path[..=index].join(".")),
            hint: Some("Correct it by hand first."),
        })?;
    }
    if table.get(name).and_then(json_of) == Some(value.clone()) {
        return Ok(text.to_owned());
    }
    table.insert(name, item(value));
    Ok(written(&document, text))
}

/// Returns the text without the member at `path`.
pub fn remove(text: &str, path: &[&str]) -> Result<String, SyntaxError> {
    let Some((name, parents)) = path.split_last() else { return Ok(text.to_owned()) };
    let mut document = document(text)?;
    let mut table: &mut dyn TableLike = document.as_table_mut();
    for parent in parents {
        let Some(next) = table.get_mut(parent).and_then(Item::as_table_like_mut) else { return Ok(text.to_owned()) };
        table = next;
    }
    if table.remove(name).is_none() {
        return Ok(text.to_owned());
    }
    Ok(written(&document, text))
}

fn document(text: &str) -> Result<DocumentMut, SyntaxError> {
    text.parse().map_err(|error: TomlError| SyntaxError {
        at: error.span().map_or(0, |span| span.start),
        message: error.message().to_owned(),
        hint: None,
    })
}

/// Returns the document with the line ends of the original, which the parser drops.
fn written(document: &DocumentMut, original: &str) -> String {
    let text = document.to_string();
    if original.contains("\r\n") { text.replace('\n', "\r\n") } else { text }
}

fn json_of_table(table: &dyn TableLike) -> Value {
    table.iter().filter_map(|(name, item)| Some((name.to_owned(), json_of(item)?))).collect::<Map<_, _>>().into()
}

fn json_of(item: &Item) -> Option<Value> {
    if let Some(table) = item.as_table_like() {
        return Some(json_of_table(table));
    }
    if let Some(tables) = item.as_array_of_tables() {
        return Some(tables.iter().map(|table| json_of_table(table)).collect());
    }
    item.as_value().map(json_of_value)
}

fn json_of_value(value: &toml_edit::Value) -> Value {
    match value {
        toml_edit::Value::String(text) => text.value().as_str().into(),
        toml_edit::Value::Integer(number) => (*number.value()).into(),
        toml_edit::Value::Float(number) => (*number.value()).into(),
        toml_edit::Value::Boolean(flag) => (*flag.value()).into(),
        toml_edit::Value::Datetime(date) => date.value().to_string().into(),
        toml_edit::Value::Array(items) => items.iter().map(json_of_value).collect(),
        toml_edit::Value::InlineTable(table) => json_of_table(table),
    }
}

/// Converts an object to a table with a header, and its members to values.
fn item(value: &Value) -> Item {
    let Value::Object(members) = value else { return Item::Value(toml_value(value)) };
    let members = members.iter().filter(|(_, value)| !value.is_null());
    Item::Table(members.map(|(name, value)| (name.as_str(), toml_value(value))).collect())
}

/// Converts a value; TOML has no null, which callers leave out.
fn toml_value(value: &Value) -> toml_edit::Value {
    match value {
        Value::Null => "".into(),
        Value::Bool(flag) => (*flag).into(),
        Value::Number(number) => match number.as_i64() {
            Some(number) => number.into(),
            None => number.as_f64().unwrap_or_default().into(),
        },
        Value::String(text) => text.as_str().into(),
        Value::Array(items) => items.iter().map(toml_value).collect::<Array>().into(),
        Value::Object(members) => {
            let members = members.iter().filter(|(_, value)| !value.is_null());
            members.map(|(name, value)| (name.as_str(), toml_value(value))).collect::<InlineTable>().into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const TEXT: &str = "# mine\nmodel = \"o3\" # best\n\n[mcp_servers.a]\ncommand = \"x\"\nargs = [\"1\",\"2\"]\n\n[tui]\nnotifications=true\n";

    #[test]
    fn an_entry_is_added_and_removed_and_the_rest_stays() {
        let entry = json!({"url": "http://x/mcp", "http_headers": {"Authorization": "Bearer t"}});
        let path = ["mcp_servers", "hikite"];
        let out = set(TEXT, &path, &entry).expect("valid");
        let added = "\n[mcp_servers.hikite]\nurl = \"http://x/mcp\"\nhttp_headers = { Authorization = \"Bearer t\" }\n";
        assert_eq!(out.replace(added, ""), TEXT);
        assert_eq!(parse(&out).expect("valid")["mcp_servers"]["hikite"], entry);
        assert_eq!(set(&out, &path, &entry).expect("valid"), out);
        assert_eq!(remove(&out, &path).expect("valid"), TEXT);
        assert_eq!(remove(TEXT, &path).expect("valid"), TEXT);
        assert_eq!(set("", &path, &json!({"url": "u"})).expect("valid"), "[mcp_servers.hikite]\nurl = \"u\"\n");
    }

    #[test]
    fn line_ends_stay_those_of_the_file() {
        let text = TEXT.replace('\n', "\r\n");
        let out = set(&text, &["mcp_servers", "b"], &json!({"url": "u"})).expect("valid");
        assert_eq!(out.replace("\r\n[mcp_servers.b]\r\nurl = \"u\"\r\n", ""), text);
    }

    #[test]
    fn inline_tables_and_dotted_names_are_edited_too() {
        for text in ["mcp_servers = { a = { command = \"x\" } }\n", "mcp_servers.a.command = \"x\"\n"] {
            let out = set(text, &["mcp_servers", "b"], &json!({"url": "u"})).expect(text);
            let expected = json!({"mcp_servers": {"a": {"command": "x"}, "b": {"url": "u"}}});
            assert_eq!(parse(&out).expect(&out), expected, "{out}");
        }
    }

    #[test]
    fn an_error_says_where_and_what() {
        let error = set("a = 1\nb = = 2\n", &["c"], &json!(1)).expect_err("invalid");
        assert!(error.at >= 6 && !error.message.is_empty(), "{error:?}");
        let error = set("a = 1\n", &["a", "b"], &json!(1)).expect_err("not a table");
        assert_eq!(error.message, "`a` is not a table");
    }
}
