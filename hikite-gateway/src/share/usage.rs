//! Slot usage as metrics.

use hikite_core::share::{CallerCounts, SlotUsage};

use super::SharedSlots;
use crate::meter::{Labels, Metric, Point};

impl<V> SharedSlots<V> {
    pub fn usage(&self) -> SlotUsage {
        let state = self.0.state.lock();
        SlotUsage::of(self.0.kind.resource, &state.shares, (&state.refused, &state.evicted))
    }
}

/// Builds the metrics of all resources.
pub fn metrics(usages: &[SlotUsage]) -> Vec<Metric> {
    let of = |usage: &SlotUsage| -> Labels { vec![("resource", usage.resource.into())] };
    let named = |usage: &SlotUsage, name: &str, value: f64| {
        let mut labels = of(usage);
        labels.push(("caller", name.to_owned().into()));
        Point { labels, value }
    };
    let plain = |value: fn(&SlotUsage) -> usize| -> Vec<Point> {
        usages.iter().map(|usage| Point { labels: of(usage), value: float(value(usage) as u64) }).collect()
    };
    let counted = |counts: fn(&SlotUsage) -> &CallerCounts| -> Vec<Point> {
        let of_usage = |usage| counts(usage).iter().map(move |(name, count)| (usage, name, *count));
        usages.iter().flat_map(of_usage).map(|(usage, name, count)| named(usage, name, float(count))).collect()
    };
    let held = usages.iter().flat_map(|usage| usage.top.iter().map(move |(name, held)| (usage, name, *held)));
    let held = held.map(|(usage, name, held)| named(usage, name, float(held as u64))).collect();
    vec![
        Metric::gauge("hikite.share.limit", "{place}", "Total number of slots.", plain(|usage| usage.all)),
        Metric::gauge("hikite.share.taken", "{place}", "Slots in use.", plain(|usage| usage.taken)),
        Metric::gauge("hikite.share.held", "{place}", "Slots held by the callers that use most.", held),
        Metric::counter(
            "hikite.share.refused",
            "{place}",
            "Slots refused to a caller.",
            counted(|usage| &usage.refused),
        ),
        Metric::counter(
            "hikite.share.evicted",
            "{place}",
            "Slots a caller lost to another caller or to itself.",
            counted(|usage| &usage.evicted),
        ),
    ]
}

#[expect(clippy::cast_precision_loss, reason = "numbers this large are no counts of ours")]
fn float(count: u64) -> f64 {
    count as f64
}
