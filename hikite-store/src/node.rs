//! The processes that share a store, and which of them holds a session whose first holder is gone. All times are those of
//! the database, so that no clock of a machine matters. A process that was declared gone never comes back under its name.

use std::time::Duration;

use sqlx::Row;

use crate::connect::Engine;
use crate::control::{shown, stored};
use crate::error::StoreError;
use crate::lease::Lease;
use crate::store::Store;

/// One of the processes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeRow {
    pub id: String,
    /// Where the others reach it.
    pub url: String,
}

const NODE: &str = "node:";
const SESSION: &str = "session:";
/// Written exactly as the indexes of the table have it, or they are not used.
const IS_NODE: &str = "substr(name, 1, 5) = 'node:'";
pub(crate) const IS_SESSION: &str = "substr(name, 1, 8) = 'session:'";
/// For how long it is remembered that a session has another holder, or none, since somebody last said so.
const REMEMBERED: Duration = Duration::from_secs(30 * 24 * 3600);
/// The holder of what is over.
pub const NOBODY: &str = "";

impl Store {
    /// Says that a new process is there. `id` is one that was never used before.
    pub async fn announce_node(&self, id: &str, url: &str, life: Duration) -> Result<(), StoreError> {
        let text = format!(
            "INSERT INTO lease (name, holder, fence, until) VALUES ($1, $2, 1, {} + $3)",
            self.engine().now_ms()
        );
        let query = sqlx::query(&text).bind(format!("{NODE}{id}")).bind(self.keepable_text(url)?);
        query.bind(whole(life)).execute(self.writer()).await.map_err(self.failed())?;
        self.tell().await
    }

    /// Says that it is still there. `false` if the others have declared it gone.
    pub async fn renew_node(&self, id: &str, life: Duration) -> Result<bool, StoreError> {
        let text =
            format!("UPDATE lease SET until = {} + $1 WHERE name = $2 AND fence = 1", self.engine().now_ms());
        let query = sqlx::query(&text).bind(whole(life)).bind(format!("{NODE}{id}"));
        let done = query.execute(self.writer()).await.map_err(self.failed())?;
        Ok(done.rows_affected() > 0)
    }

    /// Says that it goes, before its time is over.
    pub async fn end_node(&self, id: &str) -> Result<(), StoreError> {
        let query = sqlx::query("UPDATE lease SET fence = 2, until = 0 WHERE name = $1 AND fence = 1");
        let query = query.bind(format!("{NODE}{id}"));
        query.execute(self.writer()).await.map_err(self.failed())?;
        self.tell().await
    }

    /// Whether it is gone. One whose time is over is declared so, and cannot come back.
    pub async fn is_node_gone(&self, id: &str) -> Result<bool, StoreError> {
        let name = format!("{NODE}{id}");
        let now = self.engine().now_ms();
        let text = format!("UPDATE lease SET fence = 2 WHERE name = $1 AND fence = 1 AND until <= {now}");
        sqlx::query(&text).bind(&*name).execute(self.writer()).await.map_err(self.failed())?;
        let query = sqlx::query("SELECT 1 FROM lease WHERE name = $1 AND fence = 1").bind(&*name);
        Ok(query.fetch_optional(self.writer()).await.map_err(self.failed())?.is_none())
    }

    /// All that are there.
    pub async fn nodes(&self) -> Result<Vec<NodeRow>, StoreError> {
        let text = nodes_query(self.engine());
        let rows = sqlx::query(&text).fetch_all(self.writer()).await.map_err(self.failed())?;
        let read = |row: &sqlx::any::AnyRow| -> Result<NodeRow, sqlx::Error> {
            let name: String = row.try_get(0)?;
            Ok(NodeRow { id: name[NODE.len()..].to_owned(), url: row.try_get(1)? })
        };
        rows.iter().map(read).collect::<Result<_, _>>().map_err(self.failed())
    }

    /// Who holds a session, if anybody does but the process that it began in.
    pub async fn session_lease(&self, session: &str) -> Result<Option<Lease>, StoreError> {
        let name = format!("{SESSION}{session}");
        let query = sqlx::query("SELECT holder, fence, until FROM lease WHERE name = $1").bind(&*name);
        let Some(row) = query.fetch_optional(self.writer()).await.map_err(self.failed())? else {
            return Ok(None);
        };
        let read = || -> Result<_, sqlx::Error> { Ok((row.try_get(0)?, row.try_get(1)?, row.try_get(2)?)) };
        let (holder, fence, until) = read().map_err(self.failed())?;
        Ok(Some(Lease { name, holder, fence: shown(fence), until: shown(until) }))
    }

    /// Makes a process the holder of a session, if nobody was faster since its fence was `seen`; zero is none.
    pub async fn take_session(&self, session: &str, holder: &str, seen: u64) -> Result<bool, StoreError> {
        let text = format!(
            "INSERT INTO lease (name, holder, fence, until) VALUES ($1, $2, 1, {} + $3) ON CONFLICT (name) \
             DO UPDATE SET holder = excluded.holder, fence = lease.fence + 1, until = excluded.until \
             WHERE lease.fence = $4",
            self.engine().now_ms()
        );
        let query = sqlx::query(&text).bind(format!("{SESSION}{session}")).bind(holder);
        let query = query.bind(whole(REMEMBERED)).bind(stored(seen));
        let done = query.execute(self.writer()).await.map_err(self.failed())?;
        Ok(done.rows_affected() > 0)
    }

    /// The session is over: nobody takes it up again.
    pub async fn end_session(&self, session: &str) -> Result<(), StoreError> {
        loop {
            let seen = self.session_lease(session).await?.map_or(0, |lease| lease.fence);
            if self.take_session(session, NOBODY, seen).await? {
                return Ok(());
            }
        }
    }

    /// What a process holds is remembered for longer, and what is too old is forgotten.
    pub async fn tend_sessions(&self, holder: &str) -> Result<(), StoreError> {
        let now = self.engine().now_ms();
        let text = format!("UPDATE lease SET until = {now} + $1 WHERE {IS_SESSION} AND holder = $2");
        let query = sqlx::query(&text).bind(whole(REMEMBERED)).bind(holder);
        query.execute(self.writer()).await.map_err(self.failed())?;
        let text = format!("DELETE FROM lease WHERE {IS_SESSION} AND until <= {now}");
        sqlx::query(&text).execute(self.writer()).await.map_err(self.failed())?;
        // One that ended or was declared gone has another fence than one that is there.
        let text = format!("DELETE FROM lease WHERE {IS_NODE} AND fence IN (1, 2) AND until <= {now} - $1");
        let query = sqlx::query(&text).bind(whole(REMEMBERED));
        query.execute(self.writer()).await.map_err(self.failed()).map(drop)
    }

    async fn tell(&self) -> Result<(), StoreError> {
        let Some(text) = self.engine().tell() else { return Ok(()) };
        sqlx::query(text).execute(self.writer()).await.map_err(self.failed()).map(drop)
    }
}

/// Asked every second, by every node.
pub(crate) fn nodes_query(engine: Engine) -> String {
    format!("SELECT name, holder FROM lease WHERE {IS_NODE} AND fence = 1 AND until > {}", engine.now_ms())
}

fn whole(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}
