//! Notifications of changes by other processes. PostgreSQL sends them; SQLite does not, nor does an unreachable
//! PostgreSQL, so callers also poll.

use std::sync::Arc;
use std::time::Duration;

use sqlx::postgres::PgListener;
use tokio::sync::Notify;

use crate::connect::CHANNEL;
use crate::store::Store;
use crate::url::StoreLocation;

/// Delay before listening again.
const PAUSE: Duration = Duration::from_millis(500);

impl Store {
    /// Starts listening, if the database sends notifications.
    pub fn listen(&self) {
        let StoreLocation::Postgres(address) = &self.0.url.0 else { return };
        let (address, database) = (address.clone(), Arc::clone(&self.0));
        self.0.spawn(async move {
            let mut is_logged = false;
            loop {
                // A connection that was replaced would stay silent forever.
                let replaced_token = database.pools().replaced.clone();
                let heard = replaced_token
                    .run_until_cancelled(forward_notifications(address.expose(), &database.change_notify))
                    .await;
                // Polling continues meanwhile; logged once, without the URL.
                if let (Some(Err(error)), false) = (heard, is_logged) {
                    tracing::debug!(%error, "the store sends no change notifications; it is polled instead");
                }
                is_logged = true;
                database.change_notify.notify_one();
                tokio::time::sleep(PAUSE).await;
            }
        });
    }

    /// Waits for a notification, at most for `at_most`. Returns `true` if there was one.
    pub async fn changed(&self, at_most: Duration) -> bool {
        tokio::time::timeout(at_most, self.0.change_notify.notified()).await.is_ok()
    }
}

async fn forward_notifications(address: &str, change_notify: &Notify) -> Result<std::convert::Infallible, sqlx::Error> {
    let mut listener = PgListener::connect(address).await?;
    listener.listen(CHANNEL).await?;
    loop {
        // Triggers a read of whatever was missed before.
        change_notify.notify_one();
        // `None` means a broken connection; the next call reconnects.
        listener.try_recv().await?;
    }
}
