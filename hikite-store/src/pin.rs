//! Pins: approved and blocked tool definitions.

use crate::document::{DocumentRow, Documents};
use crate::error::StoreError;
use crate::record::{Record, Records};
use crate::schema::{ColumnType, RowValues, SqlValue, TableSchema};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PinRow {
    /// `module:tool`.
    pub id: String,
    pub module: String,
    /// Hash of the definition; empty if there is none.
    pub hash: String,
    pub blocked: bool,
    /// Milliseconds since 1970, like all times.
    pub pinned_at: u64,
    pub version: u64,
    pub created_at: u64,
}

impl Records<'_, PinRow> {
    /// Inserts the pins whose id is new, with their definitions, as one change; returns the number of new rows.
    pub async fn put_new(&self, pins: &[(PinRow, DocumentRow)]) -> Result<u64, StoreError> {
        let mut transaction = self.database.begin().await?;
        let mut new = 0;
        let mut touched = vec![(PinRow::KIND, "")];
        for (pin, definition) in pins {
            new += u64::from(Documents(self.database).insert(&mut transaction, definition).await?);
            new += u64::from(self.insert(&mut transaction, pin).await?);
            if touched.len() == 1 {
                touched.push((definition.kind, ""));
            }
        }
        self.database.commit_change(transaction, new > 0, &touched).await?;
        Ok(new)
    }
}

impl Record for PinRow {
    const KIND: &'static str = "pin";
    const SCHEMA: TableSchema = TableSchema {
        name: "pins",
        columns: &[
            ("id", ColumnType::Text),
            ("module", ColumnType::Text),
            ("hash", ColumnType::OptionalText),
            ("blocked", ColumnType::Boolean),
            ("pinned_at", ColumnType::Number),
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
            SqlValue::text(&self.module),
            SqlValue::text(&self.hash),
            SqlValue::flag(self.blocked),
            SqlValue::number(self.pinned_at),
            SqlValue::number(self.version),
            SqlValue::number(self.created_at),
        ]
    }

    fn read(mut values: RowValues) -> Option<Self> {
        Some(Self {
            id: values.text(),
            module: values.text(),
            hash: values.text(),
            blocked: values.flag(),
            pinned_at: values.number(),
            version: values.number(),
            created_at: values.number(),
        })
    }
}
