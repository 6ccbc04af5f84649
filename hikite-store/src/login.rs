//! Logins of browsers.

use crate::record::{OwnedRecord, Record};
use crate::schema::{ColumnType, RowValues, SqlValue, TableSchema};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoginRow {
    /// Hash of the cookie.
    pub id: String,
    pub subject: String,
    pub version: u64,
    /// Milliseconds since 1970, like all times.
    pub created_at: u64,
    pub expires_at: u64,
}

impl Record for LoginRow {
    const KIND: &'static str = "login";
    const SCHEMA: TableSchema = TableSchema {
        name: "logins",
        columns: &[
            ("id", ColumnType::Text),
            ("subject", ColumnType::Text),
            ("version", ColumnType::Number),
            ("created_at", ColumnType::Number),
            ("expires_at", ColumnType::Number),
        ],
    };

    fn id(&self) -> &str {
        &self.id
    }

    fn version(&self) -> u64 {
        self.version
    }

    fn values(&self) -> Vec<SqlValue> {
        vec![
            SqlValue::text(&self.id),
            SqlValue::text(&self.subject),
            SqlValue::number(self.version),
            SqlValue::number(self.created_at),
            SqlValue::number(self.expires_at),
        ]
    }

    fn read(mut values: RowValues) -> Option<Self> {
        Some(Self {
            id: values.text(),
            subject: values.text(),
            version: values.number(),
            created_at: values.number(),
            expires_at: values.number(),
        })
    }
}

impl OwnedRecord for LoginRow {
    fn subject(&self) -> &str {
        &self.subject
    }
}
