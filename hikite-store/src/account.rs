//! Accounts with services. Their secrets are in the vault's tables.

use std::collections::BTreeMap;

use hikite_core::json::Raw;

use crate::record::{OwnedRecord, Record};
use crate::schema::{ColumnType, RowValues, SqlValue, TableSchema};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountRow {
    pub id: String,
    /// A user, or the subject of a token that acts for no user.
    pub subject: String,
    pub provider: String,
    pub name: String,
    /// `connected`, `unverified` or `reconnect`.
    pub status: String,
    pub problem: Option<String>,
    /// Milliseconds since 1970, like all times; zero for never.
    pub verified_at: u64,
    pub is_default: bool,
    pub shared: bool,
    pub scopes: Vec<String>,
    pub email: Option<String>,
    pub details: BTreeMap<String, String>,
    pub api: Option<String>,
    /// Expiry of the current token; zero for never.
    pub token_expires_at: u64,
    pub last_refresh: u64,
    pub permissions: Raw,
    pub version: u64,
    pub created_at: u64,
}

impl Record for AccountRow {
    const KIND: &'static str = "account";
    const SCHEMA: TableSchema = TableSchema {
        name: "accounts",
        columns: &[
            ("id", ColumnType::Text),
            ("subject", ColumnType::OptionalText),
            ("provider", ColumnType::Text),
            ("name", ColumnType::Text),
            ("status", ColumnType::Text),
            ("problem", ColumnType::OptionalText),
            ("verified_at", ColumnType::Number),
            ("is_default", ColumnType::Boolean),
            ("shared", ColumnType::Boolean),
            ("scopes", ColumnType::Json),
            ("email", ColumnType::OptionalText),
            ("details", ColumnType::Json),
            ("api", ColumnType::OptionalText),
            ("token_expires_at", ColumnType::Number),
            ("last_refresh", ColumnType::Number),
            ("permissions", ColumnType::Json),
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
            SqlValue::text(&self.provider),
            SqlValue::text(&self.name),
            SqlValue::text(&self.status),
            SqlValue::optional(self.problem.as_deref()),
            SqlValue::number(self.verified_at),
            SqlValue::flag(self.is_default),
            SqlValue::flag(self.shared),
            SqlValue::list(&self.scopes),
            SqlValue::optional(self.email.as_deref()),
            SqlValue::json(&Raw::of(&self.details)),
            SqlValue::optional(self.api.as_deref()),
            SqlValue::number(self.token_expires_at),
            SqlValue::number(self.last_refresh),
            SqlValue::json(&self.permissions),
            SqlValue::number(self.version),
            SqlValue::number(self.created_at),
        ]
    }

    fn read(mut values: RowValues) -> Option<Self> {
        Some(Self {
            id: values.text(),
            subject: values.text(),
            provider: values.text(),
            name: values.text(),
            status: values.text(),
            problem: values.optional(),
            verified_at: values.number(),
            is_default: values.flag(),
            shared: values.flag(),
            scopes: values.list().unwrap_or_default(),
            email: values.optional(),
            details: values.json().and_then(|details| details.decode().ok()).unwrap_or_default(),
            api: values.optional(),
            token_expires_at: values.number(),
            last_refresh: values.number(),
            // Unreadable permissions must not count as none, so they become an invalid value.
            permissions: values.json().unwrap_or_else(|| Raw::from("unreadable")),
            version: values.number(),
            created_at: values.number(),
        })
    }
}

impl OwnedRecord for AccountRow {
    fn subject(&self) -> &str {
        &self.subject
    }
}
