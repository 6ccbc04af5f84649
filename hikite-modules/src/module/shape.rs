//! Output shapes of a tool: projects a result to a table, a record or a text.

use hikite_core::error::Error;
use serde_json::{Map, Value};

use crate::expression::{Expression, ExpressionNames};
use crate::file::{NamedMap, OutputFile};
use crate::scope::VariableScope;

/// Column whose members become columns.
const SPREAD: &str = "*";

#[derive(Debug)]
pub(crate) struct OutputShape {
    pub(crate) when: Option<Expression>,
    form: ShapeKind,
}

#[derive(Debug)]
enum ShapeKind {
    Table(TableOutput),
    Record(Vec<OutputColumn>),
    Text(Expression),
}

#[derive(Debug)]
struct TableOutput {
    name: String,
    rows: Expression,
    /// Rows that match this are left out.
    unless: Option<Expression>,
    columns: Vec<OutputColumn>,
    beside: Vec<OutputColumn>,
}

#[derive(Debug)]
struct OutputColumn {
    name: String,
    value: Expression,
}

impl OutputShape {
    pub(crate) fn new(out: &OutputFile, names: &ExpressionNames) -> Result<Self, String> {
        let columns = |named: &NamedMap<String>| -> Vec<OutputColumn> {
            let column = |(name, text): (&str, &String)| OutputColumn {
                name: name.to_owned(),
                value: Expression::new(text, names),
            };
            named.iter().map(column).collect()
        };
        let form = match (&out.table, &out.record, &out.text) {
            (Some(name), None, None) => {
                let rows = out.rows.as_ref().ok_or("a table needs `rows`")?;
                ShapeKind::Table(TableOutput {
                    name: name.clone(),
                    rows: Expression::new(rows, names),
                    unless: out.unless.as_ref().map(|unless| Expression::new(unless, names)),
                    columns: columns(&out.columns),
                    beside: columns(&out.beside),
                })
            }
            (None, Some(record), None) => ShapeKind::Record(columns(record)),
            (None, None, Some(text)) => ShapeKind::Text(Expression::new(text, names)),
            _ => return Err("use exactly one of `table`, `record` and `text`".into()),
        };
        let when = out.when.as_ref().map(|when| Expression::new(when, names));
        Ok(Self { when, form })
    }

    /// Returns the kind of the shape.
    pub(crate) fn kind_name(&self) -> &'static str {
        match self.form {
            ShapeKind::Table { .. } => "table",
            ShapeKind::Record(_) => "record",
            ShapeKind::Text(_) => "text",
        }
    }

    /// Projects a value to this shape.
    pub(crate) fn apply(&self, value: &Value, scope: &VariableScope<'_>) -> Result<Value, Error> {
        match &self.form {
            ShapeKind::Text(text) => text.one(value, scope).map(as_text),
            ShapeKind::Record(columns) => {
                let mut record = Map::new();
                add(columns, value, scope, &mut record)?;
                record.retain(|_, value| !value.is_null());
                Ok(Value::Object(record))
            }
            ShapeKind::Table(table) => table.apply(value, scope),
        }
    }

    pub(crate) fn expressions<'a>(&'a self, found: &mut Vec<&'a Expression>) {
        found.extend(&self.when);
        let columns = match &self.form {
            ShapeKind::Text(text) => return found.push(text),
            ShapeKind::Record(columns) => columns,
            ShapeKind::Table(TableOutput { rows, unless, columns, beside, .. }) => {
                found.push(rows);
                found.extend(unless);
                found.extend(beside.iter().map(|column| &column.value));
                columns
            }
        };
        found.extend(columns.iter().map(|column| &column.value));
    }
}

impl TableOutput {
    fn apply(&self, value: &Value, scope: &VariableScope<'_>) -> Result<Value, Error> {
        let mut table = Map::new();
        add(&self.beside, value, scope, &mut table)?;
        table.retain(|_, value| !value.is_null());
        let mut all = Vec::new();
        for row in self.rows.each(value, scope)? {
            if self.unless.as_ref().map_or(Ok(false), |unless| unless.holds(&row, scope))? {
                continue;
            }
            let mut cells = Map::new();
            add(&self.columns, &row, scope, &mut cells)?;
            all.push(Value::Object(cells));
        }
        table.insert(self.name.clone(), without_empty(all));
        Ok(Value::Object(table))
    }
}

fn add(
    columns: &[OutputColumn],
    value: &Value,
    scope: &VariableScope<'_>,
    cells: &mut Map<String, Value>,
) -> Result<(), Error> {
    for column in columns {
        let cell = column.value.one(value, scope)?;
        match cell {
            Value::Object(members) if column.name == SPREAD => cells.extend(members),
            cell => drop(cells.insert(column.name.clone(), cell)),
        }
    }
    Ok(())
}

/// Removes columns that are empty in every row.
fn without_empty(mut rows: Vec<Value>) -> Value {
    let is_empty = |value: &Value| value.is_null() || *value == "" || value.as_array().is_some_and(Vec::is_empty);
    let empty: Vec<String> = match rows.first().and_then(Value::as_object) {
        Some(first) if rows.len() > 1 => {
            let everywhere = |name: &&String| rows.iter().all(|row| row.get(*name).is_none_or(is_empty));
            first.keys().filter(everywhere).cloned().collect()
        }
        _ => Vec::new(),
    };
    for row in rows.iter_mut().filter_map(Value::as_object_mut) {
        row.retain(|name, _| !empty.contains(name));
    }
    Value::Array(rows)
}

fn as_text(value: Value) -> Value {
    match value {
        Value::String(_) => value,
        Value::Null => Value::String(String::new()),
        Value::Array(items) => {
            let lines: Vec<String> =
                items.into_iter().map(|item| item.as_str().map_or_else(|| item.to_string(), str::to_owned)).collect();
            Value::String(lines.join("\n"))
        }
        other => Value::String(other.to_string()),
    }
}
