//! Passkeys of users.

use crate::record::{OwnedRecord, Record};
use crate::schema::{ColumnType, RowValues, SqlValue, TableSchema};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PasskeyRow {
    /// Credential id, in base64url.
    pub id: String,
    pub subject: String,
    /// Name given by the user.
    pub name: String,
    /// COSE public key, in base64url.
    pub public_key: String,
    /// Signature counter.
    pub counter: u64,
    pub version: u64,
    /// Milliseconds since 1970.
    pub created_at: u64,
}

impl Record for PasskeyRow {
    const KIND: &'static str = "passkey";
    const SCHEMA: TableSchema = TableSchema {
        name: "passkeys",
        columns: &[
            ("id", ColumnType::Text),
            ("subject", ColumnType::Text),
            ("name", ColumnType::Text),
            ("public_key", ColumnType::Text),
            ("counter", ColumnType::Number),
            ("version", ColumnType::Number),
            ("created_at", ColumnType::Number),
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
            SqlValue::text(&self.name),
            SqlValue::text(&self.public_key),
            SqlValue::number(self.counter),
            SqlValue::number(self.version),
            SqlValue::number(self.created_at),
        ]
    }

    fn read(mut values: RowValues) -> Option<Self> {
        Some(Self {
            id: values.text(),
            subject: values.text(),
            name: values.text(),
            public_key: values.text(),
            counter: values.number(),
            version: values.number(),
            created_at: values.number(),
        })
    }
}

impl OwnedRecord for PasskeyRow {
    fn subject(&self) -> &str {
        &self.subject
    }
}
