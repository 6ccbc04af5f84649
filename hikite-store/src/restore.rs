//! Restores a store from a backup: replaces it by a prepared SQLite file, and keeps the old one. Refused while the
//! store is in use.

use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

use sqlx::{ConnectOptions, Connection, Row};

use crate::audit_head::HEAD;
use crate::connect::{ConnectTarget, DatabaseEngine};
use crate::damage::{FINDINGS, inspect_wal};
use crate::error::{StoreError, StoreFault};
use crate::store::Store;
use crate::url::{StoreLocation, StoreUrl, sidecar};

/// Number of checks; a connection that was just closed may still be visible.
const CHECKS: u32 = 20;
const PAUSE: Duration = Duration::from_millis(100);

impl Store {
    /// Checkpoints the journal into the file and closes the store, so that the file alone can be moved.
    pub async fn settle(self) -> Result<(), StoreError> {
        let outcome = match self.0.engine {
            DatabaseEngine::Sqlite => self.0.checkpoint_journal().await,
            DatabaseEngine::Postgres => Ok(()),
        };
        self.close().await;
        outcome
    }
}

/// Fails if another connection to the store is open. Afterwards a SQLite file has no journal beside it.
pub async fn check_unused(url: &StoreUrl) -> Result<(), StoreError> {
    if url.path().is_some_and(|path| !path.exists()) || url.is_memory() {
        return Ok(());
    }
    // SQLite would read the intact part of a damaged WAL and delete the file.
    if let Some(what) = inspect_wal(url) {
        return Err(StoreError::new(StoreFault::Damaged, url, what));
    }
    let mut others = String::new();
    for _ in 0..CHECKS {
        match others_of(url).await? {
            None => return Ok(()),
            Some(who) => others = who,
        }
        tokio::time::sleep(PAUSE).await;
    }
    Err(StoreError::new(StoreFault::InUse, url, others))
}

/// Replaces the store at `url` by the file `prepared` and keeps the old one at `replaced_path`. Returns `true` if there was
/// an old one. `prepared` must be closed; it is moved or read.
pub async fn install(prepared: &Path, url: &StoreUrl, replaced_path: &Path) -> Result<bool, StoreError> {
    match &url.0 {
        StoreLocation::File(path) => {
            let refused = |error: io::Error| StoreError::new(StoreFault::NotWritable, url, error.to_string());
            swap(prepared, path, replaced_path).map_err(refused)
        }
        StoreLocation::Memory | StoreLocation::Postgres(_) => {
            let other = Store::open(url).await?;
            let outcome = replace(prepared, &other, replaced_path).await;
            other.close().await;
            outcome.map(|()| true)
        }
    }
}

/// Describes the other users of the store, if there are any.
async fn others_of(url: &StoreUrl) -> Result<Option<String>, StoreError> {
    let target = ConnectTarget::of(url)?;
    let failed = |error: sqlx::Error| StoreError::of(url, &error);
    let mut connection = target.options.clone().connect().await.map_err(failed)?;
    let text = match target.engine {
        // Leaving WAL mode succeeds only without other connections.
        DatabaseEngine::Sqlite => "PRAGMA journal_mode = DELETE",
        DatabaseEngine::Postgres => {
            "SELECT CAST(COUNT(*) AS TEXT) FROM pg_stat_activity \
             WHERE datname = current_database() AND pid <> pg_backend_pid() \
             AND COALESCE(application_name, 'hikite') = 'hikite'"
        }
    };
    let said = sqlx::query(text).fetch_one(&mut connection).await;
    let said = said.and_then(|row| row.try_get::<String, _>(0));
    let outcome = match (target.engine, said) {
        (DatabaseEngine::Sqlite, Ok(mode)) if mode.eq_ignore_ascii_case("delete") => Ok(None),
        (DatabaseEngine::Sqlite, Ok(_)) => Ok(Some("another process has it open".to_owned())),
        (DatabaseEngine::Postgres, Ok(count)) if count == "0" => Ok(None),
        (DatabaseEngine::Postgres, Ok(count)) => {
            Ok(Some(format!("hikite has {count} open connections to the database")))
        }
        (_, Err(error)) => match failed(error) {
            error if error.fault == StoreFault::Busy => Ok(Some("another process has it open".to_owned())),
            error => Err(error),
        },
    };
    let _ = connection.close().await;
    outcome
}

/// Renames both files; the old one is restored if the second rename fails.
fn swap(prepared: &Path, path: &Path, replaced_path: &Path) -> io::Result<bool> {
    if fs::symlink_metadata(replaced_path).is_ok() {
        return Err(io::Error::new(
            io::ErrorKind::AlreadyExists,
            format!("`{}` already exists", replaced_path.display()),
        ));
    }
    let had = path.exists();
    // The journal of a damaged file belongs to it.
    let ends = ["", "-wal", "-shm", "-journal", HEAD, FINDINGS];
    for end in ends.iter().filter(|end| sidecar(path, end).exists()) {
        fs::rename(sidecar(path, end), sidecar(replaced_path, end))?;
    }
    if let Err(error) = fs::rename(prepared, path) {
        for end in ends.iter().filter(|end| sidecar(replaced_path, end).exists()) {
            let _ = fs::rename(sidecar(replaced_path, end), sidecar(path, end));
        }
        return Err(error);
    }
    // The recorded end of the audit chain moves along.
    let _ = fs::rename(sidecar(prepared, HEAD), sidecar(path, HEAD));
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::File::open(folder)?.sync_all()?;
    Ok(had)
}

/// Replaces the rows of a database, after making a backup of it.
async fn replace(prepared: &Path, other: &Store, replaced_path: &Path) -> Result<(), StoreError> {
    other.backup(replaced_path).await?;
    let from = Store::open(&StoreUrl::file(prepared)).await?;
    let outcome = from.0.copy_to(&other.0, true).await;
    from.close().await;
    outcome.map(drop)
}
