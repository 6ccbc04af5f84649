//! The connections to a store. Those to a database that went silent would wait for the operating system to give up, which
//! takes it a quarter of an hour: they are left behind, and new ones are made.

use std::sync::OnceLock;
use std::time::Duration;

use futures_util::future::join_all;
use sqlx::AnyPool;
use tokio_util::sync::CancellationToken;

use crate::connect::{Engine, Target, WAIT};
use crate::error::{Fault, StoreError};
use crate::store::Store;

/// For a database to answer the smallest question. Shorter than any other wait, so that this one is over first.
const ANSWERS: Duration = Duration::from_secs(4);

/// Pools for reading and for writing, and those that took their place. What is left behind is a few empty structures for
/// each time that a database went silent.
pub(crate) struct Pools {
    pub(crate) reader: AnyPool,
    pub(crate) writer: AnyPool,
    /// For the question whether there is something new, and for nothing else.
    pub(crate) watch: AnyPool,
    /// Fires when others take their place.
    pub(crate) replaced: CancellationToken,
    next: OnceLock<Box<Self>>,
}

impl Pools {
    pub(crate) fn new(target: &Target, (reader, writer): (AnyPool, AnyPool)) -> Self {
        let watch = target.watch(&writer);
        Self { reader, writer, watch, replaced: CancellationToken::new(), next: OnceLock::new() }
    }

    /// Those in use.
    pub(crate) fn current(&self) -> &Self {
        let mut pools = self;
        while let Some(next) = pools.next.get() {
            pools = next;
        }
        pools
    }

    fn has_connections(&self) -> bool {
        [&self.reader, &self.writer, &self.watch].iter().any(|pool| pool.size() > 0)
    }

    /// Waits for what runs, but not for what hangs.
    pub(crate) async fn close(&self) {
        let closing = [&self.reader, &self.writer, &self.watch].map(AnyPool::close);
        let _ = tokio::time::timeout(WAIT, join_all(closing)).await;
    }
}

impl Store {
    /// Fails unless the store answers soon. Connections to a database that does not are given up.
    pub async fn answers(&self) -> Result<(), StoreError> {
        let pools = self.pools();
        match tokio::time::timeout(ANSWERS, ask(&pools.watch)).await {
            Ok(answer) => answer.map_err(self.failed()),
            Err(_) => {
                self.replace(pools);
                Err(self.refused(Fault::Unreachable, "it does not answer"))
            }
        }
    }

    /// Runs what asks the store until its connections are given up: what was under way on them would wait for ever.
    pub(crate) async fn unless_given_up<T>(
        &self,
        work: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let given_up = self.pools().replaced.clone();
        let silent = || Err(self.refused(Fault::Unreachable, "it does not answer"));
        given_up.run_until_cancelled(work).await.unwrap_or_else(silent)
    }

    /// Makes new connections in the place of those that hang. Without any there is nothing that could.
    fn replace(&self, pools: &Pools) {
        if self.engine() != Engine::Postgres || !pools.has_connections() {
            return;
        }
        let Ok(target) = Target::of(self.url()) else { return };
        if pools.next.set(Box::new(Pools::new(&target, target.pools()))).is_err() {
            return;
        }
        pools.replaced.cancel();
        tracing::warn!("{} does not answer; its connections are given up and made anew", self.url());
        let closing = [&pools.reader, &pools.writer, &pools.watch].map(AnyPool::clone);
        self.spawn(async move {
            let _ = tokio::time::timeout(WAIT, join_all(closing.iter().map(AnyPool::close))).await;
        });
    }
}

/// Reads something of ours, so that a database which answers and has lost its tables counts as one that does not.
async fn ask(pool: &AnyPool) -> Result<(), sqlx::Error> {
    sqlx::query("SELECT value FROM hikite WHERE name = 'revision'").fetch_one(pool).await.map(drop)
}
