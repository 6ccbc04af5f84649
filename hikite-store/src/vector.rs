//! Cached embedding vectors by the hash of their text, so that no text is encoded twice by the same model.

use std::collections::HashMap;

use hikite_core::search::encoder::Vector;
use sqlx::Row;

use crate::columns::VECTOR;
use crate::error::StoreError;
use crate::memory::SearchTables;
use crate::schema::{ROWS_PER_INSERT, SqlValue, stored};

/// Maximum cached vectors; the least recently used are dropped first.
const VECTORS: i64 = 100_000;
/// Interval at which the use of a vector is recorded.
const NOTED_MS: u64 = 86_400_000;

impl SearchTables<'_> {
    /// Returns the cached vectors of these contents.
    pub async fn vectors(
        &self,
        model: &str,
        contents: &[&str],
        now_ms: u64,
    ) -> Result<HashMap<String, Vector>, StoreError> {
        let mut found = HashMap::with_capacity(contents.len());
        for contents in contents.chunks(ROWS_PER_INSERT) {
            let places: Vec<String> = (2..=contents.len() + 1).map(|at| format!("${at}")).collect();
            let holds = format!("model = $1 AND content IN ({})", places.join(","));
            let text = format!("SELECT content, vector, used_at FROM search_vector WHERE {holds}");
            let mut query = sqlx::query(&text).bind(model);
            for content in contents {
                query = query.bind(*content);
            }
            let before = stored(now_ms.saturating_sub(NOTED_MS));
            let mut is_old = false;
            for row in query.fetch_all(self.0.reader()).await.map_err(self.0.failed())? {
                let content: String = row.try_get(0).map_err(self.0.failed())?;
                let vector: String = row.try_get(1).map_err(self.0.failed())?;
                is_old |= row.try_get::<i64, _>(2).map_err(self.0.failed())? < before;
                found.extend(Vector::from_text(&vector).map(|vector| (content, vector)));
            }
            if is_old {
                let text = format!("UPDATE search_vector SET used_at = {} WHERE {holds}", stored(now_ms));
                let mut query = sqlx::query(&text).bind(model);
                for content in contents {
                    query = query.bind(*content);
                }
                query.execute(self.0.writer()).await.map_err(self.0.failed())?;
            }
        }
        Ok(found)
    }

    pub async fn put_vectors(&self, model: &str, vectors: &[(String, Vector)], now_ms: u64) -> Result<(), StoreError> {
        if vectors.is_empty() {
            return Ok(());
        }
        let mut transaction = self.0.begin().await?;
        for vectors in vectors.chunks(ROWS_PER_INSERT) {
            let row = |(content, vector): &(String, Vector)| {
                vec![
                    SqlValue::Text(model.to_owned()),
                    SqlValue::Text(content.clone()),
                    SqlValue::Text(vector.to_text()),
                    SqlValue::Number(stored(now_ms)),
                ]
            };
            let rows: Vec<Vec<SqlValue>> = vectors.iter().map(row).collect();
            VECTOR.insert(&mut transaction, &rows, "ON CONFLICT DO NOTHING").await.map_err(self.0.failed())?;
        }
        let count = sqlx::query("SELECT COUNT(*) FROM search_vector");
        let count = count.fetch_one(&mut *transaction).await.map_err(self.0.failed())?;
        if count.try_get::<i64, _>(0).map_err(self.0.failed())? > VECTORS {
            let delete_unused = format!(
                "DELETE FROM search_vector WHERE used_at < \
                 (SELECT used_at FROM search_vector ORDER BY used_at DESC LIMIT 1 OFFSET {VECTORS})"
            );
            sqlx::query(&delete_unused).execute(&mut *transaction).await.map_err(self.0.failed())?;
        }
        transaction.commit().await.map_err(self.0.failed())
    }
}
