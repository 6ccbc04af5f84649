//! First-seen times of tools. Written in passing without incrementing the revision, because no other process needs them
//! at once.

use hikite_core::key::ToolKey;
use sqlx::Row;
use sqlx::any::AnyRow;

use crate::columns::TOOL_SEEN;
use crate::control::{ToolTable, is_storable, read_key};
use crate::error::StoreError;
use crate::schema::{ROWS_PER_INSERT, SqlValue, shown, stored};

impl ToolTable<'_> {
    /// Returns the time at which each tool was first seen, in milliseconds since 1970.
    pub async fn first_seen(&self) -> Result<Vec<(ToolKey, u64)>, StoreError> {
        let rows = sqlx::query(&TOOL_SEEN.select()).fetch_all(self.0.reader()).await.map_err(self.0.failed())?;
        let read = |row: &AnyRow| Ok((read_key(row)?, shown(row.try_get(2)?)));
        rows.iter().map(read).collect::<Result<_, _>>().map_err(self.0.failed())
    }

    /// Records the time for new tools. Names with NUL are skipped.
    pub async fn note_seen(&self, keys: &[ToolKey], now_ms: u64) -> Result<(), StoreError> {
        let mut keys: Vec<&ToolKey> = keys.iter().filter(|key| is_storable(key)).collect();
        // Sorted, so that two processes cannot deadlock.
        keys.sort_unstable();
        if keys.is_empty() {
            return Ok(());
        }
        let mut transaction = self.0.begin().await?;
        for keys in keys.chunks(ROWS_PER_INSERT) {
            let row = |key: &&ToolKey| {
                vec![
                    SqlValue::Text(key.module.to_string()),
                    SqlValue::Text(key.tool.to_string()),
                    SqlValue::Number(stored(now_ms)),
                ]
            };
            let rows: Vec<Vec<SqlValue>> = keys.iter().map(row).collect();
            TOOL_SEEN.insert(&mut transaction, &rows, "ON CONFLICT DO NOTHING").await.map_err(self.0.failed())?;
        }
        transaction.commit().await.map_err(self.0.failed())
    }
}
