//! Columns of the tables whose rows are inserted in bulk, and of the users.

use crate::schema::{ColumnType, TableSchema};

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
