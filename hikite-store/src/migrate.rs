//! Migrations: numbered, each applied once, all in one transaction under a lock, so that concurrent processes never see
//! a partial one.

use std::path::Path;

use sqlx::{AnyConnection, Connection, Executor, Row};

use crate::backup;
use crate::connect::{ConnectTarget, DatabaseEngine};
use crate::error::{StoreError, StoreFault};
use crate::url::StoreUrl;

/// The n-th brings the store to version n + 1. Released migrations never change.
const MIGRATIONS: &[&str] = &[
    include_str!("../migrations/001.sql"),
    include_str!("../migrations/002.sql"),
    include_str!("../migrations/003.sql"),
    include_str!("../migrations/004.sql"),
    include_str!("../migrations/005.sql"),
    include_str!("../migrations/006.sql"),
    include_str!("../migrations/007.sql"),
    include_str!("../migrations/008.sql"),
    include_str!("../migrations/009.sql"),
    include_str!("../migrations/010.sql"),
];

/// Additional SQL of a migration for each database: version, SQLite, PostgreSQL.
const ENGINE_SPECIFIC: &[(i64, &str, &str)] = &[
    (7, include_str!("../migrations/007.sqlite.sql"), include_str!("../migrations/007.postgres.sql")),
    (10, include_str!("../migrations/010.sqlite.sql"), include_str!("../migrations/010.postgres.sql")),
];

/// The newest schema version of this program.
#[expect(clippy::cast_possible_wrap, reason = "a handful of files")]
pub const NEWEST: i64 = MIGRATIONS.len() as i64;

/// Advisory lock number, chosen at random.
pub(crate) const POSTGRES_LOCK: &str = "SELECT pg_advisory_xact_lock(7452347523)";

/// The reason for a failed migration.
pub(crate) enum MigrationError {
    Error(sqlx::Error),
    Store(StoreError),
    Rejected(StoreFault, String),
}

impl From<sqlx::Error> for MigrationError {
    fn from(error: sqlx::Error) -> Self {
        Self::Error(error)
    }
}

impl MigrationError {
    pub(crate) fn at(self, place: &StoreUrl) -> StoreError {
        match self {
            Self::Error(error) => StoreError::of(place, &error),
            Self::Store(error) => error,
            Self::Rejected(fault, reason) => StoreError::new(fault, place, reason),
        }
    }
}

/// The backup before a migration.
pub(crate) struct MigrationBackup<'a> {
    pub(crate) target: &'a ConnectTarget,
    pub(crate) url: &'a StoreUrl,
    /// Folder for the backup of a database server; a file is copied beside itself.
    pub(crate) folder: Option<&'a Path>,
}

/// Migrates a store to a version and returns the previous one. Existing data is backed up first.
pub(crate) async fn migrate(
    connection: &mut AnyConnection,
    engine: DatabaseEngine,
    version: i64,
    before: Option<MigrationBackup<'_>>,
) -> Result<i64, MigrationError> {
    let all = &MIGRATIONS[..usize::try_from(version).unwrap_or_default().min(MIGRATIONS.len())];
    apply(connection, engine, all, before).await
}

async fn apply(
    connection: &mut AnyConnection,
    engine: DatabaseEngine,
    all: &[&'static str],
    before: Option<MigrationBackup<'_>>,
) -> Result<i64, MigrationError> {
    let newest = i64::try_from(all.len()).unwrap_or(i64::MAX);
    // Usually there is nothing to do, which needs no lock.
    if let Ok(found) = version(connection).await
        && found >= newest
    {
        return check_version(found, newest);
    }
    let mut transaction = connection.begin_with(engine.begin_write()).await?;
    if engine == DatabaseEngine::Postgres {
        sqlx::query(POSTGRES_LOCK).execute(&mut *transaction).await?;
    }
    let found = if is_new(&mut transaction, engine).await? { 0 } else { version(&mut transaction).await? };
    check_version(found, newest)?;
    if let Some(before) = before.filter(|_| found > 0) {
        if engine == DatabaseEngine::Postgres {
            // The backup may exceed the idle timeout of a transaction.
            sqlx::query("SET LOCAL idle_in_transaction_session_timeout = 0").execute(&mut *transaction).await?;
        }
        // Others wait for the lock, so the backup is exactly what is migrated, and is made once.
        backup::before_migration(&before, found).await.map_err(MigrationError::Store)?;
    }
    for (migration, version) in all.iter().zip(1_i64..).skip(usize::try_from(found).unwrap_or_default()) {
        transaction.execute(*migration).await?;
        // Lists made by tests have no additional SQL.
        let is_ours = MIGRATIONS.contains(migration);
        for (_, sqlite, postgres) in ENGINE_SPECIFIC.iter().filter(|(of, ..)| is_ours && *of == version) {
            transaction.execute(if engine == DatabaseEngine::Sqlite { *sqlite } else { *postgres }).await?;
        }
    }
    let now = sqlx::query("UPDATE hikite SET value = $1 WHERE name = 'version'").bind(newest);
    now.execute(&mut *transaction).await?;
    transaction.commit().await?;
    Ok(found)
}

fn check_version(found: i64, newest: i64) -> Result<i64, MigrationError> {
    if found > newest {
        let reason = format!("it has version {found}, and this hikite supports version {newest}");
        return Err(MigrationError::Rejected(StoreFault::Newer, reason));
    }
    Ok(found)
}

pub(crate) async fn version(connection: &mut AnyConnection) -> Result<i64, sqlx::Error> {
    let query = sqlx::query("SELECT value FROM hikite WHERE name = 'version'");
    query.fetch_one(connection).await?.try_get(0)
}

/// Returns `true` if the store is new. A file with foreign tables is refused; in PostgreSQL other tables may exist.
async fn is_new(connection: &mut AnyConnection, engine: DatabaseEngine) -> Result<bool, MigrationError> {
    let tables = match engine {
        DatabaseEngine::Sqlite => "SELECT name FROM sqlite_master WHERE type = 'table'",
        DatabaseEngine::Postgres => "SELECT tablename::text FROM pg_tables WHERE schemaname = current_schema()",
    };
    let mut others = 0;
    for row in sqlx::query(tables).fetch_all(connection).await? {
        if row.try_get::<&str, _>(0)? == "hikite" {
            return Ok(false);
        }
        others += 1;
    }
    if engine == DatabaseEngine::Sqlite && others > 0 {
        return Err(MigrationError::Rejected(StoreFault::Foreign, "it contains tables, but none of hikite".into()));
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn connection(path: &std::path::Path) -> AnyConnection {
        let target = ConnectTarget::of(&StoreUrl::file(path)).expect("a file");
        target.first().await.expect("opened").expect("not in memory")
    }

    #[tokio::test]
    async fn each_migration_is_applied_once_and_all_of_them_or_none() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut one = connection(&folder.path().join("a.db")).await;
        let first = MIGRATIONS[0];
        let more = "CREATE TABLE more (x BIGINT NOT NULL); INSERT INTO more VALUES (1)";
        let apply_all = async |connection: &mut AnyConnection, all: &[&'static str]| {
            apply(connection, DatabaseEngine::Sqlite, all, None)
                .await
                .map_err(|refused| refused.at(&StoreUrl::memory()).to_string())
        };
        assert_eq!(apply_all(&mut one, &[first]).await, Ok(0));
        assert_eq!(apply_all(&mut one, &[first]).await, Ok(1));
        let broken = apply_all(&mut one, &[first, more, "CREATE TABLE more (y BIGINT)"]).await;
        assert!(broken.is_err_and(|said| said.contains("already exists")));
        assert_eq!(version(&mut one).await.expect("a version"), 1, "half of it was taken back");
        assert_eq!(apply_all(&mut one, &[first, more]).await, Ok(1));
        assert_eq!(apply_all(&mut one, &[first, more]).await, Ok(2));
        let older = apply_all(&mut one, &[first]).await.expect_err("refused");
        assert!(older.contains("it has version 2, and this hikite supports version 1"), "{older}");
    }

    #[tokio::test]
    async fn a_file_of_another_program_is_left_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut one = connection(&folder.path().join("a.db")).await;
        one.execute("CREATE TABLE theirs (x)").await.expect("made");
        let refused = migrate(&mut one, DatabaseEngine::Sqlite, NEWEST, None)
            .await
            .map_err(|refused| refused.at(&StoreUrl::memory()));
        assert_eq!(refused.map_err(|error| error.fault), Err(StoreFault::Foreign));
    }
}
