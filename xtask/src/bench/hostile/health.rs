//! Somebody who asks for `/health` all the time, on a connection of their own, and notes the longest wait.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use parking_lot::Mutex;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::rig::rest::Rest;

/// Between two questions.
const PAUSE: Duration = Duration::from_millis(2);

pub(super) struct Health {
    waits: Arc<Mutex<Waits>>,
    /// Ends with this.
    _asking: JoinSet<()>,
}

#[derive(Default)]
struct Waits {
    longest: Duration,
    /// Since when there has been no answer.
    asked: Option<Instant>,
}

impl Waits {
    fn answered(&mut self, wait: Duration) {
        self.longest = self.longest.max(wait);
        self.asked = None;
    }
}

impl Health {
    /// Begins to ask; ends when dropped.
    pub(super) async fn watch(address: SocketAddr) -> Result<Self> {
        let mut rest = Rest::open(address).await?;
        let waits = Arc::new(Mutex::new(Waits::default()));
        let noted = Arc::clone(&waits);
        let mut asking = JoinSet::new();
        asking.spawn(async move {
            loop {
                let asked = Instant::now();
                noted.lock().asked = Some(asked);
                if rest.get("/health").await.is_err() {
                    // What was asked stays so, and counts until somebody looks.
                    return;
                }
                noted.lock().answered(asked.elapsed());
                tokio::time::sleep(PAUSE).await;
            }
        });
        Ok(Self { waits, _asking: asking })
    }

    pub(super) fn begin(&self) {
        self.waits.lock().longest = Duration::ZERO;
    }

    /// Since it began.
    pub(super) fn longest_ms(&self) -> f64 {
        let waits = self.waits.lock();
        let open = waits.asked.map(|asked| asked.elapsed()).unwrap_or_default();
        waits.longest.max(open).as_secs_f64() * 1000.0
    }
}
