//! What models were spared: answers that went out shorter than they came, and menus that show less than every tool. It is
//! counted in memory and added to the day's totals in the store every few seconds, off the path of a call.

use std::sync::atomic::{AtomicU64, Ordering};

use hikite_core::error::Error;
use hikite_core::json::{Object, Raw};
use hikite_core::time::rfc3339;
use hikite_core::tokens;

use crate::clock::now_ms;
use crate::gateway::Gateway;

/// The drawer of the days.
pub(crate) const DAY: &str = "day";
const DAY_MS: u64 = 24 * 60 * 60 * 1000;
/// How many days are told.
pub(crate) const DAYS: u64 = 30;
/// After so many a day is forgotten.
const KEPT_DAYS: u64 = 400;

/// Everything that is counted of a day, by the names that the store has for it.
const NAMES: [&str; 6] = ["calls", "errors", "answersRaw", "answersSent", "menuFlat", "menuSent"];

/// In tokens, as far as they are not written down yet.
#[derive(Debug, Default)]
pub(crate) struct Saving {
    /// Answers as their tools gave them, and as they went out.
    answers: [AtomicU64; 2],
    /// Menus as they would have been with every tool in them, and as they went out.
    menus: [AtomicU64; 2],
}

/// The counts of one day, in the order of `NAMES`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Day([u64; NAMES.len()]);

impl Saving {
    /// An answer of so many bytes, which went out as so many.
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

    fn give_back(&self, counts: [u64; 4]) {
        for (count, more) in self.answers.iter().chain(&self.menus).zip(counts) {
            count.fetch_add(more, Ordering::Relaxed);
        }
    }
}

impl Gateway {
    /// Adds what was counted since the last time to the totals of the day. What cannot be written is tried again.
    pub async fn write_down_day(&self) -> Result<(), Error> {
        let (calls, errors) = self.meter.take_counted();
        let saved = self.saving.take();
        let [raw, sent, flat, shown] = saved;
        let counts = [calls, errors, raw, sent, flat, shown];
        if counts == [0; 6] {
            return Ok(());
        }
        let now = now_ms();
        let more: Vec<(&'static str, u64)> = NAMES.into_iter().zip(counts).collect();
        let end = now + KEPT_DAYS * DAY_MS;
        let written = self.registry.store.tally(DAY, &day_of(now), &more, (now, end)).await;
        if written.is_err() {
            self.saving.give_back(saved);
            self.meter.give_back(calls, errors);
        }
        Ok(written?)
    }

    /// `{today, days}`: what is in the store, and what is not written down yet.
    pub async fn saved(&self) -> Result<Object, Error> {
        // A store that takes nothing can still be read.
        if let Err(error) = self.write_down_day().await {
            tracing::debug!(%error, "the counts of the day are written down later");
        }
        let now = now_ms();
        let entries = self.registry.store.entries(DAY, None, now).await?;
        let day = |id: &str| {
            let form = entries.iter().find(|entry| entry.id == id).and_then(|entry| entry.form.object());
            Day::read(&form.unwrap_or_default())
        };
        let days = (0..DAYS).rev().map(|ago| {
            let id = day_of(now.saturating_sub(ago * DAY_MS));
            let counts = day(&id);
            Object::default()
                .with("day", id)
                .with("calls", Raw::of(&counts.0[0]))
                .with("errors", Raw::of(&counts.0[1]))
                .with("tokensSaved", Raw::of(&counts.saved()))
                .raw()
        });
        let days = Raw::array(&days.collect::<Vec<Raw>>());
        Ok(Object::default().with("today", day(&day_of(now)).object()).with("days", days))
    }
}

impl Day {
    fn read(form: &Object) -> Self {
        Self(NAMES.map(|name| form.get(name).and_then(|count| count.decode().ok()).unwrap_or_default()))
    }

    fn saved(self) -> u64 {
        let [_, _, raw, sent, flat, shown] = self.0;
        raw.saturating_sub(sent) + flat.saturating_sub(shown)
    }

    fn object(self) -> Object {
        let [calls, errors, raw, sent, flat, shown] = self.0;
        let number = |count: u64| Raw::of(&count);
        Object::default()
            .with("calls", number(calls))
            .with("errors", number(errors))
            .with("tokensRaw", number(raw))
            .with("tokensSent", number(sent))
            .with("tokensFlat", number(flat))
            .with("tokensMenu", number(shown))
            .with("tokensSaved", number(self.saved()))
    }
}

/// `2026-11-16`, in UTC.
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
    use super::*;

    #[test]
    fn a_day_is_that_of_utc_and_savings_are_never_negative() {
        assert_eq!(
            (day_of(0), day_of(DAY_MS - 1), day_of(DAY_MS)),
            ("1970-01-01".into(), "1970-01-01".into(), "1970-01-02".into())
        );
        assert_eq!(Day([1, 0, 100, 40, 10, 30]).saved(), 60);
        let read = Day::read(&Day([1, 2, 3, 4, 5, 6]).form());
        assert_eq!(read, Day([1, 2, 3, 4, 5, 6]));
    }

    impl Day {
        fn form(self) -> Object {
            NAMES
                .into_iter()
                .zip(self.0)
                .fold(Object::default(), |form, (name, count)| form.with(name, Raw::of(&count)))
        }
    }
}
