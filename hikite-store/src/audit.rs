//! The audit log: an append-only hash chain shared by all processes on a store. A writer locks the row with the end of
//! the chain until its records are committed.

mod query;
mod read;
mod trim;
mod verify;

use hikite_core::audit::{AuditChain, AuditRecord};
use sqlx::{AnyConnection, Row};

use crate::columns::AUDIT;
use crate::database::Database;
use crate::error::StoreError;
use crate::schema::{SqlValue, power_of_two_chunks, shown, stored};

pub use read::{AuditCursor, AuditFilter, AuditPage, AuditRow};
pub use trim::{Retention, TrimOutcome};
pub use verify::{AuditVerification, TrimEvidence};

/// Records that are written together. If a commit has an unknown outcome, the batch can be retried: it is written only
/// once.
#[derive(Debug)]
pub struct AuditBatch {
    records: Vec<AuditRecord>,
    /// End of the chain in the last commit attempt.
    attempted: Option<AuditChain>,
}

impl AuditBatch {
    pub fn new(records: Vec<AuditRecord>) -> Self {
        Self { records, attempted: None }
    }

    pub fn len(&self) -> usize {
        self.records.len()
    }

    pub fn records(&self) -> &[AuditRecord] {
        &self.records
    }

    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }
}

/// The audit log of a store.
#[derive(Debug)]
pub struct AuditLog<'a>(pub(crate) &'a Database);

impl AuditLog<'_> {
    /// Appends the records, all or none.
    pub async fn append(&self, batch: &mut AuditBatch) -> Result<(), StoreError> {
        self.0.until_replaced(self.append_once(batch)).await
    }

    async fn append_once(&self, batch: &mut AuditBatch) -> Result<(), StoreError> {
        let mut transaction = self.0.begin().await?;
        let count = i64::try_from(batch.len()).unwrap_or(i64::MAX);
        // This lock also waits for an earlier attempt of ours with unknown outcome.
        let query = sqlx::query("UPDATE audit_end SET seq = seq + $1 WHERE name = 'last' RETURNING seq, hash");
        let row = query.bind(count).fetch_one(&mut *transaction).await.map_err(self.0.failed())?;
        if let Some(attempted) = &batch.attempted
            && is_written(&mut transaction, attempted).await.map_err(self.0.failed())?
        {
            return transaction.rollback().await.map_err(self.0.failed());
        }
        let last: i64 = row.try_get(0).map_err(self.0.failed())?;
        let hash: String = row.try_get(1).map_err(self.0.failed())?;
        let mut chain = AuditChain::new(shown(last - count), hash);
        let rows: Vec<Vec<SqlValue>> =
            batch.records.iter().map(|record| values(record, chain.append(record), &chain)).collect();
        for rows in power_of_two_chunks(&rows) {
            AUDIT.insert(&mut transaction, rows, "").await.map_err(self.0.failed())?;
        }
        let query = sqlx::query("UPDATE audit_end SET hash = $1 WHERE name = 'last'");
        query.bind(chain.hash.as_str()).execute(&mut *transaction).await.map_err(self.0.failed())?;
        batch.attempted = Some(chain.clone());
        transaction.commit().await.map_err(self.0.failed())?;
        if let Some(head) = &self.0.head {
            head.note(&chain);
        }
        Ok(())
    }
}

async fn is_written(connection: &mut AnyConnection, attempted: &AuditChain) -> Result<bool, sqlx::Error> {
    let query = sqlx::query("SELECT hash FROM audit WHERE seq = $1").bind(stored(attempted.seq));
    let row = query.fetch_optional(connection).await?;
    row.map_or(Ok(false), |row| Ok(row.try_get::<String, _>(0)? == attempted.hash))
}

/// Builds the row of a record that was just appended, in column order.
fn values(record: &AuditRecord, text: String, chain: &AuditChain) -> Vec<SqlValue> {
    let word = |word: &str| SqlValue::Text(word.to_owned());
    vec![
        SqlValue::Number(stored(chain.seq)),
        SqlValue::Number(stored(record.at)),
        word(record.kind),
        word(record.decision),
        word(record.outcome),
        word(&record.request_id),
        word(&record.subject),
        word(&record.project),
        word(&record.module),
        word(&record.tool),
        SqlValue::Text(text),
        word(&chain.hash),
    ]
}
