//! Database connections, configured for durable commits. All differences between SQLite and PostgreSQL are in this
//! module.

use std::fmt::Write as _;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use sqlx::any::{AnyConnectOptions, AnyPoolOptions};
use sqlx::{AnyConnection, AnyPool, ConnectOptions, Connection, Executor};

use crate::error::{StoreError, StoreFault};
use crate::url::{StoreLocation, StoreUrl};

/// Maximum wait for a lock or a free connection.
pub(crate) const WAIT: Duration = Duration::from_secs(5);
/// Read connections to a SQLite file; one more writes.
const READERS: u32 = 4;
/// Connections to a PostgreSQL database.
const POSTGRES_CONNECTIONS: u32 = 8;
/// The NOTIFY channel of PostgreSQL.
pub(crate) const CHANNEL: &str = "hikite";
/// A statement without effect, valid in both databases.
const NOTHING: &str = "SELECT 1";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DatabaseEngine {
    Sqlite,
    Postgres,
}

impl DatabaseEngine {
    /// Returns the statement that begins a write transaction. SQLite must take the write lock at once: upgrading a lock
    /// later cannot wait.
    pub(crate) fn begin_write(self) -> &'static str {
        match self {
            Self::Sqlite => "BEGIN IMMEDIATE",
            Self::Postgres => "BEGIN",
        }
    }

    /// Returns the statement that begins a transaction with a consistent snapshot.
    pub(crate) fn begin_snapshot(self) -> &'static str {
        match self {
            Self::Sqlite => "BEGIN",
            Self::Postgres => "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
        }
    }

    /// Returns an expression for the database's time, in milliseconds since 1970.
    pub(crate) fn now_ms(self) -> &'static str {
        match self {
            Self::Sqlite => "CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)",
            Self::Postgres => "CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)",
        }
    }

    /// Returns the case-insensitive LIKE operator; in SQLite for ASCII only.
    pub(crate) fn like(self) -> &'static str {
        match self {
            Self::Sqlite => "LIKE",
            Self::Postgres => "ILIKE",
        }
    }

    /// Returns the statement that notifies others on commit, if the database supports it.
    pub(crate) fn notify_others(self) -> Option<&'static str> {
        (self == Self::Postgres).then_some("NOTIFY hikite")
    }

    /// Returns the settings of every connection. `fullfsync` is for macOS, whose plain sync does not reach the disk.
    fn set_up(self) -> &'static str {
        match self {
            Self::Sqlite => {
                "PRAGMA busy_timeout = 5000; PRAGMA synchronous = FULL; PRAGMA fullfsync = ON; \
                 PRAGMA checkpoint_fullfsync = ON; PRAGMA foreign_keys = ON; PRAGMA journal_size_limit = 67108864"
            }
            Self::Postgres => {
                "SET lock_timeout = '5s'; SET idle_in_transaction_session_timeout = '60s'; \
                 SET application_name = 'hikite'"
            }
        }
    }
}

/// The connection parameters of a store. A file exists and is readable by its owner only.
#[derive(Clone)]
pub(crate) struct ConnectTarget {
    pub(crate) engine: DatabaseEngine,
    in_memory: bool,
    pub(crate) options: AnyConnectOptions,
}

impl ConnectTarget {
    pub(crate) fn of(url: &StoreUrl) -> Result<Self, StoreError> {
        sqlx::any::install_default_drivers();
        let (engine, address) = match &url.0 {
            StoreLocation::File(path) => (DatabaseEngine::Sqlite, address(&prepare_file(url, path)?)),
            StoreLocation::Memory => (DatabaseEngine::Sqlite, "sqlite::memory:".to_owned()),
            StoreLocation::Postgres(address) => (DatabaseEngine::Postgres, address.expose().to_owned()),
        };
        let options = AnyConnectOptions::from_str(&address).map_err(|error| StoreError::of(url, &error))?;
        Ok(Self { engine, in_memory: url.0 == StoreLocation::Memory, options: options.disable_statement_logging() })
    }

    /// Returns the pools for reading and for writing. In memory both are the same single connection, which is the
    /// store.
    pub(crate) fn pools(&self) -> (AnyPool, AnyPool) {
        match (self.engine, self.in_memory) {
            (DatabaseEngine::Sqlite, false) => (self.pool(READERS, "PRAGMA query_only = ON"), self.pool(1, NOTHING)),
            (DatabaseEngine::Sqlite, true) => {
                let one = self.pool(1, NOTHING);
                (one.clone(), one)
            }
            (DatabaseEngine::Postgres, _) => {
                let pool = self.pool(POSTGRES_CONNECTIONS, NOTHING);
                (pool.clone(), pool)
            }
        }
    }

    /// Returns a pool of one connection for polling the revision, unaffected by load. In memory it is `pool`.
    pub(crate) fn watch(&self, pool: &AnyPool) -> AnyPool {
        if self.in_memory { pool.clone() } else { self.pool(1, NOTHING) }
    }

    fn pool(&self, connections: u32, more: &'static str) -> AnyPool {
        let engine = self.engine;
        let mut options = AnyPoolOptions::new().max_connections(connections).acquire_timeout(WAIT);
        if self.in_memory {
            options = options.min_connections(1).idle_timeout(None).max_lifetime(None);
        } else if engine == DatabaseEngine::Sqlite {
            // After a disk error SQLite rolls back by itself, but the driver still assumes a transaction: such a
            // connection would fail forever.
            options = options.before_acquire(|connection, _| {
                let is_well = !connection.is_in_transaction();
                Box::pin(async move { Ok(is_well) })
            });
        }
        let options = options.after_connect(move |connection, _| {
            Box::pin(async move {
                connection.execute(engine.set_up()).await?;
                connection.execute(more).await.map(drop)
            })
        });
        options.connect_lazy_with(self.options.clone())
    }

    /// Opens one connection outside the pools, which would retry instead of reporting the error. `None` in memory,
    /// where it would be another store.
    pub(crate) async fn first(&self) -> Result<Option<AnyConnection>, sqlx::Error> {
        if self.in_memory {
            return Ok(None);
        }
        let connecting = tokio::time::timeout(WAIT, self.options.connect());
        let mut connection = connecting
            .await
            .map_err(|_| sqlx::Error::Io(std::io::Error::new(ErrorKind::TimedOut, "it does not respond")))??;
        connection.execute(self.engine.set_up()).await?;
        if self.engine == DatabaseEngine::Sqlite {
            // Allows free pages to be released; a file created without this keeps them until a `VACUUM`.
            connection.execute("PRAGMA auto_vacuum = INCREMENTAL").await?;
            // Persistent in the file; repeated calls have no effect.
            connection.execute("PRAGMA journal_mode = WAL").await?;
        }
        Ok(Some(connection))
    }
}

/// Creates the folder and the file if missing, readable by their owner only. Returns the canonical path.
fn prepare_file(url: &StoreUrl, path: &Path) -> Result<PathBuf, StoreError> {
    let refused = |error: std::io::Error| StoreError::new(StoreFault::NotWritable, url, error.to_string());
    let path = std::path::absolute(path).map_err(refused)?;
    let folder = path.parent().unwrap_or(Path::new("/"));
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(refused)?;
    // URLs resolve `..` differently from the file system.
    let path = fs::canonicalize(folder).map_err(refused)?.join(path.file_name().unwrap_or_default());
    match fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path) {
        Ok(_) => Ok(path),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            keep_private(&path);
            Ok(path)
        }
        Err(error) => Err(refused(error)),
    }
}

/// Removes permissions of others from an existing file, because it may contain keys.
fn keep_private(path: &Path) {
    let Ok(metadata) = fs::metadata(path) else { return };
    let others = metadata.permissions().mode() & 0o077;
    if others == 0 {
        return;
    }
    match fs::set_permissions(path, fs::Permissions::from_mode(0o600)) {
        Ok(()) => tracing::warn!("`{}` was readable by others; it is now readable only by its owner", path.display()),
        Err(error) => tracing::warn!("`{}` is readable by others: {error}", path.display()),
    }
}

/// Encodes the path as a URL.
fn address(path: &Path) -> String {
    let mut address = "sqlite:".to_owned();
    for byte in path.as_os_str().as_encoded_bytes() {
        if byte.is_ascii_alphanumeric() || b"/-_.".contains(byte) {
            address.push(char::from(*byte));
        } else {
            let _ = write!(address, "%{byte:02X}");
        }
    }
    address
}
