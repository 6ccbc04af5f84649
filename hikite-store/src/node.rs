//! The processes (nodes) that share a store, and which of them holds a session that moved. All times are the
//! database's, so machine clocks do not matter. A node that was declared gone cannot return under its id.

use std::time::Duration;

use sqlx::Row;

use crate::connect::DatabaseEngine;
use crate::database::Database;
use crate::error::StoreError;
use crate::lease::Lease;
use crate::schema::{shown, stored};

/// A node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeRow {
    pub id: String,
    /// The URL at which other nodes reach it.
    pub url: String,
}

const NODE: &str = "node:";
const SESSION: &str = "session:";
/// Must be written exactly as in the table's indexes, or they are not used.
const IS_NODE: &str = "substr(name, 1, 5) = 'node:'";
pub(crate) const IS_SESSION: &str = "substr(name, 1, 8) = 'session:'";
/// Retention of a changed or missing holder of a session.
const MOVED_SESSION_TTL: Duration = Duration::from_secs(30 * 24 * 3600);
/// The holder of an ended session.
pub const NOBODY: &str = "";

/// The nodes on a store and their sessions.
#[derive(Debug)]
pub struct NodeTable<'a>(pub(crate) &'a Database);

impl NodeTable<'_> {
    /// Registers a new node. `id` must never have been used before.
    pub async fn announce(&self, id: &str, url: &str, life: Duration) -> Result<(), StoreError> {
        let text = format!(
            "INSERT INTO lease (name, holder, fence, until) VALUES ($1, $2, 1, {} + $3)",
            self.0.engine.now_ms()
        );
        let query = sqlx::query(&text).bind(format!("{NODE}{id}")).bind(self.0.checked_text(url)?);
        query.bind(whole(life)).execute(self.0.writer()).await.map_err(self.0.failed())?;
        self.notify_others().await
    }

    /// Extends the registration of a node. Returns `false` if others have declared it gone.
    pub async fn renew(&self, id: &str, life: Duration) -> Result<bool, StoreError> {
        let text = format!("UPDATE lease SET until = {} + $1 WHERE name = $2 AND fence = 1", self.0.engine.now_ms());
        let query = sqlx::query(&text).bind(whole(life)).bind(format!("{NODE}{id}"));
        let done = query.execute(self.0.writer()).await.map_err(self.0.failed())?;
        Ok(done.rows_affected() > 0)
    }

    /// Deregisters a node early.
    pub async fn end(&self, id: &str) -> Result<(), StoreError> {
        let query = sqlx::query("UPDATE lease SET fence = 2, until = 0 WHERE name = $1 AND fence = 1");
        let query = query.bind(format!("{NODE}{id}"));
        query.execute(self.0.writer()).await.map_err(self.0.failed())?;
        self.notify_others().await
    }

    /// Returns `true` if a node is gone. An expired node is declared gone and cannot return.
    pub async fn is_gone(&self, id: &str) -> Result<bool, StoreError> {
        let name = format!("{NODE}{id}");
        let now = self.0.engine.now_ms();
        let text = format!("UPDATE lease SET fence = 2 WHERE name = $1 AND fence = 1 AND until <= {now}");
        sqlx::query(&text).bind(&*name).execute(self.0.writer()).await.map_err(self.0.failed())?;
        let query = sqlx::query("SELECT 1 FROM lease WHERE name = $1 AND fence = 1").bind(&*name);
        Ok(query.fetch_optional(self.0.writer()).await.map_err(self.0.failed())?.is_none())
    }

    /// Returns all live nodes.
    pub async fn all(&self) -> Result<Vec<NodeRow>, StoreError> {
        let text = nodes_query(self.0.engine);
        let rows = sqlx::query(&text).fetch_all(self.0.writer()).await.map_err(self.0.failed())?;
        let read = |row: &sqlx::any::AnyRow| -> Result<NodeRow, sqlx::Error> {
            let name: String = row.try_get(0)?;
            Ok(NodeRow { id: name[NODE.len()..].to_owned(), url: row.try_get(1)? })
        };
        rows.iter().map(read).collect::<Result<_, _>>().map_err(self.0.failed())
    }

    /// Returns the lease of a session, if it moved from its first node or ended.
    pub async fn session_lease(&self, session: &str) -> Result<Option<Lease>, StoreError> {
        let name = format!("{SESSION}{session}");
        let query = sqlx::query("SELECT holder, fence, until FROM lease WHERE name = $1").bind(&*name);
        let Some(row) = query.fetch_optional(self.0.writer()).await.map_err(self.0.failed())? else {
            return Ok(None);
        };
        let read = || -> Result<_, sqlx::Error> { Ok((row.try_get(0)?, row.try_get(1)?, row.try_get(2)?)) };
        let (holder, fence, until) = read().map_err(self.0.failed())?;
        Ok(Some(Lease { name, holder, fence: shown(fence), until: shown(until) }))
    }

    /// Makes a node the holder of a session, unless its fence has changed from `seen`; zero means no lease.
    pub async fn take_session(&self, session: &str, holder: &str, seen: u64) -> Result<bool, StoreError> {
        let text = format!(
            "INSERT INTO lease (name, holder, fence, until) VALUES ($1, $2, 1, {} + $3) ON CONFLICT (name) \
             DO UPDATE SET holder = excluded.holder, fence = lease.fence + 1, until = excluded.until \
             WHERE lease.fence = $4",
            self.0.engine.now_ms()
        );
        let query = sqlx::query(&text).bind(format!("{SESSION}{session}")).bind(holder);
        let query = query.bind(whole(MOVED_SESSION_TTL)).bind(stored(seen));
        let done = query.execute(self.0.writer()).await.map_err(self.0.failed())?;
        Ok(done.rows_affected() > 0)
    }

    /// Ends a session; no node can reopen it.
    pub async fn end_session(&self, session: &str) -> Result<(), StoreError> {
        loop {
            let seen = self.session_lease(session).await?.map_or(0, |lease| lease.fence);
            if self.take_session(session, NOBODY, seen).await? {
                return Ok(());
            }
        }
    }

    /// Extends the leases of a node's sessions and deletes expired ones.
    pub async fn renew_sessions(&self, holder: &str) -> Result<(), StoreError> {
        let now = self.0.engine.now_ms();
        let text = format!("UPDATE lease SET until = {now} + $1 WHERE {IS_SESSION} AND holder = $2");
        let query = sqlx::query(&text).bind(whole(MOVED_SESSION_TTL)).bind(holder);
        query.execute(self.0.writer()).await.map_err(self.0.failed())?;
        let text = format!("DELETE FROM lease WHERE {IS_SESSION} AND until <= {now}");
        sqlx::query(&text).execute(self.0.writer()).await.map_err(self.0.failed())?;
        // The fence of an ended node differs from that of a live one.
        let text = format!("DELETE FROM lease WHERE {IS_NODE} AND fence IN (1, 2) AND until <= {now} - $1");
        let query = sqlx::query(&text).bind(whole(MOVED_SESSION_TTL));
        query.execute(self.0.writer()).await.map_err(self.0.failed()).map(drop)
    }

    async fn notify_others(&self) -> Result<(), StoreError> {
        let Some(text) = self.0.engine.notify_others() else { return Ok(()) };
        sqlx::query(text).execute(self.0.writer()).await.map_err(self.0.failed()).map(drop)
    }
}

/// Returns the query that every node runs once a second.
pub(crate) fn nodes_query(engine: DatabaseEngine) -> String {
    format!("SELECT name, holder FROM lease WHERE {IS_NODE} AND fence = 1 AND until > {}", engine.now_ms())
}

fn whole(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}
