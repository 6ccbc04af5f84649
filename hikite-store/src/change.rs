//! The change log: which rows each revision touched. A process that follows the store reads only those rows; on a gap
//! (an older node wrote something, or too much happened) it reads everything.

use std::sync::atomic::Ordering;
use std::time::Duration;

use sqlx::{Any, AnyPool, Row, Transaction};

use crate::connect::DatabaseEngine;
use crate::database::Database;
use crate::error::{StoreError, StoreFault};

/// The schema version that introduced the log.
pub(crate) const LOG_SINCE: i64 = 9;
/// Timeout of the revision query. Shorter than all others, so that it fires first.
const REVISION_TIMEOUT: Duration = Duration::from_secs(4);
/// Number of retained revisions; a process that is further behind reads everything.
const REVISIONS_RETAINED: i64 = 4096;
/// Old revisions are removed at every change whose revision is a multiple of this.
const TRIM_EVERY: i64 = 256;

/// The kinds of changed rows. Documents use their own kinds.
pub mod kind {
    pub const PROJECT: &str = "project";
    pub const TOKEN: &str = "token";
    /// All tokens of the project with this id.
    pub const TOKENS_OF_PROJECT: &str = "tokens-of-project";
    pub const USER: &str = "users";
    pub const TOOL: &str = "registered-tool";
    pub const SWITCH: &str = "tool-switch";
    pub const VAULT: &str = "vault";
    pub const MEMORY: &str = "memory";
}

/// A row that was created, changed or removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowChange {
    pub kind: String,
    /// The id; empty if all of the kind may have changed.
    pub id: String,
}

/// The changes between two revisions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangeSet {
    /// The revision before the first change.
    pub from: i64,
    /// The revision of the last change.
    pub to: i64,
    /// The changed rows; `None` if unknown, so that everything may have changed.
    pub touched: Option<Vec<RowChange>>,
}

impl ChangeSet {
    /// Returns the changed ids of a kind; `None` if all may have changed.
    pub fn ids(&self, kind: &str) -> Option<Vec<&str>> {
        let touched = self.touched.as_ref()?.iter().filter(|change| change.kind == kind);
        let mut ids: Vec<&str> = touched.map(|change| change.id.as_str()).collect();
        ids.sort_unstable();
        ids.dedup();
        (ids.first() != Some(&"")).then_some(ids)
    }

    /// Returns `true` if a row of one of these kinds may have changed.
    pub fn concern(&self, kinds: &[&str]) -> bool {
        let is_one = |change: &RowChange| kinds.contains(&change.kind.as_str());
        self.touched.as_ref().is_none_or(|touched| touched.iter().any(is_one))
    }

    /// Returns `true` if the changes are complete since a revision.
    pub fn continue_from(&self, revision: i64) -> bool {
        self.touched.is_some() && self.from <= revision
    }
}

/// The revisions of a store and the rows that each touched.
#[derive(Debug)]
pub struct ChangeLog<'a>(pub(crate) &'a Database);

impl ChangeLog<'_> {
    /// Returns the revision, which grows with every change that other processes must see. Connections that do not
    /// answer this query in time are replaced.
    pub async fn revision(&self) -> Result<i64, StoreError> {
        let pools = self.0.pools();
        if self.0.engine == DatabaseEngine::Sqlite {
            return query_revision(&pools.watch).await.map_err(self.0.failed());
        }
        match tokio::time::timeout(REVISION_TIMEOUT, query_revision(&pools.watch)).await {
            Ok(answer) => {
                let revision = answer.map_err(self.0.failed())?;
                pools.has_answered.store(true, Ordering::Relaxed);
                Ok(revision)
            }
            Err(_) => {
                self.0.replace(pools);
                Err(self.0.refused(StoreFault::Unreachable, "it does not respond"))
            }
        }
    }

    /// Returns the changes since a known revision; with a negative one, everything.
    pub async fn since(&self, known: i64) -> Result<ChangeSet, StoreError> {
        let to = self.revision().await?;
        let nothing = ChangeSet { from: known, to, touched: Some(Vec::new()) };
        if known == to {
            return Ok(nothing);
        }
        let span = to - known;
        if known < 0 || !(0..=REVISIONS_RETAINED).contains(&span) || self.0.version < LOG_SINCE {
            return Ok(ChangeSet { touched: None, ..nothing });
        }
        let text = "SELECT revision, kind, id FROM change_log WHERE revision > $1 AND revision <= $2 ORDER BY revision";
        let query = sqlx::query(text).bind(known).bind(to);
        let rows = query.fetch_all(self.0.reader()).await.map_err(self.0.failed())?;
        let (mut last, mut revisions, mut touched) = (known, 0, Vec::with_capacity(rows.len()));
        for row in &rows {
            let (revision, kind, id): (i64, String, String) =
                (|| Ok((row.try_get(0)?, row.try_get(1)?, row.try_get(2)?)))().map_err(self.0.failed())?;
            revisions += i64::from(revision != last);
            last = revision;
            touched.push(RowChange { kind, id });
        }
        Ok(ChangeSet { touched: (revisions == span).then_some(touched), ..nothing })
    }
}

impl Database {
    /// Increments the revision in a transaction and logs the touched rows. Without any, all processes read everything.
    pub(crate) async fn raise_revision(
        &self,
        transaction: &mut Transaction<'_, Any>,
        touched: &[(&str, &str)],
    ) -> Result<(), StoreError> {
        let text = "UPDATE hikite SET value = value + 1 WHERE name = 'revision' RETURNING value";
        let row = sqlx::query(text).fetch_one(&mut **transaction).await.map_err(self.failed())?;
        if self.version < LOG_SINCE {
            return Ok(());
        }
        let revision: i64 = row.try_get(0).map_err(self.failed())?;
        for (kind, id) in touched {
            let text = "INSERT INTO change_log (revision, kind, id) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING";
            let query = sqlx::query(text).bind(revision).bind(*kind).bind(*id);
            query.execute(&mut **transaction).await.map_err(self.failed())?;
        }
        if revision % TRIM_EVERY == 0 {
            let query = sqlx::query("DELETE FROM change_log WHERE revision <= $1").bind(revision - REVISIONS_RETAINED);
            query.execute(&mut **transaction).await.map_err(self.failed())?;
        }
        Ok(())
    }
}

async fn query_revision(pool: &AnyPool) -> Result<i64, sqlx::Error> {
    let query = sqlx::query("SELECT value FROM hikite WHERE name = 'revision'");
    query.fetch_one(pool).await?.try_get(0)
}
