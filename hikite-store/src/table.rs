//! All tables with their columns, for copies and checks.

use crate::account::AccountRow;
use crate::client::ClientRow;
use crate::columns::{AUDIT, MEMORY, TOOL_SEEN, USERS, VECTOR};
use crate::consent::ConsentRow;
use crate::grant::GrantRow;
use crate::login::LoginRow;
use crate::passkey::PasskeyRow;
use crate::pin::PinRow;
use crate::record::Record;
use crate::schema::{ColumnType, TableSchema};

/// All tables but `hikite`, `lease` and `change_log`, which hold state of the individual store.
#[rustfmt::skip]
pub(crate) const TABLES: &[TableSchema] = &[
    TableSchema { name: "registered_tool", columns: &[("module", ColumnType::Text), ("tool", ColumnType::Text), ("form", ColumnType::Json), ("registered_at", ColumnType::Number)] },
    TableSchema { name: "tool_switch",     columns: &[("module", ColumnType::Text), ("tool", ColumnType::Text), ("enabled", ColumnType::Boolean)] },
    TOOL_SEEN,
    TableSchema { name: "list_cache",      columns: &[("definition", ColumnType::Text), ("lists", ColumnType::Json), ("fetched_at", ColumnType::Number)] },
    TableSchema { name: "project",         columns: &[("name", ColumnType::Text), ("form", ColumnType::Json), ("created_at", ColumnType::Number)] },
    TableSchema { name: "token",           columns: &[("id", ColumnType::Text), ("project", ColumnType::OptionalText), ("hash", ColumnType::Text), ("form", ColumnType::Json), ("created_at", ColumnType::Number), ("expires_at", ColumnType::Number)] },
    USERS,
    DRAWER,
    TableSchema { name: "documents",       columns: &[("kind", ColumnType::Text), ("id", ColumnType::Text), ("owner", ColumnType::OptionalText), ("document", ColumnType::Json), ("version", ColumnType::Number), ("created_at", ColumnType::Number), ("expires_at", ColumnType::Number)] },
    LoginRow::SCHEMA,
    PasskeyRow::SCHEMA,
    ClientRow::SCHEMA,
    ConsentRow::SCHEMA,
    GrantRow::SCHEMA,
    AccountRow::SCHEMA,
    PinRow::SCHEMA,
    TableSchema { name: "vault_key",       columns: &[("account", ColumnType::Text), ("key_id", ColumnType::Text), ("sealed", ColumnType::Text)] },
    TableSchema { name: "vault_secret",    columns: &[("account", ColumnType::Text), ("provider", ColumnType::OptionalText), ("field", ColumnType::Text), ("version", ColumnType::Number), ("sealed", ColumnType::Text)] },
    VECTOR,
    MEMORY,
    AUDIT,
    TableSchema { name: "audit_end",       columns: &[("name", ColumnType::Text), ("seq", ColumnType::Number), ("hash", ColumnType::OptionalText)] },
    TableSchema { name: "audit_mark",      columns: &[("seq", ColumnType::Number), ("at", ColumnType::Number)] },
    TableSchema { name: "clock_seen",      columns: &[("name", ColumnType::Text), ("at", ColumnType::Number), ("boot", ColumnType::OptionalText), ("uptime", ColumnType::Number)] },
];

/// The table of the version before. Since version 10 it mirrors other tables, except for its own copy of the users.
#[rustfmt::skip]
const DRAWER: TableSchema = TableSchema {
    name: "drawer",
    columns: &[
        ("kind", ColumnType::Text), ("id", ColumnType::Text), ("owner", ColumnType::OptionalText), ("form", ColumnType::Json),
        ("version", ColumnType::Number), ("created_at", ColumnType::Number), ("expires_at", ColumnType::Number),
    ],
};

/// Returns the tables of a schema version.
pub(crate) fn tables(version: i64) -> impl Iterator<Item = &'static TableSchema> {
    TABLES.iter().filter(move |table| {
        let since = SINCE.iter().find(|(_, names)| names.contains(&table.name)).map_or(1, |(since, _)| *since);
        version >= since
    })
}

/// Returns the statement that reads the rows of a table that are not copies of other rows.
pub(crate) fn select_own(table: &TableSchema, version: i64) -> String {
    let own = if table.name == DRAWER.name && version >= TYPED_SINCE { " WHERE kind = 'user'" } else { "" };
    format!("{}{own}", table.select())
}

/// The version that introduced the typed tables.
pub(crate) const TYPED_SINCE: i64 = 10;

/// The version that introduced a table, for later ones.
const SINCE: [(i64, &[&str]); 3] = [
    (6, &["users"]),
    (7, &["audit_mark", "clock_seen"]),
    (TYPED_SINCE, &["documents", "logins", "passkeys", "clients", "consents", "grants", "accounts", "pins"]),
];
