//! All tables with their columns, for copies, checks and bulk inserts.

use std::fmt::Write;

use sqlx::any::AnyRow;
use sqlx::{AnyConnection, Row};

pub(crate) struct Table {
    pub(crate) name: &'static str,
    pub(crate) columns: &'static [(&'static str, Column)],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Column {
    Text,
    /// Text that may be empty.
    Words,
    /// Text that is one JSON value.
    Json,
    Number,
    /// Zero or one.
    Switch,
}

#[derive(Debug)]
pub(crate) enum Value {
    Text(String),
    Number(i64),
}

/// All tables but `hikite`, `lease` and `change_log`, which hold state of the individual store.
#[rustfmt::skip]
pub(crate) const TABLES: &[Table] = &[
    Table { name: "registered_tool", columns: &[("module", Column::Text), ("tool", Column::Text), ("form", Column::Json), ("registered_at", Column::Number)] },
    Table { name: "tool_switch",     columns: &[("module", Column::Text), ("tool", Column::Text), ("enabled", Column::Switch)] },
    SEEN,
    Table { name: "list_cache",      columns: &[("definition", Column::Text), ("lists", Column::Json), ("fetched_at", Column::Number)] },
    Table { name: "project",         columns: &[("name", Column::Text), ("form", Column::Json), ("created_at", Column::Number)] },
    Table { name: "token",           columns: &[("id", Column::Text), ("project", Column::Words), ("hash", Column::Text), ("form", Column::Json), ("created_at", Column::Number), ("expires_at", Column::Number)] },
    Table { name: "drawer",          columns: &[("kind", Column::Text), ("id", Column::Text), ("owner", Column::Words), ("form", Column::Json), ("version", Column::Number), ("created_at", Column::Number), ("expires_at", Column::Number)] },
    USERS,
    Table { name: "vault_key",       columns: &[("account", Column::Text), ("key_id", Column::Text), ("sealed", Column::Text)] },
    Table { name: "vault_secret",    columns: &[("account", Column::Text), ("provider", Column::Words), ("field", Column::Text), ("version", Column::Number), ("sealed", Column::Text)] },
    VECTOR,
    MEMORY,
    AUDIT,
    Table { name: "audit_end",       columns: &[("name", Column::Text), ("seq", Column::Number), ("hash", Column::Words)] },
    Table { name: "audit_mark",      columns: &[("seq", Column::Number), ("at", Column::Number)] },
    Table { name: "clock_seen",      columns: &[("name", Column::Text), ("at", Column::Number), ("boot", Column::Words), ("uptime", Column::Number)] },
];

#[rustfmt::skip]
pub(crate) const USERS: Table = Table {
    name: "users",
    columns: &[
        ("id", Column::Text), ("name", Column::Text), ("subject", Column::Text), ("role", Column::Text),
        ("password", Column::Words), ("permissions", Column::Words), ("disabled", Column::Switch),
        ("project", Column::Words), ("created_at", Column::Number), ("version", Column::Number),
    ],
};

#[rustfmt::skip]
pub(crate) const AUDIT: Table = Table {
    name: "audit",
    columns: &[
        ("seq", Column::Number), ("at", Column::Number), ("kind", Column::Text), ("decision", Column::Text),
        ("outcome", Column::Text), ("request_id", Column::Words), ("subject", Column::Words), ("project", Column::Words),
        ("module", Column::Words), ("tool", Column::Words), ("record", Column::Json), ("hash", Column::Text),
    ],
};

pub(crate) const SEEN: Table = Table {
    name: "tool_seen",
    columns: &[("module", Column::Text), ("tool", Column::Text), ("seen_at", Column::Number)],
};

pub(crate) const VECTOR: Table = Table {
    name: "search_vector",
    columns: &[
        ("model", Column::Text),
        ("content", Column::Text),
        ("vector", Column::Text),
        ("used_at", Column::Number),
    ],
};

pub(crate) const MEMORY: Table = Table {
    name: "search_memory",
    columns: &[
        ("project", Column::Words),
        ("query", Column::Text),
        ("module", Column::Text),
        ("tool", Column::Text),
        ("text", Column::Words),
        ("terms", Column::Words),
        ("model", Column::Words),
        ("vector", Column::Words),
        ("weight", Column::Number),
        ("used_at", Column::Number),
    ],
};

/// Returns the tables of a schema version.
pub(crate) fn tables(version: i64) -> impl Iterator<Item = &'static Table> {
    TABLES.iter().filter(move |table| {
        let since = SINCE.iter().find(|(name, _)| *name == table.name).map_or(1, |(_, since)| *since);
        version >= since
    })
}

/// The version that introduced a table, for later ones.
const SINCE: [(&str, i64); 3] = [("users", 6), ("audit_mark", 7), ("clock_seen", 7)];

/// Maximum rows per insert statement.
pub(crate) const ROWS_AT_ONCE: usize = 64;

/// Splits rows into chunks of descending powers of two, up to the maximum of a statement: this needs few distinct
/// statements, which stay prepared.
pub(crate) fn pieces<T>(mut rows: &[T]) -> impl Iterator<Item = &[T]> {
    std::iter::from_fn(move || {
        let size = rows.len().checked_ilog2().map(|power| (1 << power).min(ROWS_AT_ONCE))?;
        let (piece, rest) = rows.split_at(size);
        rows = rest;
        Some(piece)
    })
}

impl Table {
    /// Returns `true` if a new store already has rows in this table.
    pub(crate) fn is_made_full(&self) -> bool {
        self.name == "audit_end"
    }

    pub(crate) fn select(&self) -> String {
        format!("SELECT {} FROM {}", self.names(), self.name)
    }

    pub(crate) fn read(&self, row: &AnyRow) -> Result<Vec<Value>, sqlx::Error> {
        let values = self.columns.iter().enumerate().map(|(at, (_, column))| {
            Ok(match column {
                Column::Text | Column::Words | Column::Json => Value::Text(row.try_get(at)?),
                Column::Number | Column::Switch => Value::Number(row.try_get(at)?),
            })
        });
        values.collect()
    }

    /// Inserts rows, at most as many as one statement takes. `otherwise` is the ON CONFLICT clause.
    pub(crate) async fn insert(
        &self,
        connection: &mut AnyConnection,
        rows: &[Vec<Value>],
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
                Value::Text(text) => query.bind(text.as_str()),
                Value::Number(number) => query.bind(*number),
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
            assert_eq!(pieces(&rows).map(<[usize]>::len).collect::<Vec<_>>(), sizes);
            assert_eq!(pieces(&rows).flatten().copied().collect::<Vec<_>>(), rows);
        }
    }
}
