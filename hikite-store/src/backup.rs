//! Backup of the store into one SQLite file, from any engine, consistent under concurrent writes.

use std::fs;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::pin::Pin;

use sqlx::Row;

use crate::connect::DatabaseEngine;
use crate::database::Database;
use crate::error::{StoreError, StoreFault};
use crate::migrate::MigrationBackup;
use crate::store::Store;
use crate::url::{StoreLocation, StoreUrl, sidecar};

impl Store {
    /// Writes a backup and returns its size. The file is written under a temporary name and renamed, so there is never
    /// a partial copy under its name. It can be used as a store directly: `sqlite:FILE`.
    pub async fn backup(&self, to: &Path) -> Result<u64, StoreError> {
        if fs::symlink_metadata(to).is_ok() {
            return Err(self.0.refused(StoreFault::Exists, format!("`{}` already exists", to.display())));
        }
        backup_to(&self.0, to).await
    }
}

impl Database {
    /// Writes the journal into the database file, because only that file is renamed. Closing the connection does so
    /// too, but at an unspecified time.
    pub(crate) async fn checkpoint_journal(&self) -> Result<(), StoreError> {
        let query = sqlx::query("PRAGMA wal_checkpoint(TRUNCATE)");
        let row = query.fetch_one(self.writer()).await.map_err(self.failed())?;
        let busy: i64 = row.try_get(0).map_err(self.failed())?;
        if busy != 0 {
            return Err(self.refused(StoreFault::Busy, "another process reads the copy while it is written"));
        }
        Ok(())
    }
}

async fn backup_to(database: &Database, to: &Path) -> Result<u64, StoreError> {
    let refused = |error: io::Error| StoreError::new(StoreFault::NotWritable, &StoreUrl::file(to), error.to_string());
    let temporary = sidecar(to, ".new");
    // An interrupted earlier copy may be left over.
    remove(&temporary);
    // SQLite writes into the empty file and keeps its permissions.
    fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary).map_err(refused)?;
    let outcome =
        write_copy(database, &temporary).await.and_then(|()| sync_and_rename(&temporary, to).map_err(refused));
    remove(&temporary);
    outcome
}

async fn write_copy(database: &Database, file: &Path) -> Result<(), StoreError> {
    match database.engine {
        DatabaseEngine::Sqlite => {
            let query = sqlx::query("VACUUM INTO $1").bind(file.to_string_lossy().into_owned());
            // The statement only reads, so it works next to a migration that waits for it.
            query.execute(database.writer()).await.map(drop).map_err(database.failed())
        }
        DatabaseEngine::Postgres => {
            let copy = Store::open_at(&StoreUrl::file(file), database.version, None).await?;
            let outcome = match database.copy_to(&copy.0, false).await {
                Ok(_) => copy.0.checkpoint_journal().await,
                Err(error) => Err(error),
            };
            copy.close().await;
            outcome
        }
    }
}

/// Copies a store before a migration, in its current version, so that the previous program can open the copy.
pub(crate) fn before_migration<'a>(
    before: &'a MigrationBackup<'_>,
    found: i64,
) -> Pin<Box<dyn Future<Output = Result<(), StoreError>> + Send + 'a>> {
    // Boxed, because opening the copy recurses into opening a store.
    Box::pin(copy_before(before, found))
}

async fn copy_before(before: &MigrationBackup<'_>, found: i64) -> Result<(), StoreError> {
    let Some(to) = backup_path(before, found) else {
        tracing::warn!("the store is migrated to a newer version without a backup because no folder is configured");
        return Ok(());
    };
    let store = Store::without_migration(before.target, before.url, found);
    let outcome = backup_to(&store.0, &to).await;
    store.close().await;
    let bytes = outcome?;
    tracing::info!(bytes, "the store was backed up to `{}` before its migration to a newer version", to.display());
    Ok(())
}

/// Returns an unused file name that contains the version.
fn backup_path(before: &MigrationBackup<'_>, found: i64) -> Option<PathBuf> {
    let first = match &before.url.0 {
        StoreLocation::File(path) => sidecar(path, &format!(".v{found}")),
        StoreLocation::Memory => return None,
        StoreLocation::Postgres(_) => before.folder?.join(format!("postgres-store.db.v{found}")),
    };
    let numbered = |number: u32| sidecar(&first, &format!("-{number}"));
    let mut names = std::iter::once(first.clone()).chain((2..).map(numbered));
    names.find(|name| fs::symlink_metadata(name).is_err())
}

/// Syncs the file, renames it, and syncs the directory.
fn sync_and_rename(temporary: &Path, to: &Path) -> io::Result<u64> {
    let file = fs::File::open(temporary)?;
    file.sync_all()?;
    fs::rename(temporary, to)?;
    let folder = to.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::File::open(folder)?.sync_all()?;
    Ok(file.metadata()?.len())
}

/// Removes the remains of a failed copy.
fn remove(temporary: &Path) {
    for end in ["", "-wal", "-shm", "-journal"] {
        let _ = fs::remove_file(sidecar(temporary, end));
    }
}
