//! Token savings: results that were compacted, and menus that show fewer tools than a flat list. Counted in memory
//! and added to the day's totals in the store every few seconds, off the path of calls.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hikite_api::{SavedDay, SavedDaySummary, SavedTokens};
use hikite_core::error::Error;
use hikite_core::json::Object;
use hikite_core::time::rfc3339;
use hikite_core::tokens;
use hikite_store::Store;

use crate::meter::Meter;
use hikite_store::clock::now_ms;

/// Store kind of daily totals.
pub(crate) const DAY: &str = "day";
const DAY_MS: u64 = 24 * 60 * 60 * 1000;
/// Number of days in the report.
pub(crate) const DAYS: u64 = 30;
/// Days after which totals expire.
const RETENTION_DAYS: u64 = 400;

/// Counters of a day, by their names in the store.
const NAMES: [&str; 6] = ["calls", "errors", "answersRaw", "answersSent", "menuFlat", "menuSent"];

/// Token counts that are not persisted yet, and the totals of each day in the store.
pub struct TokenSavings {
    meter: Arc<Meter>,
    store: Store,
    /// Tokens of results: as the tools returned them, and as sent.
    answers: [AtomicU64; 2],
    /// Tokens of menus: as a flat list of all tools, and as sent.
    menus: [AtomicU64; 2],
}

/// Counters of one day, in the order of `NAMES`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct DailyTotals([u64; NAMES.len()]);

impl std::fmt::Debug for TokenSavings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TokenSavings").finish_non_exhaustive()
    }
}

impl TokenSavings {
    pub(crate) fn new(meter: Arc<Meter>, store: Store) -> Self {
        Self { meter, store, answers: Default::default(), menus: Default::default() }
    }

    /// Counts a result by its bytes before and after rendering.
    pub(crate) fn answer(&self, raw: usize, sent: usize) {
        add(&self.answers, tokens::of_bytes(count(raw)), tokens::of_bytes(count(sent)));
    }

    pub(crate) fn menu(&self, flat: usize, sent: usize) {
        add(&self.menus, count(flat), count(sent));
    }

    fn take(&self) -> [u64; 4] {
        let [raw, sent] = &self.answers;
        let [flat, shown] = &self.menus;
        [raw, sent, flat, shown].map(|count| count.swap(0, Ordering::Relaxed))
    }

    fn restore_counts(&self, counts: [u64; 4]) {
        for (count, more) in self.answers.iter().chain(&self.menus).zip(counts) {
            count.fetch_add(more, Ordering::Relaxed);
        }
    }

    /// Adds the counts since the last call to the day's totals. A failed write is retried.
    pub async fn persist_day(&self) -> Result<(), Error> {
        let (calls, errors) = self.meter.take_counts();
        let saved = self.take();
        let [raw, sent, flat, shown] = saved;
        let counts = [calls, errors, raw, sent, flat, shown];
        if counts == [0; 6] {
            return Ok(());
        }
        let now = now_ms();
        let more: Vec<(&'static str, u64)> = NAMES.into_iter().zip(counts).collect();
        let end = now + RETENTION_DAYS * DAY_MS;
        let written = self.store.documents().add_counts(DAY, &day_of(now), &more, (now, end)).await;
        if written.is_err() {
            self.restore_counts(saved);
            self.meter.restore_counts(calls, errors);
        }
        Ok(written?)
    }

    /// Returns `{today, days}`, including counts that are not persisted yet.
    pub async fn saved(&self) -> Result<SavedTokens, Error> {
        // A store that cannot be written can still be read.
        if let Err(error) = self.persist_day().await {
            tracing::debug!(%error, "the daily counts are written later");
        }
        let now = now_ms();
        let entries = self.store.documents().all(DAY, None, now).await?;
        let day = |id: &str| {
            let form = entries.iter().find(|entry| entry.id == id).and_then(|entry| entry.document.object());
            DailyTotals::read(&form.unwrap_or_default())
        };
        let days = (0..DAYS).rev().map(|ago| {
            let id = day_of(now.saturating_sub(ago * DAY_MS));
            let counts = day(&id);
            SavedDaySummary { day: id, calls: counts.0[0], errors: counts.0[1], tokens_saved: counts.saved() }
        });
        Ok(SavedTokens { today: day(&day_of(now)).object(), days: days.collect() })
    }
}

impl DailyTotals {
    fn read(form: &Object) -> Self {
        Self(NAMES.map(|name| form.get(name).and_then(|count| count.decode().ok()).unwrap_or_default()))
    }

    fn saved(self) -> u64 {
        let [_, _, raw, sent, flat, shown] = self.0;
        raw.saturating_sub(sent) + flat.saturating_sub(shown)
    }

    fn object(self) -> SavedDay {
        let [calls, errors, tokens_raw, tokens_sent, tokens_flat, tokens_menu] = self.0;
        let tokens_saved = self.saved();
        SavedDay { calls, errors, tokens_raw, tokens_sent, tokens_flat, tokens_menu, tokens_saved }
    }
}

/// Returns a UTC date such as `2026-11-16`.
fn day_of(ms: u64) -> String {
    rfc3339(ms).chars().take(10).collect()
}

fn count(of: usize) -> u64 {
    u64::try_from(of).unwrap_or(u64::MAX)
}

fn add(pair: &[AtomicU64; 2], before: u64, after: u64) {
    for (total, tokens) in pair.iter().zip([before, after]) {
        total.fetch_add(tokens, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use hikite_core::json::Raw;

    use super::*;

    #[test]
    fn a_day_is_that_of_utc_and_savings_are_never_negative() {
        assert_eq!(
            (day_of(0), day_of(DAY_MS - 1), day_of(DAY_MS)),
            ("1970-01-01".into(), "1970-01-01".into(), "1970-01-02".into())
        );
        assert_eq!(DailyTotals([1, 0, 100, 40, 10, 30]).saved(), 60);
        let read = DailyTotals::read(&DailyTotals([1, 2, 3, 4, 5, 6]).form());
        assert_eq!(read, DailyTotals([1, 2, 3, 4, 5, 6]));
    }

    impl DailyTotals {
        fn form(self) -> Object {
            NAMES
                .into_iter()
                .zip(self.0)
                .fold(Object::default(), |form, (name, count)| form.with(name, Raw::of(&count)))
        }
    }
}
