//! The store: migrated when opened, cheap to clone, closed once.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use sqlx::{AnyConnection, AnyPool, Connection, Executor};
use tokio::time::Instant;

use crate::account::AccountRow;
use crate::audit::AuditLog;
use crate::change::ChangeLog;
use crate::client::ClientRow;
use crate::clock::StoreClock;
use crate::connect::{ConnectTarget, DatabaseEngine, WAIT};
use crate::consent::ConsentRow;
use crate::control::ToolTable;
use crate::damage::{inspect_wal, report_damage};
use crate::database::Database;
use crate::document::Documents;
use crate::error::{StoreError, StoreFault};
use crate::grant::GrantRow;
use crate::lease::LeaseTable;
use crate::login::LoginRow;
use crate::memory::SearchTables;
use crate::migrate::{self, MigrationBackup, MigrationError, NEWEST};
use crate::node::NodeTable;
use crate::passkey::PasskeyRow;
use crate::pin::PinRow;
use crate::project::ProjectTable;
use crate::record::Records;
use crate::token::TokenTable;
use crate::url::StoreUrl;
use crate::user::UserTable;
use crate::vault::VaultTable;

/// An open store. Each kind of rows has a handle that borrows the store.
#[derive(Clone)]
pub struct Store(pub(crate) Arc<Database>);

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
        store.users().adopt().await?;
        report_damage(&store.0, log).await;
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
        Ok(Self(Arc::new(Database::new(&target, url, (reader, writer), (found, version)))))
    }

    /// Returns the store in its current version, without a migration.
    pub(crate) fn without_migration(target: &ConnectTarget, url: &StoreUrl, version: i64) -> Self {
        Self(Arc::new(Database::new(target, url, target.pools(), (version, version))))
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
        self.0.close().await;
    }

    pub fn audit(&self) -> AuditLog<'_> {
        AuditLog(&self.0)
    }

    pub fn users(&self) -> UserTable<'_> {
        UserTable(&self.0)
    }

    pub fn projects(&self) -> ProjectTable<'_> {
        ProjectTable(&self.0)
    }

    pub fn tokens(&self) -> TokenTable<'_> {
        TokenTable(&self.0)
    }

    pub fn logins(&self) -> Records<'_, LoginRow> {
        Records::new(&self.0)
    }

    pub fn passkeys(&self) -> Records<'_, PasskeyRow> {
        Records::new(&self.0)
    }

    pub fn clients(&self) -> Records<'_, ClientRow> {
        Records::new(&self.0)
    }

    pub fn consents(&self) -> Records<'_, ConsentRow> {
        Records::new(&self.0)
    }

    pub fn grants(&self) -> Records<'_, GrantRow> {
        Records::new(&self.0)
    }

    pub fn accounts(&self) -> Records<'_, AccountRow> {
        Records::new(&self.0)
    }

    pub fn pins(&self) -> Records<'_, PinRow> {
        Records::new(&self.0)
    }

    pub fn changes(&self) -> ChangeLog<'_> {
        ChangeLog(&self.0)
    }

    pub fn documents(&self) -> Documents<'_> {
        Documents(&self.0)
    }

    pub fn vault(&self) -> VaultTable<'_> {
        VaultTable(&self.0)
    }

    pub fn tools(&self) -> ToolTable<'_> {
        ToolTable(&self.0)
    }

    pub fn search(&self) -> SearchTables<'_> {
        SearchTables(&self.0)
    }

    pub fn nodes(&self) -> NodeTable<'_> {
        NodeTable(&self.0)
    }

    pub fn leases(&self) -> LeaseTable<'_> {
        LeaseTable(&self.0)
    }

    pub fn clock(&self) -> StoreClock<'_> {
        StoreClock(&self.0)
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
            movable(store.tools().registered());
            movable(store.tools().put(tool, true));
            movable(store.tools().remove(&tool.key));
            movable(store.tools().switches());
            movable(store.tools().set_switch(&tool.key, true));
            movable(store.projects().all());
            movable(store.projects().remove(""));
            movable(store.tokens().all());
            movable(store.tokens().remove(""));
            movable(store.users().all());
            movable(store.users().change(&[]));
            movable(store.users().adopt());
            movable(store.documents().all("", None, 0));
            movable(store.documents().take("", "", 0));
            movable(store.grants().take("", 0));
            movable(store.vault().secrets());
            movable(store.leases().take("", "", PAUSE));
            movable(store.nodes().all());
            movable(store.nodes().take_session("", "", 0));
            movable(store.changed(PAUSE));
            movable(store.tools().first_seen());
            movable(store.tools().note_seen(&[], 0));
            movable(store.changes().revision());
            movable(store.list_cache());
            movable(store.search().vectors("", &[], 0));
            movable(store.search().put_vectors("", &[], 0));
            movable(store.search().remembered(None));
            movable(store.search().remember(&[], &[]));
            movable(store.search().forget(None));
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
        assert!(one.tools().put(&tool, false).await.expect("put"));
        assert_eq!(one.tools().registered().await.expect("read"), [tool]);
        assert_eq!(other.tools().registered().await.expect("read"), []);
        assert_eq!(one.check().await.expect("checked"), [""; 0]);
        one.close().await;
        let error = one.changes().revision().await.expect_err("closed");
        assert!(error.to_string().contains("closed"), "{error}");
    }
}
