//! A probe that polls `/health` on its own connection and records the longest response time.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use parking_lot::Mutex;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::rig::rest::RestClient;

/// Pause between two requests.
const PAUSE: Duration = Duration::from_millis(2);

pub(super) struct HealthProbe {
    waits: Arc<Mutex<HealthDelays>>,
    /// Polling task, aborted on drop.
    _asking: JoinSet<()>,
}

#[derive(Default)]
struct HealthDelays {
    longest: Duration,
    /// Start of the unanswered request.
    pending_since: Option<Instant>,
}

impl HealthDelays {
    fn answered(&mut self, wait: Duration) {
        self.longest = self.longest.max(wait);
        self.pending_since = None;
    }
}

impl HealthProbe {
    /// Starts polling; dropping the probe stops it.
    pub(super) async fn watch(address: SocketAddr) -> Result<Self> {
        let mut rest = RestClient::open(address).await?;
        let waits = Arc::new(Mutex::new(HealthDelays::default()));
        let noted = Arc::clone(&waits);
        let mut asking = JoinSet::new();
        asking.spawn(async move {
            loop {
                let pending_since = Instant::now();
                noted.lock().pending_since = Some(pending_since);
                if rest.get("/health").await.is_err() {
                    // The start time stays set and counts as an open request.
                    return;
                }
                noted.lock().answered(pending_since.elapsed());
                tokio::time::sleep(PAUSE).await;
            }
        });
        Ok(Self { waits, _asking: asking })
    }

    pub(super) fn begin(&self) {
        self.waits.lock().longest = Duration::ZERO;
    }

    /// Returns the longest response time since the start.
    pub(super) fn longest_ms(&self) -> f64 {
        let waits = self.waits.lock();
        let open = waits.pending_since.map(|pending_since| pending_since.elapsed()).unwrap_or_default();
        waits.longest.max(open).as_secs_f64() * 1000.0
    }
}
