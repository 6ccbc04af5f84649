//! The connections to a store. Those to a database that went silent would wait for the operating system to give up, which
//! takes it a quarter of an hour: they are left behind, and new ones are made.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use sqlx::{AnyPool, Row};
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
    /// True if something was ever answered on them.
    has_answered: AtomicBool,
    next: OnceLock<Box<Self>>,
}

impl Pools {
    pub(crate) fn new(target: &Target, (reader, writer): (AnyPool, AnyPool)) -> Self {
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

    /// Those in use.
    pub(crate) fn current(&self) -> &Self {
        let mut pools = self;
        while let Some(next) = pools.next.get() {
            pools = next;
        }
        pools
    }

    /// Waits for what runs, but not for what hangs.
    pub(crate) async fn close(&self) {
        let closing = [&self.reader, &self.writer, &self.watch].map(AnyPool::close);
        let _ = tokio::time::timeout(WAIT, join_all(closing)).await;
    }
}

impl Store {
    /// Grows with every change that other processes have to hear of, by whichever of them. Connections to a database that
    /// does not answer this question soon are given up.
    pub async fn revision(&self) -> Result<i64, StoreError> {
        let pools = self.pools();
        if self.engine() == Engine::Sqlite {
            return ask(&pools.watch).await.map_err(self.failed());
        }
        match tokio::time::timeout(ANSWERS, ask(&pools.watch)).await {
            Ok(answer) => {
                let revision = answer.map_err(self.failed())?;
                pools.has_answered.store(true, Ordering::Relaxed);
                Ok(revision)
            }
            Err(_) => {
                self.replace(pools);
                Err(self.refused(Fault::Unreachable, "it does not answer"))
            }
        }
    }

    /// Fails unless the store answers soon.
    pub async fn answers(&self) -> Result<(), StoreError> {
        self.revision().await.map(drop)
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

    /// Makes new connections in the place of those that hang.
    fn replace(&self, pools: &Pools) {
        // New ones that were never answered hold nothing that hangs: each silence costs one replacement, however long it is.
        if !pools.has_answered.load(Ordering::Relaxed) {
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

async fn ask(pool: &AnyPool) -> Result<i64, sqlx::Error> {
    let query = sqlx::query("SELECT value FROM hikite WHERE name = 'revision'");
    query.fetch_one(pool).await?.try_get(0)
}
