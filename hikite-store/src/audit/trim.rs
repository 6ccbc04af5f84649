//! Trims the front of the audit chain. Age is measured by marks with the database's time, so the clocks of nodes do not
//! matter. A trim record in the chain states the count and last hash before anything is deleted; a database trigger
//! rejects deletions that no such record covers.

use std::time::Duration;

use hikite_core::audit::{AuditChain, AuditRecord, TRIM};
use sqlx::{AnyConnection, Row};

use super::AuditLog;
use super::values;
use crate::clock::{self, ClockJump, MachineClock};
use crate::columns::AUDIT;
use crate::connect::DatabaseEngine;
use crate::error::StoreError;
use crate::schema::{shown, stored};

/// Records deleted per transaction.
const RECORDS_PER_TRANSACTION: u64 = 1000;
/// Pages of a SQLite file returned to the file system at a time: 16 MB.
const PAGES_PER_VACUUM: u32 = 4096;

/// The retention policy of the audit log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// Minimum age before records are removed.
    pub keep: Duration,
    /// Maximum number of records.
    pub max_records: Option<u64>,
}

/// The outcome of one trim step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TrimOutcome {
    pub records: u64,
    /// `true` if there is more to remove now.
    pub more: bool,
    /// Set if nothing is removed by age because the machine's clock jumped.
    pub paused: Option<ClockJump>,
}

/// The state of the chain at the start of a step.
struct ChainState {
    first: AuditChain,
    last: AuditChain,
    trimmed: AuditChain,
    last_v6: AuditChain,
    now: u64,
    paused: Option<ClockJump>,
}

impl AuditLog<'_> {
    /// Performs one step: records how far to trim, or deletes some of the covered records.
    pub async fn trim(&self, retention: Retention, machine: &MachineClock) -> Result<TrimOutcome, StoreError> {
        // The audit writer waits for this step, so a hanging database must not block it.
        self.0.until_replaced(self.trim_once(retention, machine)).await
    }

    async fn trim_once(&self, retention: Retention, machine: &MachineClock) -> Result<TrimOutcome, StoreError> {
        let mut transaction = self.0.begin().await?;
        let step = self.step(&mut transaction, retention, machine).await;
        let trimmed = step.map_err(self.0.failed())?;
        if trimmed.records > 0 && self.0.engine == DatabaseEngine::Sqlite {
            release_pages(&mut transaction).await.map_err(self.0.failed())?;
        }
        transaction.commit().await.map_err(self.0.failed())?;
        Ok(trimmed)
    }

    async fn step(
        &self,
        connection: &mut AnyConnection,
        retention: Retention,
        machine: &MachineClock,
    ) -> Result<TrimOutcome, sqlx::Error> {
        let mut chain_state = self.read_state(connection, machine).await?;
        if chain_state.paused.is_none() {
            mark(connection, &chain_state).await?;
        }
        if chain_state.trimmed.seq <= chain_state.first.seq {
            let target = target(connection, &chain_state, retention).await?;
            if let Some(target) = target {
                record(connection, &mut chain_state, target).await?;
            }
        }
        let records = remove(connection, &chain_state).await?;
        let more = records > 0 && chain_state.first.seq + records < chain_state.trimmed.seq;
        Ok(TrimOutcome { records, more, paused: chain_state.paused })
    }

    async fn read_state(
        &self,
        connection: &mut AnyConnection,
        machine: &MachineClock,
    ) -> Result<ChainState, sqlx::Error> {
        // Locks the row, so that one process trims at a time.
        let query = sqlx::query("UPDATE audit_end SET seq = seq WHERE name = 'first' RETURNING seq");
        query.fetch_one(&mut *connection).await?;
        let (now, paused) = match self.0.engine {
            DatabaseEngine::Sqlite => (machine.wall_ms, clock::watch(connection, machine).await?),
            DatabaseEngine::Postgres => {
                let text = format!("SELECT {}", self.0.engine.now_ms());
                let row = sqlx::query(&text).fetch_one(&mut *connection).await?;
                (shown(row.try_get(0)?), None)
            }
        };
        Ok(ChainState {
            first: end(connection, "first").await?,
            last: end(connection, "last").await?,
            trimmed: end(connection, "trimmed").await?,
            last_v6: end(connection, "last_v6").await?,
            now,
            paused,
        })
    }
}

/// Returns free pages to the file system, if the file supports incremental vacuum; in the transaction that freed them,
/// so that a stop between the two leaves no pages behind.
async fn release_pages(connection: &mut AnyConnection) -> Result<(), sqlx::Error> {
    let text = format!("PRAGMA incremental_vacuum({PAGES_PER_VACUUM})");
    // Each row of the result frees one page, so all must be read.
    sqlx::query(&text).fetch_all(connection).await.map(drop)
}

/// Reads an end of the chain; a missing one is the beginning.
pub(super) async fn end(connection: &mut AnyConnection, name: &str) -> Result<AuditChain, sqlx::Error> {
    let query = sqlx::query("SELECT seq, hash FROM audit_end WHERE name = $1").bind(name);
    let row = query.fetch_optional(connection).await?;
    row.map_or_else(
        || Ok(AuditChain::new(0, "")),
        |row| Ok(AuditChain::new(shown(row.try_get(0)?), row.try_get::<String, _>(1)?)),
    )
}

/// Records the current end of the chain with the database's time.
async fn mark(connection: &mut AnyConnection, chain_state: &ChainState) -> Result<(), sqlx::Error> {
    if chain_state.last.seq == 0 {
        return Ok(());
    }
    let query = sqlx::query("INSERT INTO audit_mark (seq, at) VALUES ($1, $2) ON CONFLICT (seq) DO NOTHING");
    query.bind(stored(chain_state.last.seq)).bind(stored(chain_state.now)).execute(connection).await.map(drop)
}

/// Returns the last record to remove, if there is one that is not a trim record itself; otherwise every trim would
/// leave something to trim.
async fn target(
    connection: &mut AnyConnection,
    chain_state: &ChainState,
    retention: Retention,
) -> Result<Option<AuditChain>, sqlx::Error> {
    let count = chain_state.last.seq.saturating_sub(chain_state.first.seq);
    let most = retention.max_records.filter(|most| count > *most);
    // The trim record adds one.
    let by_count = most.map_or(0, |most| chain_state.last.seq + 1 - most);
    let by_age = if chain_state.paused.is_some() { 0 } else { by_age(connection, chain_state, retention.keep).await? };
    let upto = by_count.max(by_age).min(chain_state.last.seq);
    if upto <= chain_state.first.seq {
        return Ok(None);
    }
    let query = sqlx::query("SELECT seq FROM audit WHERE seq > $1 AND seq <= $2 AND kind <> $3 ORDER BY seq LIMIT 1");
    let query = query.bind(stored(chain_state.first.seq)).bind(stored(upto)).bind(TRIM);
    if query.fetch_optional(&mut *connection).await?.is_none() {
        return Ok(None);
    }
    at_most(connection, upto).await
}

/// Returns the number of the last record that is old enough.
async fn by_age(connection: &mut AnyConnection, chain_state: &ChainState, keep: Duration) -> Result<u64, sqlx::Error> {
    let keep = u64::try_from(keep.as_millis()).unwrap_or(u64::MAX);
    let Some(before) = chain_state.now.checked_sub(keep) else { return Ok(0) };
    let query = sqlx::query("SELECT MAX(seq) FROM audit_mark WHERE at <= $1").bind(stored(before));
    let row = query.fetch_one(&mut *connection).await?;
    let marked = row.try_get::<Option<i64>, _>(0)?.map_or(0, shown);
    if chain_state.first.seq >= chain_state.last_v6.seq {
        return Ok(marked);
    }
    // Records from before there were marks are judged by their own time. The unary plus keeps both databases from using
    // the index on the time: the chain is scanned from its beginning, only as far as it is old.
    let query = sqlx::query("SELECT seq FROM audit WHERE +at >= $1 AND seq <= $2 ORDER BY seq LIMIT 1");
    let query = query.bind(stored(before)).bind(stored(chain_state.last_v6.seq));
    let row = query.fetch_optional(connection).await?;
    let young = row.map(|row| row.try_get(0).map(shown)).transpose()?;
    Ok(marked.max(young.map_or(chain_state.last_v6.seq, |young| young.saturating_sub(1))))
}

/// Returns the last record up to this number; numbers may be missing.
async fn at_most(connection: &mut AnyConnection, seq: u64) -> Result<Option<AuditChain>, sqlx::Error> {
    let query = sqlx::query("SELECT seq, hash FROM audit WHERE seq <= $1 ORDER BY seq DESC LIMIT 1");
    let row = query.bind(stored(seq)).fetch_optional(connection).await?;
    row.map(|row| Ok(AuditChain::new(shown(row.try_get(0)?), row.try_get::<String, _>(1)?))).transpose()
}

/// Appends the trim record and marks what it covers as removable.
async fn record(
    connection: &mut AnyConnection,
    chain_state: &mut ChainState,
    target: AuditChain,
) -> Result<(), sqlx::Error> {
    let query = sqlx::query("UPDATE audit_end SET seq = seq + 1 WHERE name = 'last' RETURNING seq, hash");
    let row = query.fetch_one(&mut *connection).await?;
    let (last, hash): (i64, String) = (row.try_get(0)?, row.try_get(1)?);
    let mut chain = AuditChain::new(shown(last - 1), hash);
    let record = AuditRecord {
        at: chain_state.now,
        kind: TRIM,
        decision: "allowed",
        outcome: "ok",
        what: format!("{} to {}", chain_state.first.seq + 1, target.seq),
        trimmed: target.seq - chain_state.first.seq,
        trimmed_to: target.seq,
        trimmed_hash: target.hash.clone(),
        ..AuditRecord::default()
    };
    let text = chain.append(&record);
    AUDIT.insert(connection, &[values(&record, text, &chain)], "").await?;
    let query = sqlx::query("UPDATE audit_end SET hash = $1 WHERE name = 'last'").bind(chain.hash.as_str());
    query.execute(&mut *connection).await?;
    let query = sqlx::query("UPDATE audit_end SET seq = $1, hash = $2 WHERE name = 'trimmed'");
    query.bind(stored(target.seq)).bind(target.hash.as_str()).execute(&mut *connection).await?;
    let query = sqlx::query("DELETE FROM audit_mark WHERE seq <= $1").bind(stored(target.seq));
    query.execute(connection).await?;
    chain_state.trimmed = target;
    Ok(())
}

/// Deletes some of the records that a trim record covers; returns how many numbers were freed.
async fn remove(connection: &mut AnyConnection, chain_state: &ChainState) -> Result<u64, sqlx::Error> {
    let upto = chain_state.trimmed.seq.min(chain_state.first.seq + RECORDS_PER_TRANSACTION);
    let Some(last) = at_most(connection, upto).await?.filter(|last| last.seq > chain_state.first.seq) else {
        return Ok(0);
    };
    let query = sqlx::query("DELETE FROM audit WHERE seq <= $1").bind(stored(last.seq));
    query.execute(&mut *connection).await?;
    let query = sqlx::query("UPDATE audit_end SET seq = $1, hash = $2 WHERE name = 'first'");
    query.bind(stored(last.seq)).bind(last.hash.as_str()).execute(connection).await?;
    Ok(last.seq - chain_state.first.seq)
}
