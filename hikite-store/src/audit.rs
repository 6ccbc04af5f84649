//! The audit log: an append-only hash chain shared by all processes on a store. A writer locks the row with the end of
//! the chain until its records are committed.

mod query;
mod read;
mod trim;
mod verify;

use hikite_core::audit::{Chain, Record};
use sqlx::{AnyConnection, Row};

use crate::control::{shown, stored};
use crate::error::StoreError;
use crate::store::Store;
use crate::table::{AUDIT, Value, pieces};

pub use read::{AuditFilter, AuditPage, AuditRow, AuditWalk};
pub use trim::{Retention, Trimmed};
pub use verify::{TrimTrace, Verified};

/// Records that are written together. If a commit has an unknown outcome, the batch can be retried: it is written only
/// once.
#[derive(Debug)]
pub struct AuditBatch {
    records: Vec<Record>,
    /// End of the chain in the last commit attempt.
    tried: Option<Chain>,
}

impl AuditBatch {
    pub fn new(records: Vec<Record>) -> Self {
        Self { records, tried: None }
    }

    pub fn len(&self) -> usize {
        self.records.len()
    }

    pub fn records(&self) -> &[Record] {
        &self.records
    }

    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }
}

impl Store {
    /// Appends the records, all or none.
    pub async fn append_audit(&self, batch: &mut AuditBatch) -> Result<(), StoreError> {
        self.unless_given_up(self.append(batch)).await
    }

    async fn append(&self, batch: &mut AuditBatch) -> Result<(), StoreError> {
        let mut transaction = self.begin().await?;
        let count = i64::try_from(batch.len()).unwrap_or(i64::MAX);
        // This lock also waits for an earlier attempt of ours with unknown outcome.
        let query =
            sqlx::query("UPDATE audit_end SET seq = seq + $1 WHERE name = 'last' RETURNING seq, hash");
        let row = query.bind(count).fetch_one(&mut *transaction).await.map_err(self.failed())?;
        if let Some(tried) = &batch.tried
            && is_written(&mut transaction, tried).await.map_err(self.failed())?
        {
            return transaction.rollback().await.map_err(self.failed());
        }
        let last: i64 = row.try_get(0).map_err(self.failed())?;
        let hash: String = row.try_get(1).map_err(self.failed())?;
        let mut chain = Chain::new(shown(last - count), hash);
        let rows: Vec<Vec<Value>> =
            batch.records.iter().map(|record| values(record, chain.append(record), &chain)).collect();
        for rows in pieces(&rows) {
            AUDIT.insert(&mut transaction, rows, "").await.map_err(self.failed())?;
        }
        let query = sqlx::query("UPDATE audit_end SET hash = $1 WHERE name = 'last'");
        query.bind(chain.hash.as_str()).execute(&mut *transaction).await.map_err(self.failed())?;
        batch.tried = Some(chain.clone());
        transaction.commit().await.map_err(self.failed())?;
        if let Some(head) = self.head() {
            head.note(&chain);
        }
        Ok(())
    }
}

async fn is_written(connection: &mut AnyConnection, tried: &Chain) -> Result<bool, sqlx::Error> {
    let query = sqlx::query("SELECT hash FROM audit WHERE seq = $1").bind(stored(tried.seq));
    let row = query.fetch_optional(connection).await?;
    row.map_or(Ok(false), |row| Ok(row.try_get::<String, _>(0)? == tried.hash))
}

/// Builds the row of a record that was just appended, in column order.
fn values(record: &Record, text: String, chain: &Chain) -> Vec<Value> {
    let word = |word: &str| Value::Text(word.to_owned());
    vec![
        Value::Number(stored(chain.seq)),
        Value::Number(stored(record.at)),
        word(record.kind),
        word(record.decision),
        word(record.outcome),
        word(&record.request_id),
        word(&record.subject),
        word(&record.project),
        word(&record.module),
        word(&record.tool),
        Value::Text(text),
        word(&chain.hash),
    ]
}
