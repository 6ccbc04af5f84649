//! Leases: exclusive rights of one process, held until released or expired. The fence distinguishes a late holder from
//! its successor.

use std::time::Duration;

use sqlx::Row;

use crate::error::StoreError;
use crate::schema::{shown, stored};
use crate::store::Store;

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

impl Store {
    /// Takes a lease for some time, unless another process holds it. The holder can extend it, keeping its fence. Times
    /// are the database's, so a node with a wrong clock neither steals a lease nor keeps its own too long.
    pub async fn take_lease(&self, name: &str, holder: &str, life: Duration) -> Result<Option<Lease>, StoreError> {
        let now = self.engine().now_ms();
        let text = format!(
            "INSERT INTO lease (name, holder, fence, until) VALUES ($1, $2, 1, {now} + $3) ON CONFLICT (name) DO UPDATE \
             SET fence = lease.fence + CASE WHEN lease.holder = excluded.holder AND lease.until > {now} THEN 0 ELSE 1 END, \
             holder = excluded.holder, until = excluded.until \
             WHERE lease.holder = excluded.holder OR lease.until <= {now} RETURNING fence, until"
        );
        let query = sqlx::query(&text).bind(self.checked_text(name)?).bind(self.checked_text(holder)?);
        let query = query.bind(i64::try_from(life.as_millis()).unwrap_or(i64::MAX));
        let row = query.fetch_optional(self.writer()).await.map_err(self.failed())?;
        let Some(row) = row else { return Ok(None) };
        let read = || -> Result<(i64, i64), sqlx::Error> { Ok((row.try_get(0)?, row.try_get(1)?)) };
        let (fence, until) = read().map_err(self.failed())?;
        Ok(Some(Lease { name: name.into(), holder: holder.into(), fence: shown(fence), until: shown(until) }))
    }

    /// Releases a lease early, if it is still held.
    pub async fn release_lease(&self, lease: &Lease) -> Result<bool, StoreError> {
        let query = sqlx::query("UPDATE lease SET until = 0 WHERE name = $1 AND holder = $2 AND fence = $3");
        let query = query.bind(&*lease.name).bind(&*lease.holder).bind(stored(lease.fence));
        let done = query.execute(self.writer()).await.map_err(self.failed())?;
        Ok(done.rows_affected() > 0)
    }
}
