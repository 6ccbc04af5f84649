//! Reads shapes for a measurement: the fields of a result worth reading, or the columns of its rows.

use std::collections::HashMap;
use std::path::Path;

use anyhow::{Context, Result, anyhow};
use hikite_core::compact::Shape;
use hikite_core::compact::shape::{ShapeColumn, TableShape};
use hikite_core::selector::{self, Selector};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::recorded::read as read_json;

#[derive(Deserialize)]
#[serde(untagged)]
enum ShapeDefinition {
    /// A list of fields: `number,title,user.login`.
    Fields(String),
    Table(TableDefinition),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TableDefinition {
    /// Name of the rows: `issues`.
    name: String,
    /// Path of the rows: `.items[]`.
    rows: String,
    /// Path of each column; a trailing `+` joins all matches into one text.
    columns: Map<String, Value>,
}

/// Reads shapes by tool key; empty if the file does not exist.
pub(super) fn read(file: &Path) -> Result<HashMap<String, Shape>> {
    if !file.exists() {
        return Ok(HashMap::new());
    }
    let place = || file.display();
    let hint = "hint: Write {\"github:list_issues\": \"number,title,user.login\"}.";
    let members = read_json(file)?.decode::<HashMap<String, ShapeDefinition>>();
    let members = members.with_context(|| format!("{} is not an object of shapes\n{hint}", place()))?;
    let shape = |(key, written): (String, ShapeDefinition)| match shape(written) {
        Ok(shape) => Ok((key, shape)),
        Err(wrong) => Err(anyhow!("{}: `{key}`: {wrong}", place())),
    };
    members.into_iter().map(shape).collect()
}

fn shape(written: ShapeDefinition) -> Result<Shape, String> {
    match written {
        ShapeDefinition::Fields(text) => match Selector::parse(&text)? {
            Selector::Fields(fields) => Ok(Shape::Pick(fields)),
            Selector::Path(_) | Selector::Jq(_) => Err(format!("`{text}` is not a list of fields")),
        },
        ShapeDefinition::Table(table) => {
            let columns = table.columns.iter().map(|(name, path)| column(name, path));
            let (name, rows, columns) = (table.name, path(&table.rows)?, columns.collect::<Result<_, _>>()?);
            Ok(Shape::Table(TableShape { name, rows, columns, leading: Vec::new() }))
        }
    }
}

fn column(name: &str, text: &Value) -> Result<ShapeColumn, String> {
    let text = text.as_str().ok_or_else(|| format!("the path of `{name}` is not a string"))?;
    match text.strip_suffix('+') {
        Some(text) => Ok(ShapeColumn::new(name, path(text)?).joined("")),
        None => Ok(ShapeColumn::new(name, path(text)?)),
    }
}

fn path(text: &str) -> Result<selector::ValuePath, String> {
    selector::ValuePath::parse(text).map_err(|wrong| format!("`{text}` {wrong}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn written(text: &str) -> Result<HashMap<String, Shape>> {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("shapes.json");
        std::fs::write(&file, text).expect("a file");
        read(&file)
    }

    #[test]
    fn fields_and_tables_are_shapes() {
        let table =
            json!({ "name": "pages", "rows": ".results[]", "columns": { "id": ".id", "title": ".title[].text+" } });
        let shapes = written(&json!({ "a:b": "id,user.login", "c:d": table }).to_string()).expect("two shapes");
        assert!(matches!(shapes["a:b"], Shape::Pick(_)));
        let Shape::Table(rows) = &shapes["c:d"] else { panic!("{shapes:?}") };
        let joined: Vec<bool> = rows.columns.iter().map(|column| column.join.is_some()).collect();
        assert_eq!(joined, [false, true]);
        assert!(read(Path::new("/no/such/file")).expect("none").is_empty());
    }

    #[test]
    fn what_is_no_shape_is_told() {
        for (text, words) in [
            ("[]", "is not an object of shapes\nhint: "),
            (r#"{"a:b":""}"#, "`a:b`: must be a list of fields"),
            (r#"{"a:b":".items | length"}"#, "`a:b`: `.items | length` is not a list of fields"),
            (r#"{"a:b":{"name":"n","rows":"|","columns":{}}}"#, "`a:b`: `|` "),
            (r#"{"a:b":{"name":"n","rows":".","columns":{"x":1}}}"#, "`a:b`: the path of `x` is not a string"),
        ] {
            let error = written(text).expect_err("no shape");
            assert!(format!("{error:#}").contains(words), "{text}: {error:#}");
        }
    }
}
