//! Shapes: the part of an answer that the tool's author considers worth reading, as rows and columns, renamed members,
//! picked fields, or one text. Shapes only select by path and compute nothing. An answer that does not match is shown
//! whole.

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::selector::{FieldList, ValuePath};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shape {
    /// These fields of each row. Rows inside a single member are found automatically.
    Pick(FieldList),
    /// Named rows, each with exactly these columns.
    Table(TableShape),
    /// One object with these members.
    Record(Vec<ShapeColumn>),
    /// The text at this path: Markdown, a file, a log. Several texts become lines.
    Text(ValuePath),
    /// A value that the module has already prepared, beyond what paths can express.
    Prepared(Arc<Value>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableShape {
    /// Name of the rows, such as `issues`.
    pub name: String,
    /// Path to the rows (`.items[]`) or to their list (`.items`).
    pub rows: ValuePath,
    pub columns: Vec<ShapeColumn>,
    /// Members written before the rows, such as the total count or the next cursor.
    pub leading: Vec<ShapeColumn>,
}

/// A named value. A path with `[]` yields a list, or one joined text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShapeColumn {
    pub name: String,
    pub path: ValuePath,
    /// Separator that joins several values into one text.
    pub join: Option<String>,
}

impl Shape {
    /// Returns the answer in this shape; `None` if it does not match.
    pub(super) fn apply(&self, value: &Value) -> Option<Value> {
        match self {
            Self::Pick(fields) => fields.pick(value).ok(),
            Self::Table(rows) => rows.of(value),
            Self::Record(columns) => {
                let mut record = Map::new();
                add(columns, value, &mut record);
                (!record.is_empty()).then_some(Value::Object(record))
            }
            Self::Text(path) => match path.all(value).as_slice() {
                [] | [Value::Null] => None,
                [only] => Some((*only).clone()),
                many => Some(Value::String(many.iter().map(|text| plain(text)).collect::<Vec<_>>().join("\n"))),
            },
            Self::Prepared(made) => Some(Value::clone(made)),
        }
    }

    /// Returns `true` if values shared by all rows are written once. Tables with chosen columns keep them.
    pub(super) fn hoists(&self) -> bool {
        matches!(self, Self::Pick(_))
    }
}

impl TableShape {
    fn of(&self, value: &Value) -> Option<Value> {
        let rows = self.rows.rows(value)?;
        let mut table = Map::new();
        add(&self.leading, value, &mut table);
        let row = |row: &Value| {
            self.columns.iter().map(|column| (column.name.clone(), column.of(row).unwrap_or_default())).collect()
        };
        table.insert(self.name.clone(), rows.into_iter().map(|value| Value::Object(row(value))).collect());
        Some(Value::Object(table))
    }
}

impl ShapeColumn {
    pub fn new(name: impl Into<String>, path: ValuePath) -> Self {
        Self { name: name.into(), path, join: None }
    }

    #[must_use]
    pub fn joined(mut self, between: impl Into<String>) -> Self {
        self.join = Some(between.into());
        self
    }

    fn of(&self, value: &Value) -> Option<Value> {
        let found = self.path.all(value);
        if let Some(between) = &self.join {
            let texts: Vec<String> = found.into_iter().map(plain).collect();
            return (!texts.is_empty()).then(|| texts.join(between).into());
        }
        if self.path.is_single() {
            return found.first().map(|value| (*value).clone());
        }
        Some(found.into_iter().cloned().collect())
    }
}

/// Adds the columns that have a value.
fn add(columns: &[ShapeColumn], value: &Value, members: &mut Map<String, Value>) {
    for column in columns {
        if let Some(value) = column.of(value).filter(|value| !value.is_null()) {
            members.insert(column.name.clone(), value);
        }
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn column(name: &str, path: &str) -> ShapeColumn {
        ShapeColumn::new(name, ValuePath::parse(path).expect("a path"))
    }

    fn issues() -> Shape {
        Shape::Table(TableShape {
            name: "issues".into(),
            rows: ValuePath::parse(".items[]").expect("a path"),
            columns: vec![
                column("number", ".number"),
                column("author", ".user.login"),
                column("labels", ".labels[].name"),
                column("title", ".title[].text").joined(""),
            ],
            leading: vec![column("total", ".total_count"), column("next", ".next")],
        })
    }

    #[test]
    fn a_table_has_its_columns_in_every_row() {
        let answer = json!({"total_count": 9, "next": null, "items": [
            {"number": 1, "user": {"login": "aki"}, "labels": [{"name": "bug"}, {"name": "ui"}], "title": [{"text": "設"}, {"text": "計"}]},
            {"number": 2, "user": null, "labels": []},
        ]});
        let expected = json!({"total": 9, "issues": [
            {"number": 1, "author": "aki", "labels": ["bug", "ui"], "title": "設計"},
            {"number": 2, "author": null, "labels": [], "title": null},
        ]});
        assert_eq!(issues().apply(&answer), Some(expected));
        assert_eq!(issues().apply(&json!({"items": []})), Some(json!({"issues": []})));
    }

    #[test]
    fn an_answer_without_the_shape_is_not_given_it() {
        assert_eq!(issues().apply(&json!({"message": "Not Found"})), None);
        assert_eq!(Shape::Text(ValuePath::parse(".markdown").expect("a path")).apply(&json!({"error": 1})), None);
        assert_eq!(Shape::Record(vec![column("id", ".id")]).apply(&json!({"error": 1})), None);
        assert_eq!(Shape::Pick(FieldList::parse("id").expect("fields")).apply(&json!({"error": 1})), None);
    }

    #[test]
    fn a_record_has_the_members_that_are_there() {
        let shape = Shape::Record(vec![column("id", ".id"), column("url", ".html_url"), column("bio", ".bio")]);
        assert_eq!(
            shape.apply(&json!({"id": 1, "html_url": "u", "bio": null, "x": 2})),
            Some(json!({"id": 1, "url": "u"}))
        );
    }

    #[test]
    fn a_text_is_the_text_alone() {
        let shape = Shape::Text(ValuePath::parse(".pages[].markdown").expect("a path"));
        assert_eq!(shape.apply(&json!({"pages": [{"markdown": "# A"}, {"markdown": "# B"}]})), Some(json!("# A\n# B")));
    }
}
