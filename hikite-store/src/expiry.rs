//! Removal of expired rows.

use crate::error::StoreError;
use crate::schema::stored;
use crate::store::Store;

/// The tables with an expiry. The last one may have rows of the version before that no other table has.
const TABLES: [&str; 5] = ["documents", "logins", "clients", "grants", "drawer"];

impl Store {
    /// Removes expired rows of all tables. Does not increment the revision, because nobody sees a difference.
    pub async fn delete_expired(&self, now: u64) -> Result<u64, StoreError> {
        let mut removed = 0;
        for table in TABLES {
            let text = format!("DELETE FROM {table} WHERE expires_at > 0 AND expires_at <= $1");
            let done = sqlx::query(&text).bind(stored(now)).execute(self.0.writer()).await.map_err(self.0.failed())?;
            removed += done.rows_affected();
        }
        Ok(removed)
    }
}
