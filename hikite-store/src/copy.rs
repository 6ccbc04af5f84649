//! Copies one store into another, of either engine: all tables, from one snapshot in one transaction.

use futures_util::TryStreamExt;
use sqlx::{AnyConnection, Row};

use crate::connect::DatabaseEngine;
use crate::database::Database;
use crate::error::{StoreError, StoreFault};
use crate::migrate::POSTGRES_LOCK;
use crate::schema::{ROWS_PER_INSERT, TableSchema};
use crate::store::Store;
use crate::table::{select_own, tables};

impl Store {
    /// Copies all rows and returns their number. Refused without changes if `other` is not empty.
    pub async fn copy_to(&self, other: &Self) -> Result<u64, StoreError> {
        self.0.copy_to(&other.0, false).await
    }
}

impl Database {
    /// Copies all rows and returns their number. Replaces the rows of `other`, or is refused if there are any.
    pub(crate) async fn copy_to(&self, other: &Self, replaces: bool) -> Result<u64, StoreError> {
        let mut from = self.snapshot().await?;
        let mut to = other.begin().await?;
        if other.engine == DatabaseEngine::Postgres {
            sqlx::query(POSTGRES_LOCK).execute(&mut *to).await.map_err(other.failed())?;
        }
        let known: Vec<&TableSchema> = tables(other.version).collect();
        if replaces {
            // The whole chain is deleted; the copy brings its own ends.
            let query = sqlx::query("UPDATE audit_end SET seq = $1 WHERE name = 'trimmed'").bind(i64::MAX);
            query.execute(&mut *to).await.map_err(other.failed())?;
            // Referenced rows are deleted last.
            for table in known.iter().rev().filter(|table| !table.has_initial_rows()) {
                let text = format!("DELETE FROM {}", table.name);
                sqlx::query(&text).execute(&mut *to).await.map_err(other.failed())?;
            }
        }
        for table in known.iter().filter(|_| !replaces) {
            // The initial rows of a new store do not count.
            let used = if table.has_initial_rows() { " WHERE seq > 0" } else { "" };
            let count = format!("SELECT COUNT(*) FROM {}{used}", table.name);
            let row = sqlx::query(&count).fetch_one(&mut *to).await.map_err(other.failed())?;
            let rows: i64 = row.try_get(0).map_err(other.failed())?;
            if rows > 0 {
                return Err(other.refused(StoreFault::NotEmpty, format!("it has {rows} rows in `{}`", table.name)));
            }
        }
        let mut copied = 0;
        for table in known {
            let rows = self.copy_table(table, &mut from, other, &mut to).await?;
            copied += if table.has_initial_rows() { 0 } else { rows };
        }
        // Processes on the other store must reload.
        let query = sqlx::query("UPDATE hikite SET value = value + 1 WHERE name = 'revision'");
        query.execute(&mut *to).await.map_err(other.failed())?;
        to.commit().await.map_err(other.failed())?;
        Ok(copied)
    }

    async fn copy_table(
        &self,
        table: &TableSchema,
        from: &mut AnyConnection,
        other: &Self,
        to: &mut AnyConnection,
    ) -> Result<u64, StoreError> {
        let select = select_own(table, self.version);
        let otherwise = if table.has_initial_rows() {
            "ON CONFLICT (name) DO UPDATE SET seq = excluded.seq, hash = excluded.hash"
        } else {
            ""
        };
        let mut rows = sqlx::query(&select).fetch(from);
        let mut waiting = Vec::with_capacity(ROWS_PER_INSERT);
        let mut copied = 0;
        while let Some(row) = rows.try_next().await.map_err(self.failed())? {
            waiting.push(table.read(&row).map_err(self.failed())?);
            copied += 1;
            if waiting.len() == ROWS_PER_INSERT {
                table.insert(to, &waiting, otherwise).await.map_err(other.failed())?;
                waiting.clear();
            }
        }
        table.insert(to, &waiting, otherwise).await.map_err(other.failed())?;
        Ok(copied)
    }
}
