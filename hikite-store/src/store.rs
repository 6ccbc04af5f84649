//! The store: migrated when opened, cheap to clone, closed once.

use std::fmt;
use std::future::Future;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use sqlx::{Any, AnyConnection, AnyPool, Connection, Executor, Transaction};
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::connect::{ConnectTarget, DatabaseEngine, WAIT};
use crate::damage::{AuditHead, inspect_wal};
use crate::error::{StoreError, StoreFault};
use crate::migrate::{self, MigrationBackup, MigrationError, NEWEST};
use crate::pools::StorePools;
use crate::url::StoreUrl;

#[derive(Clone)]
pub struct Store(Arc<StoreInner>);

struct StoreInner {
    url: StoreUrl,
    engine: DatabaseEngine,
    pools: StorePools,
    /// The version before opening, and the current one.
    found: i64,
    version: i64,
    /// The recorded end of the audit chain, beside a file store.
    head: Option<AuditHead>,
    /// Notified when other processes may have written something.
    change_notify: Notify,
    tasks: TaskTracker,
    closing: CancellationToken,
}

/// Files of earlier versions cannot shrink.
const AUTO_VACUUM_SINCE: i64 = 7;

/// Delay before retrying a file that another process is creating.
const PAUSE: Duration = Duration::from_millis(20);

impl Store {
    /// Opens the store, creates it if missing, and migrates it to the newest version. A file is backed up beside itself
    /// before a migration.
    pub async fn open(url: &StoreUrl) -> Result<Self, StoreError> {
        Self::open_newest(url, None).await
    }

    /// Opens the store; a database server is backed up into this folder before a migration.
    pub async fn open_with_backup(url: &StoreUrl, folder: &Path) -> Result<Self, StoreError> {
        Self::open_newest(url, Some(folder)).await
    }

    async fn open_newest(url: &StoreUrl, folder: Option<&Path>) -> Result<Self, StoreError> {
        let log = inspect_wal(url);
        let store = Self::open_at(url, NEWEST, folder).await?;
        store.adopt_users().await?;
        store.report_damage(log).await;
        Ok(store)
    }

    /// Fails unless the store is reachable now. Changes nothing.
    pub async fn check_reachable(url: &StoreUrl) -> Result<(), StoreError> {
        let reached = tokio::time::timeout(WAIT, async {
            if let Some(first) = ConnectTarget::of(url)?.first().await.map_err(|error| StoreError::of(url, &error))? {
                close(first).await;
            }
            Ok(())
        });
        let silent = |_| Err(StoreError::new(StoreFault::Unreachable, url, "it does not respond"));
        reached.await.unwrap_or_else(silent)
    }

    /// Opens the store in a version that need not be the newest.
    pub(crate) async fn open_at(url: &StoreUrl, version: i64, folder: Option<&Path>) -> Result<Self, StoreError> {
        let target = ConnectTarget::of(url)?;
        let (reader, writer) = target.pools();
        let begin = Instant::now();
        let found = loop {
            let before = MigrationBackup { target: &target, url, folder };
            match prepare(&target, &writer, (version, before)).await.map_err(|refused| refused.at(url)) {
                // Switching a new file to WAL mode does not honour the busy timeout.
                Err(error) if error.fault == StoreFault::Busy && begin.elapsed() < WAIT => {
                    tokio::time::sleep(PAUSE).await;
                }
                other => break other?,
            }
        };
        Ok(Self::of(&target, url, (reader, writer), (found, version)))
    }

    fn of(target: &ConnectTarget, url: &StoreUrl, pools: (AnyPool, AnyPool), (found, version): (i64, i64)) -> Self {
        Self(Arc::new(StoreInner {
            url: url.clone(),
            engine: target.engine,
            pools: StorePools::new(target, pools),
            found,
            version,
            head: AuditHead::sidecar(url),
            change_notify: Notify::new(),
            tasks: TaskTracker::new(),
            closing: CancellationToken::new(),
        }))
    }

    /// Returns the store in its current version, without a migration.
    pub(crate) fn without_migration(target: &ConnectTarget, url: &StoreUrl, version: i64) -> Self {
        Self::of(target, url, target.pools(), (version, version))
    }

    pub(crate) fn version(&self) -> i64 {
        self.0.version
    }

    pub fn url(&self) -> &StoreUrl {
        &self.0.url
    }

    /// Returns the version before opening; zero for a new store.
    pub fn found_version(&self) -> i64 {
        self.0.found
    }

    /// Waits for running work and closes all connections. Later queries fail.
    pub async fn close(&self) {
        self.0.closing.cancel();
        self.0.tasks.close();
        self.0.tasks.wait().await;
        self.pools().close().await;
    }

    pub(crate) fn engine(&self) -> DatabaseEngine {
        self.0.engine
    }

    pub(crate) fn pools(&self) -> &StorePools {
        self.0.pools.current()
    }

    pub(crate) fn reader(&self) -> &AnyPool {
        &self.pools().reader
    }

    pub(crate) fn writer(&self) -> &AnyPool {
        &self.pools().writer
    }

    pub(crate) fn head(&self) -> Option<&AuditHead> {
        self.0.head.as_ref()
    }

    pub(crate) fn change_notify(&self) -> &Notify {
        &self.0.change_notify
    }

    pub(crate) async fn begin(&self) -> Result<Transaction<'static, Any>, StoreError> {
        self.writer().begin_with(self.engine().begin_write()).await.map_err(self.failed())
    }

    /// Begins a transaction with a consistent snapshot.
    pub(crate) async fn snapshot(&self) -> Result<Transaction<'static, Any>, StoreError> {
        self.reader().begin_with(self.engine().begin_snapshot()).await.map_err(self.failed())
    }

    pub(crate) fn failed(&self) -> impl Fn(sqlx::Error) -> StoreError + use<'_> {
        |error| StoreError::of(self.url(), &error)
    }

    pub(crate) fn refused(&self, fault: StoreFault, reason: impl Into<String>) -> StoreError {
        StoreError::new(fault, self.url(), reason)
    }

    /// Spawns a task that ends when it is done or the store is closed.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let closing = self.0.closing.clone();
        self.0.tasks.spawn(async move {
            closing.run_until_cancelled(task).await;
        });
    }
}

async fn prepare(
    target: &ConnectTarget,
    writer: &AnyPool,
    (version, before): (i64, MigrationBackup<'_>),
) -> Result<i64, MigrationError> {
    let Some(mut first) = target.first().await? else {
        return migrate::migrate(&mut *writer.acquire().await?, target.engine, version, None).await;
    };
    let outcome = migrate::migrate(&mut first, target.engine, version, Some(before)).await;
    if target.engine == DatabaseEngine::Sqlite && matches!(outcome, Ok(found) if found > 0 && found < AUTO_VACUUM_SINCE)
    {
        vacuum(&mut first).await;
    }
    close(first).await;
    outcome
}

/// Rewrites a file of an earlier version once, so that free pages can be returned to the file system. Without enough
/// space, or with a concurrent writer, it stays as it is: free pages are then reused but not returned.
async fn vacuum(connection: &mut AnyConnection) {
    match connection.execute("VACUUM").await {
        Ok(_) => {
            tracing::info!("the store was rewritten; space of trimmed records is returned to the disk from now on");
        }
        Err(error) => {
            tracing::warn!("failed to rewrite the store; it does not shrink when records are trimmed: {error}");
        }
    }
}

/// Closes a connection; fails only if the peer is gone.
async fn close(connection: AnyConnection) {
    let _ = connection.close().await;
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Store({})", self.0.url)
    }
}

#[cfg(test)]
mod tests {
    use hikite_core::json::Raw;
    use hikite_core::key::ToolKey;

    use super::*;
    use crate::control::RegisteredToolRow;

    /// The gateway awaits these futures on a multi-threaded runtime.
    #[test]
    fn what_the_store_does_may_move_between_threads() {
        fn movable(_: impl Send) {}
        fn all(store: &'static Store, tool: &'static RegisteredToolRow) {
            movable(Store::open(store.url()));
            movable(store.registered());
            movable(store.put_registered_tool(tool, true));
            movable(store.remove_registered_tool(&tool.key));
            movable(store.switches());
            movable(store.set_switch(&tool.key, true));
            movable(store.projects());
            movable(store.remove_project(""));
            movable(store.tokens());
            movable(store.remove_token(""));
            movable(store.users());
            movable(store.change_users(&[]));
            movable(store.adopt_users());
            movable(store.documents().all("", None, 0));
            movable(store.documents().take("", "", 0));
            movable(store.grants().take("", 0));
            movable(store.vault_secrets());
            movable(store.take_lease("", "", PAUSE));
            movable(store.nodes());
            movable(store.take_session("", "", 0));
            movable(store.changed(PAUSE));
            movable(store.first_seen());
            movable(store.note_seen(&[], 0));
            movable(store.answers());
            movable(store.revision());
            movable(store.list_cache());
            movable(store.vectors("", &[], 0));
            movable(store.put_vectors("", &[], 0));
            movable(store.remembered(None));
            movable(store.remember(&[], &[]));
            movable(store.forget(None));
            movable(store.check());
            movable(store.copy_to(store));
            movable(store.backup(std::path::Path::new("")));
            movable(store.close());
        }
        let _ = all;
    }

    #[tokio::test]
    async fn a_store_in_memory_is_whole_and_each_one_is_another() {
        let (one, other) = (
            Store::open(&StoreUrl::memory()).await.expect("one"),
            Store::open(&StoreUrl::memory()).await.expect("two"),
        );
        let tool = RegisteredToolRow { key: ToolKey::new("m", "t"), form: Raw::empty_object(), registered_at: 1 };
        assert!(one.put_registered_tool(&tool, false).await.expect("put"));
        assert_eq!(one.registered().await.expect("read"), [tool]);
        assert_eq!(other.registered().await.expect("read"), []);
        assert_eq!(one.check().await.expect("checked"), [""; 0]);
        one.close().await;
        let error = one.revision().await.expect_err("closed");
        assert!(error.to_string().contains("closed"), "{error}");
    }
}
