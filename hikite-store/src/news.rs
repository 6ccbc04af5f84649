//! Word of what other processes wrote. PostgreSQL sends it; SQLite does not, and neither does a PostgreSQL that is just
//! away, so that whoever waits here also looks by itself every now and then.

use std::time::Duration;

use sqlx::postgres::PgListener;
use tokio::sync::Notify;

use crate::connect::CHANNEL;
use crate::store::Store;
use crate::url::Place;

/// Between two attempts to be told again.
const PAUSE: Duration = Duration::from_millis(500);

impl Store {
    /// From now on word is taken, where it is sent.
    pub fn listen(&self) {
        let Place::Postgres(address) = &self.url().0 else { return };
        let (address, store) = (address.clone(), self.clone());
        self.spawn(async move {
            let mut told = false;
            loop {
                // A connection that was given up for its silence would say nothing for ever.
                let given_up = store.pools().replaced.clone();
                let heard = given_up.run_until_cancelled(hear(address.expose(), store.news())).await;
                // The poll goes on meanwhile; it is told once, and not what the address is.
                if let (Some(Err(error)), false) = (heard, told) {
                    tracing::debug!(%error, "the store sends no word of changes; it is looked at instead");
                }
                told = true;
                store.news().notify_one();
                tokio::time::sleep(PAUSE).await;
            }
        });
    }

    /// Waits for word of a change, for so long at most; whether there was any.
    pub async fn changed(&self, at_most: Duration) -> bool {
        tokio::time::timeout(at_most, self.news().notified()).await.is_ok()
    }
}

async fn hear(address: &str, news: &Notify) -> Result<std::convert::Infallible, sqlx::Error> {
    let mut listener = PgListener::connect(address).await?;
    listener.listen(CHANNEL).await?;
    loop {
        // Whatever was missed while nobody listened is read, too.
        news.notify_one();
        // `None` is a connection that broke; the next attempt makes a new one.
        listener.try_recv().await?;
    }
}
