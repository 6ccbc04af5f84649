//! Two loops over the store: one reads what other processes wrote, one does the periodic upkeep. They are apart so that
//! slow upkeep (a sweep, a rotation of signing keys) never delays the news of a revoked token.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use tokio::time::Instant;

use super::Runtime;

/// The interval at which the store is read for changes of other processes.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// The interval at which a store that is being read is asked whether it still answers.
const PROBE_INTERVAL: Duration = Duration::from_secs(3);
/// The time for one complete read, where `store.max_staleness` is shorter, and for one round of upkeep.
const READ_TIMEOUT: Duration = Duration::from_secs(30);
/// Rounds of upkeep between two writes of the daily counts: five seconds.
const COUNTS_EVERY: u32 = 10;
/// Rounds of upkeep between two sweeps of expired records: ten minutes.
const SWEEP_EVERY: u32 = 1200;
/// Rounds of upkeep between two looks at the signing keys: ten seconds.
const KEYS_EVERY: u32 = 20;

impl Runtime {
    /// Reads what other processes wrote, at the latest every half second.
    pub(super) async fn follow_store(self: Arc<Self>) {
        let mut was_readable = true;
        self.store.listen();
        let mut next = Instant::now() + POLL_INTERVAL;
        loop {
            let wait = next.saturating_duration_since(Instant::now());
            let changed = self.stopping.run_until_cancelled(self.store.changed(wait)).await;
            if changed.is_none() {
                return;
            }
            let Some(read) = self.stopping.run_until_cancelled(self.read_changes()).await else { return };
            // Logged once per outage, not twice a second.
            match &read {
                Err(error) if was_readable => tracing::warn!(
                    "the store cannot be read; cached data stays valid for {} s: {error}",
                    self.limits.max_staleness.as_secs()
                ),
                Ok(()) if !was_readable => tracing::info!("the store can be read again"),
                _ => {}
            }
            was_readable = read.is_ok();
            if !was_readable {
                self.gateway.freshness().note_failure();
            }
            if Instant::now() >= next {
                next = Instant::now() + POLL_INTERVAL;
            }
        }
    }

    /// Does the periodic upkeep of memory and store until hikite stops.
    pub(super) async fn keep_store_tidy(self: Arc<Self>) {
        let (mut round, mut keys_were_fine) = (0_u32, true);
        loop {
            let waited = self.stopping.run_until_cancelled(tokio::time::sleep(POLL_INTERVAL)).await;
            if waited.is_none() {
                return;
            }
            round = (round + 1) % SWEEP_EVERY;
            self.gateway.meter().sample_meters(Instant::now());
            self.gateway.catalogs().drop_idle_views();
            // A store that is away is asked when it is back.
            if !self.gateway.freshness().is_up() {
                continue;
            }
            let upkeep = tokio::time::timeout(READ_TIMEOUT, self.upkeep(round, &mut keys_were_fine));
            if self.stopping.run_until_cancelled(upkeep).await.is_none() {
                return;
            }
        }
    }

    async fn upkeep(&self, round: u32, keys_were_fine: &mut bool) {
        if round.is_multiple_of(COUNTS_EVERY)
            && let Err(error) = self.gateway.token_savings().persist_day().await
        {
            tracing::debug!(%error, "the daily counts are written later");
        }
        let Some(identity) = self.gateway.people().identity() else { return };
        if round == 0
            && let Err(error) = identity.sweep().await
        {
            tracing::warn!(%error, "failed to delete expired data from the store");
        }
        if round.is_multiple_of(KEYS_EVERY) {
            let tended = identity.keys().maintain().await;
            if let (Err(error), true) = (&tended, *keys_were_fine) {
                tracing::warn!(%error, "failed to maintain the signing keys of tokens");
            }
            *keys_were_fine = tended.is_ok();
        }
    }

    /// Reads what other processes wrote. A store that does not answer is given up, and asked again later.
    async fn read_changes(&self) -> Result<(), String> {
        // A store that is away is not asked for the rest: each question would wait, and be a line in the log.
        self.store.changes().revision().await.map_err(|error| error.to_string())?;
        let read = async {
            self.gateway.admin().store.catch_up().await?;
            self.apply_store_changes().await
        };
        let limit = self.limits.max_staleness.max(READ_TIMEOUT);
        tokio::select! {
            read = read => read.map_err(|error| error.to_string()),
            silence = self.silence() => Err(silence),
            () = tokio::time::sleep(limit) => Err(format!("it was not read within {} s", limit.as_secs())),
        }
    }

    /// Resolves when the store no longer answers. Reading all of a large one may take its time.
    async fn silence(&self) -> String {
        loop {
            tokio::time::sleep(PROBE_INTERVAL).await;
            if let Err(error) = self.store.changes().revision().await {
                return error.to_string();
            }
        }
    }
}
