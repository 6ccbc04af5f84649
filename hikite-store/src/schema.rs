//! Tables and their values as data, for reading, copies, checks and inserts.

use std::fmt::Write;

use hikite_core::json::Raw;
use sqlx::any::{AnyArguments, AnyRow};
use sqlx::query::Query;
use sqlx::{Any, AnyConnection, Row};

/// A table with its columns.
#[derive(Clone, Copy, Debug)]
pub struct TableSchema {
    pub(crate) name: &'static str,
    pub(crate) columns: &'static [(&'static str, ColumnType)],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ColumnType {
    Text,
    /// Text that may be empty.
    OptionalText,
    /// Text that is NULL in the database if it is empty here, because it refers to another table.
    NullableText,
    /// Text that is one JSON value.
    Json,
    Number,
    /// Zero or one.
    Boolean,
}

/// A value of a column.
#[derive(Debug)]
pub enum SqlValue {
    Text(String),
    Number(i64),
}

type AnyQuery<'q> = Query<'q, Any, AnyArguments<'q>>;

impl SqlValue {
    pub(crate) fn text(text: &str) -> Self {
        Self::Text(text.to_owned())
    }

    pub(crate) fn optional(text: Option<&str>) -> Self {
        Self::text(text.unwrap_or_default())
    }

    pub(crate) fn number(number: u64) -> Self {
        Self::Number(stored(number))
    }

    pub(crate) fn flag(flag: bool) -> Self {
        Self::Number(i64::from(flag))
    }

    pub(crate) fn json(raw: &Raw) -> Self {
        Self::Text(String::from_utf8_lossy(raw.bytes()).into_owned())
    }

    pub(crate) fn list(texts: &[String]) -> Self {
        Self::json(&Raw::of(&texts))
    }

    pub(crate) fn shown(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Number(number) => number.to_string(),
        }
    }

    pub(crate) fn bind_to<'q>(&'q self, query: AnyQuery<'q>) -> AnyQuery<'q> {
        match self {
            Self::Text(text) => query.bind(text.as_str()),
            Self::Number(number) => query.bind(*number),
        }
    }
}

/// The values of a row, read from the first column to the last.
#[derive(Debug)]
pub struct RowValues(std::vec::IntoIter<SqlValue>);

impl RowValues {
    pub(crate) fn new(values: Vec<SqlValue>) -> Self {
        Self(values.into_iter())
    }

    pub(crate) fn text(&mut self) -> String {
        match self.0.next() {
            Some(SqlValue::Text(text)) => text,
            _ => String::new(),
        }
    }

    pub(crate) fn optional(&mut self) -> Option<String> {
        Some(self.text()).filter(|text| !text.is_empty())
    }

    pub(crate) fn number(&mut self) -> u64 {
        match self.0.next() {
            Some(SqlValue::Number(number)) => shown(number),
            _ => 0,
        }
    }

    pub(crate) fn flag(&mut self) -> bool {
        self.number() != 0
    }

    pub(crate) fn json(&mut self) -> Option<Raw> {
        Raw::parse(self.text()).ok()
    }

    pub(crate) fn list(&mut self) -> Option<Vec<String>> {
        self.json()?.decode().ok()
    }
}

impl ColumnType {
    /// Returns the expression that stores a parameter.
    pub(crate) fn parameter(self, parameter: &str) -> String {
        if self == Self::NullableText { format!("NULLIF({parameter}, '')") } else { parameter.to_owned() }
    }
}

/// Maximum rows per insert statement.
pub(crate) const ROWS_PER_INSERT: usize = 64;

/// Splits rows into chunks of descending powers of two, up to the maximum of a statement: this needs few distinct
/// statements, which stay prepared.
pub(crate) fn power_of_two_chunks<T>(mut rows: &[T]) -> impl Iterator<Item = &[T]> {
    std::iter::from_fn(move || {
        let size = rows.len().checked_ilog2().map(|power| (1 << power).min(ROWS_PER_INSERT))?;
        let (piece, rest) = rows.split_at(size);
        rows = rest;
        Some(piece)
    })
}

impl TableSchema {
    /// Returns `true` if a new store already has rows in this table.
    pub(crate) fn has_initial_rows(&self) -> bool {
        self.name == "audit_end"
    }

    pub(crate) fn has_column(&self, name: &str) -> bool {
        self.columns.iter().any(|(column, _)| *column == name)
    }

    pub(crate) fn select(&self) -> String {
        format!("SELECT {} FROM {}", self.selected(), self.name)
    }

    /// Returns the expressions that read the columns.
    pub(crate) fn selected(&self) -> String {
        let read = |(name, kind): &(&str, ColumnType)| match kind {
            ColumnType::NullableText => format!("COALESCE({name}, '')"),
            _ => (*name).to_owned(),
        };
        self.columns.iter().map(read).collect::<Vec<_>>().join(", ")
    }

    pub(crate) fn read(&self, row: &AnyRow) -> Result<Vec<SqlValue>, sqlx::Error> {
        let values = self.columns.iter().enumerate().map(|(at, (_, column))| {
            Ok(match column {
                ColumnType::Number | ColumnType::Boolean => SqlValue::Number(row.try_get(at)?),
                _ => SqlValue::Text(row.try_get(at)?),
            })
        });
        values.collect()
    }

    /// Inserts rows, at most as many as one statement takes, and returns the number of new ones. `otherwise` is the ON
    /// CONFLICT clause.
    pub(crate) async fn insert(
        &self,
        connection: &mut AnyConnection,
        rows: &[Vec<SqlValue>],
        otherwise: &str,
    ) -> Result<u64, sqlx::Error> {
        if rows.is_empty() {
            return Ok(0);
        }
        let width = self.columns.len();
        // SQLite searches all parameter names for each bound value; anonymous parameters avoid that.
        let is_named = connection.backend_name() == "PostgreSQL";
        let mut text = format!("INSERT INTO {} ({}) VALUES ", self.name, self.names());
        for number in 0..rows.len() * width {
            text.push_str(match (number % width, number) {
                (0, 0) => "(",
                (0, _) => "),(",
                _ => ",",
            });
            let parameter = if is_named { format!("${}", number + 1) } else { "?".to_owned() };
            text.push_str(&self.columns[number % width].1.parameter(&parameter));
        }
        let _ = write!(text, ") {otherwise}");
        let mut query = sqlx::query(&text);
        for value in rows.iter().flatten() {
            query = value.bind_to(query);
        }
        Ok(query.execute(connection).await?.rows_affected())
    }

    fn names(&self) -> String {
        self.columns.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
    }
}

/// Converts a time to the integer type of the databases.
pub(crate) fn stored(time_ms: u64) -> i64 {
    i64::try_from(time_ms).unwrap_or(i64::MAX)
}

pub(crate) fn shown(time_ms: i64) -> u64 {
    u64::try_from(time_ms).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_few_sizes_and_nothing_is_left_out() {
        for (count, sizes) in [(0, vec![]), (1, vec![1]), (7, vec![4, 2, 1]), (150, vec![64, 64, 16, 4, 2])] {
            let rows: Vec<usize> = (0..count).collect();
            assert_eq!(power_of_two_chunks(&rows).map(<[usize]>::len).collect::<Vec<_>>(), sizes);
            assert_eq!(power_of_two_chunks(&rows).flatten().copied().collect::<Vec<_>>(), rows);
        }
    }
}
