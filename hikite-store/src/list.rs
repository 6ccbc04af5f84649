//! The cached lists of upstream servers, one row per definition, so that they are available at once after a restart and
//! while the server is down. All rows are in memory; changes are written behind, in order.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use hikite_core::json::Raw;
use hikite_core::listing::{ListCache, Listing};
use parking_lot::Mutex;
use sqlx::Row;
use sqlx::any::AnyRow;
use tokio::sync::{mpsc, oneshot};

use crate::database::Database;
use crate::error::StoreError;
use crate::schema::{shown, stored};
use crate::store::Store;

/// Maximum cached definitions; those fetched longest ago are dropped first.
const DEFINITIONS_MAX: usize = 256;
/// Maximum queued writes.
const QUEUED_MAX: usize = 1024;
/// Lists per transaction.
const LISTS_PER_TRANSACTION: usize = 64;

pub struct StoreListCache {
    cached: Mutex<HashMap<String, CachedList>>,
    jobs: mpsc::Sender<CacheJob>,
}

#[derive(Clone)]
struct CachedList {
    lists: Raw,
    /// Seconds since 1970.
    fetched_at: u64,
}

enum CacheJob {
    Write(String, CachedList),
    /// Answered when all earlier jobs are done or failed.
    Flush(oneshot::Sender<()>),
}

impl Store {
    /// Loads the cache. Writes continue until the store is closed.
    pub async fn list_cache(&self) -> Result<Arc<StoreListCache>, StoreError> {
        let query = sqlx::query("SELECT definition, lists, fetched_at FROM list_cache");
        let rows = query.fetch_all(self.0.reader()).await.map_err(self.0.failed())?;
        let mut cached = HashMap::with_capacity(rows.len());
        for row in &rows {
            let (definition, lists, fetched_at) = read(row).map_err(self.0.failed())?;
            // An unreadable list is fetched again and then overwritten.
            match Raw::parse(lists) {
                Ok(lists) => drop(cached.insert(definition, CachedList { lists, fetched_at })),
                Err(_) => {
                    tracing::warn!(definition, "a cached tool list is unreadable and will be fetched again");
                }
            }
        }
        let (jobs, waiting) = mpsc::channel(QUEUED_MAX);
        self.0.spawn(write_all(Arc::clone(&self.0), waiting));
        Ok(Arc::new(StoreListCache { cached: Mutex::new(cached), jobs }))
    }
}

impl Database {
    async fn write_lists(&self, lists: &[(String, CachedList)]) -> Result<(), StoreError> {
        let mut transaction = self.begin().await?;
        for (definition, cached) in lists {
            let query = sqlx::query(
                "INSERT INTO list_cache (definition, lists, fetched_at) VALUES ($1, $2, $3) \
                 ON CONFLICT (definition) DO UPDATE SET lists = excluded.lists, fetched_at = excluded.fetched_at",
            );
            let text = cached.lists.as_str();
            let query = query.bind(definition.as_str()).bind(&*text).bind(stored(cached.fetched_at));
            query.execute(&mut *transaction).await.map_err(self.failed())?;
        }
        let delete_oldest = format!(
            "DELETE FROM list_cache WHERE definition NOT IN \
             (SELECT definition FROM list_cache ORDER BY fetched_at DESC, definition LIMIT {DEFINITIONS_MAX})"
        );
        sqlx::query(&delete_oldest).execute(&mut *transaction).await.map_err(self.failed())?;
        transaction.commit().await.map_err(self.failed())
    }
}

impl StoreListCache {
    /// Waits until everything stored so far is written.
    pub async fn flush(&self) {
        let (flushed_tx, flushed_rx) = oneshot::channel();
        // Both fail only if the store is closed, so there is nothing to wait for.
        if self.jobs.send(CacheJob::Flush(flushed_tx)).await.is_ok() {
            let _ = flushed_rx.await;
        }
    }
}

impl ListCache for StoreListCache {
    fn load(&self, definition: &str) -> Option<Listing> {
        let lists = self.cached.lock().get(definition)?.lists.clone();
        let listing = Listing::from_raw(&lists);
        if listing.is_none() {
            tracing::warn!(definition, "a cached tool list has another version and will be fetched again");
        }
        listing
    }

    fn store(&self, definition: &str, listing: &Listing) {
        let row = CachedList { lists: listing.raw(), fetched_at: listing.fetched_at };
        {
            let mut cached = self.cached.lock();
            cached.insert(definition.to_owned(), row.clone());
            if cached.len() > DEFINITIONS_MAX {
                let oldest = cached.iter().min_by_key(|(_, cached)| cached.fetched_at).map(|(name, _)| name.clone());
                oldest.map(|name| cached.remove(&name));
            }
        }
        if self.jobs.try_send(CacheJob::Write(definition.to_owned(), row)).is_err() {
            tracing::warn!(definition, "a tool list is not cached because too many are waiting to be written");
        }
    }
}

/// Runs the jobs in order, batching queued lists into one transaction.
async fn write_all(database: Arc<Database>, mut waiting: mpsc::Receiver<CacheJob>) {
    let mut jobs = Vec::with_capacity(LISTS_PER_TRANSACTION);
    while waiting.recv_many(&mut jobs, LISTS_PER_TRANSACTION).await > 0 {
        let mut lists = Vec::new();
        let mut flushed_tx = Vec::new();
        for job in jobs.drain(..) {
            match job {
                CacheJob::Write(definition, cached) => lists.push((definition, cached)),
                CacheJob::Flush(who) => flushed_tx.push(who),
            }
        }
        if !lists.is_empty()
            && let Err(error) = database.write_lists(&lists).await
        {
            tracing::warn!("failed to cache tool lists: {error}");
        }
        for who in flushed_tx {
            // The requester may be gone.
            let _ = who.send(());
        }
    }
}

fn read(row: &AnyRow) -> Result<(String, String, u64), sqlx::Error> {
    Ok((row.try_get(0)?, row.try_get(1)?, shown(row.try_get(2)?)))
}

impl fmt::Debug for StoreListCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StoreListCache({})", self.cached.lock().len())
    }
}
