//! The open database of a store: its connections, its transactions and its errors. Every table works on it.

use std::fmt;
use std::future::Future;

use hikite_core::json::Raw;
use sqlx::{Any, AnyPool, Transaction};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::audit_head::AuditHead;
use crate::connect::{ConnectTarget, DatabaseEngine};
use crate::error::{StoreError, StoreFault};
use crate::pools::StorePools;
use crate::url::StoreUrl;

pub(crate) struct Database {
    pub(crate) url: StoreUrl,
    pub(crate) engine: DatabaseEngine,
    pub(crate) pools: StorePools,
    /// The version before opening, and the current one.
    pub(crate) found: i64,
    pub(crate) version: i64,
    /// The recorded end of the audit chain, beside a file store.
    pub(crate) head: Option<AuditHead>,
    /// Notified when other processes may have written something.
    pub(crate) change_notify: Notify,
    tasks: TaskTracker,
    closing: CancellationToken,
}

impl Database {
    pub(crate) fn new(
        target: &ConnectTarget,
        url: &StoreUrl,
        pools: (AnyPool, AnyPool),
        (found, version): (i64, i64),
    ) -> Self {
        Self {
            url: url.clone(),
            engine: target.engine,
            pools: StorePools::new(target, pools),
            found,
            version,
            head: AuditHead::sidecar(url),
            change_notify: Notify::new(),
            tasks: TaskTracker::new(),
            closing: CancellationToken::new(),
        }
    }

    pub(crate) async fn close(&self) {
        self.closing.cancel();
        self.tasks.close();
        self.tasks.wait().await;
        self.pools().close().await;
    }

    pub(crate) fn pools(&self) -> &StorePools {
        self.pools.current()
    }

    pub(crate) fn reader(&self) -> &AnyPool {
        &self.pools().reader
    }

    pub(crate) fn writer(&self) -> &AnyPool {
        &self.pools().writer
    }

    pub(crate) async fn begin(&self) -> Result<Transaction<'static, Any>, StoreError> {
        self.writer().begin_with(self.engine.begin_write()).await.map_err(self.failed())
    }

    /// Begins a transaction with a consistent snapshot.
    pub(crate) async fn snapshot(&self) -> Result<Transaction<'static, Any>, StoreError> {
        self.reader().begin_with(self.engine.begin_snapshot()).await.map_err(self.failed())
    }

    pub(crate) fn failed(&self) -> impl Fn(sqlx::Error) -> StoreError + use<'_> {
        |error| StoreError::of(&self.url, &error)
    }

    pub(crate) fn refused(&self, fault: StoreFault, reason: impl Into<String>) -> StoreError {
        StoreError::new(fault, &self.url, reason)
    }

    /// Spawns a task that ends when it is done or the store is closed.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let closing = self.closing.clone();
        self.tasks.spawn(async move {
            closing.run_until_cancelled(task).await;
        });
    }

    /// Commits a change. The revision is incremented last, so that all writers lock it in the same order. `touched`
    /// lists the kind and id of rows that others must reload.
    pub(crate) async fn commit_change(
        &self,
        mut transaction: Transaction<'_, Any>,
        changed: bool,
        touched: &[(&str, &str)],
    ) -> Result<bool, StoreError> {
        if changed {
            self.raise_revision(&mut transaction, touched).await?;
            if let Some(text) = self.engine.notify_others() {
                sqlx::query(text).execute(&mut *transaction).await.map_err(self.failed())?;
            }
            transaction.commit().await.map_err(self.failed())?;
        } else {
            transaction.rollback().await.map_err(self.failed())?;
        }
        Ok(changed)
    }

    /// Returns the text, or an error if it contains NUL.
    pub(crate) fn checked_text<'t>(&self, text: &'t str) -> Result<&'t str, StoreError> {
        if text.contains('\0') {
            return Err(self.refused(StoreFault::Nul, text.escape_debug().to_string()));
        }
        Ok(text)
    }

    /// Returns JSON as text, which both databases accept.
    pub(crate) fn text_of<'r>(&self, raw: &'r Raw) -> Result<&'r str, StoreError> {
        std::str::from_utf8(raw.bytes()).map_err(|error| self.refused(StoreFault::Failed, error.to_string()))
    }
}

impl fmt::Debug for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Database({})", self.url)
    }
}
