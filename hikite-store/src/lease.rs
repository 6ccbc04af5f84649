//! Leases: exclusive rights of one process, held until released or expired. The fence distinguishes a late holder from
//! its successor.

use std::time::Duration;

use sqlx::Row;

use crate::database::Database;
use crate::error::StoreError;
use crate::schema::{shown, stored};

/// A held lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    pub name: String,
    pub holder: String,
    /// Fencing token, greater than that of all previous holders.
    pub fence: u64,
    /// Milliseconds since 1970, by the database's clock.
    pub until: u64,
}

/// The leases of a store.
#[derive(Debug)]
pub struct LeaseTable<'a>(pub(crate) &'a Database);

impl LeaseTable<'_> {
    /// Takes a lease for some time, unless another process holds it. The holder can extend it, keeping its fence. Times
    /// are the database's, so a node with a wrong clock neither steals a lease nor keeps its own too long.
    pub async fn take(&self, name: &str, holder: &str, life: Duration) -> Result<Option<Lease>, StoreError> {
        let now = self.0.engine.now_ms();
        let text = format!(
            "INSERT INTO lease (name, holder, fence, until) VALUES ($1, $2, 1, {now} + $3) ON CONFLICT (name) DO UPDATE \
             SET fence = lease.fence + CASE WHEN lease.holder = excluded.holder AND lease.until > {now} THEN 0 ELSE 1 END, \
             holder = excluded.holder, until = excluded.until \
             WHERE lease.holder = excluded.holder OR lease.until <= {now} RETURNING fence, until"
        );
        let query = sqlx::query(&text).bind(self.0.checked_text(name)?).bind(self.0.checked_text(holder)?);
        let query = query.bind(i64::try_from(life.as_millis()).unwrap_or(i64::MAX));
        let row = query.fetch_optional(self.0.writer()).await.map_err(self.0.failed())?;
        let Some(row) = row else { return Ok(None) };
        let read = || -> Result<(i64, i64), sqlx::Error> { Ok((row.try_get(0)?, row.try_get(1)?)) };
        let (fence, until) = read().map_err(self.0.failed())?;
        Ok(Some(Lease { name: name.into(), holder: holder.into(), fence: shown(fence), until: shown(until) }))
    }

    /// Releases a lease early, if it is still held.
    pub async fn release(&self, lease: &Lease) -> Result<bool, StoreError> {
        let query = sqlx::query("UPDATE lease SET until = 0 WHERE name = $1 AND holder = $2 AND fence = $3");
        let query = query.bind(&*lease.name).bind(&*lease.holder).bind(stored(lease.fence));
        let done = query.execute(self.0.writer()).await.map_err(self.0.failed())?;
        Ok(done.rows_affected() > 0)
    }
}
