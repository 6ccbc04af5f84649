//! Connections of either kind, set up so that what is committed stays: what differs between SQLite and PostgreSQL
//! stands here and nowhere else.

use std::fmt::Write as _;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use sqlx::any::{AnyConnectOptions, AnyPoolOptions};
use sqlx::{AnyConnection, AnyPool, ConnectOptions, Connection, Executor};

use crate::error::{Fault, StoreError};
use crate::url::{Place, StoreUrl};

/// How long we wait for a lock or for a free connection.
pub(crate) const WAIT: Duration = Duration::from_secs(5);
/// Connections that read a SQLite file at once; one more writes.
const READERS: u32 = 4;
/// Connections to a PostgreSQL database.
const POSTGRES_CONNECTIONS: u32 = 8;
/// Where PostgreSQL sends word of changes.
pub(crate) const CHANNEL: &str = "hikite";
/// A statement without effect, in both languages.
const NOTHING: &str = "SELECT 1";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Engine {
    Sqlite,
    Postgres,
}

impl Engine {
    /// SQLite takes the lock for writing at once: one that is taken in the middle cannot be waited for.
    pub(crate) fn begin_write(self) -> &'static str {
        match self {
            Self::Sqlite => "BEGIN IMMEDIATE",
            Self::Postgres => "BEGIN",
        }
    }

    /// All reads of the transaction see one state.
    pub(crate) fn begin_snapshot(self) -> &'static str {
        match self {
            Self::Sqlite => "BEGIN",
            Self::Postgres => "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
        }
    }

    /// Now, in milliseconds since 1970, by the database's own clock.
    pub(crate) fn now_ms(self) -> &'static str {
        match self {
            Self::Sqlite => "CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)",
            Self::Postgres => "CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)",
        }
    }

    /// The operator that finds a text whether its letters are capital or not; in SQLite as far as ASCII goes.
    pub(crate) fn like(self) -> &'static str {
        match self {
            Self::Sqlite => "LIKE",
            Self::Postgres => "ILIKE",
        }
    }

    /// Sends word of a change when the transaction is committed, where the database can.
    pub(crate) fn tell(self) -> Option<&'static str> {
        (self == Self::Postgres).then_some("NOTIFY hikite")
    }

    /// What every connection is told first. `fullfsync` is for macOS, whose plain sync does not reach the disk.
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

/// How to reach a store; its file, if it is one, exists and is its owner's alone.
#[derive(Clone)]
pub(crate) struct Target {
    pub(crate) engine: Engine,
    in_memory: bool,
    pub(crate) options: AnyConnectOptions,
}

impl Target {
    pub(crate) fn of(url: &StoreUrl) -> Result<Self, StoreError> {
        sqlx::any::install_default_drivers();
        let (engine, address) = match &url.0 {
            Place::File(path) => (Engine::Sqlite, address(&prepare_file(url, path)?)),
            Place::Memory => (Engine::Sqlite, "sqlite::memory:".to_owned()),
            Place::Postgres(address) => (Engine::Postgres, address.expose().to_owned()),
        };
        let options = AnyConnectOptions::from_str(&address).map_err(|error| StoreError::of(url, &error))?;
        Ok(Self { engine, in_memory: url.0 == Place::Memory, options: options.disable_statement_logging() })
    }

    /// The pools for reading and for writing. In memory they are one connection, which is the store.
    pub(crate) fn pools(&self) -> (AnyPool, AnyPool) {
        match (self.engine, self.in_memory) {
            (Engine::Sqlite, false) => (self.pool(READERS, "PRAGMA query_only = ON"), self.pool(1, NOTHING)),
            (Engine::Sqlite, true) => {
                let one = self.pool(1, NOTHING);
                (one.clone(), one)
            }
            (Engine::Postgres, _) => {
                let pool = self.pool(POSTGRES_CONNECTIONS, NOTHING);
                (pool.clone(), pool)
            }
        }
    }

    /// One connection that nothing else is asked on, so that whether there is something new is heard however busy the
    /// others are. In memory it is the one of `pool`.
    pub(crate) fn watch(&self, pool: &AnyPool) -> AnyPool {
        if self.in_memory { pool.clone() } else { self.pool(1, NOTHING) }
    }

    fn pool(&self, connections: u32, more: &'static str) -> AnyPool {
        let engine = self.engine;
        let mut options = AnyPoolOptions::new().max_connections(connections).acquire_timeout(WAIT);
        if self.in_memory {
            options = options.min_connections(1).idle_timeout(None).max_lifetime(None);
        } else if engine == Engine::Sqlite {
            // After an error of the disk SQLite ends a transaction by itself, and the driver goes on to believe in it: such a
            // connection would refuse every later one.
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

    /// One connection outside the pools, which would try again instead of telling what is wrong. `None` in memory,
    /// where it would be another store.
    pub(crate) async fn first(&self) -> Result<Option<AnyConnection>, sqlx::Error> {
        if self.in_memory {
            return Ok(None);
        }
        let connecting = tokio::time::timeout(WAIT, self.options.connect());
        let mut connection = connecting
            .await
            .map_err(|_| sqlx::Error::Io(std::io::Error::new(ErrorKind::TimedOut, "it does not answer")))??;
        connection.execute(self.engine.set_up()).await?;
        if self.engine == Engine::Sqlite {
            // Free pages can be given back to the disk; a file that was made without this keeps them until a `VACUUM`.
            connection.execute("PRAGMA auto_vacuum = INCREMENTAL").await?;
            // Kept in the file; once it is so this changes nothing.
            connection.execute("PRAGMA journal_mode = WAL").await?;
        }
        Ok(Some(connection))
    }
}

/// Makes the folder and the file if they are not there, readable by their owner alone. Gives its plain path.
fn prepare_file(url: &StoreUrl, path: &Path) -> Result<PathBuf, StoreError> {
    let refused = |error: std::io::Error| StoreError::new(Fault::NotWritable, url, error.to_string());
    let path = std::path::absolute(path).map_err(refused)?;
    let folder = path.parent().unwrap_or(Path::new("/"));
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(refused)?;
    // Addresses resolve `..` in another way than the file system does.
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

/// A file that was put there by hand may be open to others; what is registered may hold keys.
fn keep_private(path: &Path) {
    let Ok(metadata) = fs::metadata(path) else { return };
    let others = metadata.permissions().mode() & 0o077;
    if others == 0 {
        return;
    }
    match fs::set_permissions(path, fs::Permissions::from_mode(0o600)) {
        Ok(()) => tracing::warn!("`{}` could be read by others; now its owner alone can", path.display()),
        Err(error) => tracing::warn!("`{}` can be read by others: {error}", path.display()),
    }
}

/// The path as an address, in which only letters, digits and a few signs stand for themselves.
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
