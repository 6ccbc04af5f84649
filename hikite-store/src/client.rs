//! OAuth clients.

use std::fmt;

use crate::record::Record;
use crate::schema::{ColumnType, RowValues, SqlValue, TableSchema};

#[derive(Clone, PartialEq, Eq)]
pub struct ClientRow {
    pub id: String,
    pub name: String,
    /// `registered`, `document` or `admin`.
    pub origin: String,
    pub redirect_uris: Vec<String>,
    /// Redirect origins that an admin approved.
    pub approved: Vec<String>,
    /// Hash of the client secret, if it has one.
    pub secret_hash: Option<String>,
    /// Grant for the client credentials flow.
    pub grant_id: Option<String>,
    /// Time at which its metadata document was last fetched; zero for never.
    pub looked_up_at: u64,
    /// Address that an unused client came from; else empty.
    pub address: String,
    pub version: u64,
    /// Milliseconds since 1970, like all times.
    pub created_at: u64,
    /// Zero means never.
    pub expires_at: u64,
}

impl Record for ClientRow {
    const KIND: &'static str = "client";
    const SCHEMA: TableSchema = TableSchema {
        name: "clients",
        columns: &[
            ("id", ColumnType::Text),
            ("name", ColumnType::OptionalText),
            ("origin", ColumnType::Text),
            ("redirect_uris", ColumnType::Json),
            ("approved", ColumnType::Json),
            ("secret_hash", ColumnType::OptionalText),
            ("grant_id", ColumnType::OptionalText),
            ("looked_up_at", ColumnType::Number),
            ("address", ColumnType::OptionalText),
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
            SqlValue::text(&self.name),
            SqlValue::text(&self.origin),
            SqlValue::list(&self.redirect_uris),
            SqlValue::list(&self.approved),
            SqlValue::optional(self.secret_hash.as_deref()),
            SqlValue::optional(self.grant_id.as_deref()),
            SqlValue::number(self.looked_up_at),
            SqlValue::text(&self.address),
            SqlValue::number(self.version),
            SqlValue::number(self.created_at),
            SqlValue::number(self.expires_at),
        ]
    }

    fn read(mut values: RowValues) -> Option<Self> {
        Some(Self {
            id: values.text(),
            name: values.text(),
            origin: values.text(),
            redirect_uris: values.list()?,
            approved: values.list()?,
            secret_hash: values.optional(),
            grant_id: values.optional(),
            looked_up_at: values.number(),
            address: values.text(),
            version: values.number(),
            created_at: values.number(),
            expires_at: values.number(),
        })
    }
}

impl fmt::Debug for ClientRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientRow").field("id", &self.id).field("name", &self.name).finish_non_exhaustive()
    }
}
