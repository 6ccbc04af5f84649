//! All tables with their columns, for copies, checks and bulk inserts.

use std::fmt::Write;

use sqlx::any::AnyRow;
use sqlx::{AnyConnection, Row};

pub(crate) struct TableSchema {
    pub(crate) name: &'static str,
    pub(crate) columns: &'static [(&'static str, ColumnType)],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ColumnType {
    Text,
    /// Text that may be empty.
    OptionalText,
    /// Text that is one JSON value.
    Json,
    Number,
    /// Zero or one.
    Boolean,
}

#[derive(Debug)]
pub(crate) enum SqlValue {
    Text(String),
    Number(i64),
}

/// All tables but `hikite`, `lease` and `change_log`, which hold state of the individual store.
#[rustfmt::skip]
pub(crate) const TABLES: &[TableSchema] = &[
    TableSchema { name: "registered_tool", columns: &[("module", ColumnType::Text), ("tool", ColumnType::Text), ("form", ColumnType::Json), ("registered_at", ColumnType::Number)] },
    TableSchema { name: "tool_switch",     columns: &[("module", ColumnType::Text), ("tool", ColumnType::Text), ("enabled", ColumnType::Boolean)] },
    TOOL_SEEN,
    TableSchema { name: "list_cache",      columns: &[("definition", ColumnType::Text), ("lists", ColumnType::Json), ("fetched_at", ColumnType::Number)] },
    TableSchema { name: "project",         columns: &[("name", ColumnType::Text), ("form", ColumnType::Json), ("created_at", ColumnType::Number)] },
    TableSchema { name: "token",           columns: &[("id", ColumnType::Text), ("project", ColumnType::OptionalText), ("hash", ColumnType::Text), ("form", ColumnType::Json), ("created_at", ColumnType::Number), ("expires_at", ColumnType::Number)] },
    TableSchema { name: "drawer",          columns: &[("kind", ColumnType::Text), ("id", ColumnType::Text), ("owner", ColumnType::OptionalText), ("form", ColumnType::Json), ("version", ColumnType::Number), ("created_at", ColumnType::Number), ("expires_at", ColumnType::Number)] },
    USERS,
    TableSchema { name: "vault_key",       columns: &[("account", ColumnType::Text), ("key_id", ColumnType::Text), ("sealed", ColumnType::Text)] },
    TableSchema { name: "vault_secret",    columns: &[("account", ColumnType::Text), ("provider", ColumnType::OptionalText), ("field", ColumnType::Text), ("version", ColumnType::Number), ("sealed", ColumnType::Text)] },
    VECTOR,
    MEMORY,
    AUDIT,
    TableSchema { name: "audit_end",       columns: &[("name", ColumnType::Text), ("seq", ColumnType::Number), ("hash", ColumnType::OptionalText)] },
    TableSchema { name: "audit_mark",      columns: &[("seq", ColumnType::Number), ("at", ColumnType::Number)] },
    TableSchema { name: "clock_seen",      columns: &[("name", ColumnType::Text), ("at", ColumnType::Number), ("boot", ColumnType::OptionalText), ("uptime", ColumnType::Number)] },
];

#[rustfmt::skip]
pub(crate) const USERS: TableSchema = TableSchema {
    name: "users",
    columns: &[
        ("id", ColumnType::Text), ("name", ColumnType::Text), ("subject", ColumnType::Text), ("role", ColumnType::Text),
        ("password", ColumnType::OptionalText), ("permissions", ColumnType::OptionalText), ("disabled", ColumnType::Boolean),
        ("project", ColumnType::OptionalText), ("created_at", ColumnType::Number), ("version", ColumnType::Number),
    ],
};

#[rustfmt::skip]
pub(crate) const AUDIT: TableSchema = TableSchema {
    name: "audit",
    columns: &[
        ("seq", ColumnType::Number), ("at", ColumnType::Number), ("kind", ColumnType::Text), ("decision", ColumnType::Text),
        ("outcome", ColumnType::Text), ("request_id", ColumnType::OptionalText), ("subject", ColumnType::OptionalText), ("project", ColumnType::OptionalText),
        ("module", ColumnType::OptionalText), ("tool", ColumnType::OptionalText), ("record", ColumnType::Json), ("hash", ColumnType::Text),
    ],
};

pub(crate) const TOOL_SEEN: TableSchema = TableSchema {
    name: "tool_seen",
    columns: &[("module", ColumnType::Text), ("tool", ColumnType::Text), ("seen_at", ColumnType::Number)],
};

pub(crate) const VECTOR: TableSchema = TableSchema {
    name: "search_vector",
    columns: &[
        ("model", ColumnType::Text),
        ("content", ColumnType::Text),
        ("vector", ColumnType::Text),
        ("used_at", ColumnType::Number),
    ],
};

pub(crate) const MEMORY: TableSchema = TableSchema {
    name: "search_memory",
    columns: &[
        ("project", ColumnType::OptionalText),
        ("query", ColumnType::Text),
        ("module", ColumnType::Text),
        ("tool", ColumnType::Text),
        ("text", ColumnType::OptionalText),
        ("terms", ColumnType::OptionalText),
        ("model", ColumnType::OptionalText),
        ("vector", ColumnType::OptionalText),
        ("weight", ColumnType::Number),
        ("used_at", ColumnType::Number),
    ],
};

/// Returns the tables of a schema version.
pub(crate) fn tables(version: i64) -> impl Iterator<Item = &'static TableSchema> {
    TABLES.iter().filter(move |table| {
        let since = SINCE.iter().find(|(name, _)| *name == table.name).map_or(1, |(_, since)| *since);
        version >= since
    })
}

/// The version that introduced a table, for later ones.
const SINCE: [(&str, i64); 3] = [("users", 6), ("audit_mark", 7), ("clock_seen", 7)];

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

    pub(crate) fn select(&self) -> String {
        format!("SELECT {} FROM {}", self.names(), self.name)
    }

    pub(crate) fn read(&self, row: &AnyRow) -> Result<Vec<SqlValue>, sqlx::Error> {
        let values = self.columns.iter().enumerate().map(|(at, (_, column))| {
            Ok(match column {
                ColumnType::Text | ColumnType::OptionalText | ColumnType::Json => SqlValue::Text(row.try_get(at)?),
                ColumnType::Number | ColumnType::Boolean => SqlValue::Number(row.try_get(at)?),
            })
        });
        values.collect()
    }

    /// Inserts rows, at most as many as one statement takes. `otherwise` is the ON CONFLICT clause.
    pub(crate) async fn insert(
        &self,
        connection: &mut AnyConnection,
        rows: &[Vec<SqlValue>],
        otherwise: &str,
    ) -> Result<(), sqlx::Error> {
        if rows.is_empty() {
            return Ok(());
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
            if is_named {
                let _ = write!(text, "${}", number + 1);
            } else {
                text.push('?');
            }
        }
        let _ = write!(text, ") {otherwise}");
        let mut query = sqlx::query(&text);
        for value in rows.iter().flatten() {
            query = match value {
                SqlValue::Text(text) => query.bind(text.as_str()),
                SqlValue::Number(number) => query.bind(*number),
            };
        }
        query.execute(connection).await.map(drop)
    }

    fn names(&self) -> String {
        self.columns.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
    }
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
