//! The connection pools of a store. Connections to a hanging database would block until the operating system gives up,
//! which takes a quarter of an hour: they are abandoned and replaced.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::future::join_all;
use sqlx::AnyPool;
use tokio_util::sync::CancellationToken;

use crate::connect::{ConnectTarget, WAIT};
use crate::database::Database;
use crate::error::{StoreError, StoreFault};

/// The pools for reading and writing, and their replacements. Each replacement leaves a few empty structures behind.
pub(crate) struct StorePools {
    pub(crate) reader: AnyPool,
    pub(crate) writer: AnyPool,
    /// Only for polling the revision.
    pub(crate) watch: AnyPool,
    /// Cancelled when the pools are replaced.
    pub(crate) replaced: CancellationToken,
    /// Set once a query has succeeded on them.
    pub(crate) has_answered: AtomicBool,
    next: OnceLock<Box<Self>>,
}

impl StorePools {
    pub(crate) fn new(target: &ConnectTarget, (reader, writer): (AnyPool, AnyPool)) -> Self {
        let watch = target.watch(&writer);
        Self {
            reader,
            writer,
            watch,
            replaced: CancellationToken::new(),
            has_answered: AtomicBool::new(false),
            next: OnceLock::new(),
        }
    }

    /// Returns the pools in use.
    pub(crate) fn current(&self) -> &Self {
        let mut pools = self;
        while let Some(next) = pools.next.get() {
            pools = next;
        }
        pools
    }

    /// Waits for running queries, but not for hanging ones.
    pub(crate) async fn close(&self) {
        let closing = [&self.reader, &self.writer, &self.watch].map(AnyPool::close);
        let _ = tokio::time::timeout(WAIT, join_all(closing)).await;
    }
}

impl Database {
    /// Runs work until its connections are replaced; on those it would hang forever.
    pub(crate) async fn until_replaced<T>(
        &self,
        work: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let replaced_token = self.pools().replaced.clone();
        let silent = || Err(self.refused(StoreFault::Unreachable, "it does not respond"));
        replaced_token.run_until_cancelled(work).await.unwrap_or_else(silent)
    }

    /// Replaces hanging connections.
    pub(crate) fn replace(&self, pools: &StorePools) {
        // Pools without any success hold nothing that hangs: each outage causes one replacement, whatever its length.
        if !pools.has_answered.load(Ordering::Relaxed) {
            return;
        }
        let Ok(target) = ConnectTarget::of(&self.url) else { return };
        if pools.next.set(Box::new(StorePools::new(&target, target.pools()))).is_err() {
            return;
        }
        pools.replaced.cancel();
        tracing::warn!("{} does not respond; its connections are closed and opened again", self.url);
        let closing = [&pools.reader, &pools.writer, &pools.watch].map(AnyPool::clone);
        self.spawn(async move {
            let _ = tokio::time::timeout(WAIT, join_all(closing.iter().map(AnyPool::close))).await;
        });
    }
}
